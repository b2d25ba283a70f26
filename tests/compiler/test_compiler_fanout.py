"""How many public rows one private row can meet: what is refused, what works, and that the bound holds in fact."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from compiler_mini import TERMS, opened

from dpsql.backends import Backend
from dpsql.compiler import Compiled, compile_statement, fanout
from dpsql.compiler.algebra import Expr, columns_of, outputs
from dpsql.compiler.emit import DUCKDB
from dpsql.compiler.emit.relation import emitter_for, relation
from dpsql.compiler.fanout import Facts
from dpsql.compiler.walk import used_columns
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema

DATA = """
CREATE TABLE people (uid INTEGER PRIMARY KEY, age INTEGER, shop TEXT, day DATE);
INSERT INTO people SELECT i, i % 90, 's' || (i % 40), DATE '2020-01-01' + CAST(i % 300 AS INTEGER) FROM range(60) r(i);
CREATE TABLE visits (uid INTEGER, amount DOUBLE, shop TEXT);
INSERT INTO visits SELECT i % 60, i, 's' || (i % 40) FROM range(300) r(i);
CREATE TABLE nums (n INTEGER PRIMARY KEY);
INSERT INTO nums SELECT i FROM range(100) r(i);
CREATE TABLE many (n INTEGER PRIMARY KEY, ten INTEGER, half INTEGER);
INSERT INTO many SELECT i, i // 10, i % 2 FROM range(20000) r(i);
CREATE TABLE shops (shop TEXT PRIMARY KEY, region TEXT);
INSERT INTO shops SELECT 's' || i, 'r' || (i % 4) FROM range(40) r(i);
CREATE TABLE tags (shop TEXT, tag TEXT, weight INTEGER);
INSERT INTO tags SELECT 's' || (i % 40), 't' || (i % 7), i FROM range(600) r(i);
CREATE TABLE days (day DATE PRIMARY KEY, year INTEGER, month INTEGER);
INSERT INTO days SELECT d, year(d), month(d) FROM
  (SELECT DATE '2015-01-01' + CAST(i AS INTEGER) AS d FROM range(3000) r(i));
"""
TABLES = """
  people:
    unit: uid
    max_rows: 1
    columns: {age: {type: integer, lower: 0, upper: 100}, shop: {type: text},
      day: {type: date, lower: 2020-01-01, upper: 2020-12-31}}
  visits: {unit: uid, columns: {amount: {type: double, lower: 0, upper: 500}, shop: {type: text}}}
  nums: {public: true, key: n}
  many: {public: true, key: n}
  shops: {public: true, key: shop}
  tags: {public: true}
  days: {public: true, key: day}
