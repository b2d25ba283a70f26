"""Rows of a backend -> `ExactCells` or public rows, checked value by value.

Decides what may pass: keys that a client could see, and integers within +-2^62. Anything else means that the emitted
SQL or the backend is broken, and fails the statement; no value ever stands in the failure's cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

from dpsql.errors import BAD_PARAMETER, Failed, Rejected
from dpsql.types import Column, ExactCells, Kind, Relation, Value

CELL_LIMIT = 2**62
MAX_GROUPS = 1_000_000
"""Groups that one release may have before any is dropped: a bound on the proxy's memory."""
MAX_PUBLIC_ROWS = 1_000_000

Row = Sequence[object]

_KEY_TYPES = (bool, int, float, Decimal, str, date, datetime, time, UUID)
_PYTHON: dict[Kind, type] = {
    Kind.BOOL: bool,
    Kind.INT2: int,
    Kind.INT4: int,
    Kind.INT8: int,
    Kind.NUMERIC: Decimal,
    Kind.FLOAT4: float,
    Kind.FLOAT8: float,
    Kind.TEXT: str,
    Kind.DATE: date,
    Kind.TIME: time,
    Kind.TIMESTAMP: datetime,
    Kind.TIMESTAMPTZ: datetime,
    Kind.UUID: UUID,
}


def exact_cells(rows: Iterable[Row], key_columns: int) -> ExactCells:
    """Checks and splits each row. Raises Failed."""
    keys: list[tuple[Value, ...]] = []
    cells: list[tuple[int, ...]] = []
    for row in rows:
        if len(keys) >= MAX_GROUPS:
            raise Failed(f"more than {MAX_GROUPS} groups")
        keys.append(tuple(_key(value) for value in row[:key_columns]))
        cells.append(tuple(_cell(value) for value in row[key_columns:]))
    return ExactCells(tuple(keys), tuple(cells))


def _cell(value: object) -> int:
    if type(value) is not int or not -CELL_LIMIT <= value <= CELL_LIMIT:
        raise Failed("a cell is no integer within +-2^62")
    return value


def _key(value: object) -> Value:
    if value is None:
        return None
    if not isinstance(value, _KEY_TYPES):
        raise Failed("a key is of no known type")
    return _in_utc(value)


def _in_utc(value: Value) -> Value:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value


def public_relation(table: str, columns: tuple[Column, ...], rows: Sequence[Row]) -> Relation:
    """A public table's snapshot. Raises Rejected where it is too large or holds what Python cannot (year 20000)."""
    if len(rows) > MAX_PUBLIC_ROWS:
        raise Rejected(f"The public table {table} has more than {MAX_PUBLIC_ROWS} rows.", sqlstate=BAD_PARAMETER)
    expected = tuple(_PYTHON[column.type.kind] for column in columns)
    try:
        return Relation(columns, tuple(tuple(map(_public, row, expected)) for row in rows))
    except TypeError:
        raise unreadable(table) from None


def unreadable(table: str) -> Rejected:
    """A public table that cannot be copied; the operator has to know which."""
    hint = "Are all dates between the years 1 and 9999?"
    return Rejected(f"The public table {table} cannot be read.", sqlstate=BAD_PARAMETER, hint=hint)


def _public(value: object, expected: type) -> Value:
    if value is None:
        return None
    if type(value) is not expected or not isinstance(value, _KEY_TYPES):
        raise TypeError("a public value does not fit its column's type")
    return _in_utc(value)
