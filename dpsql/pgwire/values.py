"""SQL types and values on the wire: OIDs, and the text and binary forms, exactly as Postgres writes and reads them.

Decides forms only; must never evaluate, coerce between types, or quote SQL. Decoding is strict, because a parameter
is as hostile as a literal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.pgwire.messages import TEXT_FORMAT, Field
from dpsql.types import Column, SqlType, Value

WireValue = Value | tuple[Value, ...]
"""A value, or a one-dimensional array as a tuple."""

Encoder = Callable[[WireValue], bytes | None]


def oid(type: SqlType) -> int:
    """Postgres's OID of a type."""
    raise NotImplementedError


def type_of(oid: int) -> SqlType:
    """The type that a parameter's declared OID means here (varchar is TEXT, jsonb is JSON, 0 is UNKNOWN).

    Raises Rejected 42704 for an OID that does not exist here.
    """
    raise NotImplementedError


def size(type: SqlType) -> int:
    """`typlen`: bytes of the binary form, -1 where it varies."""
    raise NotImplementedError


def modifier(type: SqlType) -> int:
    """`atttypmod`: precision and scale of numeric(p,s), else -1."""
    raise NotImplementedError


def field(column: Column, format: int = TEXT_FORMAT) -> Field:
    """A column as RowDescription announces it."""
    raise NotImplementedError


def formats(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """One format code per column from none, one or `count` codes; Rejected 08P01 for anything else."""
    raise NotImplementedError


def encoder(type: SqlType, format: int = TEXT_FORMAT) -> Encoder:
    """The function that encodes values of `type`; look it up once a column, not once a value."""
    raise NotImplementedError


def encode_value(value: WireValue, type: SqlType, format: int = TEXT_FORMAT) -> bytes | None:
    """One value in its text or binary form; None for NULL."""
    raise NotImplementedError


def decode_value(data: bytes | None, type: SqlType | int, format: int = TEXT_FORMAT) -> WireValue:
    """The value of a parameter of a type, or of a declared OID (needed for jsonb, whose binary form has a version).

    Raises Rejected: 22P02 text that is no such value, 22P03 bytes that are not, 22003 a number out of range.
    """
    raise NotImplementedError
