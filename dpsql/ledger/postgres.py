"""The ledger in a Postgres database, for several proxies on several machines; the same entries as in a file.

Decides how a database becomes a ledger's home: a schema of its own for each dataset, one writer at a time by a table
lock, commits that the server has synced to disk (settings read back, and refused if they do not hold). A connection
that is lost leaves a statement without answer; the next one finds in the chain whether its debit was made. Must never
let the server's error texts, which may quote what is stored, go further than here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import conninfo
from psycopg import sql as quoting
from psycopg.rows import TupleRow

from dpsql.ledger.guard import PATIENCE, Guard
from dpsql.ledger.migrations import LAYOUT, STEPS, require_layout, steps
from dpsql.ledger.model import LedgerError, LedgerUnavailable, damaged
from dpsql.ledger.room import Room
from dpsql.ledger.rows import Cursor, Rows

Connection = psycopg.Connection[TupleRow]

_TABLES: Final = f"""
CREATE TABLE entry (
  id bigint PRIMARY KEY, at bigint NOT NULL, clock text NOT NULL, kind text NOT NULL, "user" text NOT NULL,
  account text COLLATE "C" NOT NULL, "window" text NOT NULL, key text NOT NULL, statement text NOT NULL,
  reservation bigint NOT NULL, gate text NOT NULL, epsilon text NOT NULL, rho text NOT NULL, delta text NOT NULL,
  account_epsilon text NOT NULL, account_rho text NOT NULL, account_delta text NOT NULL,
  dataset_epsilon text NOT NULL, dataset_rho text NOT NULL, dataset_delta text NOT NULL,
  content text NOT NULL, hash text NOT NULL
);
CREATE INDEX entry_about ON entry (reservation, kind, account) WHERE reservation > 0;
CREATE INDEX entry_account ON entry (account, at) WHERE kind IN ('debit', 'view');
CREATE INDEX entry_user ON entry ("user", id);
CREATE TABLE release (reservation bigint PRIMARY KEY, key text COLLATE "C" NOT NULL, body bytea NOT NULL);
CREATE INDEX release_key ON release (key, reservation);
CREATE TABLE checkpoint (entry bigint PRIMARY KEY, body bytea NOT NULL);
{";".join(STEPS[1])};
CREATE TABLE layout (version integer NOT NULL);
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'append-only'; END $$;
CREATE TRIGGER entry_kept BEFORE UPDATE OR DELETE ON entry FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER entry_whole BEFORE TRUNCATE ON entry FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER release_kept BEFORE UPDATE OR DELETE ON release FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER release_whole BEFORE TRUNCATE ON release FOR EACH STATEMENT EXECUTE FUNCTION append_only();
"""

_SETTINGS: Final = {
    "synchronous_commit": "on",
    "standard_conforming_strings": "on",
    "lock_timeout": f"{PATIENCE:.0f}s",
    "idle_in_transaction_session_timeout": "1min",
}
_REQUIRED: Final = {
    "synchronous_commit": "on",
    "fsync": "on",
    "full_page_writes": "on",
    "server_encoding": "UTF8",
    "transaction_read_only": "off",
}
_CONNECT_TIMEOUT: Final = 10

_REASONS: Final = {
    "53100": "the server's disk is full",
    "53300": "the server takes no more connections",
    "25006": "the database is read-only",
    "25P03": "the server ended a transaction that had waited for too long",
    "25P04": "the server ended a transaction that had taken too long",
    "42501": "permission denied",
    "55P03": "another program keeps it locked",
    "57014": "the server cancelled it",
    "57P01": "the server ended the connection",
    "57P02": "the server crashed",
    "57P03": "the server is starting up",
    "XX001": "the server reports damaged data",
    "XX002": "the server reports a damaged index",
}
_PROVEN: Final = ("22", "23", "P0001", "XX001", "XX002")
"""SQLSTATEs of a database that holds what no ledger does; all else (a limit of time, another server) may pass."""


def _reason(error: psycopg.Error) -> str:
    """Why Postgres failed, in our words."""
    state = error.sqlstate or ""
    lost = "the server cannot be reached, or the connection was lost"
    return _REASONS.get(state, f"the server refused it ({state})" if state else lost)


def _is_transient(error: psycopg.Error) -> bool:
    return error.sqlstate is None or not error.sqlstate.startswith(_PROVEN)


@dataclass(frozen=True, slots=True)
class PostgresHome:
    """A schema for one dataset's ledger; see `dpsql.ledger.home.Home`."""

    url: str = field(repr=False)
    dataset: str

    @property
    def name(self) -> str:
        return f'postgresql://{_where(self.url)} "{self.schema}"'

    @property
    def schema(self) -> str:
        plain = f"dpsql {self.dataset}"
        return plain if len(plain.encode()) <= 63 else f"dpsql {hashlib.sha256(plain.encode()).hexdigest()[:40]}"

    @property
    def beside(self) -> Path | None:
        return None

    def remains(self) -> tuple[Path, ...]:
        return ()

    def exists(self) -> bool:
        with self._connected() as connection:
            return _has(connection, self.schema)

    def build(self, fill: Callable[[Rows], None]) -> None:
        with self._connected() as connection:
            _require_durable(connection, self.name)
            if _has(connection, self.schema):
                raise LedgerError(f"{self.name} exists already; a ledger is never made anew")
            connection.execute("BEGIN")
            connection.execute(quoting.SQL("CREATE SCHEMA {}").format(quoting.Identifier(self.schema)))
            connection.execute(_TABLES)
            connection.execute("INSERT INTO layout VALUES (%s)", (LAYOUT,))
            fill(_rows(connection))
            connection.execute("COMMIT")

    @contextmanager
    def snapshot(self, *, thorough: bool) -> Iterator[Rows]:
        """`thorough` changes nothing: whether its files are whole is the server's business."""
        with self._connected() as connection:
            self._require_made(connection)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _rows(connection)
            connection.execute("ROLLBACK")

    def store(self) -> PostgresStore:
        return PostgresStore(self)

    def set_aside(self) -> str:
        with self._connected() as connection:
            number = 1
            while _has(connection, f"{self.schema[:50]} lost {number}"):
                number += 1
            name = f"{self.schema[:50]} lost {number}"
            rename = quoting.SQL("ALTER SCHEMA {} RENAME TO {}")
            connection.execute(rename.format(quoting.Identifier(self.schema), quoting.Identifier(name)))
            return name

    def migrate(self) -> tuple[int, int]:
        with self._connected() as connection:
            self._require_schema(connection)
            connection.execute("BEGIN")
            connection.execute("LOCK TABLE entry IN ACCESS EXCLUSIVE MODE")
            version = _layout(connection)
            for step in steps(version, self.name):
                for statement in step:
                    connection.execute(statement.encode())
            connection.execute("UPDATE layout SET version = %s", (LAYOUT,))
            connection.execute("COMMIT")
            return version, LAYOUT

    def connect(self) -> Connection:
        """A connection whose names mean this ledger's tables. Raises psycopg.Error."""
        connection = psycopg.connect(self.url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT)
        try:
            path = quoting.Identifier(self.schema).as_string(connection)
            for name, value in {**_SETTINGS, "search_path": f"{path}, pg_temp"}.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        except BaseException:
            connection.close()
            raise
        return connection

    def opened(self) -> Connection:
        """A connection for service. Raises LedgerError unless there is a ledger, and commits are durable."""
        connection = self.connect()
        try:
            self._require_made(connection)
            _require_durable(connection, self.name)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        """A connection that is closed at the end; its faults as LedgerError."""
        try:
            with self.connect() as connection:
                try:
                    yield connection
                except BaseException:
                    connection.close()  # the block's error, not another of leaving a broken transaction
                    raise
        except psycopg.Error as error:
            if _is_transient(error):
                raise LedgerUnavailable(f"the ledger {self.name} cannot be used: {_reason(error)}") from None
            raise damaged(self.name, _reason(error)) from None

    def _require_made(self, connection: Connection) -> None:
        self._require_schema(connection)
        require_layout(_layout(connection), self.name)

    def _require_schema(self, connection: Connection) -> None:
        if not _has(connection, self.schema):
            raise LedgerError(
                f"there is no ledger at {self.name}",
                hint="For a new dataset run `dpsql ledger init`; otherwise restore the ledger from a backup.",
            )


