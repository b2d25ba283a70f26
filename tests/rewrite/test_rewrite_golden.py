"""Every golden case that is answered: its Postgres text over made-up releases gives what the remainder gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.string import TextLoader
from rewrite_world import as_query, made_up, said, sorted_by_bytes

from dpsql.errors import Rejected
from dpsql.remainder import Pool
from dpsql.types import Column, Relation

sys.path.insert(0, str(Path(__file__).parent.parent / "golden"))
from golden_cases import HERE, Case, compiled_case, duckdb_backend, files, schema_of, terms


def cases() -> list[Case]:
    return [case for file in files() for case in file.cases if "```refused" not in case.text]


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[psycopg.Connection[Any]]:
    with sorted_by_bytes(postgres_uri, "rewrite_golden") as connection:
        connection.execute(HERE.joinpath("data.sql").read_text(encoding="utf-8").encode())
        connection.adapters.register_loader("interval", TextLoader)
        yield connection


def public(case: Case, postgres: psycopg.Connection[Any]) -> dict[str, Relation]:
    """The public tables, as Postgres has them."""
    found = {}
    for table in schema_of(case.policy, duckdb_backend()).tables.values():
        if table.public:
            names = ", ".join(f'"{c.name}"' for c in table.columns)
            rows = postgres.execute(f'SELECT {names} FROM "{table.name}"'.encode()).fetchall()
            found[table.name] = Relation(tuple(Column(c.name, c.type) for c in table.columns), tuple(rows))
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file}: {case.title}")
def test_same_as_the_remainder(postgres: psycopg.Connection[Any], case: Case) -> None:
    try:
        made = compiled_case(case, schema_of(case.policy, duckdb_backend()))
    except Rejected as error:
        pytest.fail(str(error))
    rows = made_up(made)
    pool = Pool(public(case, postgres))
    inputs = {f"_r{n}": r for n, r in rows.items()}
    queries = {n: as_query(r.columns, r.rows) for n, r in rows.items()}
    try:
        theirs = pool.run(made.remainder, inputs, 10)
        for inner, inner_text in zip(made.derived, made.derived_texts, strict=True):
            found = postgres.execute(inner_text.over(queries).encode()).fetchall()
            assert said(found, "") == said(pool.run(inner, inputs, 10).rows, "")
    finally:
        pool.close()
    text = made.text.over(queries)
    ours = postgres.execute(text.encode())
    assert [d.name for d in ours.description or ()] == [c.name for c in theirs.columns]
    assert said(ours.fetchall(), "") == said(theirs.rows, "")
    assert made.text.spliced or made.columns_only or "QUALIFY" in text or "LIMIT 0" in case.sql or "1 <> 1" in case.sql


OTHER_TYPES = {
    "bi: Power BI: a number as text": "varchar is a text in a release",
    "functions: Bins of seven days": "a release bins dates as timestamps without a zone",
    "spellings: Exponentials": "a release measures powers of e in double precision",
}
"""Where a release's column has another type than Postgres's own: what is announced is the release's."""


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file}: {case.title}")
def test_names_and_types_of_the_clients_own_text(postgres: psycopg.Connection[Any], case: Case) -> None:
    made = compiled_case(case, schema_of(case.policy, duckdb_backend()))
    text = made.text.over({r.index: as_query(r.columns, ()) for r in made.releases})
    try:
        own = described(postgres, terms(case)[1])
    except psycopg.Error as error:
        pytest.skip(f"no statement of Postgres: {error.sqlstate}")
    mine = described(postgres, text)
    assert [name for name, *_ in mine] == [name for name, *_ in own]
    assert (mine == own) == (f"{case.file}: {case.title}" not in OTHER_TYPES)


def described(postgres: psycopg.Connection[Any], text: str) -> list[tuple[object, ...]]:
    """Names and types, as Postgres plans them: nothing is computed."""
    wrapped = postgres.pgconn.prepare(b"", text.encode())
    if wrapped.status != psycopg.pq.ExecStatus.COMMAND_OK:
        raise psycopg.errors.lookup(
            str((wrapped.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"XX000").decode())
        )
    found = postgres.pgconn.describe_prepared(b"")
    return [(found.fname(at), found.ftype(at), found.fmod(at)) for at in range(found.nfields)]
