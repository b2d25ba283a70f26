"""PostgreSQL, through psycopg: read-only transactions under a fixed environment.

Decides the session's settings (nothing that the login, role or database sets may change what a statement means), the
pool, and how results read. A connection that failed or was interrupted is never used again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Literal, cast

import psycopg
from psycopg import sql as quoting
from psycopg.rows import TupleRow

from dpsql.backends import Cancel
from dpsql.backends.cells import MAX_PUBLIC_ROWS, exact_cells, public_relation, unreadable
from dpsql.backends.postgres_facts import SCHEMA, listing, table_facts
from dpsql.backends.watch import Guard, Watch, stopped
from dpsql.errors import BAD_PARAMETER, DpsqlError, Failed, Rejected
from dpsql.policy.outline import Listing
from dpsql.types import Column, ExactCells, Kind, Relation, TableFacts, TableName

MAX_CONNECTIONS = 8
_INT8_OID = 20
_CONNECT_TIMEOUT = 10
_START_TIMEOUT = 600.0
_BATCH = 10_000

Connection = psycopg.Connection[TupleRow]

_SETTINGS: Mapping[str, str] = {
    "search_path": "pg_catalog,pg_temp",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "repeatable\\ read",
    "row_security": "off",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "extra_float_digits": "1",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "60s",
}
_KEEPALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


class PostgresBackend:
    """One database, reached by at most `MAX_CONNECTIONS` connections that are made as needed."""

    def __init__(self, url: str, timezone: str) -> None:
        self._url = url
        self._timezone = timezone
        self._watch = Watch()
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._idle.append(self._first())

    @property
    def dialect(self) -> Literal["postgres"]:
        return "postgres"

    @property
    def immutable(self) -> bool:
        return False

    def listing(self) -> Listing:
        with self._started() as connection:
            return listing(connection)

    def facts(self, tables: Sequence[TableName]) -> Mapping[TableName, TableFacts]:
        with self._started() as connection:
            return table_facts(connection, tables)

    def verify_unique(self, table: TableName, columns: Sequence[str]) -> bool:
        """Others may write at any time, so only the catalog's constraints count."""
        return False

    def public_rows(self, table: TableName) -> Relation:
        found = self.facts([table])[table]
        columns = tuple(column for column in found.columns if column.type.kind is not Kind.UNKNOWN)
        try:
            return public_relation(str(table), columns, self._all_rows(table, columns))
        except Failed:
            raise unreadable(str(table)) from None

    def _all_rows(self, table: TableName, columns: tuple[Column, ...]) -> list[TupleRow]:
        with self._started() as connection:
            statement = quoting.SQL("SELECT {names} FROM {table} ORDER BY {order} LIMIT {limit}").format(
                names=quoting.SQL(", ").join(_read(column.name, column.type.kind) for column in columns),
                table=quoting.Identifier(table.schema or SCHEMA, table.name),
                order=quoting.SQL(", ").join(quoting.Literal(place) for place in range(1, len(columns) + 1)),
                limit=quoting.Literal(MAX_PUBLIC_ROWS + 1),
            )
            return connection.execute(statement, binary=True).fetchall()

    def public_lines(self, table: TableName, columns: Sequence[Column]) -> Iterator[bytes]:
        statement = quoting.SQL("COPY (SELECT {names} FROM {table}) TO STDOUT").format(
            names=quoting.SQL(", ").join(_read(column.name, column.type.kind) for column in columns),
            table=quoting.Identifier(table.schema or SCHEMA, table.name),
        )
        with self._started() as connection, connection.cursor() as cursor, cursor.copy(statement) as copy:
            for lines in copy:
                yield bytes(lines)

    def public_mark(self, table: TableName) -> str | None:
        """Others may write at any time."""
        return None

    def fetch(self, sql: str, key_columns: int, timeout: float, cancel: Cancel | None = None) -> ExactCells:
        with self._slot(timeout) as connection, self._transaction(connection, timeout) as guard:
            interrupting = cancel.interrupting(partial(self._watch.cancel, guard)) if cancel else nullcontext()
            with interrupting:
                return _fetch(connection, sql, key_columns)

    def close(self) -> None:
        self._watch.close()
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _started(self) -> Iterator[Connection]:
        """A transaction for the operator's own queries."""
        with self._slot(_START_TIMEOUT) as connection, self._transaction(connection, _START_TIMEOUT):
            yield connection

    @contextmanager
    def _transaction(self, connection: Connection, timeout: float) -> Iterator[Guard]:
        """One read-only snapshot. Whatever goes wrong inside closes the connection and becomes a `DpsqlError`."""
        with self._watch.guard(partial(_interrupt, connection), timeout) as guard:
            try:
                connection.execute(_begin(timeout))
                yield guard
                connection.execute("COMMIT")
            except DpsqlError:
                connection.close()
                raise
            except Exception as error:
                connection.close()
                raise stopped(guard, error) from None
        if guard.fired:
            connection.close()

    @contextmanager
    def _slot(self, timeout: float) -> Iterator[Connection]:
        if not self._slots.acquire(timeout=timeout):
            raise Failed("no free connection to the backend")
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        finally:
            self._slots.release()

    def _take(self) -> Connection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        try:
            return _connect(self._url, self._timezone)
        except Exception as error:
            raise Failed(type(error).__name__) from None

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not connection.closed and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _first(self) -> Connection:
        """Opening the backend is the operator's business: the reason is told, without the URL and its password.

        Texts travel as UTF8, and of other encodings not every value can: a row would make statements fail.
        """
        try:
            made = _connect(self._url, self._timezone)
        except psycopg.Error as error:
            raise Rejected(
                "The Postgres backend cannot be opened.",
                sqlstate=BAD_PARAMETER,
                detail=_why(error),
                hint="Check the address, the login, and PGPASSWORD or ~/.pgpass.",
            ) from None
        encoding = made.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            made.close()
            message = f"The Postgres backend's database has the encoding {encoding}, not UTF8."
            hint = "Copy it into a database that is made with ENCODING 'UTF8'."
            raise Rejected(message, sqlstate=BAD_PARAMETER, hint=hint)
        return made


