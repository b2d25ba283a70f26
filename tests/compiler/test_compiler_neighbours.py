"""Replay of neighbours: no named statement's exact integers move by more than was declared (DESIGN.md, 10, 2)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from compiler_cases import cases
from compiler_replay import compiled_on, integers, violations
from compiler_sites import Site, duckdb_site, postgres_site
from compiler_worlds import WORLDS


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    base = tmp_path_factory.mktemp("worlds")
    made = {"integer": duckdb_site(WORLDS["integer"](), base / "integer.duckdb")}
    yield made
    for site in made.values():
        site.backend.close()


@pytest.mark.parametrize("case", cases())
def test_named_statements_keep_their_promise(sites: dict[str, Site], case: str) -> None:
    site = sites["integer"]
    assert not list(violations(site, compiled_on(site, cases()[case])))


def test_the_order_of_rows_does_not_matter(sites: dict[str, Site]) -> None:
    for name, statement in cases().items():
        compiled = compiled_on(sites["integer"], statement)
        assert integers(sites["integer"], compiled) == integers(sites["integer"], compiled, "shuffled"), name


def test_postgres_gives_the_same_integers_and_keeps_the_promise(sites: dict[str, Site], postgres_uri: str) -> None:
    here, there = sites["integer"], postgres_site(WORLDS["integer"](), postgres_uri)
    try:
        for name, statement in cases().items():
            on_duckdb, on_postgres = compiled_on(here, statement), compiled_on(there, statement)
            assert integers(here, on_duckdb) == integers(there, on_postgres), name
            assert not list(violations(there, on_postgres, tuple(there.around)[:1])), name
    finally:
        there.backend.close()
