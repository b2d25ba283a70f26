"""The setting dpsql.error_bars adds columns, and changes neither what is measured nor its price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compiler_mini import BOUNDS, TERMS, opened

from dpsql.compiler import Compiled, compile_statement
from dpsql.errors import Rejected

DATA = "CREATE TABLE visits (uid INTEGER, shop TEXT, amount INTEGER)"
TABLES = """  visits:
    unit: uid
    columns:
      shop: {type: text, values: [a, b]}
      amount: {type: integer, lower: 0, upper: 100}
"""
_, SCHEMA = opened(DATA, TABLES, "person", "UTC", BOUNDS)
BARS = replace(TERMS, error_bars=True)


def names(compiled: Compiled) -> list[str]:
    return [column.name for column in compiled.columns]


def both(text: str) -> tuple[Compiled, Compiled]:
    return compile_statement(text, SCHEMA, TERMS), compile_statement(text, SCHEMA, BARS)


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("SELECT shop, COUNT(*) AS n FROM visits GROUP BY shop", ["n_low", "n_high"]),
        ("SELECT AVG(amount), COUNT(*) FROM visits", ["avg_low", "avg_high", "count_low", "count_high"]),
        ("SELECT COUNT(*) FILTER (WHERE amount > 5) FROM visits", ["count_low", "count_high"]),
        ("SELECT shop FROM visits GROUP BY shop", []),
        ("SELECT DISTINCT COUNT(*) FROM visits GROUP BY shop", []),
        ("SELECT COUNT(*), dp_interval_low(COUNT(*)) AS low FROM visits", ["count_low", "count_high"]),
        ("SELECT shop, COUNT(*) FROM visits GROUP BY ROLLUP (shop)", ["count_low", "count_high"]),
        ("SELECT round(SUM(amount) / COUNT(*)::numeric, 2) AS mean FROM visits", ["mean_low", "mean_high"]),
        ("SELECT CASE WHEN COUNT(*) > 5 THEN 'many' END AS word FROM visits", []),
        ("SELECT SUM(amount) * 1.0 / (SELECT COUNT(*) FROM visits) AS share FROM visits", []),
        ("SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits) AS share FROM visits", []),
        ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits", []),
    ],
)
def test_each_aggregate_gets_its_interval_and_nothing_else_changes(text: str, added: list[str]) -> None:
    plain, barred = both(text)
    assert names(barred) == names(plain) + added
    assert barred.cost == plain.cost
    assert [r.canonical for r in barred.releases] == [r.canonical for r in plain.releases]


def test_a_column_without_an_interval_does_not_take_the_others_theirs() -> None:
    text = "SELECT COUNT(*) AS n, dense_rank() OVER (ORDER BY COUNT(*)) AS place FROM visits GROUP BY shop"
    plain, barred = both(text)
    assert names(barred)[: len(names(plain))] == names(plain)
    assert {"n_low", "n_high"} <= set(names(barred))


def test_a_refusal_is_that_of_the_statement_itself() -> None:
    text = "SELECT COUNT(*), SUM(nothing) FROM visits"
    with pytest.raises(Rejected) as plain:
        compile_statement(text, SCHEMA, TERMS)
    with pytest.raises(Rejected) as barred:
        compile_statement(text, SCHEMA, BARS)
    assert (barred.value.message, barred.value.position) == (plain.value.message, plain.value.position)