def _where(url: str) -> str:
    """Host and database of a URL; nothing where one that was not read as it was meant could put its password there."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "..."
    where = "/".join(str(parts[key]) for key in ("host", "dbname") if parts.get(key))
    return "..." if "@" in where or "=" in where else where


def _has(connection: Connection, schema: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is not None


def _layout(connection: Connection) -> int:
    rows = connection.execute("SELECT version FROM layout").fetchall()
    return int(rows[0][0]) if len(rows) == 1 else 0


def _require_durable(connection: Connection, name: str) -> None:
    """What was only asked for is nothing: the settings as the server has them. Raises LedgerError."""
    for setting, value in _REQUIRED.items():
        row = connection.execute("SELECT current_setting(%s)", (setting,)).fetchone()
        if row is None or row[0] != value:
            raise LedgerUnavailable(
                f"{name} cannot hold a ledger: the server has {setting} = {row and row[0]}, not {value}"
            )


def _rows(connection: Connection) -> Rows:
    def execute(sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return connection.execute(sql.replace("?", "%s").encode(), parameters)

    return Rows(execute)


class PostgresStore:
    """A verified ledger's connection; one that was lost is made again for the next transaction."""

    def __init__(self, home: PostgresHome) -> None:
        self._home = home
        self.guard = Guard(home.name)
        self.room = Room(None)
        try:
            self._connection = home.opened()
        except psycopg.Error as error:
            raise LedgerError(f"the ledger {home.name} cannot be opened: {_reason(error)}") from None

    def in_line(self, work: Callable[[], None]) -> None:
        """The server's own lock is the line."""
        work()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Rows]:
        """A transaction that is rolled back at the end, unless its body has committed it. Raises Failed."""
        with self._faults(), self.guard.alone():
            self._begun(write)
            try:
                yield _rows(self._connection)
            finally:
                self._end()

    def _begun(self, write: bool) -> None:
        """Begin; a connection that was lost while nobody used it is made again, for nothing has been asked yet."""
        if not self._connection.closed:
            try:
                self._begin(write)
                return
            except psycopg.Error:
                if not self._connection.closed:
                    raise
        self._connection = self._home.opened()
        self._begin(write)

    def _begin(self, write: bool) -> None:
        """A writer locks first and reads then, so that it sees all that others have committed."""
        if write:
            self._connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
            self._connection.execute("LOCK TABLE entry IN EXCLUSIVE MODE")
        else:
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _end(self) -> None:
        """A connection that cannot even roll back is of no more use."""
        if self._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        """Give the connection up. What was committed stays."""
        with self.guard.closing(), suppress(psycopg.Error):
            self._connection.close()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except LedgerUnavailable as error:
            raise self.guard.failed(error.message) from None
        except LedgerError as error:
            raise self.guard.doubt(error.message) from None
        except psycopg.Error as error:
            if _is_transient(error):
                raise self.guard.failed(_reason(error)) from None
            raise self.guard.doubt(_reason(error)) from None
        except OSError as error:
            raise self.guard.failed(error.strerror or "a file is not accessible") from None
