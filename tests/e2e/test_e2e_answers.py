"""Answers over the wire scatter around the truth as announced, in every protocol mode, and describe themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, cast

import duckdb
import pytest

from e2e.conftest import Databases
from e2e.proxy import Client, Proxy, Rows, ask, client

SIGMAS = 6
"""Of Gaussian noise: beyond it once in 5e8."""


@dataclass(frozen=True)
class Case:
    """Group keys, aggregates, and the rest of the query; no unit of the clean data exceeds its bound in it."""

    keys: tuple[str, ...]
    aggregates: tuple[str, ...]
    rest: str

    def raw(self) -> str:
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join((*self.keys, *self.aggregates))} {self.rest}{group}"

    def private(self) -> str:
        bars = (f"dp_stddev({aggregate})" for aggregate in self.aggregates)
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join((*self.keys, *self.aggregates, *bars))} {self.rest}{group}"


CASES = (
    Case((), ("COUNT(*)",), "FROM people"),
    Case(
        (),
        ("COUNT(*)", "SUM(age)", "AVG(age)", "SUM(salary)", "AVG(salary)", "SUM(score)", "AVG(score)"),
        "FROM people",
    ),
    Case(("city",), ("COUNT(*)", "AVG(score)"), "FROM people"),
    Case(("city", "age >= 60"), ("COUNT(*)",), "FROM people"),
    Case((), ("SUM(age * 2 + 1)", "SUM(CASE WHEN city = 'Rome' THEN 1 ELSE 0 END)"), "FROM people"),
    Case((), ("COUNT(*) FILTER (WHERE age < 30)", "SUM(salary) FILTER (WHERE city = 'Oslo')"), "FROM people"),
    Case(("date_trunc('year', joined)",), ("COUNT(*)",), "FROM people WHERE joined >= DATE '2010-01-01'"),
    Case(("CASE WHEN age < 18 THEN 'child' ELSE 'adult' END",), ("AVG(salary)",), "FROM people"),
    Case(("shop",), ("COUNT(*)", "SUM(amount)", "AVG(amount)", "COUNT(DISTINCT uid)"), "FROM visits"),
    Case(("region",), ("COUNT(DISTINCT uid)",), "FROM visits JOIN shops USING (shop)"),
    Case(
        ("v.shop",),
        ("COUNT(*)", "SUM(p.age)"),
        "FROM people p JOIN visits v ON p.uid = v.uid WHERE p.city IN ('Oslo', 'Lima')",
    ),
    Case((), ("COUNT(*)",), "FROM people p LEFT JOIN shops s ON p.note = s.shop WHERE s.shop IS NULL"),
    Case(("note",), ("COUNT(*)",), "FROM people"),
)


@pytest.fixture(scope="module")
def truth(databases: Databases) -> Iterator[duckdb.DuckDBPyConnection]:
    path = databases("duckdb", "clean").removeprefix("duckdb:")
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.fixture(scope="module")
def alice(clean: Proxy) -> Iterator[Client]:
    with client(clean) as opened:
        opened.execute("SET dpsql.epsilon = 20")
        yield opened


def compare(case: Case, answer: Rows, exact: Rows) -> None:
    width = len(case.keys)
    known = {_key(row[:width]): row[width:] for row in exact}
    zero = (0,) * len(case.aggregates)
    for row in answer:
        values, bars = row[width : width + len(zero)], row[width + len(zero) :]
        for aggregate, value, bar, right in zip(
            case.aggregates, values, bars, known.get(_key(row[:width]), zero), strict=True
        ):
            assert bar > 0
            assert abs(float(value) - float(right or 0)) <= SIGMAS * bar + 1, (aggregate, row, right)


def _key(values: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(value)[:10] for value in values)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.private()[7:47])
def test_within_the_error_bars(case: Case, alice: Client, truth: duckdb.DuckDBPyConnection) -> None:
    answer = ask(alice, case.private())
    exact = truth.execute(case.raw()).fetchall()
    assert len(answer) == len(exact)
    compare(case, answer, exact)


def test_intervals_hold_the_value(alice: Client) -> None:
    rows = ask(
        alice, "SELECT COUNT(*), dp_interval_low(COUNT(*)), dp_interval_high(COUNT(*)), dp_stddev(COUNT(*)) FROM people"
    )
    value, low, high, bar = rows[0]
    assert low < value < high
    assert 3.4 * bar < high - low < 4.6 * bar


@pytest.mark.parametrize("binary", [False, True])
def test_parameters_of_every_type(alice: Client, truth: duckdb.DuckDBPyConnection, binary: bool) -> None:
    where = "age >= {} AND city = {} AND joined < {} AND salary < {}"
    given = (20, "Rome", date(2025, 1, 1), Decimal("190000.50"))
    query = f"SELECT COUNT(*), dp_stddev(COUNT(*)) FROM people WHERE {where.format('%s', '%s', '%s', '%s')}"
    literal = where.format("20", "'Rome'", "'2025-01-01'", "190000.50")
    right = truth.execute(f"SELECT COUNT(*) FROM people WHERE {literal}").fetchall()[0][0]
    first = ask(alice, query, given, binary=binary)
    for _ in range(8):
        assert ask(alice, query, given, binary=binary) == first
    assert abs(first[0][0] - right) <= SIGMAS * first[0][1] + 1
    assert type(first[0][0]) is int


def test_a_null_parameter_matches_nothing(alice: Client) -> None:
    ((count, bar),) = ask(alice, "SELECT COUNT(*), dp_stddev(COUNT(*)) FROM people WHERE note = %s", [None])
    assert abs(count) <= SIGMAS * bar + 1


@pytest.mark.parametrize("hostile", ["'; DROP TABLE people; --", "\\", "$1", "%", "é\u200b", "(", "x" * 10_000])
def test_text_parameters_are_only_text(alice: Client, hostile: str) -> None:
    ((count, bar),) = ask(alice, "SELECT COUNT(*), dp_stddev(COUNT(*)) FROM people WHERE note = %s", [hostile])
    assert abs(count) <= SIGMAS * bar + 1


@pytest.mark.parametrize("binary", [False, True])
def test_prepared_statements(alice: Client, binary: bool) -> None:
    query = (
        "SELECT city, COUNT(*) AS n, AVG(salary) AS mean, AVG(score), SUM(age)"
        " FROM people GROUP BY city ORDER BY n DESC"
    )
    seen = [alice.execute(query.encode(), prepare=True, binary=binary).fetchall() for _ in range(9)]
    assert seen == seen[:1] * 9
    assert [type(value) for value in seen[0][0]] == [str, int, Decimal, float, int]


def test_what_is_announced_is_sent(alice: Client) -> None:
    cursor = alice.execute(
        "SELECT city, COUNT(*), SUM(age), AVG(age), AVG(score), SUM(salary) FROM people GROUP BY city"
    )
    assert [column.type_code for column in cursor.description or ()] == [25, 20, 20, 1700, 701, 1700]
    assert cursor.rowcount == 3


def test_keys_come_in_key_order_and_complete(alice: Client) -> None:
    assert [row[0] for row in ask(alice, "SELECT city, COUNT(*) FROM people GROUP BY city")] == ["Lima", "Oslo", "Rome"]
    empty = ask(alice, "SELECT city, COUNT(*) FROM people WHERE age = 77 AND age = 78 GROUP BY city")
    assert [row[0] for row in empty] == ["Lima", "Oslo", "Rome"]
    shops = ask(alice, "SELECT shop, COUNT(*) FROM visits WHERE shop <> 'zoo' GROUP BY shop")
    assert [row[0] for row in shops][:4] == ["books", "cafe", "cinema", "garden"]


def test_the_remainder_is_free_and_consistent(alice: Client, clean: Proxy) -> None:
    plain: dict[str, int] = dict(ask(alice, "SELECT city, COUNT(*) FROM people GROUP BY city"))
    before = clean.spent()
    shapes = (
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2",
        "SELECT city, COUNT(*) FROM people GROUP BY city HAVING COUNT(*) > 0",
        "SELECT COUNT(*) AS n, city AS c FROM people GROUP BY 2",
        "SELECT city, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () FROM people GROUP BY city",
        "SELECT q.city, q.n / 2 FROM (SELECT city, COUNT(*) AS n FROM people GROUP BY city) q WHERE q.n > 1",
        "WITH c AS (SELECT city, COUNT(*) AS n FROM people GROUP BY city) SELECT MAX(n), MIN(n), SUM(n) FROM c",
    )
    results = [ask(alice, shape) for shape in shapes]
    assert dict(results[1]) == plain
    assert {city: count for count, city in results[2]} == plain
    assert results[5] == [(max(plain.values()), min(plain.values()), sum(plain.values()))]
    assert clean.spent() == before


def test_explain_is_free_and_tells_the_noise(alice: Client, clean: Proxy) -> None:
    before = clean.spent()
    text = ask(alice, "EXPLAIN SELECT city, AVG(salary) FROM people GROUP BY city")
    assert any("epsilon" in line for (line,) in text)
    ((made,),) = ask(alice, "EXPLAIN (FORMAT JSON) SELECT shop, COUNT(*) FROM visits GROUP BY shop")
    plan = cast("dict[str, Any]", json.loads(made) if isinstance(made, str) else made)
    assert set(plan["price"]) == {"epsilon", "delta", "rho"}
    release = plan["releases"][0]
    assert release["keys"] == {"names": ["shop"], "kind": "public", "size": 5}
    (measurement,) = release["measurements"]
    assert measurement["norm"] == "l2"
    assert measurement["sensitivity_squared"] == 3 * 10**2 * 1024**2
    assert clean.spent() == before


def test_views_and_public_tables(alice: Client, truth: duckdb.DuckDBPyConnection) -> None:
    ((count, bar),) = ask(alice, "SELECT COUNT(*), dp_stddev(COUNT(*)) FROM adults")
    right = truth.execute("SELECT COUNT(*) FROM people WHERE age >= 18").fetchall()[0][0]
    assert abs(count - right) <= SIGMAS * bar + 1
    assert ask(alice, "SELECT region, COUNT(*) FROM shops GROUP BY region ORDER BY 1") == [("north", 3), ("south", 2)]


def test_a_public_table_may_be_asked_about_without_a_budget(clean: Proxy) -> None:
    with client(clean, "olga") as olga:
        assert ask(olga, "SELECT 1") == [(1,)]
        assert clean.refusal(olga, "SELECT COUNT(*) FROM people").sqlstate == "42501"
