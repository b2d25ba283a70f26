"""A Postgres that somebody else runs serves as the public server, and keeps what is not ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from psycopg.rows import TupleRow
from public_fakes import schema_at

from dpsql.errors import Rejected
from dpsql.policy.model import Server, User
from dpsql.policy.schema import Schema
from dpsql.public.elsewhere import ServerElsewhere
from dpsql.public.server import open_public


@pytest.fixture
def schema(postgres_uri: str, tmp_path: Path) -> Iterator[Schema]:
    """Of a dataset and users that only this worker has."""
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        name = f"elsewhere_{connection.info.dbname}"
        users = {f"{name}_alice": User("analyst"), f"{name}_clerk": User("clerk")}
        made = schema_at(tmp_path, dataset=name, users=users, server=Server(public=postgres_uri))
        yield made
        listed = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE %s", (f"{name}%",))
        for (database,) in listed.fetchall():
            connection.execute(f'DROP DATABASE "{database}" WITH (FORCE)')
        for role in (*users, f"dpsql {name}~0", f"dpsql {name}~1"):
            connection.execute(f'DROP ROLE IF EXISTS "{role}"')


def _connect(server: ServerElsewhere, user: str) -> psycopg.Connection[TupleRow]:
    return psycopg.connect(
        server.address,
        user=server.role_of(user),
        dbname=server.database_of(user),
        password=server.password_of(user),
        autocommit=True,
    )


def _opened(schema: Schema) -> ServerElsewhere:
    server = open_public(schema)
    assert isinstance(server, ServerElsewhere)
    return server


def test_it_holds_the_public_half_behind_the_same_walls(schema: Schema) -> None:
    alice, clerk = schema.policy.users
    server = _opened(schema)
    assert server.alive()
    with _connect(server, alice) as connection:
        assert connection.execute("SELECT count(*) FROM countries").fetchall() == [(2,)]
        assert connection.execute("SELECT datname FROM pg_database").fetchall() == [(schema.policy.dataset,)]
        for text in (
            "SELECT 1 FROM customers WHERE false",
            "SELECT pg_advisory_lock(1)",
            "CREATE TEMP TABLE a (b int)",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(text)
    with _connect(server, clerk) as connection:
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT 1 FROM sales.orders")
        assert connection.execute("SELECT current_database()::text").fetchall() == [(schema.policy.dataset,)]


def test_it_is_found_again_and_made_anew_for_another_policy(schema: Schema) -> None:
    alice = next(iter(schema.policy.users))
    oid = "SELECT oid FROM pg_database"
    with _connect(_opened(schema), alice) as connection:
        first = connection.execute(oid).fetchall()
    with _connect(_opened(schema), alice) as connection:
        assert connection.execute(oid).fetchall() == first
    other = replace(schema, policy=replace(schema.policy, epoch="2"))
    with _connect(_opened(other), alice) as connection:
        assert connection.execute(oid).fetchall() != first


def test_what_is_not_ours_is_left_alone(schema: Schema, postgres_uri: str) -> None:
    alice = next(iter(schema.policy.users))
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{schema.policy.dataset}"')
        with pytest.raises(Rejected, match="that is not dpsql's"):
            open_public(schema)
        connection.execute(f'DROP DATABASE "{schema.policy.dataset}"')
        connection.execute(f'CREATE ROLE "{alice}" CREATEDB')
        with pytest.raises(Rejected, match="with rights of its own"):
            open_public(schema)
        connection.execute(f'DROP ROLE "{alice}"')


def test_a_server_that_is_not_there_is_a_sentence_without_a_password(schema: Schema) -> None:
    url = "postgresql://someone:sesame@127.0.0.1:1/x"
    gone = replace(schema, policy=replace(schema.policy, server=Server(public=url)))
    with pytest.raises(Rejected, match="does not let dpsql in") as refused:
        open_public(gone)
    assert "sesame" not in f"{refused.value} {refused.value.hint} {gone}"
