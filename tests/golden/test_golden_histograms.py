"""The histograms behind MIN, MAX, quantiles and MODE of the golden cases: both backends give the same weights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from golden_cases import Case, compiled_case, duckdb_backend, files, postgres_backend, schema_of

from dpsql.backends import Backend
from dpsql.compiler import Compiled
from dpsql.compiler.emit import DIALECTS, emit_histogram
from dpsql.errors import Rejected

Weights = dict[tuple[str, ...], tuple[int, ...]]


def _compiled(case: Case) -> Compiled | None:
    try:
        return compiled_case(case, schema_of(case.policy, duckdb_backend()))
    except Rejected:
        return None


CASES = {
    f"{case.file}: {case.title}": made
    for file in files()
    for case in file.cases
    if (made := _compiled(case)) is not None and any(release.histograms for release in made.releases)
}


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[Backend]:
    with postgres_backend(postgres_uri) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_both_backends_give_the_same_weights(postgres: Backend, name: str) -> None:
    found = _weights(CASES[name], duckdb_backend())
    assert any(found)
    assert found == _weights(CASES[name], postgres)


def _weights(compiled: Compiled, backend: Backend) -> list[Weights]:
    """The weight of each group and bin, histogram by histogram."""
    weights = []
    for release in compiled.releases:
        for histogram in release.histograms:
            sql = emit_histogram(release, histogram, DIALECTS[backend.dialect], {})
            cells = backend.fetch(sql, len(release.keys) + 1, 30.0)
            weights.append({tuple(map(str, key)): row for key, row in zip(cells.keys, cells.cells, strict=True)})
    return weights
