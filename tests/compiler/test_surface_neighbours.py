"""Replay of neighbours over random statements of the whole surface: cells and histograms (DESIGN.md, 10, 2).

The worlds violate every declaration: several rows of a unit where one is declared, values out of bounds, of no list and
of no type's usual range, NULL, NaN and infinities, references to nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from compiler_replay import compiled_on
from compiler_sites import NOBODY, Site, duckdb_site, postgres_site
from compiler_worlds import WORLDS
from surface_replay import Accepted, Tally, accepted, answers, broken
from surface_statements import round_of

DEFAULT, SLOW, TENTH = 45, 350, 35
"""Statements a world: 315 and 2,450 in all, and on Postgres."""

FEATURES = (
    "form rows", "form single", "form norm", "norm l1", "norm l2", "private keys", "public keys", "no keys",
    "cells count", "cells sum", "cells units", "cells distinct", "cells moment of moments", "histogram min",
    "histogram max", "histogram mode", "histogram quantile", "domain Listed", "domain WholeNumbers", "domain Released",
    "image", "after a release", "several releases", "public rows kept", "FILTER", "inner join", "left join", "per unit",
    "union", "rows enforced", "row unit", "exists", "scalar",
)  # fmt: skip
LEAST = 7
"""Of 315 statements so many have each feature, and in proportion."""

Open = Callable[[str], Site]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Open]:
    """The worlds on DuckDB, each made when it is first asked for."""
    base, made = tmp_path_factory.mktemp("surface"), list[Site]()

    @cache
    def opened(name: str) -> Site:
        made.append(duckdb_site(WORLDS[name](), base / f"{name}.duckdb"))
        return made[-1]

    yield opened
    for each in made:
        each.backend.close()


def statements(site: Site, wanted: int = DEFAULT) -> Iterator[Accepted]:
    return accepted(site, 1000 + list(WORLDS).index(site.world.name), wanted)


def taken_away(site: Site, index: int) -> tuple[str, ...]:
    """Two units, or rows, in turn, and nobody's rows, which must change nothing."""
    around = [name for name in site.around if name != NOBODY]
    two = around[index % len(around)], around[(index + 1) % len(around)]
    return (*two, NOBODY) if NOBODY in site.around else two


@pytest.mark.parametrize("name", WORLDS)
def test_random_statements_keep_their_promise(site: Open, name: str) -> None:
    here, tally = site(name), Tally()
    for index, case in enumerate(statements(here)):
        tally.add(case, broken(here, case.compiled, taken_away(here, index)))
    assert not tally.violations, "\n".join(tally.violations)
    assert not _starved_kinds(tally, here)


def test_no_shape_is_starved(site: Open) -> None:
    """Of the statements of all worlds together."""
    tally = Tally()
    for name in WORLDS:
        for case in statements(site(name)):
            tally.add(case, iter(()))
    assert sum(tally.kinds.values()) == DEFAULT * len(WORLDS)
    assert not _starved_features(tally.features, LEAST)


def test_postgres_gives_the_same_integers(site: Open, postgres_uri: str) -> None:
    here, there = site("integer"), postgres_site(WORLDS["integer"](), postgres_uri)
    try:
        for case in accepted(here, 99, TENTH):
            _same_on(here, there, case)
    finally:
        there.backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_thousands_of_random_statements_keep_their_promise(tmp_path: Path, postgres_uri: str, name: str) -> None:
    """On databases of their own, around all neighbours; every tenth statement on Postgres too."""
    world = WORLDS[name](seed=70 + len(name))
    here, there = duckdb_site(world, tmp_path / "w.duckdb"), postgres_site(world, postgres_uri)
    tally = Tally()
    try:
        for index, case in enumerate(accepted(here, 7000 + len(name), SLOW)):
            tally.add(case, broken(here, case.compiled))
            if index % 10 == 0:
                _same_on(here, there, case)
    finally:
        here.backend.close()
        there.backend.close()
    assert sum(tally.kinds.values()) == SLOW
    assert not tally.violations, "\n".join(tally.violations)
    assert not _starved_kinds(tally, here)
    elsewhere = {"row unit"}
    if world.unit == "row":
        elsewhere = {"per unit", "union", "exists", "rows enforced", "form norm", "cells units"}
    elsewhere |= {"norm l2"} if "accounting: pure" in world.policy else set()
    elsewhere |= {"rows enforced"} if world.people_unique else set()
    found = _starved_features(tally.features, LEAST)
    assert not found - elsewhere, tally.features


def _same_on(here: Site, there: Site, case: Accepted) -> None:
    """Equal integers on both backends, and the promise kept on the second for one neighbour."""
    on_postgres = compiled_on(there, case.statement)
    assert answers(here, case.compiled) == answers(there, on_postgres), case.statement
    assert not list(broken(there, on_postgres, tuple(there.around)[:1])), case.statement


def _starved_kinds(tally: Tally, site: Site) -> dict[str, int]:
    """Kinds with fewer accepted statements than their weight asks for."""
    kinds = round_of(rows=site.world.unit == "row")
    rounds, wanted = sum(tally.kinds.values()) // len(kinds), Counter(kinds)
    return {kind: tally.kinds[kind] for kind, weight in wanted.items() if tally.kinds[kind] < weight * rounds}


def _starved_features(found: Counter[str], least: int) -> set[str]:
    return {feature for feature in FEATURES if found[feature] < least}
