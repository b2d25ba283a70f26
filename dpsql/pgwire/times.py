"""Dates, times and intervals as text, in Postgres's ISO style. Decides these forms only.

Reads what drivers send and what people write in ISO order; words like `today`, other orders and named zones besides
UTC are refused, because what they mean hangs on settings or on the clock.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from dpsql.errors import NOT_SUPPORTED, Rejected

BAD_DATETIME = "22007"
DATETIME_RANGE = "22008"

EPOCH = datetime(2000, 1, 1)
"""Zero of the binary forms."""
EPOCH_UTC = EPOCH.replace(tzinfo=UTC)

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
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


def format_interval(value: timedelta) -> str:
    """IntervalStyle `postgres`: `1 day 02:03:04.5`, `-1 days -02:00:00`, `00:00:00`."""
    days, rest = whole_days(value)
    parts = [f"{days} {'day' if days == 1 else 'days'}"] if days else []
    if rest or not days:
        seconds, micros = divmod(abs(rest), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction(micros)}"
        parts.append(f"-{clock}" if rest < 0 else clock)
    return " ".join(parts)


def whole_days(value: timedelta) -> tuple[int, int]:
    """An interval as days and microseconds of the same sign, as Postgres's justify_hours keeps it."""
    micros = value // _MICROSECOND
    sign = -1 if micros < 0 else 1
    days, rest = divmod(abs(micros), 86_400_000_000)
    return sign * days, sign * rest


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


_UNITS = {
    "microsecond": _MICROSECOND,
    "us": _MICROSECOND,
    "usec": _MICROSECOND,
    "millisecond": timedelta(milliseconds=1),
    "ms": timedelta(milliseconds=1),
    "msec": timedelta(milliseconds=1),
    "second": timedelta(seconds=1),
    "sec": timedelta(seconds=1),
    "s": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "m": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "hr": timedelta(hours=1),
    "h": timedelta(hours=1),
    "day": _DAY,
    "d": _DAY,
    "week": 7 * _DAY,
    "w": 7 * _DAY,
}
_CALENDAR_UNITS = ("month", "mon", "year", "yr", "y", "decade", "century", "centurie", "millennium")
_NUMBER = r"[+-]?(?:\d{1,12}(?:\.\d{0,6})?|\.\d{1,6})"
_PART = re.compile(
    rf"\s*(?:(?P<clock_sign>[+-]?){_CLOCK.replace('1,2', '1,9')}|(?P<number>{_NUMBER})\s*(?P<unit>[a-z]+))", _FLAGS
)
_ISO_INTERVAL = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W)?(?:(?P<d>{_NUMBER})D)?(?:T(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?",
    re.ASCII,
)


def parse_interval(text: str) -> timedelta:
    """`1 day 02:00:00`, `90 minutes`, `-3 hours`, `P1DT2H`. Months and years have no fixed length here: refused."""
    text = text.strip()
    iso = _ISO_INTERVAL.fullmatch(text)
    try:
        if iso is not None and any(iso.groupdict().values()):
            return sum((_times(number, unit) for unit, number in iso.groupdict().items() if number), timedelta())
        return _interval_parts(text)
    except OverflowError:
        raise _out_of_range(text) from None


def _interval_parts(text: str) -> timedelta:
    total, at = timedelta(), 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise _invalid("interval", text)
        total += _interval_part(part, text)
        at = part.end()
    if not text:
        raise _invalid("interval", text)
    return total


def _interval_part(part: re.Match[str], text: str) -> timedelta:
    if part["number"] is None:
        clock = timedelta(hours=int(part["hour"]), minutes=int(part["minute"]), seconds=int(part["second"] or 0))
        clock += timedelta(microseconds=round(int((part["fraction"] or "0").ljust(12, "0")) / 1e6))
        return -clock if part["clock_sign"] == "-" else clock
    unit = part["unit"].lower()
    unit = unit if unit in _UNITS else unit.removesuffix("s")
    if unit in _CALENDAR_UNITS:
        raise Rejected("intervals of months or years are not supported here", sqlstate=NOT_SUPPORTED)
    if unit not in _UNITS:
        raise _invalid("interval", text)
    return _times(part["number"], unit)


def _times(number: str, unit: str) -> timedelta:
    """Exact: the fraction is of at most six digits."""
    whole, _, fraction = number.lstrip("+-").partition(".")
    value = int(whole or 0) * _UNITS[unit] + int(fraction.ljust(6, "0")) * _UNITS[unit] / 1_000_000
    return -value if number.startswith("-") else value


def _invalid(name: str, text: str) -> Rejected:
    return Rejected(f"invalid input syntax for type {name}: {text[:100]!r}", sqlstate=BAD_DATETIME)


def _out_of_range(text: str) -> Rejected:
    return Rejected(f"date/time field value out of range: {text[:100]!r}", sqlstate=DATETIME_RANGE)
