"""The catalog as tables of a locked in-memory DuckDB.

Decides how the rows are stored and what a query may use up: memory, time, rows. It must never open a file, a network
connection or an extension, and holds nothing but the policy's and Postgres's own words.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import duckdb
from sqlglot import exp

from dpsql.backends import Cancel
from dpsql.catalog.functions import DEFINITIONS, called
from dpsql.catalog.memory import Memory
from dpsql.catalog.own import COLUMNS
from dpsql.catalog.rewrite import Rewritten
from dpsql.catalog.rows import PERSONAL, Rows, oid_of
from dpsql.catalog.snapshot import FUNCTION_TEXTS, KEYWORDS, PG_CATALOG, SCHEMAS, CatalogRelation, library, snapshot
from dpsql.errors import CANCELLED, NOT_SUPPORTED, TOO_COMPLEX, UNDEFINED_COLUMN, Rejected
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
    """Queries may run from several threads; each uses a cursor of its own. Few relations and functions are ever asked
    for, so that each is made when a query first needs it, or by `warm`.

    Users with the same rows share one: what a query says of its user is set for its cursor alone.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._stored: dict[tuple[str, str], bool] = {}
        self._defined: dict[str, bool] = {}
        self._watchdog = Watchdog()
        self._described: Memory[Columns] = Memory(256)
        self._found: Memory[Found] = Memory(256)
        self._connection = duckdb.connect(":memory:", config=_LIMITS)
        for name in SCHEMAS.values():
            self._connection.execute(f"CREATE SCHEMA {name}")
        for lock in _LOCKS:
            self._connection.execute(lock)

    def warm(self) -> None:
        """Makes all functions, and the relations that they read."""
        for name in DEFINITIONS:
            with self._lock:
                self._define(name)

    def _prepare(self, query: Rewritten) -> bool:
        """Makes what the query needs; whether any of it tells of the user."""
        with self._lock:
            personal = [self._store(name) for name in query.relations]
            personal += [self._define(name) for name in called(query.sql)]
        return any(personal)

    def _define(self, name: str) -> bool:
        if name not in self._defined:
            definition = DEFINITIONS[name]
            personal = [self._store((PG_CATALOG, relation)) for relation in definition.relations]
            personal += [self._define(other) for other in definition.needs]
            self._connection.execute(definition.sql)
            self._defined[name] = any(personal)
        return self._defined[name]

    def _store(self, name: tuple[str, str]) -> bool:
        if name not in self._stored:
            relation = _OWN.get(name) or snapshot().relations[name]
            personal = PERSONAL.get(name)
            kept = relation if personal is None else replace(relation, name=f"z_{relation.name}")
            self._connection.execute(_create(kept))
            self._fill(kept, self._rows.get(name) or library(name))
            if personal is not None:
                self._connection.execute(_personal(relation, kept, *personal))
            self._stored[name] = personal is not None
        return self._stored[name]

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
            self._prepare(query)
            rows = self._run(f"DESCRIBE {query.sql}", None).rows
            columns = tuple((str(name), str(type)) for name, type, *_ in rows)
            self._described.put(query.sql, columns)
        return columns

    def run(self, query: Rewritten, user: str, cancel: Cancel | None = None, timeout: float | None = None) -> Found:
        """Raises Rejected: 0A000 for what DuckDB cannot do, 57014 when stopped, 54001 over the rows."""
        asker = user if self._prepare(query) else None
        key = query.sql if asker is None else f"{asker}\0{query.sql}"
        found = self._found.get(key)
        if found is None:
            found = self._run(query.sql, cancel, timeout, asker)
            if any(type == _INTERVAL for _, type in found.columns):
                again = readable(query.sql, [type == _INTERVAL for _, type in found.columns])
                found = Found(found.columns, self._run(again, cancel, timeout, asker).rows)
            if query.lasting and len(found.rows) <= MAX_KEPT:
                self._found.put(key, found)
        return found

    def _run(self, sql: str, cancel: Cancel | None, timeout: float | None = None, user: str | None = None) -> Found:
        expired = threading.Event()
        cursor = self._connection.cursor()

        def expire() -> None:
            expired.set()
            cursor.interrupt()

        interruptible = nullcontext() if cancel is None else cancel.interrupting(cursor.interrupt)
        try:
            if user is not None:
                cursor.execute(f"SET VARIABLE z_user = {exp.Literal.string(user).sql('duckdb')}")
                cursor.execute(f"SET VARIABLE z_oid = {oid_of('role', user)}")
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


_MISSING = re.compile(
    r'Referenced column "([^"]{1,63})" not found|does not have a column named "([^"]{1,63})"'
    r'|^Binder Error: Column "([^"]{1,63})" referenced that exists in the SELECT clause'
)
"""What DuckDB says of a column that is not there; the last, where the output has its name."""


def _unsupported(error: duckdb.Error) -> Rejected:
    """What Postgres reports too is told as it does: a division by zero, a number out of range, a bad pattern."""
    known = explained(error)
    if isinstance(known, Rejected) and not isinstance(error, duckdb.ConversionException):
        return known
    missing = _MISSING.search(str(error))
    if missing is not None:
        return Rejected(f'column "{missing[1] or missing[2] or missing[3]}" does not exist', sqlstate=UNDEFINED_COLUMN)
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
    return f"CREATE TABLE {_name(relation)} ({columns})"


def _personal(relation: CatalogRelation, kept: CatalogRelation, oid: str, name: str) -> str:
    """The relation as a view that puts the user's name and OID into the row that has neither."""
    parts = f"if({oid} = 0, getvariable('z_oid')::UINTEGER, {oid}) AS {oid}"
    parts += f", if({oid} = 0, getvariable('z_user')::VARCHAR, {name}) AS {name}"
    return f"CREATE VIEW {_name(relation)} AS SELECT * REPLACE ({parts}) FROM {_name(kept)}"


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
