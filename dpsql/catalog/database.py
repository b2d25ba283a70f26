"""The catalog as tables of a locked in-memory DuckDB.

Decides how the rows are stored and what a query may use up: memory, time, rows. It must never open a file, a network
connection or an extension, and holds nothing but the policy's and Postgres's own words.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb

from dpsql.catalog.functions import DEFINITIONS
from dpsql.catalog.own import COLUMNS
from dpsql.catalog.rows import Rows
from dpsql.catalog.snapshot import SCHEMAS, CatalogRelation, snapshot
from dpsql.errors import CANCELLED, NOT_SUPPORTED, TOO_COMPLEX, Rejected

MAX_SECONDS = 5.0
MAX_ROWS = 50_000

_LIMITS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
}
_LOCKS = (
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET allow_community_extensions = false",
    "SET lock_configuration = true",
)


log = logging.getLogger("dpsql.catalog")


@dataclass(frozen=True, slots=True)
class Found:
    """A result: (name, DuckDB type) of each column, and the rows."""

    columns: tuple[tuple[str, str], ...]
    rows: list[tuple[object, ...]]


class Database:
    """Queries may run from several threads; each uses a cursor of its own."""

    def __init__(self, rows: Rows) -> None:
        self._connection = duckdb.connect(":memory:", config=_LIMITS)
        for name in SCHEMAS.values():
            self._connection.execute(f"CREATE SCHEMA {name}")
        relations = {**snapshot().relations, (COLUMNS.schema, COLUMNS.name): COLUMNS}
        self._connection.execute(";".join(_create(relation) for relation in relations.values()))
        for key, found in rows.items():
            self._load(relations[key], found)
        self._connection.execute(DEFINITIONS)
        for lock in _LOCKS:
            self._connection.execute(lock)

    def _load(self, relation: CatalogRelation, rows: Sequence[Mapping[str, object]]) -> None:
        """One parameter a column, as a list: far faster than VALUES."""
        lists = [[row.get(column.name, column.default) for row in rows] for column in relation.columns]
        unnested = ", ".join(f"unnest(?::{column.duckdb_type}[])" for column in relation.columns)
        self._connection.execute(f"INSERT INTO {_name(relation)} SELECT {unnested}", lists)

    def columns(self, sql: str) -> tuple[tuple[str, str], ...]:
        """(name, DuckDB type) of a query's columns, without running it."""
        return tuple((str(name), str(type)) for name, type, *_ in self.run(f"DESCRIBE {sql}").rows)

    def run(self, sql: str) -> Found:
        """Raises Rejected: 0A000 for what DuckDB cannot do, 57014 over the time, 54001 over the rows."""
        cursor = self._connection.cursor()
        timer = threading.Timer(MAX_SECONDS, cursor.interrupt)
        timer.daemon = True
        timer.start()
        try:
            rows = cursor.execute(sql).fetchmany(MAX_ROWS + 1)
            columns = tuple((str(name), str(type)) for name, type, *_ in cursor.description or ())
        except duckdb.InterruptException:
            raise Rejected("the catalog query took too long", sqlstate=CANCELLED) from None
        except duckdb.Error as error:
            log.info("a catalog query cannot be answered: %s", type(error).__name__)
            raise Rejected(
                "this catalog query is not supported",
                sqlstate=NOT_SUPPORTED,
                hint="information_schema.tables and information_schema.columns list what can be asked.",
            ) from None
        finally:
            timer.cancel()
            cursor.close()
        if len(rows) > MAX_ROWS:
            raise Rejected(f"a catalog query returns at most {MAX_ROWS} rows", sqlstate=TOO_COMPLEX)
        return Found(columns, rows)

    def close(self) -> None:
        self._connection.close()


def _create(relation: CatalogRelation) -> str:
    columns = ", ".join(f'"{column.name}" {column.duckdb_type}' for column in relation.columns)
    return f"CREATE TABLE {_name(relation)} ({columns})"


def _name(relation: CatalogRelation) -> str:
    return f'{SCHEMAS[relation.schema]}."{relation.name}"'
