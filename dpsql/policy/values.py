"""Type names and typed values: how a bound or a listed value of the file becomes a value of its column's type.

Decides what each type accepts. A value that does not fit exactly (a fraction for an integer column, NaN, a date that
does not exist) is refused with the form to write; nothing is ever rounded or guessed.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from dpsql.types import Kind, SqlType, Value

TYPE_NAMES: dict[str, Kind] = {
    "boolean": Kind.BOOL,
    "bool": Kind.BOOL,
    "smallint": Kind.INT2,
    "int2": Kind.INT2,
    "integer": Kind.INT4,
    "int": Kind.INT4,
    "int4": Kind.INT4,
    "bigint": Kind.INT8,
    "int8": Kind.INT8,
    "numeric": Kind.NUMERIC,
    "decimal": Kind.NUMERIC,
    "real": Kind.FLOAT4,
    "float4": Kind.FLOAT4,
    "double": Kind.FLOAT8,
    "double precision": Kind.FLOAT8,
    "float": Kind.FLOAT8,
    "float8": Kind.FLOAT8,
    "text": Kind.TEXT,
    "varchar": Kind.TEXT,
    "string": Kind.TEXT,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.TIMESTAMP,
    "timestamp without time zone": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ,
    "timestamp with time zone": Kind.TIMESTAMPTZ,
    "uuid": Kind.UUID,
}

_NUMERIC = re.compile(r"(?:numeric|decimal)\(([0-9]{1,3})(?:,([0-9]{1,3}))?\)")
_INTEGERS = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})
_FLOATS = frozenset({Kind.FLOAT4, Kind.FLOAT8})
_EXACT = frozenset({Kind.NUMERIC, Kind.TEXT, Kind.UUID, Kind.DATE, Kind.BOOL, Kind.TIMESTAMP})

MAX_MAGNITUDE = Decimal("1e100")
"""Bounds beyond it are refused: squares and products of values must stay finite in double precision."""


class MisfitError(ValueError):
    """The value does not fit its column's type; the message says what would."""


def parse_type(name: str) -> SqlType | None:
    """`numeric(10,2)`, `Double Precision`, ... or None for a type that does not exist here."""
    text = " ".join(name.lower().split()).replace(", ", ",").replace(" (", "(")
    if text in TYPE_NAMES:
        return SqlType(TYPE_NAMES[text])
    found = _NUMERIC.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= 1000 or int(found[2] or 0) > int(found[1]):
        return None
    return SqlType(Kind.NUMERIC, int(found[1]), int(found[2] or 0))


def family(of: SqlType) -> str:
    """Types of one family hold the same values; a policy may say `integer` for a bigint, never for a double."""
    if of.kind in _INTEGERS:
        return "integer"
    if of.kind in _FLOATS:
        return "double"
    return "numeric" if of.kind is Kind.NUMERIC else of.kind.value


def compared_exactly(a: SqlType, b: SqlType) -> bool:
    """Whether values of these types compare equal only where they are: what is unique stored is unique compared.

    Not so for numbers of two types, which may be compared as doubles, dates with timestamps (clamped), timestamps with
    time zone (read as local ones, twice the same at the end of summer) and floats (NaN, and zero with two signs).
    """
    return (a.is_integer and b.is_integer) or (a == b and a.kind in _EXACT)


def typed(value: object, of: SqlType, timezone: ZoneInfo) -> Value:
    """The value as the column's Python type. Timestamps with time zone come out aware, in UTC."""
    if of.kind in _INTEGERS:
        return _integer(value)
    if of.kind in _FLOATS:
        return float(_decimal(value))
    if of.kind is Kind.NUMERIC:
        return _numeric(value, of)
    if of.kind is Kind.BOOL:
        return _bool(value)
    return _from_text(value, of.kind, timezone)


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise MisfitError("write true or false")
    return value


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MisfitError("write a whole number")
    if not -(2**63) <= value < 2**63:
        raise MisfitError("write a number that a bigint can hold")
    return value


def _decimal(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise MisfitError("write a finite number")
    number = Decimal(value)
    if not number.is_finite() or abs(number) > MAX_MAGNITUDE:
        raise MisfitError(f"write a number between -{MAX_MAGNITUDE:.0e} and {MAX_MAGNITUDE:.0e}")
    if not math.isfinite(float(number)):
        raise MisfitError("write a finite number")
    return number


def _numeric(value: object, of: SqlType) -> Decimal:
    number = _decimal(value)
    exponent = number.as_tuple().exponent
    if of.precision is not None and isinstance(exponent, int) and -exponent > (of.scale or 0):
        raise MisfitError(f"write at most {of.scale or 0} decimals, as {of} has them")
    return number


def _from_text(value: object, kind: Kind, timezone: ZoneInfo) -> Value:
    if not isinstance(value, str):
        raise MisfitError("write it in quotes" if kind is Kind.TEXT else "write it like " + _EXAMPLES.get(kind, "text"))
    if kind is Kind.TEXT:
        return _plain_text(value)
    try:
        return _parsed(value, kind, timezone)
    except (ValueError, OverflowError) as error:
        raise MisfitError("write it like " + _EXAMPLES.get(kind, "text")) from error


_EXAMPLES = {
    Kind.DATE: "2024-01-31",
    Kind.TIME: "12:30:00",
    Kind.TIMESTAMP: "2024-01-31 12:30:00",
    Kind.TIMESTAMPTZ: "2024-01-31 12:30:00+00:00",
    Kind.UUID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
}


def _plain_text(value: str) -> str:
    if "\x00" in value:
        raise MisfitError("remove the NUL character")
    return value


def _parsed(text: str, kind: Kind, timezone: ZoneInfo) -> Value:
    match kind:
        case Kind.DATE:
            return date.fromisoformat(text)
        case Kind.TIME:
            return _naive_time(text)
        case Kind.TIMESTAMP:
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is not None:
                raise ValueError("a timestamp without time zone has no offset")
            return moment
        case Kind.TIMESTAMPTZ:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=timezone)).astimezone(UTC)
        case Kind.UUID:
            return UUID(text)
        case _:
            raise ValueError(f"{kind.value} takes no literal")


def _naive_time(text: str) -> time:
    moment = time.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("a time without time zone has no offset")
    return moment
