"""DuckDB, embedded: a database file, opened read only and locked down.

Decides how the file is opened (no writing, no other files, no extensions, no Python variables as tables), what its
catalog may contain, and how its types read. While it is open nobody can change it, so checks at start stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Literal

import duckdb

from dpsql.backends import Cancel
from dpsql.backends.cells import MAX_PUBLIC_ROWS, exact_cells, public_relation
from dpsql.backends.watch import Guard, Watch, stopped
from dpsql.errors import BAD_PARAMETER, DpsqlError, Failed, Rejected
from dpsql.policy.outline import Listing
from dpsql.types import Column, ExactCells, Kind, Relation, SqlType, TableFacts, TableName

SCHEMA = "main"
_BATCH = 10_000

_CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "false",
}
_TYPES: Mapping[str, Kind] = {
    "BOOLEAN": Kind.BOOL,
    "SMALLINT": Kind.INT2,
    "INTEGER": Kind.INT4,
    "BIGINT": Kind.INT8,
    "FLOAT": Kind.FLOAT4,
    "DOUBLE": Kind.FLOAT8,
    "VARCHAR": Kind.TEXT,
    "DATE": Kind.DATE,
    "TIME": Kind.TIME,
    "TIMESTAMP": Kind.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": Kind.TIMESTAMPTZ,
    "UUID": Kind.UUID,
}
_DECIMAL = re.compile(r"DECIMAL\(([0-9]+),([0-9]+)\)")
_ENUM = re.compile(r"ENUM\(.*\)", re.DOTALL)
_LABEL = re.compile(r"'((?:[^']|'')*)'")
_COLLATED = re.compile(r'(?:"((?:[^"]|"")+)"|(\w+)) VARCHAR COLLATE\b', re.IGNORECASE)

_TABLES = """
SELECT schema_name, table_name, coalesce(sql, ''), temporary, NULL FROM duckdb_tables()
WHERE NOT internal AND database_name = current_database()
UNION ALL
SELECT schema_name, view_name, '', temporary, 'is a view' FROM duckdb_views()
WHERE NOT internal AND database_name = current_database()
"""
_COLUMNS = """
SELECT column_name, data_type, is_generated, is_nullable FROM duckdb_columns()
WHERE schema_name = $1 AND database_name = current_database() AND table_name = $2 ORDER BY column_index
"""
_CONSTRAINTS = """
SELECT constraint_type, constraint_column_names, coalesce(expression, '') FROM duckdb_constraints()
WHERE schema_name = $1 AND database_name = current_database() AND table_name = $2
  AND constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'CHECK') ORDER BY constraint_index
"""
_FOREIGN_KEYS = """
SELECT schema_name, table_name, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE database_name = current_database() AND constraint_type = 'FOREIGN KEY'
ORDER BY table_oid, constraint_index
"""
_AMBIGUOUS = "SELECT database_name FROM duckdb_databases() WHERE lower(database_name) = lower($1)"
_SHADOWS = """
SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal
  AND lower(function_name) IN (SELECT lower(function_name) FROM duckdb_functions() WHERE internal)
UNION
SELECT DISTINCT type_name FROM duckdb_types() WHERE NOT internal AND database_name = current_database()
  AND lower(type_name) IN (SELECT lower(type_name) FROM duckdb_types() WHERE internal)