"""
REFUSED = {
    "four times": "SELECT COUNT(*) FROM nums a, nums b, nums c, nums d, people WHERE uid = 7",
    "twice": "SELECT COUNT(*) FROM nums a, people, nums b WHERE uid = 7",
    "explicit": "SELECT COUNT(*) FROM people CROSS JOIN nums a CROSS JOIN nums b",
    "no key": "SELECT COUNT(*) FROM people JOIN many ON many.half = people.age",
    "range": "SELECT COUNT(*) FROM people JOIN many ON many.n > people.age",
    "left": "SELECT COUNT(uid) FROM people LEFT JOIN many ON many.n > people.age",
    "series": "SELECT COUNT(*) FROM people, generate_series(1, 300) AS g(n)",
    "two series": "SELECT COUNT(*) FROM people, generate_series(1, 50) AS g(n), generate_series(1, 50) AS h(n)",
    "values": "SELECT COUNT(*) FROM people, (VALUES (1), (2), (3), (4), (5)) a(x), nums",
    "union of constants": "SELECT COUNT(*) FROM people, (SELECT n FROM nums UNION ALL SELECT n FROM nums) AS u",
    "computed": "SELECT COUNT(*) FROM people, (SELECT a.n FROM nums a, nums b, nums c) AS u",
    "computed, joined": "SELECT COUNT(*) FROM people p JOIN (SELECT a.n FROM nums a, nums b) AS u ON u.n = p.age",
    "released": "SELECT COUNT(*) FROM people, (SELECT shop, COUNT(*) AS c FROM visits GROUP BY shop) AS r",
    "chain": "SELECT COUNT(*) FROM people p JOIN tags a ON a.shop = p.shop JOIN tags b ON b.tag = a.tag",
    "not the whole key": "SELECT COUNT(*) FROM people p JOIN days d ON d.year = 2020",
    "many branches": "SELECT COUNT(*) FROM (" + " UNION ALL ".join(["SELECT uid FROM people, nums"] * 3) + ") AS u",
    "branches that multiply": "SELECT COUNT(*) FROM (SELECT uid FROM people, nums UNION ALL SELECT uid FROM "
    "people) AS u",
    "each unit": "SELECT AVG(c) FROM (SELECT uid, COUNT(*) AS c FROM visits, nums a, nums b GROUP BY uid) AS u",
    "exists": "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM many m WHERE m.n > p.age)",
    "exists of products": "SELECT COUNT(*) FROM people p WHERE EXISTS "
    "(SELECT 1 FROM nums a, nums b, nums c WHERE a.n + b.n + c.n = p.age)",
    "in with its third value": "SELECT COUNT(*) FROM people p WHERE (p.age IN (SELECT n FROM many m)) IS NULL",
    "in, not a key": "SELECT COUNT(*) FROM people WHERE age NOT IN (SELECT n FROM many)",
    "in many rows": "SELECT COUNT(*) FROM people, nums WHERE age + nums.n NOT IN (SELECT ten FROM many WHERE n < 9)",
    "exists of private rows": "SELECT COUNT(*) FROM people p WHERE EXISTS "
    "(SELECT 1 FROM visits v, nums a, nums b WHERE v.uid = p.uid)",
    "work": "SELECT "
    + ", ".join(f"SUM(age + n * {i} + age * {i} + n + {i})" for i in range(99))
    + " FROM people, nums",
    "in a filter": "SELECT COUNT(*) FILTER (WHERE age NOT IN (SELECT n FROM many)) FROM people",
}
WORKS = {
    "key": "SELECT region, COUNT(*) FROM people JOIN shops USING (shop) GROUP BY region",
    "key by where": "SELECT region, COUNT(*) FROM people p, shops s WHERE s.shop = p.shop GROUP BY region",
    "key in every alternative": "SELECT COUNT(*) FROM people p, many m WHERE (m.n = p.age AND p.age > 3) OR "
    "(m.n = p.age AND m.ten < 5)",
    "left on key": "SELECT region, COUNT(*) FROM people LEFT JOIN shops USING (shop) GROUP BY region",
    "kept public rows": "SELECT region, COUNT(uid) FROM shops LEFT JOIN people USING (shop) GROUP BY region",
    "some": "SELECT tag, COUNT(*) FROM people JOIN tags USING (shop) GROUP BY tag",
    "constant part": "SELECT COUNT(*) FROM people p JOIN days d ON d.year = 2020 AND d.month = p.age",
    "constant in where": "SELECT COUNT(*) FROM people p, days d WHERE d.month = 3 AND d.year = p.age + 2000",
    "one constant row": "SELECT COUNT(*) FROM people, many a, many b WHERE a.n = 7 AND b.n = 9",
    "calendar": "SELECT d.month, COUNT(*) FROM people p JOIN days d ON d.day = p.day GROUP BY d.month",
    "small cross": "SELECT COUNT(*) FROM people, nums",
    "bands": "SELECT lo, COUNT(*) FROM people JOIN (VALUES (0, 30), (30, 60), (60, 200)) b(lo, hi) "
    "ON age >= lo AND age < hi GROUP BY lo",
    "series as a list": "SELECT n, COUNT(*) FROM people JOIN generate_series(0, 90) AS g(n) ON n = age GROUP BY n",
    "released and limited": "SELECT COUNT(*) FROM visits v JOIN (SELECT shop FROM visits GROUP BY shop ORDER BY "
    "COUNT(*) "
    "DESC LIMIT 5) AS top ON top.shop = v.shop",
    "released by key": "SELECT COUNT(*) FROM visits v JOIN (SELECT shop, COUNT(*) AS c FROM visits GROUP BY shop "
    "HAVING COUNT(*) > 3) AS top ON top.shop = v.shop",
    "released by key, twice wrapped": "SELECT COUNT(*) FROM visits v JOIN (SELECT s AS x FROM (SELECT shop AS "
    "s, COUNT(*) "
    "AS c FROM visits GROUP BY 1) AS q WHERE c > 3) AS top ON top.x = v.shop",
    "released as one row": "SELECT COUNT(*) FROM visits v, (SELECT AVG(amount) AS a FROM visits) AS m WHERE "
    "v.amount > m.a",
    "public rows of a subquery": "SELECT COUNT(*) FROM people JOIN (SELECT shop FROM shops WHERE region = 'r1') "
    "AS s USING (shop)",
    "wrapped and aggregated": "SELECT COUNT(m) FROM people JOIN (SELECT shop, MAX(weight) AS m FROM tags GROUP "
    "BY shop) AS t USING (shop)",
    "distinct": "SELECT COUNT(*) FROM people JOIN (SELECT DISTINCT ten FROM many) AS m ON m.ten = people.age",
    "star of a subquery": "SELECT tag, COUNT(*) FROM people JOIN (SELECT * FROM tags) AS t USING (shop) GROUP BY tag",
    "in": "SELECT COUNT(*) FROM people WHERE shop IN (SELECT shop FROM shops WHERE region = 'r1')",
    "in, by a column": "SELECT COUNT(*) FROM people WHERE age IN (SELECT ten FROM many)",
    "not in": "SELECT COUNT(*) FROM people WHERE age NOT IN (SELECT n FROM nums)",
    "exists on key": "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM shops s WHERE s.shop = p.shop)",
    "two branches": "SELECT COUNT(*) FROM (SELECT uid, shop FROM people UNION ALL SELECT uid, shop FROM visits) AS u",
    "each unit on key": "SELECT AVG(c) FROM (SELECT uid, COUNT(*) AS c FROM visits JOIN shops USING (shop) "
    "GROUP BY uid) AS u",
    "private with private": "SELECT COUNT(*) FROM people p JOIN visits v ON p.uid = v.uid JOIN shops s ON "
    "s.shop = v.shop",
}


def _opened() -> tuple[Backend, Schema]:
    return opened(DATA, TABLES, "person", "UTC", "max_groups: 2, max_rows_per_group: 3")


def _compile(text: str) -> Compiled:
    return compile_statement(text, _opened()[1], TERMS)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    with pytest.raises(Rejected) as refused:
        _compile(REFUSED[name])
    assert refused.value.sqlstate == TOO_COMPLEX
    assert refused.value.message.startswith(("One row of people", "One row of visits"))
    assert refused.value.hint


@pytest.mark.parametrize("name", WORKS)
def test_ordinary_joins_work(name: str) -> None:
    _compile(WORKS[name])


# The bound against the rows themselves -------------------------------------------------------------------------------


def _most_of_one(compiled: Compiled) -> tuple[int, int]:
    """The most rows that one row of `people` becomes in what is aggregated: as computed, and as counted."""
    backend, schema = _opened()
    made = compiled.releases[-1].aggregation
    used = used_columns(made)
    assert made.unit is not None or made.one_row
    unit = made.unit or next(name for name in outputs(made.input) if name.endswith("_uid"))
    rows = relation(made.input, used | {unit}, emitter_for(DUCKDB, {}, used | {unit}))
    each = f'SELECT COUNT(*) AS n FROM {rows} AS source GROUP BY "{unit}"'
    ((most,),) = backend.fetch(f"SELECT COALESCE(MAX(n), 0) AS n FROM ({each}) AS counted", 0, 30.0).cells
    return Facts(schema).spread(made.input, ()), most


PLAIN = {name for name, text in (REFUSED | WORKS).items() if "(SELECT" not in text and "visits" not in text} - {
    "four times", "explicit", "values", "two series", "bands", "series", "series as a list", "work",
}  # fmt: skip


@pytest.fixture
def without_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST_MET", "MOST_MET", "MOST_WORK", "MOST_COMPARED"):
        monkeypatch.setattr(fanout, name, 10**9)


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("name", sorted(PLAIN))
def test_no_row_becomes_more_than_was_computed(name: str) -> None:
    computed, counted = _most_of_one(_compile((REFUSED | WORKS)[name]))
    assert counted <= computed


@pytest.mark.usefixtures("without_limits")
def test_the_bound_is_reached() -> None:
    for name in ("twice", "key", "some", "one constant row", "small cross", "chain"):
        computed, counted = _most_of_one(_compile((REFUSED | WORKS)[name]))
        assert counted <= computed <= 8 * max(counted, 1), name


# Mutants -------------------------------------------------------------------------------------------------------------


def _everything(conditions: Iterable[Expr], mine: frozenset[str], given: frozenset[str]) -> frozenset[str]:
    return mine if tuple(conditions) else frozenset()


def test_mutant_every_column_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "repeats", lambda table, names: 1)
    _compile(REFUSED["no key"])


def test_mutant_factors_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "_capped", max)
    _compile(REFUSED["four times"])


@pytest.mark.usefixtures("without_limits")
def test_mutant_any_condition_fixes_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "_equated", _everything)
    computed, counted = _most_of_one(_compile(REFUSED["range"]))
    assert counted > computed


def _later(conditions: Iterable[Expr], mine: frozenset[str], given: frozenset[str]) -> frozenset[str]:
    """Equality with rows that are not there yet counts too: each of two tables is then found by the other."""
    return EQUATED(conditions, mine, frozenset(c.name for e in conditions for c in columns_of(e)) - mine)


EQUATED = fanout._equated


@pytest.mark.usefixtures("without_limits")
def test_mutant_tables_find_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fanout, "_equated", _later)
    computed, counted = _most_of_one(_compile(REFUSED["chain"]))
    assert counted > computed
