"""Public halves over a released WITH query, against the same statement over a table of the release's rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from rewrite_world import as_query, compiled, sorted_by_bytes

from dpsql.errors import Rejected

sys.path.insert(0, str(Path(__file__).parent.parent / "remainder"))
from remainder_oracle import RELATIONS, Expected, create, expected, statements

R1 = "r1 AS (SELECT kind AS k0, COUNT(*) AS a0, AVG(f) AS a1, SUM(n) AS a2 FROM facts GROUP BY kind)"


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[psycopg.Connection[Any]]:
    with sorted_by_bytes(postgres_uri, "rewrite_remainder") as connection:
        create(connection)
        yield connection


def released(statement: str) -> str:
    """The statement with r1 as a release."""
    if statement.startswith("WITH "):
        return f"WITH {R1}, {statement[5:]}"
    return f"WITH {R1} {statement}"


@pytest.mark.parametrize("statement", [*statements("expressions"), *statements("queries")])
def test_same_names_types_and_rows(postgres: psycopg.Connection[Any], statement: str) -> None:
    try:
        made = compiled(released(statement))
    except Rejected as error:
        pytest.skip(f"refused: {error}")
    assert made.text.spliced
    rows = {n: as_query(RELATIONS["r1"].columns, RELATIONS["r1"].rows) for n in made.text.relations}
    assert _said(expected(postgres, made.text.over(rows))) == _said(expected(postgres, statement))


def _said(answer: Expected) -> str:
    rows = [repr(tuple(float(f"{v:.5g}") if isinstance(v, float) else v for v in row)) for row in answer.rows]
    return repr((answer.columns, sorted(rows)))
