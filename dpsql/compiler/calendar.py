"""The calendar: what DATE_TRUNC, EXTRACT, DATE_BIN and intervals make of one date or timestamp, as Postgres does.

Plain values in and out; None where there is none, or where it leaves the calendar.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from dpsql.compiler.domains import moment
from dpsql.types import Value

YEARS: dict[str, Callable[[int], int]] = {
    "year": lambda y: y, "isoyear": lambda y: y, "decade": lambda y: y // 10, "century": lambda y: (y + 99) // 100,
}  # fmt: skip
_ORIGIN = datetime(1970, 1, 1)


def truncate_value(unit: str, value: datetime) -> datetime:
    """date_trunc of one value."""
    day = datetime(value.year, value.month, value.day)
    match unit:
        case "year":
            return datetime(value.year, 1, 1)
        case "quarter":
            return datetime(value.year, 3 * ((value.month - 1) // 3) + 1, 1)
        case "month":
            return datetime(value.year, value.month, 1)
        case "week":
            return day - timedelta(days=day.weekday())
        case "day":
            return day
        case "hour":
            return day + timedelta(hours=value.hour)
        case "minute":
            return day + timedelta(hours=value.hour, minutes=value.minute)
        case _:
            return value.replace(microsecond=0)


def next_value(unit: str, value: datetime) -> datetime:
    """The truncated value after this one."""
    match unit:
        case "year":
            return datetime(value.year + 1, 1, 1)
        case "quarter" | "month":
            months = value.year * 12 + value.month - 1 + (3 if unit == "quarter" else 1)
            return datetime(months // 12, months % 12 + 1, 1)
        case "week":
            return value + timedelta(days=7)
        case "day":
            return value + timedelta(days=1)
        case "hour":
            return value + timedelta(hours=1)
        case "minute":
            return value + timedelta(minutes=1)
        case _:
            return value + timedelta(seconds=1)


def moved(value: Value, parts: tuple[int, int, int]) -> Value:
    """A date or timestamp shifted by months, days and microseconds; None where it leaves the calendar."""
    at = moment(value)
    if at is None:
        return None
    months, days, micros = parts
    index = at.year * 12 + at.month - 1 + months
    try:
        month_start = datetime(index // 12, index % 12 + 1, 1)
        last_day = (next_value("month", month_start) - timedelta(days=1)).day
        shifted = at.replace(year=month_start.year, month=month_start.month, day=min(at.day, last_day))
        return shifted + timedelta(days=days, microseconds=micros)
    except (ValueError, OverflowError):
        return None


def part_value(part: str, value: Value) -> int | Decimal | None:
    """EXTRACT of one value; the epoch with its microseconds."""
    at = moment(value)
    if at is None:
        return None
    if part == "epoch":
        return Decimal((at - _ORIGIN) // timedelta(microseconds=1)).scaleb(-6).normalize()
    if part == "second":
        return Decimal(at.second * 10**6 + at.microsecond).scaleb(-6).normalize()
    year, week, weekday = at.isocalendar()
    if part in YEARS:
        return YEARS[part](year if part == "isoyear" else at.year)
    return {
        "month": at.month, "day": at.day, "hour": at.hour, "minute": at.minute, "quarter": (at.month + 2) // 3,
        "dow": weekday % 7, "isodow": weekday, "doy": at.timetuple().tm_yday, "week": week,
    }[part]  # fmt: skip


def binned(value: datetime | None, origin: datetime, width: int) -> datetime | None:
    step = timedelta(microseconds=width)
    try:
        return None if value is None else origin + (value - origin) // step * step
    except OverflowError:
        return None


def from_epoch(seconds: Fraction | None) -> datetime | None:
    """The second after 1970 began; None outside of the calendar."""
    try:
        return None if seconds is None else _ORIGIN + timedelta(seconds=seconds.__floor__())
    except OverflowError:
        return None


def day_of(value: Value) -> date | None:
    at = moment(value)
    return at.date() if at is not None else None
