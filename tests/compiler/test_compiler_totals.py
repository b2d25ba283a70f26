"""How many rows a unit has in all: what the SQL makes true bounds them and the radius, which the clip holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import compiler_replay
import pytest
from compiler_cases import LAPLACE, TERMS, cases
from compiler_mini import opened
from compiler_mutants import PLAN, Patch
from compiler_replay import compiled_on, integers, violations
from compiler_sites import Site, duckdb_site, postgres_site
from compiler_statements import Statement
from compiler_worlds import FEW_ROWS
from histogram_replay import histogram_violations
from test_histogram_neighbours import NAMED

from dpsql.compiler import compile_statement, histograms, totals
from dpsql.compiler.algebra import Scan, outputs
from dpsql.compiler.emit import DUCKDB, emit
from dpsql.compiler.emit.relation import emitter_for, relation
from dpsql.compiler.fanout import UNKNOWN, Facts
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.totals import rows_in_all
from dpsql.compiler.walk import used_columns
from dpsql.dp.sensitivity import L1, L2, ContributionBound, clip_l1, clip_l2

# The number of rows -----------------------------------------------------------------------------------------------

DATA = """
CREATE TABLE people (uid INTEGER, age INTEGER, shop TEXT);
INSERT INTO people SELECT i % 20, i % 90, 's' || (i % 4) FROM range(80) r(i);
CREATE TABLE homes (uid INTEGER PRIMARY KEY, city TEXT);
INSERT INTO homes SELECT i, 'c' || (i % 3) FROM range(20) r(i);
CREATE TABLE visits (uid INTEGER, amount DOUBLE, shop TEXT);
INSERT INTO visits SELECT i % 20, i % 7, 's' || ((i // 20) % 4) FROM range(300) r(i);
CREATE TABLE calls (uid INTEGER, minutes INTEGER);
INSERT INTO calls SELECT i % 20, i FROM range(300) r(i);
CREATE TABLE orders (id INTEGER PRIMARY KEY, uid INTEGER);
INSERT INTO orders SELECT i, i % 20 FROM range(100) r(i);
CREATE TABLE items (id INTEGER, qty INTEGER);
INSERT INTO items SELECT i % 100, i % 5 FROM range(300) r(i);
CREATE TABLE tags (shop TEXT, tag TEXT);
INSERT INTO tags SELECT 's' || (i % 4), 't' || i FROM range(12) r(i);
CREATE TABLE shops (shop TEXT PRIMARY KEY, region TEXT);
INSERT INTO shops SELECT 's' || i, 'r' || (i % 2) FROM range(4) r(i);
"""
TABLES = """
  people: {unit: uid, max_rows: 2, columns: {age: {type: integer, lower: 0, upper: 100}, shop: {type: text}}}
  homes: {unit: uid, key: uid, columns: {city: {type: text, values: [c0, c1, c2]}}}
  visits: {unit: uid, max_rows: 5, columns: {amount: {type: double, lower: 0, upper: 500}, shop: {type: text}}}
  calls: {unit: uid, columns: {minutes: {type: integer, lower: 0, upper: 300}}}
  orders: {unit: uid, key: id, max_rows: 3}
  items: {unit: {through: orders, on: {id: id}}, max_rows: 4, columns: {qty: {type: integer, lower: 0, upper: 9}}}
  tags: {public: true}
  shops: {public: true, key: shop}
"""
IN_ALL: dict[str, tuple[str, int]] = {
    "cut": ("SELECT shop, COUNT(*) FROM visits GROUP BY shop", 5),
    "filtered": ("SELECT shop, SUM(amount) FROM visits WHERE amount > 1 GROUP BY shop", 5),
    "not bounded": ("SELECT COUNT(*) FROM calls", UNKNOWN),
    "only declared": ("SELECT COUNT(*) FROM items", UNKNOWN),
    "on a key": ("SELECT region, COUNT(*) FROM visits JOIN shops USING (shop) GROUP BY region", 5),
    "multiplied": ("SELECT tag, COUNT(*) FROM visits JOIN tags USING (shop) GROUP BY tag", 15),
    "multiplied, kept": ("SELECT COUNT(*) FROM visits LEFT JOIN tags USING (shop)", 15),
    "one row, multiplied": ("SELECT COUNT(*) FROM homes CROSS JOIN tags", 12),
    "public kept": ("SELECT t.tag, COUNT(v.amount) FROM tags t LEFT JOIN visits v ON v.shop = t.shop GROUP BY 1", 15),
    "two private": ("SELECT city, COUNT(*) FROM visits v JOIN homes h ON h.uid = v.uid GROUP BY city", 5),
    "two private, the other way": ("SELECT COUNT(*) FROM homes h JOIN people p ON h.uid = p.uid", 2),
    "left": ("SELECT city, COUNT(*) FROM homes h LEFT JOIN visits v ON h.uid = v.uid GROUP BY city", 6),
    "left, many": ("SELECT city, COUNT(*) FROM visits v LEFT JOIN homes h ON h.uid = v.uid GROUP BY city", 6),
    "with what is not bounded": ("SELECT COUNT(*) FROM calls c JOIN homes h ON h.uid = c.uid", UNKNOWN),
    "branches": ("SELECT s, COUNT(*) FROM (SELECT uid, shop s FROM visits UNION ALL SELECT uid, shop FROM people "
                 "UNION ALL SELECT uid, shop FROM visits) u GROUP BY s", 12),
    "a row a unit": ("SELECT n, COUNT(*) FROM (SELECT uid, COUNT(*) AS n FROM calls GROUP BY uid) q JOIN tags ON "
                     "tags.tag = 't1' GROUP BY n", 1),
    "a row a unit and key": ("SELECT shop, AVG(n) FROM (SELECT uid, shop, COUNT(*) AS n FROM visits "
                             "GROUP BY uid, shop) q GROUP BY shop", 5),
    "a row a key": ("SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM orders GROUP BY id) q", 3),
}  # fmt: skip


def _rows_of_one(text: str) -> tuple[int, int]:
    """The most rows of one unit: as computed, and as the SQL gives them."""
    backend, schema = opened(DATA, TABLES, "person", "UTC", "max_groups: 9, max_rows_per_group: 9")
    made = compile_statement(text, schema, TERMS).releases[-1].aggregation
    unit = made.unit or min(name for name in outputs(made.input) if name.endswith("_uid"))
    used = used_columns(made) | {unit}
    rows = relation(made.input, used, emitter_for(DUCKDB, {}, used))
    each = f'SELECT COUNT(*) AS n FROM {rows} AS source WHERE "{unit}" IS NOT NULL GROUP BY "{unit}"'
    ((most,),) = backend.fetch(f"SELECT MAX(n) AS n FROM ({each}) AS counted", 0, 30.0).cells
    return rows_in_all(made.input, schema), most


@pytest.mark.parametrize("name", IN_ALL)
def test_no_unit_has_more_rows_than_was_computed(name: str) -> None:
    text, expected = IN_ALL[name]
    computed, counted = _rows_of_one(text)
    assert min(computed, UNKNOWN) == expected
    assert counted <= computed


def _declared(patch: Patch) -> None:
    """A path's `max_rows`, which no SQL enforces, believed."""
    scanned = totals._Totals._scanned

    def believed(self: totals._Totals, scan: Scan) -> int:
        table = self.facts.table(scan)
        return scanned(self, scan) if table is None or table.max_rows is None else table.max_rows

    patch.setattr(totals._Totals, "_scanned", believed)


def _met_once(patch: Patch) -> None:
    patch.setattr(Facts, "matches", lambda *_: 1)


def _largest_branch(patch: Patch) -> None:
    patch.setattr(totals, "sum", max, raising=False)


@pytest.mark.parametrize(
    ("name", "mutant"), [("only declared", _declared), ("multiplied", _met_once), ("branches", _largest_branch)]
)
def test_too_small_a_number_is_noticed(monkeypatch: Patch, name: str, mutant: Any) -> None:
    mutant(monkeypatch)
    computed, counted = _rows_of_one(IN_ALL[name][0])
    assert counted > computed


# The radius -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "l1", "squared"),
    [
        (ContributionBound(12, 20, 20), 20, 400),
        (ContributionBound(12, 5, 20), 20, 100),
        (ContributionBound(3, 4, 11), 11, 44),
        (ContributionBound(3, 4, 12), 12, 48),
        (ContributionBound(3, 4, 100), 12, 48),
        (ContributionBound(3, 4), 12, 48),
    ],
)
def test_the_radius_is_the_least_that_passes_all(bound: ContributionBound, l1: int, squared: int) -> None:
    assert (bound.l1, bound.l2_squared) == (l1, squared)
    assert clip_l1(bound, 7) == L1(7 * l1)
    assert clip_l2(bound, 7) == L2(49 * squared)
    fullest = [bound.rows] * (bound.l1 // bound.rows) + [bound.l1 % bound.rows]
    assert sum(n * n for n in fullest) <= squared


def test_twenty_rows_in_all_are_a_radius_of_twenty() -> None:
    tables = TABLES.replace("max_rows: 5", "max_rows: 20")
    schema = opened(DATA, tables, "person", "UTC", "max_groups: 12, max_rows_per_group: 40")[1]
    for text in ("SELECT amount > 2, shop, COUNT(*) FROM visits GROUP BY 1, 2", "SELECT COUNT(*) FROM visits"):
        (release,) = compile_statement(text, schema, TERMS).releases
        assert release.measurements[0].sensitivity == L2((20 * 1024) ** 2)
        assert release.bound.total == 20


# Neighbours -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    base = tmp_path_factory.mktemp("totals")
    made = {name: duckdb_site(world(), base / f"{name}.duckdb") for name, world in FEW_ROWS.items()}
    yield made
    for site in made.values():
        site.backend.close()


@pytest.mark.parametrize("name", FEW_ROWS)
@pytest.mark.parametrize("case", cases())
def test_named_statements_keep_their_promise(sites: dict[str, Site], name: str, case: str) -> None:
    assert not list(violations(sites[name], compiled_on(sites[name], cases()[case])))


@pytest.mark.parametrize("name", NAMED)
def test_histograms_keep_their_promise(sites: dict[str, Site], name: str) -> None:
    site = sites["few rows"]
    assert not list(histogram_violations(site, compiled_on(site, Statement(NAMED[name], TERMS))))


def test_postgres_gives_the_same_integers_and_keeps_the_promise(sites: dict[str, Site], postgres_uri: str) -> None:
    here, there = sites["few rows"], postgres_site(FEW_ROWS["few rows"](), postgres_uri)
    try:
        for name, statement in cases().items():
            on_duckdb, on_postgres = compiled_on(here, statement), compiled_on(there, statement)
            assert integers(here, on_duckdb) == integers(there, on_postgres), name
            assert not list(violations(there, on_postgres, tuple(there.around)[:3])), name
    finally:
        there.backend.close()


def _emitted_without(patch: Patch) -> None:
    """The SQL clips to L0 and m alone; what was priced is less."""

    def wider(release: PlannedRelease) -> PlannedRelease:
        bound = replace(release.bound, total=None)
        measured = (replace(m, sensitivity=_wider(m.sensitivity, release.bound)) for m in release.measurements)
        return replace(release, bound=bound, measurements=tuple(measured))

    patch.setattr(compiler_replay, "emit", lambda r, *rest: emit(wider(r), *rest))


def _wider(sensitivity: L1 | L2, bound: ContributionBound) -> L1 | L2:
    free = replace(bound, total=None)
    if isinstance(sensitivity, L1):
        return L1(sensitivity.bound // bound.l1 * free.l1)
    return L2(sensitivity.squared // bound.l2_squared * free.l2_squared)


def _root_of_the_total(patch: Patch) -> None:
    """As if each row were in a group of its own: T where T m is declared."""
    patch.setattr(PLAN, "clip_l2", lambda bound, b: L2((bound.total or bound.l2_squared) * b**2))


def _total_in_steps_of_rows(patch: Patch) -> None:
    """L0 where T is declared."""
    for module in (PLAN, histograms):
        patch.setattr(module, "clip_l1", lambda bound, b: L1(bound.groups * b))


@pytest.mark.parametrize(
    ("case", "mutant"),
    [
        (Statement(NAMED["public key"], TERMS), _total_in_steps_of_rows),
        (cases()["count by public key"], _emitted_without),
        (cases()["average by public key"], _emitted_without),
        (cases()["average by public key"], _root_of_the_total),
        (Statement("SELECT shop, AVG(price) FROM visits GROUP BY shop", LAPLACE), _total_in_steps_of_rows),
    ],
)
def test_mutants_are_killed(sites: dict[str, Site], monkeypatch: Patch, case: Statement, mutant: Any) -> None:
    site = sites["few rows"]
    compiled = compiled_on(site, case)
    assert not [*violations(site, compiled), *histogram_violations(site, compiled)]
    mutant(monkeypatch)
    compiled = compiled_on(site, case)
    assert [*violations(site, compiled), *histogram_violations(site, compiled)]
