"""Each mutant is killed by a named statement of the replay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from compiler_cases import cases
from compiler_mutants import MUTANTS, Patch
from compiler_replay import compiled_on, violations
from compiler_sites import Site, duckdb_site
from compiler_worlds import WORLDS


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    base = tmp_path_factory.mktemp("mutants")
    made = {name: duckdb_site(WORLDS[name](), base / f"{name}.duckdb") for name in ("integer", "row")}
    yield made
    for site in made.values():
        site.backend.close()


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_killed(sites: dict[str, Site], monkeypatch: Patch, name: str) -> None:
    world, case, change = MUTANTS[name]
    site, statement = sites[world], cases()[case]
    assert not list(violations(site, compiled_on(site, statement)))
    change(monkeypatch)
    assert list(violations(site, compiled_on(site, statement))), f"{name} survives"
