"""Format strings of to_char over private rows: what a timestamp looks like, here and in the backends.

Decides which fields of Postgres's templates exist, and all texts that a format can give between two moments, so that a
formatted timestamp can name public group keys. Years have four digits, since no backend holds others here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from math import prod

from dpsql.compiler.fuel import spend

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NAME_WIDTH = 9
"""Postgres pads full names to this many characters, unless FM stands before them."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A field of a format, or the literal text `code`. `filled`: numbers with leading zeros, names padded."""

    code: str
    is_field: bool = False
    filled: bool = True


@dataclass(frozen=True, slots=True)
class Form:
    """A field: the least period that tells its values apart, all of them where they come round, after how many days."""

    period: str
    text: Callable[[datetime], str]
    cycle: tuple[str, ...] = ()
    days: int = 0


def _numbers(first: int, last: int, width: int) -> tuple[str, ...]:
    return tuple(f"{n:0{width}d}" for n in range(first, last + 1))


def _half(at: datetime) -> str:
    return "PM" if at.hour >= 12 else "AM"


FORMS: dict[str, Form] = {
    "YYYY": Form("year", lambda t: f"{t.year:04d}"),
    "YY": Form("year", lambda t: f"{t.year % 100:02d}"),
    "IYYY": Form("week", lambda t: f"{t.isocalendar().year:04d}"),
    "Q": Form("quarter", lambda t: str((t.month + 2) // 3), _numbers(1, 4, 1), 366),
    "MM": Form("month", lambda t: f"{t.month:02d}", _numbers(1, 12, 2), 366),
    "MONTH": Form("month", lambda t: MONTHS[t.month - 1], MONTHS, 366),
    "MON": Form("month", lambda t: MONTHS[t.month - 1][:3], tuple(m[:3] for m in MONTHS), 366),
    "IW": Form("week", lambda t: f"{t.isocalendar().week:02d}", _numbers(1, 53, 2), 2192),
    "DDD": Form("day", lambda t: f"{t.timetuple().tm_yday:03d}", _numbers(1, 366, 3), 1462),
    "DD": Form("day", lambda t: f"{t.day:02d}", _numbers(1, 31, 2), 62),
    "D": Form("day", lambda t: str(t.isoweekday() % 7 + 1), _numbers(1, 7, 1), 7),
    "ID": Form("day", lambda t: str(t.isoweekday()), _numbers(1, 7, 1), 7),
    "DAY": Form("day", lambda t: DAYS[t.weekday()], DAYS, 7),
    "DY": Form("day", lambda t: DAYS[t.weekday()][:3], tuple(d[:3] for d in DAYS), 7),
    "HH24": Form("hour", lambda t: f"{t.hour:02d}", _numbers(0, 23, 2), 1),
    "HH12": Form("hour", lambda t: f"{(t.hour + 11) % 12 + 1:02d}", _numbers(1, 12, 2), 1),
    "HH": Form("hour", lambda t: f"{(t.hour + 11) % 12 + 1:02d}", _numbers(1, 12, 2), 1),
    "AM": Form("hour", _half, ("AM", "PM"), 1),
    "PM": Form("hour", _half, ("AM", "PM"), 1),
    "MI": Form("minute", lambda t: f"{t.minute:02d}", _numbers(0, 59, 2), 1),
    "SS": Form("second", lambda t: f"{t.second:02d}", _numbers(0, 59, 2), 1),
}
NAMES = frozenset({"MONTH", "MON", "DAY", "DY", "AM", "PM"})
_ORDER = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_FIELD = re.compile(
    r'"([^"\\]*)"|(FM)?(HH24|HH12|HH|MI|SS|YYYY|YY|IYYY|IW|ID|MONTH|MON|MM|DAY|DY|DDD|DD|D|Q|AM|PM)(?!TH)|([^A-Za-z"\\])',
    re.IGNORECASE,
)


def pieces(pattern: str) -> tuple[Piece, ...] | None:
    """The format's fields and literals; None where it holds something else."""
    made, at = [], 0
    while at < len(pattern):
        found = _FIELD.match(pattern, at)
        if found is None or not pattern.isascii():
            return None
        quoted, prefix, code, other = found.groups()
        made.append(Piece(code, True, prefix is None) if code else Piece(other if quoted is None else quoted))
        at = found.end()
    return tuple(made)


def form_of(piece: Piece) -> Form:
    return FORMS[piece.code.upper()]


def text_of(at: datetime, parts: tuple[Piece, ...]) -> str:
    """to_char of one timestamp."""
    spend(len(parts))
    return "".join(_styled(form_of(p).text(at), p) if p.is_field else p.code for p in parts)


def _styled(text: str, piece: Piece) -> str:
    code = piece.code
    if code.upper() not in NAMES:
        return text if piece.filled else str(int(text))
    cased = text.upper() if code.isupper() else text.lower() if code.islower() else text
    return cased.ljust(NAME_WIDTH) if piece.filled and code.upper() in ("MONTH", "DAY") else cased


def period(parts: tuple[Piece, ...]) -> str:
    """The longest period within which the format gives one text: weeks do not divide months."""
    found = {form_of(p).period for p in parts if p.is_field}
    mixed = "week" in found and found & {"month", "quarter", "year"}
    return "day" if mixed and not found & set(_ORDER[:4]) else min(found, key=_ORDER.index, default="year")


def all_texts(
    parts: tuple[Piece, ...],
    first: datetime | None,
    last: datetime | None,
    periods: Callable[[str, datetime, datetime], tuple[datetime, ...] | None],
    limit: int,
) -> tuple[str, ...] | None:
    """All texts of timestamps from `first` to `last`, or None where they are not known or more than `limit`.

    `periods` lists the beginnings of the periods between two moments, None where there are too many.
    """
    fields = [p for p in parts if p.is_field]
    span = last - first if first is not None and last is not None else None
    cyclic = all(form_of(p).cycle for p in fields)
    whole = span is None or all(span >= timedelta(days=form_of(p).days) for p in fields)
    if not (cyclic and whole and len(fields) <= 1):
        listed = periods(period(parts), first, last) if first is not None and last is not None else None
        if listed is not None:
            found = tuple(dict.fromkeys(text_of(at, parts) for at in listed))
            return found if len(found) <= limit else None
    if not cyclic or prod(len(form_of(p).cycle) for p in fields) > limit:
        return None
    choices = [tuple(_styled(t, p) for t in form_of(p).cycle) if p.is_field else (p.code,) for p in parts]
    spend(prod(len(c) for c in choices) * len(choices))
    return tuple(dict.fromkeys("".join(chosen) for chosen in product(*choices)))
