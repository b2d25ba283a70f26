"""SmartNoise metadata, converted: what has a counterpart, what is said, and what is left to decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.commands.import_ import import_
from dpsql.policy.draft import Source
from dpsql.policy.load import parse
from dpsql.policy.problems import PolicyError
from dpsql.policy.smartnoise import convert
from dpsql.types import Kind

SOURCE = Source("pums.yaml", "duckdb:pums.duckdb", "pums")
METADATA = """\
"":
  PUMS:
    PUMS:
      max_ids: 1
      rows: 1000
      sample_max_ids: False
      clamp_counts: True
      clamp_columns: False
      censor_dims: False
      use_dpsu: True
      age: {type: int, lower: 0, upper: 100, nullable: False}
      sex: {type: string, cardinality: 2}
      income: {type: float, lower: 0, upper: 500000.5, missing_value: 0}
      married: {type: boolean}
      '"Sale-Amount"': {type: float, sensitivity: 3}
      x: {type: unknown}
      when: {type: datetime}
      pid: {type: int, private_id: True}
    PUMS2:
      max_ids: 3
      age: {type: int, lower: 0, upper: 100, foo: 3}
      pid: {type: int, private_id: True}
    nobody:
      a: {type: int}
"""


def decided(text: str) -> str:
    text = text.replace("epsilon: DECIDE", "epsilon: 3").replace(", password: DECIDE", "")
    return text.replace("DECIDE", "2")


def test_metadata_become_a_policy() -> None:
    text = convert(METADATA, SOURCE)
    policy = parse(decided(text), Path("pums.yaml"))
    assert policy.privacy.unit == "pid"
    assert policy.privacy.units == 1000
    assert (policy.privacy.max_groups, policy.privacy.max_rows_per_group) == (2, 3)
    assert set(policy.tables) == {"PUMS", "PUMS2"}
    table = policy.tables["PUMS"]
    assert (table.unit, table.max_rows) == ("pid", 1)
    assert table.columns["age"].lower == 0
    assert table.columns["income"].upper == 500000.5
    assert {name: column.type.kind for name, column in table.columns.items() if column.type is not None} == {
        "age": Kind.INT4,
        "sex": Kind.TEXT,
        "income": Kind.FLOAT8,
        "married": Kind.BOOL,
        "Sale-Amount": Kind.FLOAT8,
        "when": Kind.TIMESTAMP,
    }


@pytest.mark.parametrize(
    "said",
    [
        "sample_max_ids: false has no counterpart",
        "clamp_columns: false has no counterpart",
        "clamp_counts: true has no counterpart: write greatest(count(*), 0)",
        "censor_dims: false has no counterpart",
        "use_dpsu has no counterpart",
        "cardinality 2: list `values`",
        "missing_value: write coalesce(...)",
        "sensitivity has no counterpart",
        "# x is left out: its type is unknown",
        "foo is unknown",
        "# nobody is left out: it has neither private_id nor row_privacy",
    ],
)
def test_what_has_no_counterpart_is_said(said: str) -> None:
    assert said in convert(METADATA, SOURCE)


def test_one_row_a_unit_needs_no_decision_on_contributions() -> None:
    text = convert("db: {s: {t: {rows: 50, id: {type: int, private_id: True}, a: {type: int}}}}", SOURCE)
    policy = parse(decided(text), Path("x.yaml"))
    assert (policy.privacy.max_groups, policy.privacy.max_rows_per_group) == (1, 1)


def test_row_privacy_is_the_unit_row_and_never_mixed() -> None:
    text = convert("db: {s: {t: {row_privacy: True, rows: 50, a: {type: int, lower: 0, upper: 3}}}}", SOURCE)
    assert parse(decided(text), Path("x.yaml")).privacy.is_row
    mixed = convert("db: {s: {t: {row_privacy: True, a: {type: int}}, u: {id: {type: int, private_id: True}}}}", SOURCE)
    assert "  unit: DECIDE\n" in mixed


def test_different_or_several_ids_are_a_decision() -> None:
    text = convert("d: {s: {t: {a: {type: int, private_id: True}, b: {type: int, private_id: True}}}}", SOURCE)
    assert "    unit: DECIDE\n" in text
    two = convert("d: {s: {t: {a: {type: int, private_id: True}}, u: {b: {type: int, private_id: True}}}}", SOURCE)
    assert "  unit: DECIDE\n" in two


def test_values_cannot_break_out_of_the_text() -> None:
    evil = '"x}\\n  evil: {public: true}"'
    text = convert(
        f"d: {{s: {{{evil}: {{a: {{type: int, private_id: True}}, b: {{type: int, lower: {evil}}}}}}}}}", SOURCE
    )
    assert "\n  evil" not in text
    assert "lower: DECIDE" in text


@pytest.mark.parametrize("text", ["", "a", "[]", "a: 3", "a: {b: 3}", "a: {b: {c: 3}}", "a: {b: {c: {d: 3}}}", "a: ["])
def test_what_is_no_metadata_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        convert(text, SOURCE)


def test_the_command_writes_and_never_overwrites(tmp_path: Path) -> None:
    (tmp_path / "meta.yaml").write_text(METADATA)
    out = tmp_path / "policy.yaml"
    arguments = ["smartnoise", str(tmp_path / "meta.yaml"), "-o", str(out)]
    first = CliRunner().invoke(import_, arguments)
    assert first.exit_code == 0
    assert f"Next: dpsql check {out}" in first.stderr
    assert "backend: DECIDE" in out.read_text()
    again = CliRunner().invoke(import_, arguments)
    assert "already" in str(again.exception)
    assert CliRunner().invoke(import_, [*arguments, "--force"]).exit_code == 0


def test_schemas_become_sources() -> None:
    two = '"": {dbo: {t: {id: {type: int, private_id: true}}}, public: {t: {id: {type: int, private_id: true}}}}\n'
    policy = parse(decided(convert(two, SOURCE)), Path("two.yaml"))
    assert {name: str(table.at(name)) for name, table in policy.tables.items()} == {
        "t": "dbo.t",
        "public_t": "public.t",
    }
