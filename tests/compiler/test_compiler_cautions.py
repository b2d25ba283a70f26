"""What is said beforehand of sums that are clipped otherwise than alone."""

from __future__ import annotations

import sys

import pytest
from compiler_mini import TERMS, opened

from dpsql.compiler import compile_statement

DATA = """
CREATE TABLE visits (uid INTEGER, shop TEXT, amount INTEGER);
CREATE TABLE people (uid INTEGER PRIMARY KEY, age INTEGER);
"""
TABLES = """
  visits: {unit: uid, columns: {shop: {type: text, values: [a, b]}, amount: {type: integer, lower: 0, upper: 9}}}
  people: {unit: uid, columns: {age: {type: integer, lower: 0, upper: 100}}}
"""


def _said(text: str) -> str:
    schema = opened(DATA, TABLES, "person", "UTC", "max_groups: 2, max_rows_per_group: 3")[1]
    return " ".join(compile_statement(text, schema, TERMS).cautions)


@pytest.mark.parametrize("text", ["AVG(amount), SUM(amount)", "SUM(amount), shop, STDDEV(amount)"])
def test_a_sum_beside_a_statistic_is_told_to_be_clipped_otherwise(text: str) -> None:
    group = " GROUP BY shop" if "shop" in text else ""
    assert "SUM(amount): beside an average" in _said(f"SELECT {text} FROM visits{group}")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(amount) FROM visits",
        "SELECT AVG(amount), COUNT(*) FROM visits",
        "SELECT AVG(amount), SUM(amount + 1) FROM visits",
        "SELECT AVG(age), SUM(age) FROM people",
    ],
)
def test_nothing_is_said_where_the_clipping_is_the_same(text: str) -> None:
    assert _said(text) == ""


def test_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether anything can be clipped is asked, and the answer counts both ways."""
    monkeypatch.setattr(sys.modules["dpsql.compiler.cautions"], "may_clip", lambda *release: False)
    assert _said("SELECT AVG(amount), SUM(amount) FROM visits") == ""
    monkeypatch.setattr(sys.modules["dpsql.compiler.cautions"], "may_clip", lambda *release: True)
    assert _said("SELECT AVG(age), SUM(age) FROM people") != ""
