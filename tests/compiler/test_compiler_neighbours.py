"""Replay of neighbours: no accepted statement's exact integers move by more than was declared (DESIGN.md, 10, 2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiler_cases import cases
from compiler_replay import compiled_on, integers, replay, violations
from compiler_statements import Writer
from compiler_worlds import NOBODY, WORLDS, Site, duckdb_site, postgres_site, world

from dpsql.errors import Rejected

DEFAULT, SLOW, TENTH = 50, 360, 6


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    """All worlds on DuckDB."""
    base = tmp_path_factory.mktemp("worlds")
    made = {name: duckdb_site(make(), base / f"{name}.duckdb") for name, make in WORLDS.items()}
    yield made
    for site in made.values():
        site.backend.close()


@pytest.mark.parametrize("name", WORLDS)
def test_random_statements_keep_their_promise(sites: dict[str, Site], name: str) -> None:
    """Several hundred statements in all; two units and nobody's rows are taken away in turn."""
    site = sites[name]
    around = [n for n in site.around if n != NOBODY]
    bill = replay(site, 1000 + len(name), DEFAULT, (around[0], around[1], *([NOBODY] if NOBODY in site.around else ())))
    assert not bill.violations, "\n".join(bill.violations)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("seed", [7])
def test_thousands_of_random_statements_keep_their_promise(tmp_path: Path, name: str, seed: int) -> None:
    """2,160 accepted statements in all, on databases of their own; the neighbours that the fast run leaves out."""
    usual = WORLDS[name]()
    head = next(line for line in usual.policy.splitlines() if line.startswith("privacy:"))
    privacy = head.partition("delta: 1e-6}, ")[2].rstrip("}")
    site = duckdb_site(world(name, seed, usual.unit, privacy, unique=usual.people_unique), tmp_path / "w.duckdb")
    bill = replay(site, seed, SLOW, tuple(site.around)[2:])
    site.backend.close()
    assert not bill.violations, "\n".join(bill.violations)


@pytest.mark.parametrize("case", cases())
def test_named_statements_keep_their_promise(sites: dict[str, Site], case: str) -> None:
    site = sites["integer"]
    assert not list(violations(site, compiled_on(site, cases()[case])))


def test_the_order_of_rows_does_not_matter(sites: dict[str, Site]) -> None:
    for name, statement in cases().items():
        compiled = compiled_on(sites["integer"], statement)
        assert integers(sites["integer"], compiled) == integers(sites["integer"], compiled, "shuffled"), name


@pytest.mark.parametrize("name", ["integer", "text", "row"])
def test_postgres_gives_the_same_integers_and_keeps_the_promise(
    sites: dict[str, Site], postgres_uri: str, name: str
) -> None:
    """A tenth of the statements, and all named ones, on the same rows in Postgres."""
    here, there = sites[name], postgres_site(WORLDS[name](), postgres_uri)
    try:
        assert not _differences(here, there, TENTH * 3, list(cases()) if name == "integer" else [])
    finally:
        there.backend.close()


def _differences(here: Site, there: Site, wanted: int, named: list[str]) -> list[str]:
    found: list[str] = []
    writer = Writer(99)
    statements = [cases()[name] for name in named]
    while len(statements) < len(named) + wanted:
        statement = writer.statement()
        try:
            compiled_on(here, statement)
        except Rejected:
            continue
        statements.append(statement)
    for statement in statements:
        on_duckdb, on_postgres = compiled_on(here, statement), compiled_on(there, statement)
        if integers(here, on_duckdb) != integers(there, on_postgres):
            found.append(f"different integers: {statement.text}")
        found += violations(there, on_postgres, tuple(there.around)[:1])
    return found
