"""The catalog as tables of a locked in-memory DuckDB.

Decides how the rows are stored and what a query may use up: memory, time, rows. It must never open a file, a network
connection or an extension, and holds nothing but the policy's and Postgres's own words.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import duckdb

from dpsql.backends import Cancel
from dpsql.catalog.functions import DEFINITIONS, READ_BY_FUNCTIONS
from dpsql.catalog.memory import Memory
from dpsql.catalog.own import COLUMNS
from dpsql.catalog.rewrite import Rewritten
from dpsql.catalog.rows import Rows
from dpsql.catalog.snapshot import FUNCTION_TEXTS, KEYWORDS, SCHEMAS, CatalogRelation, library, snapshot
from dpsql.errors import CANCELLED, NOT_SUPPORTED, TOO_COMPLEX, Rejected
from dpsql.remainder.deadlines import Watchdog
from dpsql.remainder.forms import readable
from dpsql.remainder.pool import explained

_INTERVAL = "INTERVAL"
MAX_SECONDS = 5.0
MAX_ROWS = 50_000
MAX_KEPT = 2_000
"""Rows of a result that is kept for the next time."""

_LIMITS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "temp_directory": "",
    "autoinstall_known_extensions": False,
}
_LOCKS = (
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET allow_community_extensions = false",
    "SET lock_configuration = true",
)


_OWN = {(relation.schema, relation.name): relation for relation in (COLUMNS, FUNCTION_TEXTS, KEYWORDS)}

log = logging.getLogger("dpsql.catalog")


Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A result: (name, DuckDB type) of each column, and the rows."""

    columns: Columns
    rows: list[tuple[object, ...]]


class Database:
    """Queries may run from several threads; each uses a cursor of its own. Few relations are ever asked for, so that
    each is stored when a query first names it; those that functions.sql reads are there from the start."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._stored: set[tuple[str, str]] = set()
        self._watchdog = Watchdog()
        self._described: Memory[Columns] = Memory(256)
        self._found: Memory[Found] = Memory(256)
        self._connection = duckdb.connect(":memory:", config=_LIMITS)
        for name in SCHEMAS.values():
            self._connection.execute(f"CREATE SCHEMA {name}")
        self._store(READ_BY_FUNCTIONS)
        self._connection.execute(f"{_create(FUNCTION_TEXTS)}; {_create(KEYWORDS)}; {DEFINITIONS}")
        for lock in _LOCKS:
            self._connection.execute(lock)

    def _store(self, names: Iterable[tuple[str, str]]) -> None:
        """Makes tables of the relations that are not there yet."""
        with self._lock:
            for name in set(names) - self._stored:
                relation = _OWN.get(name) or snapshot().relations[name]
                self._connection.execute(_create(relation))
                self._fill(relation, self._rows.get(name) or library(name))
                self._stored.add(name)

    def _fill(self, relation: CatalogRelation, rows: Sequence[Mapping[str, object]]) -> None:
        """One parameter a column, as a list: far faster than VALUES. A column of defaults is left to SQL."""
        if not rows:
            return
        said = set().union(*rows)
        columns = [column for column in relation.columns if column.name in said]
        lists = [_cells(column.name, column.default, rows) for column in columns]
        names = ", ".join(f'"{column.name}"' for column in columns)
        unnested = ", ".join(f"unnest(?::{column.duckdb_type}[])" for column in columns)
        self._connection.execute(f"INSERT INTO {_name(relation)} ({names}) SELECT {unnested}", lists)

    def columns(self, query: Rewritten) -> Columns:
        """(name, DuckDB type) of a query's columns, without running it."""
        columns = self._described.get(query.sql)
        if columns is None:
            self._store(query.relations)
            rows = self._run(f"DESCRIBE {query.sql}", None).rows
            columns = tuple((str(name), str(type)) for name, type, *_ in rows)
            self._described.put(query.sql, columns)
        return columns

    def run(self, query: Rewritten, cancel: Cancel | None = None, timeout: float | None = None) -> Found:
        """Raises Rejected: 0A000 for what DuckDB cannot do, 57014 when stopped, 54001 over the rows."""
        found = self._found.get(query.sql)
        if found is None:
            self._store(query.relations)
            found = self._run(query.sql, cancel, timeout)
            if any(type == _INTERVAL for _, type in found.columns):
                again = readable(query.sql, [type == _INTERVAL for _, type in found.columns])
                found = Found(found.columns, self._run(again, cancel, timeout).rows)
            if query.lasting and len(found.rows) <= MAX_KEPT:
                self._found.put(query.sql, found)
        return found

    def _run(self, sql: str, cancel: Cancel | None, timeout: float | None = None) -> Found:
        expired = threading.Event()
        cursor = self._connection.cursor()

        def expire() -> None:
            expired.set()
            cursor.interrupt()

        interruptible = nullcontext() if cancel is None else cancel.interrupting(cursor.interrupt)
        try:
            with self._watchdog.watch(min(timeout or MAX_SECONDS, MAX_SECONDS), expire), interruptible:
                rows = cursor.execute(sql).fetchmany(MAX_ROWS + 1)
                columns = tuple((str(name), str(type)) for name, type, *_ in cursor.description or ())
        except duckdb.InterruptException:
            late = "the catalog query took too long" if expired.is_set() else "canceling statement due to user request"
            raise Rejected(late, sqlstate=CANCELLED) from None
        except duckdb.Error as error:
            raise _unsupported(error) from None
        finally:
            cursor.close()
        if len(rows) > MAX_ROWS:
            raise Rejected(f"a catalog query returns at most {MAX_ROWS} rows", sqlstate=TOO_COMPLEX)
        return Found(columns, rows)

    def close(self) -> None:
        self._watchdog.close()
        self._connection.close()


def _cells(name: str, default: object, rows: Sequence[Mapping[str, object]]) -> list[object]:
    return [row.get(name, default) for row in rows]


def _unsupported(error: duckdb.Error) -> Rejected:
    """What Postgres reports too is told as it does: a division by zero, a number out of range, a bad pattern."""
    known = explained(error)
    if isinstance(known, Rejected) and not isinstance(error, duckdb.ConversionException):
        return known
    log.info("a catalog query cannot be answered: %s", type(error).__name__)
    return Rejected(
        "this catalog query is not supported",
        sqlstate=NOT_SUPPORTED,
        hint="information_schema.tables and information_schema.columns list what can be asked.",
    )


def _create(relation: CatalogRelation) -> str:
    columns = ", ".join(
        f'"{column.name}" {column.duckdb_type} DEFAULT {_literal(column.default)}' for column in relation.columns
    )
    return f"CREATE TABLE IF NOT EXISTS {_name(relation)} ({columns})"


def _name(relation: CatalogRelation) -> str:
    return f'{SCHEMAS[relation.schema]}."{relation.name}"'


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return f"'{value}'"
        case _:
            return str(value)
