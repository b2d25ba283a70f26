"""A unit beyond the selection's cap leaves no trace: its own groups are not even returned, by any kind of release.

Else it would decide by itself whether a statement has more groups than the proxy holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg
import pytest

from dpsql.backends import Backend, open_backend
from dpsql.backends import cells as limits
from dpsql.backends.inspect import inspect
from dpsql.compiler import compile_statement
from dpsql.compiler.emit import DIALECTS, emit, emit_histogram, histogram, release
from dpsql.compiler.plan import PlannedRelease, Terms
from dpsql.errors import Failed
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema
from dpsql.types import ExactCells

TERMS = (Terms(Decimal(1), Decimal("1e-7")), Terms(Decimal(1), Decimal("1e-7"), "laplace"))
POLICY = """
dpsql: 1
dataset: candidates
backend: {url}
privacy: {{unit: person, units: 1000, max_groups: 2, max_rows_per_group: 500, budget: {{epsilon: 9, delta: 1e-6}}}}
tables:
  visits:
    unit: uid
    columns:
      tag: {{type: text}}
      n: {{type: integer, lower: 0, upper: 100}}
      place: {{type: text, references: places.place}}
  places: {{public: true, key: place}}
"""
MANY = 400
"""Groups of the one unit, far beyond its cap of 8."""
STATEMENTS = {
    "count": "SELECT tag, COUNT(*) FROM visits GROUP BY tag",
    "sum": "SELECT tag, SUM(n) FROM visits GROUP BY tag",
    "average": "SELECT tag, AVG(n), STDDEV(n) FROM visits GROUP BY tag",
    "units": "SELECT tag, COUNT(DISTINCT uid) FROM visits GROUP BY tag",
    "distinct": "SELECT tag, COUNT(DISTINCT n) FROM visits GROUP BY tag",
    "distinct and count": "SELECT tag, COUNT(DISTINCT n), SUM(n) FILTER (WHERE n > 3) FROM visits GROUP BY tag",
    "keys alone": "SELECT DISTINCT tag FROM visits",
    "two keys": "SELECT tag, place, COUNT(*) FROM visits GROUP BY tag, place",
    "extremes": "SELECT tag, MIN(n), MAX(n) FROM visits GROUP BY tag",
    "median": "SELECT tag, MEDIAN(n) FROM visits GROUP BY tag",
    "median and count": "SELECT tag, MEDIAN(n) FILTER (WHERE n > 3), COUNT(*) FROM visits GROUP BY tag",
    "mode": "SELECT tag, MODE(place) FROM visits GROUP BY tag",
    "join": "SELECT region, tag, COUNT(*) FROM visits v JOIN places p ON v.place = p.place GROUP BY region, tag",
    "two levels": "SELECT tag, AVG(c) FROM (SELECT uid, tag, COUNT(*) AS c FROM visits GROUP BY uid, tag) AS u "
    "GROUP BY tag",
    "union": "SELECT tag, COUNT(*) FROM (SELECT uid, tag FROM visits UNION ALL SELECT uid, tag FROM visits) AS u "
    "GROUP BY tag",
}
TABLES = (
    "CREATE TABLE visits (uid BIGINT, tag TEXT, n INTEGER, place TEXT)",
    "CREATE TABLE places (place TEXT PRIMARY KEY, region TEXT)",
    "INSERT INTO places VALUES ('here', 'near'), ('there', 'far')",
    "INSERT INTO visits SELECT u, 'shared', u, 'here' FROM generate_series(1, 30) AS s(u)",
    "INSERT INTO visits SELECT u, NULL, 50, 'there' FROM generate_series(1, 30) AS s(u)",
)
HEAVY = (
    "INSERT INTO visits SELECT 99, 'tag' || u, CAST(u % 100 AS INTEGER), 'here' "
    f"FROM generate_series(1, {MANY}) AS s(u)"
)
IN_SHARED = "INSERT INTO visits VALUES (99, 'shared', 5, 'here'), (99, NULL, 7, 'there')"

Site = tuple[Backend, Schema]


def _site(url: str) -> Site:
    policy = parse(POLICY.format(url=url), Path("candidates.yaml"))
    backend = open_backend(policy.backend, policy.timezone)
    return backend, inspect(backend, policy)


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def sites(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site]]:
    """With and without the unit."""
    made = []
    for name, statements in (("with", (*TABLES, HEAVY, IN_SHARED)), ("without", TABLES)):
        if request.param == "duckdb":
            path = tmp_path_factory.mktemp("candidates") / f"{name}.duckdb"
            with closing(duckdb.connect(str(path))) as connection:
                connection.execute("; ".join(statements))
            made.append(_site(f"duckdb:{path}"))
            continue
        server = str(request.getfixturevalue("postgres_server"))
        worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
        database = f"candidates_{worker}_{name}"
        with psycopg.connect(server, autocommit=True) as control:
            control.execute(f"DROP DATABASE IF EXISTS {database}".encode())
            control.execute(f"CREATE DATABASE {database}".encode())
        uri = server.replace("/postgres?", f"/{database}?")
        with psycopg.connect(uri, autocommit=True) as there:
            there.execute("; ".join(statements).encode())
        made.append(_site(uri))
    yield made[0], made[1]
    for backend, _ in made:
        backend.close()


def _fetched(site: Site, text: str, terms: Terms) -> list[tuple[PlannedRelease, int, ExactCells]]:
    """What each query of the statement gives: its plan, the number of its key columns, its rows."""
    backend, schema = site
    dialect, found = DIALECTS[backend.dialect], []
    for planned in compile_statement(text, schema, terms).releases:
        width = len(planned.keys)
        if planned.has_cells:
            found.append((planned, width, backend.fetch(emit(planned, dialect, {}), width, 30.0)))
        for each in planned.histograms:
            found.append((planned, width, backend.fetch(emit_histogram(planned, each, dialect, {}), width + 1, 30.0)))
    return found


@pytest.mark.parametrize("terms", TERMS, ids=["l2", "l1"])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_unit_beyond_the_cap_adds_no_group(sites: tuple[Site, Site], name: str, terms: Terms) -> None:
    there, without = (_fetched(site, STATEMENTS[name], terms) for site in sites)
    for (planned, width, mine), (_, _, others) in zip(there, without, strict=True):
        assert planned.selection is not None
        assert {key[:width] for key in mine.keys} == {key[:width] for key in others.keys}
        assert others.keys


def test_it_does_not_decide_whether_a_statement_fails(
    sites: tuple[Site, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_GROUPS", MANY // 2)
    for text in STATEMENTS.values():
        assert _fetched(sites[0], text, TERMS[0])


def test_mutant_all_groups_are_returned(sites: tuple[Site, Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_GROUPS", MANY // 2)
    monkeypatch.setattr(release, "CANDIDATES", "")
    for name in ("count", "distinct", "keys alone", "union"):
        with pytest.raises(Failed) as failed:
            _fetched(sites[0], STATEMENTS[name], TERMS[0])
        assert "groups" in failed.value.cause


def test_mutant_bins_of_all_groups_are_returned(sites: tuple[Site, Site], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_GROUPS", MANY // 2)
    monkeypatch.setattr(histogram, "OF_CANDIDATES", "")
    for name in ("extremes", "median", "mode"):
        with pytest.raises(Failed) as failed:
            _fetched(sites[0], STATEMENTS[name], TERMS[0])
        assert "groups" in failed.value.cause


def test_rows_of_candidates_keep_what_the_unit_adds_to_them(sites: tuple[Site, Site]) -> None:
    """A group that others make a candidate holds the clipped part of every unit: it is the measured vector's."""
    there, without = (dict(_cells(site, "SELECT tag, SUM(n) FROM visits GROUP BY tag")) for site in sites)
    assert there.keys() == without.keys()
    assert there[("shared",)] > without[("shared",)]


def _cells(site: Site, text: str) -> Iterator[tuple[tuple[object, ...], int]]:
    ((_, _, found),) = _fetched(site, text, TERMS[0])
    return ((key, row[0]) for key, row in zip(found.keys, found.cells, strict=True))
