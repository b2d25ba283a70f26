"""Text to values, as Postgres's input functions read it; used for literals and, at run time, for casts of text.

Every function raises Rejected with Postgres's SQLSTATE and message. Forms that Postgres reads by guessing (month names,
`tomorrow`, two-digit years) are refused rather than guessed.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from uuid import UUID

from dpsql.errors import BAD_TEXT, OUT_OF_RANGE, Rejected
from dpsql.types import Kind

BAD_DATETIME = "22007"
DATETIME_RANGE = "22008"

INTEGER_RANGE = {Kind.INT2: 2**15, Kind.INT4: 2**31, Kind.INT8: 2**63}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"(\d{4,5})-(\d{1,2})-(\d{1,2})|(\d{4})(\d{2})(\d{2})")
_TIME = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?")
_MOMENT = re.compile(
    r"(?P<date>\d+-\d+-\d+|\d{8})(?:(?:\s+|T)(?P<time>\d{1,2}:[\d:.]+)\s*(?P<zone>Z|z|UTC|[+-]\d{1,2}(?::?\d{2})?)?)?"
)

_TRUE = {"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"}
_FALSE = {"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"}


def _bad(kind: str, text: str, sqlstate: str = BAD_TEXT) -> Rejected:
    return Rejected(f'invalid input syntax for type {kind}: "{text}"', sqlstate=sqlstate)


def parse_integer(text: str, kind: Kind) -> int:
    stripped = text.strip(" \t\n\r\f\v")
    if not _INTEGER.fullmatch(stripped):
        raise _bad(kind.value, text)
    limit = INTEGER_RANGE[kind]
    if len(stripped) > 40 or not -limit <= int(stripped) < limit:
        raise Rejected(f'value "{text}" is out of range for type {kind.value}', sqlstate=OUT_OF_RANGE)
    return int(stripped)


def parse_numeric(text: str) -> Decimal:
    stripped = text.strip(" \t\n\r\f\v")
    if stripped.lower() in ("nan", "infinity", "-infinity", "+infinity", "inf", "-inf", "+inf"):
        return Decimal(stripped)
    if not _NUMBER.fullmatch(stripped):
        raise _bad("numeric", text)
    try:
        value = Decimal(stripped)
        exponent = value.adjusted()
    except InvalidOperation as error:
        raise _bad("numeric", text) from error
    if abs(exponent) > 1_000:
        raise Rejected("value overflows numeric format", sqlstate=OUT_OF_RANGE)
    return value if int(value.as_tuple().exponent) <= 0 else value.quantize(Decimal(1))


def parse_float(text: str) -> float:
    stripped = text.strip(" \t\n\r\f\v")
    word = stripped.lower().lstrip("+-")
    if word not in ("nan", "inf", "infinity") and not _NUMBER.fullmatch(stripped):
        raise _bad("double precision", text)
    value = float(stripped)
    overflow = value in (float("inf"), float("-inf")) and word not in ("inf", "infinity")
    underflow = value == 0 and re.search("[1-9]", re.split("[eE]", stripped)[0]) is not None
    if overflow or underflow:
        raise Rejected(f'"{text}" is out of range for type double precision', sqlstate=OUT_OF_RANGE)
    return value


def parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise _bad("boolean", text)


def parse_date(text: str) -> date:
    return _moment(text, "date")[0].date()


def parse_timestamp(text: str) -> datetime:
    """Without time zone; a zone in the text is ignored, as Postgres does."""
    return _moment(text, "timestamp")[0]


def parse_timestamptz(text: str, zone: tzinfo) -> datetime:
    """In UTC, without tzinfo."""
    local, offset = _moment(text, "timestamp with time zone")
    aware = local.replace(tzinfo=zone if offset is None else timezone(offset))
    try:
        return aware.astimezone(UTC).replace(tzinfo=None)
    except OverflowError as error:
        raise Rejected(f'timestamp out of range: "{text}"', sqlstate=DATETIME_RANGE) from error


def parse_time(text: str) -> time:
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise _bad("time", text, BAD_DATETIME)
    clock = _clock(found, text)
    return (datetime.min + clock).time()


def parse_uuid(text: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError as error:
        raise _bad("uuid", text) from error


def _moment(text: str, kind: str) -> tuple[datetime, timedelta | None]:
    found = _MOMENT.fullmatch(text.strip())
    day = _DATE.fullmatch(found["date"]) if found else None
    clock = _TIME.fullmatch((found and found["time"]) or "00:00")
    if not found or not day or not clock:
        raise _bad(kind, text, BAD_DATETIME)
    year, month, number = (int(part) for part in day.groups() if part is not None)
    try:
        return datetime(year, month, number) + _clock(clock, text), _offset(found["zone"])
    except (ValueError, OverflowError) as error:
        raise Rejected(f'date/time field value out of range: "{text}"', sqlstate=DATETIME_RANGE) from error


def _clock(found: re.Match[str], text: str) -> timedelta:
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    micros = round(Decimal(f"0.{found[4] or 0}") * 1_000_000)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second or micros)):
        raise Rejected(f'date/time field value out of range: "{text}"', sqlstate=DATETIME_RANGE)
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)


def _offset(zone: str | None) -> timedelta | None:
    if zone is None:
        return None
    if zone.upper() in ("Z", "UTC"):
        return timedelta(0)
    digits = zone[1:].replace(":", "")
    hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if zone[0] == "-" else offset
