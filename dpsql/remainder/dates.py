"""Making dates and timestamps from parts, formats and epochs, as Postgres does."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from dpsql.errors import Rejected

_RANGE, _FORMAT = "22008", "22007"

_MONTHS = tuple(date(2000, month, 1).strftime("%B").lower() for month in range(1, 13))

_CODES = re.compile(
    r"YYYY|YYY|YY|MM|MONTH|MON|DDD|DD|HH24|HH12|HH|MI|SS|MS|US|AM|PM|A\.M\.|P\.M\.|FM|\"[^\"]*\"|.", re.I | re.S
)
_DIGITS = {"YYYY": 4, "YYY": 3, "YY": 2, "MM": 2, "DDD": 3, "DD": 2, "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2}


def make_date(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError:
        text = f"date field value out of range: {year}-{month:02d}-{day:02d}"
        raise Rejected(text, sqlstate=_RANGE) from None


def make_timestamp(parts: list[int], seconds: float) -> datetime:
    year, month, day, hour, minute = parts
    try:
        made = datetime(year, month, day, hour, minute)
    except ValueError:
        raise Rejected("date/time field value out of range", sqlstate=_RANGE) from None
    if not 0 <= seconds <= 60:
        raise Rejected("date/time field value out of range", sqlstate=_RANGE)
    return made + timedelta(microseconds=round(seconds * 1_000_000))


def from_epoch(seconds: float) -> datetime:
    """to_timestamp(double precision), in UTC."""
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * 1_000_000))
    except (OverflowError, ValueError):
        raise Rejected(f'timestamp out of range: "{seconds:g}"', sqlstate=_RANGE) from None


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def to_date(text: str, pattern: str) -> date:
    return _read(text, pattern).date()


def to_timestamp(text: str, pattern: str, zone: str) -> datetime:
    local = _read(text, pattern).replace(tzinfo=ZoneInfo(zone))
    return local.astimezone(UTC).replace(tzinfo=None)


def _read(text: str, pattern: str) -> datetime:
    """The subset of formatting.c that reads digits, month names, AM and PM."""
    fields: dict[str, int] = {}
    rest = text.lstrip()
    for code in _CODES.findall(pattern):
        rest = _take(code.upper(), code, rest, fields, text)
    return _assemble(fields, text)


def _take(code: str, written: str, rest: str, fields: dict[str, int], text: str) -> str:
    if code in ("MONTH", "MON"):
        return _take_month(code, rest, fields, text)
    if code in ("AM", "PM", "A.M.", "P.M."):
        word = re.match(r"[ap]\.?m\.?", rest.lstrip(), re.I)
        if word is None:
            raise _bad(code, rest)
        fields["PM"] = int(word[0][0].lower() == "p")
        return rest.lstrip()[word.end() :]
    if code in _DIGITS or code in ("MS", "US"):
        return _take_digits(code, rest, fields)
    if code == "FM":
        return rest
    if code.startswith('"'):
        return rest[len(code) - 2 :]
    if code.isalpha():
        raise Rejected(f'format code "{written}" is not supported here', sqlstate="0A000")
    return rest[1:] if rest and not rest[0].isalnum() else rest


def _bad(code: str, rest: str) -> Rejected:
    return Rejected(f'invalid value "{rest[:10]}" for "{code}"', sqlstate=_FORMAT)


def _take_month(code: str, rest: str, fields: dict[str, int], text: str) -> str:
    rest = rest.lstrip()
    for number, name in enumerate(_MONTHS, 1):
        word = name if code == "MONTH" else name[:3]
        if rest.lower().startswith(word):
            fields["MM"] = number
            return rest[len(word) :]
    raise _bad(code, rest)


def _take_digits(code: str, rest: str, fields: dict[str, int]) -> str:
    rest = rest.lstrip()
    limit = _DIGITS.get(code, 3 if code == "MS" else 6)
    found = re.match(rf"\d{{1,{limit}}}", rest)
    if found is None:
        raise _bad(code, rest)
    fields[code] = int(found[0].ljust(limit, "0")) if code in ("MS", "US") else int(found[0])
    if code in ("YY", "YYY") and fields[code] < 100:
        fields[code] += 2000 if fields[code] < 70 else 1900
    return rest[found.end() :]


def _assemble(fields: dict[str, int], text: str) -> datetime:
    year = fields.get("YYYY", fields.get("YYY", fields.get("YY", 1)))
    hour = fields.get("HH24", fields.get("HH12", fields.get("HH", 0)))
    if "PM" in fields:
        hour = hour % 12 + 12 * fields["PM"]
    micros = fields.get("MS", 0) * 1000 + fields.get("US", 0)
    try:
        made = datetime(year, fields.get("MM", 1), fields.get("DD", 1), hour, fields.get("MI", 0), fields.get("SS", 0))
    except ValueError:
        raise Rejected(f'date/time field value out of range: "{text}"', sqlstate=_RANGE) from None
    made += timedelta(microseconds=micros)
    return made + timedelta(days=fields["DDD"] - 1) if "DDD" in fields and "DD" not in fields else made
