"""Rows of public tables arrive as the backend holds them, whatever they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import psycopg
import pytest
from psycopg.rows import TupleRow
from public_fakes import schema_at

from dpsql.backends import Backend, open_backend
from dpsql.errors import Rejected
from dpsql.policy.schema import SchemaColumn, SchemaTable
from dpsql.public.load import Snapshot, Streamed, copy_rows
from dpsql.public.server import PublicServer
from dpsql.types import Relation, TableName

_COLUMNS = (
    "b BOOLEAN, i2 SMALLINT, i4 INTEGER, i8 BIGINT, n DECIMAL(38, 9), f4 FLOAT, f8 DOUBLE, t VARCHAR, d DATE, "
    "h TIME, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID"
)
_ROWS = (
    "(true, -32768, -2147483648, -9223372036854775808, -12345678901234567890123456789.123456789, 1.1, 0.1, "
    "'a\tb\nc\r\\d \\N \\. ü 🦆', '0001-01-01', '23:59:59.999999', '1969-12-31 23:59:59.999999', "
    "'2020-06-01 12:00:00.5+02', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'), "
    "(false, 0, 0, 0, 0, 'inf', 1e-308, '', '9999-12-31', '00:00:00', '9999-12-31 00:00:00', "
    "'1890-01-01 00:00:00+00', NULL), "
    "(NULL, NULL, NULL, NULL, NULL, 3.4028235e38, 1.7976931348623157e308, '\\N', NULL, NULL, NULL, NULL, NULL), "
    "(NULL, NULL, NULL, NULL, NULL, NULL, 123456789.12345678, NULL, NULL, NULL, NULL, NULL, NULL)"
)


@pytest.fixture(scope="module")
def duckdb_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("load") / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE SCHEMA s; CREATE TABLE s.every ({_COLUMNS}); INSERT INTO s.every VALUES {_ROWS}")
        connection.execute("CREATE TABLE empty (a INTEGER); CREATE TABLE nul AS SELECT chr(0) AS t")
        connection.execute("CREATE TABLE many AS SELECT i::INTEGER AS i, 'text ' || i AS t FROM range(100000) r(i)")
    return f"duckdb:{path}"


@pytest.fixture(scope="module")
def postgres_url(postgres_uri: str) -> Iterator[str]:
    columns = _COLUMNS.replace("DECIMAL(38, 9)", "NUMERIC(38, 9)").replace("FLOAT,", "REAL,")
    columns = columns.replace("DOUBLE", "DOUBLE PRECISION")
    rows = _ROWS.replace("\\", "\\\\").replace("'a", "E'a").replace("'\\\\N'", "E'\\\\N'")
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA s; CREATE TABLE s.every ({columns}); INSERT INTO s.every VALUES {rows}")
        yield postgres_uri
        connection.execute("DROP SCHEMA s CASCADE")


def _schema_table(backend: Backend, at: TableName) -> SchemaTable:
    columns = backend.facts([at])[at].columns
    held = tuple(SchemaColumn(column.name, column.type) for column in columns)
    return SchemaTable(at.name, True, held, source=at, rows=Relation(columns, backend.public_rows(at).rows))


@pytest.fixture(scope="module")
def empty(postgres_uri: str) -> Iterator[psycopg.Connection[TupleRow]]:
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        yield connection


def _arrived(connection: psycopg.Connection[TupleRow], table: SchemaTable, rows: Snapshot | Streamed) -> list[TupleRow]:
    columns = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
    with connection.transaction(force_rollback=True):
        connection.execute("CREATE SCHEMA target")
        connection.execute(f"CREATE TABLE target.{table.name} ({columns})")
        copy_rows(connection, replace(table, source=TableName(table.name, "target")), _At(rows, table))
        return connection.execute(f"SELECT * FROM target.{table.name}", binary=True).fetchall()


class _At:
    """Rows of a table, wherever it is asked for."""

    def __init__(self, rows: Snapshot | Streamed, table: SchemaTable) -> None:
        self._rows, self._table = rows, table

    def mark(self, table: SchemaTable) -> str:
        return self._rows.mark(self._table)

    def lines(self, table: SchemaTable) -> Iterator[bytes]:
        return self._rows.lines(self._table)


@pytest.mark.parametrize("source", ["duckdb_url", "postgres_url"])
def test_every_type_arrives_exactly(
    source: str, request: pytest.FixtureRequest, empty: psycopg.Connection[TupleRow]
) -> None:
    backend = open_backend(request.getfixturevalue(source), "Europe/Rome")
    try:
        table = _schema_table(backend, TableName("every", "s"))
        assert table.rows is not None
        expected = sorted(map(repr, table.rows.rows))
        assert len(expected) == 4
        streamed = _arrived(empty, table, Streamed(backend))
        held = _arrived(empty, table, Snapshot())
    finally:
        backend.close()
    assert sorted(map(repr, map(_in_utc, streamed))) == expected
    assert sorted(map(repr, map(_in_utc, held))) == expected


def _in_utc(row: TupleRow) -> TupleRow:
    return tuple(v.astimezone(UTC) if isinstance(v, datetime) and v.tzinfo is not None else v for v in row)


def test_tables_are_whole_and_may_be_empty(duckdb_url: str, empty: psycopg.Connection[TupleRow]) -> None:
    backend = open_backend(duckdb_url, "UTC")
    try:
        many = _arrived(empty, _schema_table(backend, TableName("many")), Streamed(backend))
        none = _arrived(empty, _schema_table(backend, TableName("empty")), Streamed(backend))
    finally:
        backend.close()
    assert sorted(many) == [(i, f"text {i}") for i in range(100_000)]
    assert none == []


def test_what_postgres_cannot_hold_is_named_and_not_quoted(
    duckdb_url: str, empty: psycopg.Connection[TupleRow]
) -> None:
    backend = open_backend(duckdb_url, "UTC")
    try:
        with pytest.raises(Rejected, match="The public table nul holds a value that Postgres cannot"):
            _arrived(empty, _schema_table(backend, TableName("nul")), Streamed(backend))
    finally:
        backend.close()


def test_a_server_of_streamed_tables_is_made_again_when_the_file_changes(
    duckdb_url: str, reachable_folder: Path
) -> None:
    backend = open_backend(duckdb_url, "UTC")
    many = replace(_schema_table(backend, TableName("many")), rows=None)
    schema = schema_at(reachable_folder)
    schema = replace(schema, tables={"many": many})
    with PublicServer(schema, Streamed(backend)) as first:
        with psycopg.connect(first.address, user="alice", dbname=first.database) as connection:
            assert connection.execute("SELECT count(*), sum(i) FROM many").fetchall() == [(100_000, 4_999_950_000)]
        key = first.key
    backend.close()
    Path(duckdb_url.removeprefix("duckdb:")).touch()
    backend = open_backend(duckdb_url, "UTC")
    with PublicServer(schema, Streamed(backend)) as second:
        assert second.key != key
    backend.close()
