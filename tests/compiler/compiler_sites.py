"""Worlds on a backend, each together with its neighbours: the same without all rows of one privacy unit.

Each neighbour is a schema of its own. Rows with NULL units and orphans belong to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
from compiler_worlds import COLUMNS, PRIVATE, UnitKind, World, units

from dpsql.backends import Backend, open_backend
from dpsql.backends.inspect import inspect
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema
from dpsql.types import ExactCells


def column_type(declared: str, unit: UnitKind) -> str:
    """UNIT and UNIT2 are of one family, not of one type or width."""
    if declared == "UNIT":
        return "somebody" if unit == "text" else "BIGINT"
    if declared == "UNIT2":
        return "TEXT" if unit == "text" else "INTEGER"
    return declared


def ddl(world: World) -> list[str]:
    """CREATE statements that both backends take."""
    made = []
    if world.unit == "text":
        made.append(f"CREATE TYPE somebody AS ENUM ({', '.join(map(_literal, reversed(units(world.unit))))})")
    for table, columns in COLUMNS.items():
        parts = [f'"{name}" {column_type(of, world.unit)}' for name, of in columns.items()]
        if table == "orders":
            parts.append("PRIMARY KEY (o_id)")
        if table == "shops":
            parts.append("PRIMARY KEY (shop)")
        if table == "people" and world.people_unique:
            parts.append("PRIMARY KEY (uid)")
        made.append(f"CREATE TABLE {table} ({', '.join(parts)})")
    return made


def inserts(world: World) -> list[str]:
    return [
        f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
        for table, rows in world.rows.items()
        if rows
    ]


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"


Neighbour = str | None | tuple[str, int]
"""What is taken away: a unit, the rows of nobody (None), or one row (table, index) where rows are units."""


def kept(table: str, gone: Neighbour, unit: UnitKind, main: str, row_id: str) -> str:
    """The condition under which a row of `main` stays in the neighbour."""
    if isinstance(gone, tuple):
        first = f"SELECT {row_id} FROM {main}.{table} ORDER BY {row_id} LIMIT 1 OFFSET {gone[1]}"
        return "TRUE" if table != gone[0] else f"{row_id} NOT IN ({first})"
    if unit == "row" or table not in PRIVATE:
        return "TRUE"
    column = "o_uid" if table in ("orders", "items") else "uid"
    mine = f"{column} IS NOT DISTINCT FROM {'NULL' if gone is None else _literal(gone)}"
    if table != "items":
        return f"NOT ({mine})"
    theirs = f"SELECT 1 FROM {main}.orders WHERE o_id = i_order AND NOT ({mine})"
    orphan = f"SELECT 1 FROM {main}.orders WHERE o_id = i_order"
    return f"EXISTS ({theirs})" if gone is None else f"(EXISTS ({theirs}) OR NOT EXISTS ({orphan}))"


def neighbour(name: str, gone: Neighbour, unit: UnitKind, main: str, row_id: str) -> list[str]:
    """A schema beside `main` that holds the neighbouring database."""
    return [
        f"CREATE SCHEMA {name}",
        *(
            f"CREATE TABLE {name}.{table} AS SELECT * FROM {main}.{table} WHERE {kept(table, gone, unit, main, row_id)}"
            for table in COLUMNS
        ),
    ]


def shuffled(name: str, main: str, order: str) -> list[str]:
    """The same database with its rows stored in another order. `order`: an expression over the table's row `t`."""
    made = (f"CREATE TABLE {name}.{table} AS SELECT * FROM {main}.{table} AS t ORDER BY {order}" for table in COLUMNS)
    return [f"CREATE SCHEMA {name}", *made]


def neighbours(world: World) -> dict[str, Neighbour]:
    """What to take away in turn: the heavy units, a random one, and nobody's rows, which must change nothing."""
    if world.unit == "row":
        wanted = [("visits", 3), ("visits", 170), ("people", 0), ("people", 7), ("items", 5), ("orders", 2)]
        return {f"n{i}": (table, index) for i, (table, index) in enumerate(wanted)}
    ids = units(world.unit)
    return {**{f"n{i}": ids[i] for i in (0, 1, 3, 4)}, NOBODY: None}


NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Site:
    """A world on a backend, with its neighbours in schemas beside it."""

    world: World
    backend: Backend
    schema: Schema
    main: str
    around: Mapping[str, Neighbour]

    def fetch(self, sql: str, keys: int, name: str | None = None) -> ExactCells:
        """The emitted query, on the database itself or on a neighbour."""
        there = sql if name is None else sql.replace(f'"{self.main}".', f'"{name}".')
        return self.backend.fetch(there, keys, 60.0)


def duckdb_site(world: World, path: Path) -> Site:
    path.unlink(missing_ok=True)
    around = neighbours(world)
    made = [s for name, gone in around.items() for s in neighbour(name, gone, world.unit, "main", "rowid")]
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        statements = (*ddl(world), *inserts(world), *made, *shuffled("shuffled", "main", "hash(t)"))
        connection.execute("; ".join(statements))
    return _site(world, f"duckdb:{path}", "main", around)


def postgres_site(world: World, uri: str) -> Site:
    around = neighbours(world)
    made = [s for name, gone in around.items() for s in neighbour(name, gone, world.unit, "public", "ctid")]
    with psycopg.connect(uri, autocommit=True, options="-c timezone=UTC") as connection:
        for name in ("public", "shuffled", *around):
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE".encode())
        connection.execute(b"CREATE SCHEMA public")
        statements = (*ddl(world), *inserts(world), *made, *shuffled("shuffled", "public", "md5(t::text)"))
        connection.execute("; ".join(statements).encode())
    return _site(world, uri, "public", around)


def _site(world: World, url: str, main: str, around: Mapping[str, Neighbour]) -> Site:
    policy = parse(world.policy, Path("world.yaml"))
    backend = open_backend(url, policy.timezone)
    return Site(world, backend, inspect(backend, policy), main, around)
