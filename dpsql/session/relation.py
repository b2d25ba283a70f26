"""Public rows as SQL: how an answer enters the public server, as a parameter for each column or as literals.

Decides the text. Rows keep their order, and every column has its name and exactly its type. Nothing becomes a table
that another session could read.
"""

from __future__ import annotations

from dpsql.pgwire.values import encoder
from dpsql.types import Column, Kind, Relation, SqlType

REFUSING = "pg_catalog.dp_only('A prepared question')"
"""A function of the public server that fails whenever it runs."""


def as_parameters(relation: Relation, columns: tuple[Column, ...] | None = None) -> tuple[str, tuple[bytes, ...]]:
    """A query over `$1`, `$2`, ... and their values in text format, all declared by casts.

    `columns`: what it shows, where they are to have other names or types than the relation's own.
    """
    arrays = tuple(_array(relation, at) for at in range(len(relation.columns)))
    return _query(relation.columns, [f"${at + 1}" for at in range(len(arrays))], columns), arrays


def as_literals(relation: Relation) -> str:
    """The same query with its rows in the text: for DECLARE, COPY and what stands inside of another statement."""
    arrays = [_array(relation, at).decode() for at in range(len(relation.columns))]
    return _query(relation.columns, [quoted(array) for array in arrays])


def stand_in(columns: tuple[Column, ...]) -> str:
    """A query of these columns that can be parsed, described and bound, and fails if it is ever executed."""
    return f"{_nulls(columns)} FROM {REFUSING}"


def hollow(columns: tuple[Column, ...]) -> str:
    """A query of these columns without rows: to try what stands around it."""
    return f"{_nulls(columns)} WHERE false"


def _nulls(columns: tuple[Column, ...]) -> str:
    return "SELECT " + ", ".join(f"NULL::{type_name(c.type)} AS {name(c.name)}" for c in columns)


def name(text: str) -> str:
    """A quoted name."""
    return '"' + text.replace('"', '""') + '"'


def quoted(text: str) -> str:
    """A string literal."""
    plain = "'" + text.replace("'", "''") + "'"
    return plain if "\\" not in text else "E" + plain.replace("\\", "\\\\")


def type_name(type: SqlType) -> str:
    """The type as Postgres writes it; what is not known is a text."""
    return "text" if type.kind is Kind.UNKNOWN else str(type)


def _query(columns: tuple[Column, ...], arrays: list[str], shown: tuple[Column, ...] | None = None) -> str:
    items = ", ".join(f"r.c{at}::{type_name(c.type)} AS {name(c.name)}" for at, c in enumerate(shown or columns))
    given = ", ".join(f"{array}::{_element(c.type)}[]" for array, c in zip(arrays, columns, strict=True))
    names = ", ".join(f"c{at}" for at in range(len(columns)))
    return f"SELECT {items} FROM unnest({given}) AS r({names})"


def _element(type: SqlType) -> str:
    return type_name(SqlType(type.kind))


def _array(relation: Relation, at: int) -> bytes:
    encode = encoder(relation.columns[at].type)
    return b"{" + b",".join(_item(encode(row[at])) for row in relation.rows) + b"}"


def _item(value: bytes | None) -> bytes:
    if value is None:
        return b"NULL"
    return b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
