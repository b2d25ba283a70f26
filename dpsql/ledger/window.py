"""Budget windows: calendar days, weeks, months, quarters and years in the policy's time zone.

Decides where a window begins and ends and what it is called; pure. What time it is comes from `dpsql.ledger.clock`. An
account's spending in a window is its total now less its total before the window began, so a policy that changes the
window, or adds or removes it, resets nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

from dpsql.ledger.clock import SECOND
from dpsql.policy.model import Window


@dataclass(frozen=True, slots=True)
class Period:
    """One window. `start` (included) and `end` (excluded) are microseconds since 1970."""

    id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows of one length in one time zone."""

    window: Window
    timezone: str

    def period(self, at: int) -> Period:
        """The window that holds a time in microseconds since 1970."""
        zone = ZoneInfo(self.timezone)
        day = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).astimezone(zone).date()
        first, after = _days(self.window, day)
        return Period(_name(self.window, first), _micros(first, zone), _micros(after, zone))


def _days(window: Window, day: date) -> tuple[date, date]:
    """The window's first day, and the first day after it."""
    match window:
        case "day":
            return day, day + timedelta(days=1)
        case "week":
            monday = day - timedelta(days=day.weekday())
            return monday, monday + timedelta(days=7)
        case "month":
            return day.replace(day=1), _month_after(day.year, day.month)
        case "quarter":
            last = (day.month - 1) // 3 * 3 + 3
            return date(day.year, last - 2, 1), _month_after(day.year, last)
        case "year":
            return date(day.year, 1, 1), date(day.year + 1, 1, 1)
        case _:
            assert_never(window)


def _month_after(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1)


def _name(window: Window, first: date) -> str:
    match window:
        case "day":
            return first.isoformat()
        case "week":
            year, week, _ = first.isocalendar()
            return f"{year}-W{week:02d}"
        case "month":
            return f"{first:%Y-%m}"
        case "quarter":
            return f"{first.year}-Q{first.month // 3 + 1}"
        case "year":
            return str(first.year)
        case _:
            assert_never(window)


def _micros(day: date, zone: ZoneInfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * SECOND
