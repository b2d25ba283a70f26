"""The word DECIDE: refused with its question, all at once, with every other problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.policy.load import parse
from dpsql.policy.problems import OPEN, PolicyError

DRAFT = """\
dpsql: 1
dataset: x
backend: DECIDE
privacy:
  unit: DECIDE
  units: DECIDE
  max_groups: DECIDE
  max_rows_per_group: DECIDE
  budget: {epsilon: DECIDE, delta: DECIDE}
tables:
  t:
    unit: DECIDE
    key: DECIDE
    columns:
      a: {type: integer, lower: DECIDE, upper: DECIDE}
      b: {type: text, values: DECIDE}
      c: {type: date, lower: DECIDE, upper: DECIDE}
      d: {type: text, values: [DECIDE, "DECIDE"]}
      e: {type: tekst}
roles: {r: {budget: {epsilon: 1, delta: 1e-8}}}
users: {alice: {role: r, password: DECIDE}}
"""


def test_every_open_decision_is_a_question_with_its_line() -> None:
    with pytest.raises(PolicyError) as refused:
        parse(DRAFT, Path("x.yaml"))
    found = {problem.key: problem for problem in refused.value.problems}
    assert len([p for p in found.values() if p.what == OPEN]) == DRAFT.count("DECIDE") - 1
    assert found["tables.t.columns.e.type"].fix == "did you mean `text`?"
    assert found["tables.t.columns.a.lower"].line == 15
    assert found["tables.t.columns.a.lower"].fix.startswith("the smallest a that counts as it is")
    assert found["tables.t.columns.c.lower"].fix.startswith("the earliest c that counts as it is")
    assert "dpsql password" in found["users.alice.password"].fix
    assert "duckdb:FILE" in found["backend"].fix
    assert all(p.fix.startswith("write the value") is False for p in found.values())
    assert refused.value.hint == (
        "16 decisions are open: write your answer in place of each word DECIDE, then run: dpsql check x.yaml"
    )


def test_in_quotes_it_is_text_like_any_other() -> None:
    text = DRAFT.split("tables:")[0].replace("{epsilon: DECIDE, delta: DECIDE}", "{epsilon: 1, delta: 1e-8}")
    text = text.replace("backend: DECIDE", "backend: duckdb:x").replace("unit: DECIDE", 'unit: "DECIDE"')
    text = text.replace("DECIDE\n", "10\n")
    policy = parse(text + 'tables: {t: {unit: u, columns: {a: {type: text, values: ["DECIDE"]}}}}\n', Path("x.yaml"))
    assert policy.tables["t"].columns["a"].values == ("DECIDE",)
    assert policy.privacy.unit == "DECIDE"
