"""The rows of public tables, streamed from the backend into the public server.

Decides how rows travel: as lines of COPY's text format, made where the rows are, so that no row is ever a value of
Python's on the way, and each type arrives as its own text says it, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from secrets import token_hex
from typing import Protocol

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from dpsql.backends import Backend
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.policy.places import place_of
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.public.shadow import quoted
from dpsql.types import Column, TableName, Value


class PublicRows(Protocol):
    """Where the rows of public tables come from."""

    def mark(self, table: SchemaTable) -> str:
        """Changes whenever the rows may have."""
        ...

    def lines(self, table: SchemaTable) -> Iterator[bytes]:
        """The rows as COPY's text, in chunks of whole lines, each with its table's columns in order."""
        ...


class Snapshot:
    """The rows that the schema holds already."""

    def mark(self, table: SchemaTable) -> str:
        digest = sha256()
        for row in () if table.rows is None else table.rows.rows:
            digest.update(repr(row).encode(errors="surrogatepass"))
        return digest.hexdigest()

    def lines(self, table: SchemaTable) -> Iterator[bytes]:
        if table.rows is None:
            return
        places = {column.name: place for place, column in enumerate(table.rows.columns)}
        order = [places[column.name] for column in table.columns]
        for start in range(0, len(table.rows.rows), _CHUNK):
            rows = table.rows.rows[start : start + _CHUNK]
            yield "".join("\t".join(_field(row[at]) for at in order) + "\n" for row in rows).encode()


class Streamed:
    """The rows that the backend holds; the data folder is not used again where nothing tells that they are the same."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def mark(self, table: SchemaTable) -> str:
        return self._backend.public_mark(_source(table)) or token_hex(16)

    def lines(self, table: SchemaTable) -> Iterator[bytes]:
        return self._backend.public_lines(_source(table), [Column(c.name, c.type) for c in table.columns])


def _source(table: SchemaTable) -> TableName:
    return table.source or TableName(table.name)


_CHUNK = 5_000
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _field(value: Value) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    if isinstance(value, bytes):
        return f"\\\\x{value.hex()}"
    return str(value)


def copy_rows(connection: Connection[TupleRow], table: SchemaTable, rows: PublicRows) -> None:
    """Raises Rejected where Postgres cannot hold a value: a NUL in a text, a date beyond its own."""
    place = place_of(table)
    names = ", ".join(quoted(column.name) for column in table.columns)
    at = f"{quoted(place.schema or 'public')}.{quoted(place.name)}"
    statement = SQL(f"COPY {at} ({names}) FROM STDIN")  # quoted names only
    try:
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for chunk in rows.lines(table):
                copy.write(chunk)
    except (psycopg.DataError, psycopg.IntegrityError):
        hint = "A text with a NUL character, or a date out of Postgres's range? Leave the column out of the table."
        message = f"The public table {table.name} holds a value that Postgres cannot."
        raise Rejected(message, sqlstate=BAD_PARAMETER, hint=hint) from None


def marks(schema: Schema, rows: PublicRows) -> str:
    """One mark for all public tables."""
    digest = sha256()
    for name, table in sorted(schema.tables.items()):
        if table.public:
            digest.update(f"{name}={rows.mark(table)};".encode())
    return digest.hexdigest()
