"""Groups of one unit each are refused before any debit, and what the hint proposes compiles."""

from __future__ import annotations

import re

import pytest
from compiler_mini import TERMS, opened

from dpsql.compiler import Compiled, compile_statement
from dpsql.compiler.split import private
from dpsql.errors import Rejected

DATA = """
CREATE TABLE visits (uid INTEGER, shop TEXT, amount DOUBLE);
CREATE TABLE people (uid INTEGER PRIMARY KEY, mail TEXT NOT NULL UNIQUE, age INTEGER, seat INTEGER);
CREATE TABLE orders (o_id INTEGER PRIMARY KEY, uid INTEGER, total INTEGER);
CREATE TABLE lines (o_id INTEGER, qty INTEGER);
"""
TABLES = """
  visits: {unit: uid, columns: {shop: {type: text}, amount: {type: double, lower: 0, upper: 9}}}
  people: {unit: uid, columns: {mail: {type: text}, age: {type: integer, lower: 0, upper: 100}}}
  orders: {unit: uid, key: o_id, columns: {total: {type: integer, lower: 0, upper: 100}}}
  lines: {unit: {through: orders, on: {o_id: o_id}}, columns: {qty: {type: integer, lower: 0, upper: 100}}}
"""
REFUSED = (
    "SELECT uid, COUNT(*) FROM visits GROUP BY uid",
    "SELECT v.uid AS who, COUNT(*) AS n, SUM(amount) FROM visits v WHERE amount > 1 GROUP BY v.uid "
    "ORDER BY 2 DESC LIMIT 5",
    "SELECT uid, shop, AVG(amount) FROM visits GROUP BY uid, shop",
    "SELECT uid FROM visits GROUP BY uid HAVING COUNT(*) > 3",
    "SELECT DISTINCT uid FROM visits",
    "SELECT o_id, SUM(total) FROM orders GROUP BY o_id",
    "SELECT o_id, SUM(qty) FROM lines GROUP BY 1",
    "SELECT mail, MAX(age) FROM people GROUP BY mail",
    "SELECT p.mail, COUNT(*) FROM people p JOIN visits v ON v.uid = p.uid GROUP BY p.mail",
    "SELECT COUNT(*) AS n FROM visits GROUP BY uid",
)
ANSWERED = (
    "SELECT shop, COUNT(*) FROM visits GROUP BY shop",
    "SELECT COUNT(DISTINCT uid) FROM visits",
    "SELECT n, COUNT(*) FROM (SELECT uid, COUNT(*) AS n FROM visits GROUP BY uid) AS u GROUP BY n",
    "SELECT uid, COUNT(*) FROM visits GROUP BY uid LIMIT 0",
    "SELECT total, COUNT(*) FROM orders GROUP BY total",
)


def _compile(text: str) -> Compiled:
    return compile_statement(
        text, opened(DATA, TABLES, "person", "UTC", "max_groups: 2, max_rows_per_group: 3")[1], TERMS
    )


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_a_hint_that_compiles(text: str) -> None:
    with pytest.raises(Rejected, match="Every group here is one person") as refused:
        _compile(text)
    found = re.search(r"SELECT .*", refused.value.hint or "")
    assert found is not None
    assert _compile(found[0]).releases


@pytest.mark.parametrize("text", ANSWERED)
def test_groups_of_many_are_answered(text: str) -> None:
    _compile(text)


def test_mutant_what_determines_the_unit_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "determine_unit", lambda keys, source: "uid" in str(keys))
    _compile(REFUSED[5])


def test_mutant_no_key_holds_the_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "determine_unit", lambda keys, source: False)
    for text in REFUSED:
        assert _compile(text).releases
