"""Mutants are killed by the generated statements of the default run alone, and every shape notices unbounded units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from compiler_mutants import MUTANTS
from compiler_replay import compiled_on
from compiler_sites import Site, duckdb_site
from compiler_worlds import WORLDS
from surface_mutants import EVERY, UNBOUNDED, Change
from surface_replay import Accepted, broken
from surface_statements import KINDS
from test_surface_neighbours import statements, taken_away

from dpsql.errors import Rejected

pytestmark = pytest.mark.slow

Cases = dict[str, list[tuple[int, Accepted]]]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    base = tmp_path_factory.mktemp("mutants")
    made = {name: duckdb_site(make(), base / f"{name}.duckdb") for name, make in WORLDS.items()}
    yield made
    for site in made.values():
        site.backend.close()


@pytest.fixture(scope="module")
def cases(sites: dict[str, Site]) -> Cases:
    return {name: list(enumerate(statements(site))) for name, site in sites.items()}


@pytest.mark.parametrize("mutant", EVERY)
def test_mutant_is_killed_by_a_random_statement(sites: dict[str, Site], cases: Cases, mutant: str) -> None:
    home = MUTANTS[mutant][0] if mutant in MUTANTS else "integer"
    worlds = sorted(WORLDS, key=lambda name: name != home)
    assert any(_killed(EVERY[mutant], sites[name], cases[name]) for name in worlds), f"{mutant} survives"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_notices_unbounded_contributions(sites: dict[str, Site], cases: Cases, kind: str) -> None:
    mine = {name: [(i, case) for i, case in found if case.kind == kind] for name, found in cases.items()}
    assert any(_killed(EVERY[name], sites[world], mine[world]) for world in WORLDS for name in UNBOUNDED)


def _killed(change: Change, site: Site, cases: Iterable[tuple[int, Accepted]]) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        return any(_notices(site, case, taken_away(site, index)) for index, case in cases)


def _notices(site: Site, case: Accepted, names: tuple[str, ...]) -> bool:
    """Whether a violation is found. A mutant that is not about this statement's plan may not apply to it."""
    try:
        compiled = compiled_on(site, case.statement)
        return next(broken(site, compiled, names), None) is not None
    except (Rejected, AssertionError):
        return False