ORDER BY 1
"""


class DuckdbBackend:
    """One read-only database file; a cursor (a connection of its own) per statement."""

    def __init__(self, path: str, timezone: str, sharers: int = 1) -> None:
        self._watch = Watch()
        self._path = Path(path)
        self._connection = _open(path, timezone, sharers)
        shadows = self._rows(_SHADOWS)
        if shadows:
            self.close()
            names = ", ".join(str(row[0]) for row in shadows)
            hint = "Drop those macros and types: the proxy's SQL would call them in place of the built-in ones."
            raise Rejected(f"The database redefines built-in names: {names}.", sqlstate=BAD_PARAMETER, hint=hint)

    @property
    def dialect(self) -> Literal["duckdb"]:
        return "duckdb"

    @property
    def immutable(self) -> bool:
        return True

    def listing(self) -> Listing:
        tables = (TableName(str(n), _own(s)) for s, n, _, temporary, _ in self._rows(_TABLES) if not temporary)
        return Listing(
            tuple(tables),
            tuple(
                (TableName(str(name), _own(s)), _list(columns), TableName(str(parent), _own(s)), _list(parents))
                for s, name, columns, parent, parents in self._rows(_FOREIGN_KEYS)
            ),
        )

    def facts(self, tables: Sequence[TableName]) -> Mapping[TableName, TableFacts]:
        rows = self._rows(_TABLES)
        found = {TableName(str(n), _own(s)): (str(sql), bool(temporary), view) for s, n, sql, temporary, view in rows}
        wanted = {table: TableName(table.name, _own(table.schema)) for table in tables}
        return {table: self._facts(at, *found[at]) for table, at in wanted.items() if at in found}

    def _facts(self, table: TableName, sql: str, temporary: bool, view: object) -> TableFacts:
        where = [table.schema or SCHEMA, table.name]
        columns = self._rows(_COLUMNS, where)
        collated = {plain or quoted.replace('""', '"') for quoted, plain in _COLLATED.findall(sql)}
        nullable = {str(column) for column, _, _, is_nullable in columns if is_nullable}
        constraints = self._rows(_CONSTRAINTS, where)
        unique = [frozenset(_list(names)) for kind, names, _ in constraints if kind != "CHECK"]
        reasons = {
            str(view): bool(view),
            "is a temporary table": temporary,
            "is in a schema named like its database: rename the file": self._ambiguous(table.schema),
        }
        return TableFacts(
            name=table.name,
            columns=tuple(
                Column(str(column), SqlType(Kind.UNKNOWN) if generated or column in collated else _type(str(of)))
                for column, of, generated, _ in columns
            ),
            unique=tuple(columns for columns in unique if not columns & nullable),
            problems=tuple(reason for reason, holds in reasons.items() if holds),
            enums=tuple((str(c), _labels(str(of))) for c, of, _, _ in columns if _ENUM.fullmatch(str(of))),
            checks=tuple(str(text) for kind, _, text in constraints if kind == "CHECK"),
            nullable=frozenset(nullable),
        )

    def _ambiguous(self, schema: str | None) -> bool:
        """DuckDB reads the first of two names as a database where there is one."""
        return schema is not None and bool(self._rows(_AMBIGUOUS, [schema]))

    def verify_unique(self, table: TableName, columns: Sequence[str]) -> bool:
        names = ", ".join(map(_quoted, columns))
        whole = " AND ".join(f"{_quoted(column)} IS NOT NULL" for column in columns)
        sql = (
            f"SELECT coalesce(bool_and(n = 1 AND whole), true)"
            f" FROM (SELECT count(*) AS n, bool_and({whole}) AS whole FROM {_table(table)} GROUP BY {names})"
        )
        return self._rows(sql) == [(True,)]

    def public_rows(self, table: TableName) -> Relation:
        columns = tuple(column for column in self.facts([table])[table].columns if column.type.kind is not Kind.UNKNOWN)
        names = ", ".join(map(_read, columns))
        rows = self._rows(f"SELECT {names} FROM {_table(table)} ORDER BY {names} LIMIT {MAX_PUBLIC_ROWS + 1}")
        return public_relation(str(table), columns, rows)

    def public_lines(self, table: TableName, columns: Sequence[Column]) -> Iterator[bytes]:
        line = f"concat_ws(chr(9), {', '.join(map(_field, columns))})"
        try:
            with closing(self._connection.cursor()) as cursor:
                cursor.execute(f"SELECT {line} FROM {_table(table)}")
                while batch := cursor.fetchmany(_BATCH):
                    yield "".join(f"{row[0]}\n" for row in batch).encode()
        except Exception as error:
            raise Failed(type(error).__name__) from None

    def public_mark(self, table: TableName) -> str | None:
        """Of the file: nobody changes it while it is open."""
        found = self._path.stat()
        return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"

    def fetch(self, sql: str, key_columns: int, timeout: float, cancel: Cancel | None = None) -> ExactCells:
        with closing(self._connection.cursor()) as cursor, self._watch.guard(cursor.interrupt, timeout) as guard:
            interrupting = cancel.interrupting(partial(self._watch.cancel, guard)) if cancel else nullcontext()
            with interrupting:
                return _fetch(cursor, sql, key_columns, guard)

    def close(self) -> None:
        self._watch.close()
        self._connection.close()

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        try:
            with closing(self._connection.cursor()) as cursor:
                return cursor.execute(sql, list(parameters)).fetchall()
        except Exception as error:
            raise Failed(type(error).__name__) from None


def _open(path: str, timezone: str, sharers: int) -> duckdb.DuckDBPyConnection:
    if not Path(path).is_file():
        raise Rejected(f"There is no database file {path}.", sqlstate=BAD_PARAMETER, hint="Check the path.")
    try:
        connection = duckdb.connect(path, read_only=True, config=_CONFIG)
        if sharers > 1:
            (threads,) = connection.execute("SELECT current_setting('threads')").fetchall()[0]
            connection.execute(f"SET GLOBAL threads = {max(1, int(threads) // sharers)}")
        connection.execute("SET GLOBAL TimeZone = $1", [timezone])
        connection.execute("SET GLOBAL lock_configuration = true")
    except duckdb.Error as error:
        hint = "Is it a DuckDB database, readable, and not open for writing elsewhere?"
        message = f"The database file {path} cannot be opened ({type(error).__name__})."
        raise Rejected(message, sqlstate=BAD_PARAMETER, hint=hint) from None
    return connection


def _fetch(cursor: duckdb.DuckDBPyConnection, sql: str, key_columns: int, guard: Guard) -> ExactCells:
    try:
        cursor.execute(sql)
        if any(str(column[1]) != "BIGINT" for column in cursor.description[key_columns:]):
            raise Failed("a cell column is no BIGINT")
        return exact_cells(_batches(cursor), key_columns)
    except DpsqlError:
        raise
    except Exception as error:
        raise stopped(guard, error) from None


def _batches(cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[object, ...]]:
    """Rows by and by, so that a result beyond the limit is never held whole."""
    while batch := cursor.fetchmany(_BATCH):
        yield from batch


def _type(name: str) -> SqlType:
    """A column's type; an ENUM is read as text."""
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return SqlType(Kind.NUMERIC, int(decimal[1]), int(decimal[2]))
    return SqlType(Kind.TEXT if _ENUM.fullmatch(name) else _TYPES.get(name, Kind.UNKNOWN))


def _labels(enum: str) -> tuple[str, ...]:
    return tuple(label.replace("''", "'") for label in _LABEL.findall(enum))


def _list(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _own(schema: object) -> str | None:
    return None if schema is None or schema == SCHEMA else str(schema)


def _table(table: TableName) -> str:
    return f"{_quoted(table.schema or SCHEMA)}.{_quoted(table.name)}"


def _read(column: Column) -> str:
    name = _quoted(column.name)
    return f"CAST({name} AS VARCHAR)" if column.type.kind is Kind.TEXT else name


_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
"""What COPY's text format reads as something else, the backslash first."""


def _field(column: Column) -> str:
    """The column as COPY's text has it: each type as it prints itself, exactly; DuckDB writes (BC), Postgres BC."""
    text = f"CAST({_quoted(column.name)} AS VARCHAR)"
    if column.type.kind is Kind.TEXT:
        for character, escaped in _ESCAPED.items():
            text = f"replace({text}, chr({ord(character)}), '{escaped}')"
    elif column.type.is_time:
        text = f"replace({text}, '(BC)', 'BC')"
    return f"coalesce({text}, '\\N')"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
