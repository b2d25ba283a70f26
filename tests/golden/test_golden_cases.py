"""Every golden case says what the compiler does, and runs on both backends with the same exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from golden_cases import Case, compiled_case, duckdb_backend, files, postgres_backend, rendered, schema_of

from dpsql.backends import Backend
from dpsql.compiler import Compiled
from dpsql.compiler.emit import DIALECTS, emit
from dpsql.compiler.plan import with_released_keys
from dpsql.errors import Rejected
from dpsql.types import ExactCells, Relation

CASES = {f"{case.file}: {case.title}": case for file in files() for case in file.cases}


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[Backend]:
    with postgres_backend(postgres_uri) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_golden_case(name: str) -> None:
    """Rewrite with: python tests/golden --rewrite"""
    case = CASES[name]
    assert rendered(case, schema_of(case.policy, duckdb_backend())).rstrip("\n") == case.text.rstrip("\n")


def test_every_policy_gives_the_same_sql_on_both_catalogs(postgres: Backend) -> None:
    for case in CASES.values():
        assert rendered(case, schema_of(case.policy, postgres)).rstrip("\n") == case.text.rstrip("\n"), case.title


@pytest.mark.parametrize("name", CASES)
def test_both_backends_give_the_same_integers(postgres: Backend, name: str) -> None:
    compiled = _accepted(name)
    if compiled is not None:
        assert list(_cells(compiled, duckdb_backend())) == list(_cells(compiled, postgres))


@cache
def _accepted(name: str) -> Compiled | None:
    case: Case = CASES[name]
    try:
        return compiled_case(case, schema_of(case.policy, duckdb_backend()))
    except Rejected:
        return None


def _cells(compiled: Compiled, backend: Backend) -> Iterator[dict[tuple[str, ...], tuple[int, ...]]]:
    """The exact cells of every release; relations that are released before are empty here."""
    empty = {i: Relation(remainder.columns, ()) for i, remainder in enumerate(compiled.derived)}
    for planned in compiled.releases:
        if planned.has_cells:
            release = with_released_keys(planned, empty)
            sql = emit(release, DIALECTS[backend.dialect], empty)
            yield _by_key(backend.fetch(sql, len(release.keys), 30.0))


def _by_key(found: ExactCells) -> dict[tuple[str, ...], tuple[int, ...]]:
    return {tuple(map(str, key)): cells for key, cells in zip(found.keys, found.cells, strict=True)}
