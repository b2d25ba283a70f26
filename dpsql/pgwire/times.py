"""Dates, times and intervals as text, in Postgres's ISO style. Decides these forms only.

Reads what drivers send and what people write in ISO order; words like `today`, other orders and named zones besides
UTC are refused, because what they mean hangs on settings or on the clock.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from dpsql.errors import Rejected
from dpsql.types import Interval

BAD_DATETIME = "22007"
DATETIME_RANGE = "22008"
INTERVAL_RANGE = "22015"

EPOCH = datetime(2000, 1, 1)
"""Zero of the binary forms."""
EPOCH_UTC = EPOCH.replace(tzinfo=UTC)

_DAY = timedelta(days=1)
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,12}))?)?"
_ZONE = r"(?:Z|UTC|GMT|(?P<sign>[+-])(?P<zone_hour>\d{2})(?::?(?P<zone_minute>\d{2}))?(?::?(?P<zone_second>\d{2}))?)"
_FLAGS = re.ASCII | re.IGNORECASE
_DATETIME = re.compile(
    rf"(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})(?:(?:\s+|T){_CLOCK})?(?:\s*{_ZONE})?", _FLAGS
)
_TIME = re.compile(rf"{_CLOCK}(?:\s*{_ZONE})?", _FLAGS)


# --- writing -------------------------------------------------------------------------------------------------------


def format_date(value: date) -> str:
    return value.isoformat()


def format_time(value: time) -> str:
    return f"{value:%H:%M:%S}{_fraction(value.microsecond)}"


def format_timestamp(value: datetime) -> str:
    return f"{value.date().isoformat()} {format_time(value.time())}"


def format_timestamptz(value: datetime) -> str:
    return f"{format_timestamp(value.astimezone(UTC))}+00"


def _fraction(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""


# --- reading -------------------------------------------------------------------------------------------------------


def parse_date(text: str) -> date:
    """The day; a time or zone behind it is read and left out, as Postgres does."""
    return _parts(text, "date")[0]


def parse_timestamp(text: str) -> datetime:
    """Without time zone; a zone behind it is read and left out, as Postgres does."""
    day, clock, _ = _parts(text, "timestamp")
    return _in_range(text, day, clock)


def parse_timestamptz(text: str) -> datetime:
    """In UTC, which is also the zone of a text without one."""
    day, clock, offset = _parts(text, "timestamp with time zone")
    return _in_range(text, day, clock - offset).replace(tzinfo=UTC)


def parse_time(text: str) -> time:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise _invalid("time", text)
    clock = _clock(match, text)
    if clock >= _DAY:
        raise _out_of_range(text)
    return (datetime.min + clock).time()


def _parts(text: str, name: str) -> tuple[date, timedelta, timedelta]:
    """Day, time of day and offset of the zone."""
    match = _DATETIME.fullmatch(text.strip())
    if match is None:
        raise _invalid(name, text)
    try:
        day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        raise _out_of_range(text) from None
    return day, _clock(match, text), _offset(match, text)


def _clock(match: re.Match[str], text: str) -> timedelta:
    """The time of day; 24:00:00 and a second of 60 carry over, as in Postgres."""
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    micros = round(int((match["fraction"] or "0").ljust(12, "0")) / 1e6)
    clock = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)
    if minute > 59 or second > 60 or clock > _DAY:
        raise _out_of_range(text)
    return clock


def _offset(match: re.Match[str], text: str) -> timedelta:
    if match["sign"] is None:
        return timedelta()
    hour, minute, second = (int(match[part] or 0) for part in ("zone_hour", "zone_minute", "zone_second"))
    if hour > 15 or minute > 59 or second > 59:
        raise _out_of_range(text)
    offset = timedelta(hours=hour, minutes=minute, seconds=second)
    return -offset if match["sign"] == "-" else offset


def _in_range(text: str, day: date, clock: timedelta) -> datetime:
    try:
        return datetime.combine(day, time()) + clock
    except OverflowError:
        raise _out_of_range(text) from None


_MONTHS = {"month": 1, "mon": 1, "year": 12, "yr": 12, "y": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_DAYS = {"day": 1, "d": 1, "week": 7, "w": 7}
_MICROS = {
    **dict.fromkeys(("microsecond", "us", "usec"), 1),
    **dict.fromkeys(("millisecond", "ms", "msec"), 1_000),
    **dict.fromkeys(("second", "sec", "s"), 1_000_000),
    **dict.fromkeys(("minute", "min", "m"), 60_000_000),
    **dict.fromkeys(("hour", "hr", "h"), 3_600_000_000),
}
_PLURALS = {"centuries": "century", "millennia": "millennium"}
_DAY_MICROS = 86_400_000_000
_MOST = 2**31, 2**31, 2**63
"""What months, days and microseconds must stay below."""
_NUMBER = r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})"
_PART = re.compile(
    rf"[\s,]*(?:(?P<sign>[+-]?)(?P<hour>\d{{1,12}}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:\.\d{{0,18}})?))?(?![\d:])"
    rf"|(?P<number>{_NUMBER})(?![\d.])(?:\s*(?P<unit>[a-z]+)|\Z|(?=\s+[+-]?\d+:)))",
    _FLAGS,
)
_ISO_INTERVAL = re.compile(
    rf"P(?:(?P<year>{_NUMBER})Y)?(?:(?P<month>{_NUMBER})M)?(?:(?P<week>{_NUMBER})W)?(?:(?P<day>{_NUMBER})D)?"
    rf"(?:T(?:(?P<hour>{_NUMBER})H)?(?:(?P<minute>{_NUMBER})M)?(?:(?P<second>{_NUMBER})S)?)?",
    re.ASCII,
)


def parse_interval(text: str) -> Interval:
    """`1 year 2 mons`, `1 day 02:00:00`, `90 minutes ago`, `-3 hours`, `P1Y2DT3H`. Raises 22007, 22015 out of range."""
    iso = _ISO_INTERVAL.fullmatch(text.strip())
    if iso is not None and any(iso.groupdict().values()):
        parts = [_amount(Decimal(number), unit) for unit, number in iso.groupdict().items() if number]
    else:
        parts = _interval_parts(text)
    months, days, micros = (sum(part) for part in zip(*parts, strict=True))
    if any(not -most <= count < most for count, most in zip((months, days, micros), _MOST, strict=True)):
        raise Rejected(f'interval field value out of range: "{text[:100]}"', sqlstate=INTERVAL_RANGE)
    return Interval(months, days, micros)


Parts = tuple[int, int, int]


def _interval_parts(text: str) -> list[Parts]:
    """Months, days and microseconds of each part."""
    rest = text.strip().removeprefix("@")
    ago = rest.lower().endswith(" ago")
    rest = (rest[: -len(" ago")] if ago else rest).rstrip()
    parts, at = list[Parts](), 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None:
            raise _invalid("interval", text)
        at = part.end()
        parts.append(_interval_part(part, rest[at : at + 1], text))
    if not parts:
        raise _invalid("interval", text)
    return [(-months, -days, -micros) for months, days, micros in parts] if ago else parts


def _interval_part(part: re.Match[str], follows: str, text: str) -> Parts:
    """A last number without a unit counts seconds, one before a clock counts days."""
    if part["number"] is None:
        seconds = int(part["hour"]) * 3600 + int(part["minute"]) * 60 + Decimal(part["second"] or 0)
        micros = _rounded(seconds * 1_000_000)
        return 0, 0, -micros if part["sign"] == "-" else micros
    unit = (part["unit"] or ("day" if follows else "second")).lower()
    unit = _PLURALS.get(unit, unit)
    if unit not in _MONTHS | _DAYS | _MICROS:
        unit = unit.removesuffix("s")
    if unit not in _MONTHS | _DAYS | _MICROS:
        raise _invalid("interval", text)
    return _amount(Decimal(part["number"]), unit)


def _amount(number: Decimal, unit: str) -> Parts:
    """Fractions as Postgres hands them down: of years to months, of months and days to days and the clock."""
    whole = int(number)
    match _MONTHS.get(unit):
        case 1:
            _, days, micros = _of_days((number - whole) * 30)
            return whole, days, micros
        case int(months):
            return whole * months + _rounded((number - whole) * months), 0, 0
    if unit in _DAYS:
        return _of_days(number * _DAYS[unit])
    return 0, 0, _rounded(number * _MICROS[unit])


def _of_days(days: Decimal) -> Parts:
    return 0, int(days), _rounded((days - int(days)) * _DAY_MICROS)


def _rounded(number: Decimal) -> int:
    return int(number.to_integral_value())


def _invalid(name: str, text: str) -> Rejected:
    return Rejected(f"invalid input syntax for type {name}: {text[:100]!r}", sqlstate=BAD_DATETIME)


def _out_of_range(text: str) -> Rejected:
    return Rejected(f"date/time field value out of range: {text[:100]!r}", sqlstate=DATETIME_RANGE)
