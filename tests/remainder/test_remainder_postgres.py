"""The remainder against a real Postgres: the same statement over the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from remainder_oracle import answer, create, differences, expected, statements

from dpsql.errors import Rejected
from dpsql.remainder import Pool

POINTING = ("42703", "42702", "42P01")
"""Errors about a name: they must point at it. The others point somewhere into the expression, or nowhere."""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[psycopg.Connection[Any]]:
    """A database that sorts by bytes and knows the letters of Unicode, as the remainder does."""
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        name = f"remainder_{connection.info.dbname}"
        connection.execute(
            sql.SQL("CREATE DATABASE {} LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0").format(
                sql.Identifier(name)
            )
        )
        uri = postgres_uri.replace(f"/{connection.info.dbname}?", f"/{name}?")
    with psycopg.connect(uri, autocommit=True) as made:
        made.execute("SET TimeZone = 'UTC'")
        create(made)
        yield made


@pytest.mark.parametrize("statement", [*statements("expressions"), *statements("queries")])
def test_same_names_types_and_rows(pool: Pool, postgres: psycopg.Connection[Any], statement: str) -> None:
    assert differences(statement, expected(postgres, statement), answer(pool, statement)) == []


@pytest.mark.parametrize("statement", statements("errors"))
def test_same_sqlstate(pool: Pool, postgres: psycopg.Connection[Any], statement: str) -> None:
    with pytest.raises(psycopg.Error) as theirs:
        expected(postgres, statement)
    with pytest.raises(Rejected) as ours:
        answer(pool, statement)
    assert ours.value.sqlstate == theirs.value.sqlstate
    if ours.value.sqlstate in POINTING and theirs.value.diag.statement_position is not None:
        assert str(ours.value.position) == theirs.value.diag.statement_position


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("statement", statements("zones"))
def test_same_in_other_time_zones(pool: Pool, postgres: psycopg.Connection[Any], statement: str, zone: str) -> None:
    postgres.execute(sql.SQL("SET TimeZone = {}").format(sql.Literal(zone)))
    try:
        assert differences(statement, expected(postgres, statement), answer(pool, statement, zone)) == []
    finally:
        postgres.execute("SET TimeZone = 'UTC'")
