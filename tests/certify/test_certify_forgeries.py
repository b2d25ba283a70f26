"""Every forged plan is refused by the certificate alone: no other check, test or statement sees it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from certified_cases import Planned, golden, named, refused
from compiler_sites import duckdb_site
from compiler_worlds import WORLDS
from forgeries import FORGERIES, PUBLIC

from dpsql.policy.schema import Schema


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Planned, ...]]:
    """The golden releases, and those of the named statements over three of the hostile worlds."""
    base, sites = tmp_path_factory.mktemp("forged"), []
    for name in ("integer", "text", "row"):
        sites.append(duckdb_site(WORLDS[name](), base / f"{name}.duckdb"))
    every = (*golden(), *(each for site in sites for each in named(site)))
    yield tuple(each for each in every if not each.release.free)
    for site in sites:
        site.backend.close()


def test_the_genuine_ones_are_certified(planned: tuple[Planned, ...]) -> None:
    assert len(planned) > 500
    assert not [each.name for each in planned if refused(each.release, each.schema)]


def test_forged_relations_know_which_tables_are_public(planned: tuple[Planned, ...]) -> None:
    def public(schema: Schema) -> set[str]:
        return {name for name, table in schema.tables.items() if table.public}

    found = set[str]().union(*(public(each.schema) for each in planned))
    private = {name for each in planned for name in each.schema.tables} - found
    assert not private & PUBLIC
    assert found <= PUBLIC, found


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_refused(planned: tuple[Planned, ...], name: str) -> None:
    """Wherever it can be made."""
    forged = [(each, FORGERIES[name](each.release)) for each in planned]
    made = [(each, release) for each, release in forged if release is not None]
    assert made, "the forgery applies to no case"
    passed = [each.name for each, release in made if not refused(release, each.schema)]
    assert not passed, f"{len(passed)} of {len(made)}"


def test_there_are_enough_forgeries() -> None:
    assert len(FORGERIES) >= 30