def _why(error: psycopg.Error) -> str:
    """What the server that was reached said; what could not be read of the URL may be a part of its password."""
    told = str(error).partition("\n")[0]
    if "connection to server " in told:
        return told
    return "The address in its URL cannot be used; write @ : / ? # % in a password as %40 %3A %2F %3F %23 %25."


def _connect(url: str, timezone: str) -> Connection:
    settings = {**_SETTINGS, "timezone": timezone}
    return psycopg.connect(
        url,
        autocommit=True,
        prepare_threshold=None,
        options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
        client_encoding="UTF8",
        application_name="dpsql",
        connect_timeout=_CONNECT_TIMEOUT,
        **cast(dict[str, Any], _KEEPALIVE),
    )


def _begin(timeout: float) -> quoting.Composed:
    return quoting.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {}").format(
        quoting.Literal(max(int(timeout * 1000), 1))
    )


def _interrupt(connection: Connection) -> None:
    with suppress(Exception):
        connection.cancel_safe(timeout=2)


def _fetch(connection: Connection, sql: str, key_columns: int) -> ExactCells:
    with connection.cursor() as cursor:
        cursor.execute(sql.encode(), binary=True)
        if any(column.type_code != _INT8_OID for column in (cursor.description or ())[key_columns:]):
            raise Failed("a cell column is no bigint")
        return exact_cells(_batches(cursor), key_columns)


def _batches(cursor: psycopg.Cursor[TupleRow]) -> Iterator[TupleRow]:
    while batch := cursor.fetchmany(_BATCH):
        yield from batch


def _read(name: str, kind: Kind) -> quoting.Composable:
    """The column; text in binary collation, so that the snapshot's order is the same everywhere."""
    column = quoting.Identifier(name)
    return quoting.SQL('{}::text COLLATE "C"').format(column) if kind is Kind.TEXT else column
