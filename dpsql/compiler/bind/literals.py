"""Constants: what a literal or a parameter means, checked here so that no backend ever has to.

A literal that its type cannot hold is refused by the proxy, with Postgres's SQLSTATE. Untyped strings take the type
of what they stand beside, as in Postgres.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from uuid import UUID

from sqlglot import exp

from dpsql.compiler.algebra import INT8_MAX, Lit
from dpsql.compiler.domains import single
from dpsql.compiler.parse import position
from dpsql.errors import BAD_PARAMETER, BAD_TEXT, NOT_SUPPORTED, OUT_OF_RANGE, Rejected
from dpsql.types import BOOL, INT4, INT8, NUMERIC, TEXT, UNKNOWN, Kind, SqlType, Value

_RANGES = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**63}
_INTERVAL_PART = re.compile(r"\s*([+-]?\d+)(\.\d{1,6})?\s*([a-z]+)\s*")
_ISO = re.compile(r"p(?=.)(?:(\d+)y)?(?:(\d+)m)?(?:(\d+)w)?(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?)?")
_ISO_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d)(?::(\d\d))?")
_MICROSECONDS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "sec": 1_000_000, "s": 1_000_000,
    "minute": 60_000_000, "min": 60_000_000, "hour": 3_600_000_000, "h": 3_600_000_000, "hr": 3_600_000_000,
}  # fmt: skip
_DAYS = {"day": 1, "d": 1, "week": 7, "w": 7}
_MONTHS = {"month": 1, "mon": 1, "quarter": 3, "year": 12, "y": 12, "yr": 12, "decade": 120}
MAX_INTERVAL_DAYS = 366 * 500


def number_literal(text: str, node: exp.Expr) -> Lit:
    """An unquoted numeric literal: int4, int8 or numeric, as Postgres reads it."""
    try:
        value = Decimal(text.replace("_", ""))
    except InvalidOperation:
        raise Rejected(f"invalid number: {text[:40]}", sqlstate=BAD_TEXT, position=position(node)) from None
    if not value.is_finite() or abs(value) > Decimal(10) ** 30 or value.as_tuple().exponent < -30:  # type: ignore[operator]
        raise Rejected(f"number out of range: {text[:40]}", sqlstate=OUT_OF_RANGE, position=position(node))
    if not re.fullmatch(r"[0-9_]+", text):
        return Lit(value, NUMERIC)
    whole = int(value)
    return Lit(whole, INT4) if whole < 2**31 else Lit(whole, INT8) if whole <= INT8_MAX else Lit(value, NUMERIC)


def coerce(literal: Lit, type_: SqlType, at: exp.Expr | None = None, zone: tzinfo = UTC) -> Lit:
    """The literal read as `type_`; refuses what that type cannot hold. `zone`: where timestamptz values are local."""
    if literal.value is None:
        return Lit(None, type_)
    if literal.type == type_ or type_.kind is Kind.UNKNOWN:
        return literal
    try:
        return Lit(_convert(literal.value, type_, zone), type_)
    except Rejected:
        raise
    except (ValueError, ArithmeticError, TypeError):
        shown = str(literal.value)[:60]
        raise Rejected(
            f'invalid input for type {type_}: "{shown}"',
            sqlstate=BAD_TEXT,
            position=position(at) if at is not None else None,
        ) from None


def parameter(given: Lit, at: exp.Expr, zone: tzinfo = UTC) -> Lit:
    """A parameter beside private rows, as its type holds it: NaN, infinities, NUL, far dates are refused here."""
    if given.value is None or (given.type.kind is Kind.UNKNOWN and isinstance(given.value, str)):
        return given
    if given.type.kind is Kind.UNKNOWN:
        raise Rejected("a parameter needs a type", sqlstate=BAD_PARAMETER, position=position(at))
    return coerce(Lit(given.value, UNKNOWN), given.type, at, zone)


def _convert(value: Value, type_: SqlType, zone: tzinfo) -> Value:
    text = value.strip() if isinstance(value, str) else None
    match type_.kind:
        case Kind.TEXT:
            return _text(value if isinstance(value, str) else str(value))
        case Kind.BOOL:
            return value if isinstance(value, bool) else _boolean(str(value))
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return _integer(value if text is None else _decimal(text), type_)
        case Kind.NUMERIC:
            return _checked(_decimal(text) if text is not None else Decimal(str(value)))
        case Kind.FLOAT4 | Kind.FLOAT8:
            number = _checked(_decimal(text) if text is not None else Decimal(str(value)))
            return float(single(Fraction(number)) if type_.kind is Kind.FLOAT4 else number)
        case Kind.DATE:
            return _date(value)
        case Kind.TIMESTAMP:
            return _timestamp(value).replace(tzinfo=None)
        case Kind.TIMESTAMPTZ:
            moment = _timestamp(value)
            return moment.astimezone(zone).replace(tzinfo=None) if moment.tzinfo else moment
        case Kind.UUID:
            return value if isinstance(value, UUID) else UUID(str(value))
        case _:
            raise ValueError(type_)


def _text(value: str) -> str:
    if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise Rejected("a string may not contain NUL or half a character", sqlstate="22021")
    return value


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", text, re.ASCII):
        raise ValueError(text)
    return Decimal(text)


def _checked(value: Decimal) -> Decimal:
    if not value.is_finite() or abs(value) > Decimal(10) ** 30:
        raise Rejected("number out of range", sqlstate=OUT_OF_RANGE)
    return value


def _integer(value: Value, type_: SqlType) -> Value:
    if not isinstance(value, int | Decimal | float) or isinstance(value, bool):
        raise ValueError(value)
    if value != int(value):
        return _checked(Decimal(str(value)))
    if not -_RANGES[type_.kind] <= value < _RANGES[type_.kind]:
        raise Rejected(f"{value} is out of range for type {type_}", sqlstate=OUT_OF_RANGE)
    return int(value)


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "yes", "on", "1", "y"):
        return True
    if word in ("f", "false", "no", "off", "0", "n"):
        return False
    raise ValueError(text)


def _date(value: Value) -> date:
    if isinstance(value, datetime):
        return value.date()
    return _in_years(value if isinstance(value, date) else _timestamp(value)).date()


def _timestamp(value: Value) -> datetime:
    """A timestamp, aware where the text names a UTC offset or Z."""
    if isinstance(value, datetime):
        return _in_years(value)
    if isinstance(value, date):
        return _in_years(value)
    if not isinstance(value, str):
        raise ValueError(value)
    text = re.sub(r"([+-]\d\d)$", r"\1:00", value.strip())
    return _in_years(datetime.fromisoformat(text))


def _in_years(value: date) -> datetime:
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if not 1000 <= moment.year <= 9990:
        raise Rejected("dates lie between the years 1000 and 9990 here", sqlstate=OUT_OF_RANGE)
    return moment


def interval(node: exp.Interval) -> tuple[int, int, int]:
    """An interval literal as (months, days, microseconds); at most about 500 years."""
    if not isinstance(node.this, exp.Literal):
        raise Rejected("An interval must be a literal.", sqlstate=NOT_SUPPORTED, position=position(node))
    text = str(node.this.this).lower()
    unit = node.args.get("unit")
    if unit is not None and re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", text):
        text = f"{text} {str(unit.this).lower()}"
    elif unit is not None and not re.search("[a-z]", text):
        raise Rejected(f"invalid interval: {text[:40]}", sqlstate=BAD_PARAMETER, position=position(node))
    months, days, micros = _interval_parts(text, node)
    return within_limit(months, days, micros, node)


def within_limit(months: int, days: int, micros: int, node: exp.Expr) -> tuple[int, int, int]:
    """The parts of an interval, refused where they are more than about 500 years."""
    if abs(months) * 31 + abs(days) + abs(micros) // 86_400_000_000 > MAX_INTERVAL_DAYS:
        raise Rejected("An interval may be at most 500 years.", sqlstate=OUT_OF_RANGE, position=position(node))
    return months, days, micros


def _interval_parts(text: str, node: exp.Expr) -> tuple[int, int, int]:
    months = days = micros = 0
    iso = _ISO.fullmatch(text.strip())
    if iso is not None:
        text = " ".join(f"{count} {unit}" for count, unit in zip(iso.groups(), _ISO_UNITS, strict=True) if count)
    clock = _CLOCK.search(text)
    if clock:
        sign = -1 if clock[1] == "-" else 1
        micros += sign * (int(clock[2]) * 3600 + int(clock[3]) * 60 + int(clock[4] or 0)) * 1_000_000
        text = text[: clock.start()] + text[clock.end() :]
    at = 0
    while text[at:].strip():
        part = _INTERVAL_PART.match(text, at)
        word = part[3].rstrip("s") or "s" if part else ""
        broken = part is not None and part[2] is not None and word in _MONTHS
        if part is None or len(part[1]) > 12 or word not in _MICROSECONDS | _DAYS | _MONTHS or broken:
            raise Rejected(f"invalid interval: {text[:40]}", sqlstate=BAD_PARAMETER, position=position(node))
        count = int(part[1])
        months += count * _MONTHS.get(word, 0)
        days += count * _DAYS.get(word, 0)
        micros += count * _MICROSECONDS.get(word, 0)
        if part[2] is not None:
            sign = -1 if part[1].startswith("-") else 1
            width = _MICROSECONDS.get(word, 86_400_000_000 * _DAYS.get(word, 0))
            micros += sign * int(Decimal(part[2]) * width)
        at = part.end()
    return months, days, micros


def string(value: str) -> Lit:
    return Lit(value, UNKNOWN)


def as_text(literal: Lit) -> Lit:
    """An untyped string that no context gave a type: text."""
    return Lit(literal.value, TEXT) if literal.type.kind is Kind.UNKNOWN else literal


TRUE = Lit(True, BOOL)
FALSE = Lit(False, BOOL)
