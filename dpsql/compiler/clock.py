"""The clock over private rows: what now() and CURRENT_DATE stand for.

A statement that reads the clock is compiled for one time, which becomes a constant of its plan: the same statement
asked again is a replay while the constant is the same, and another measurement afterwards. So that a dashboard which
refreshes does not pay each time, now() is the beginning of the current hour there, and CURRENT_DATE the day, both in
the policy's time zone. Above released results now() is the time itself, and free.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

from sqlglot import exp

from dpsql.compiler.algebra import Lit
from dpsql.compiler.parse import refuse
from dpsql.types import DATE, TIMESTAMP, TIMESTAMPTZ

CLOCK_FUNCTIONS = ("transaction_timestamp", "statement_timestamp", "clock_timestamp")
READS_CLOCK = re.compile(
    rf"\b(now|today|yesterday|tomorrow|current_date|current_timestamp|localtimestamp|{'|'.join(CLOCK_FUNCTIONS)})\b",
    re.IGNORECASE,
)
"""Matches every text that may read the clock."""

CLOCKS = (exp.CurrentTimestamp, exp.CurrentDate, exp.Localtimestamp)


def hour_of(moment: datetime, zone: tzinfo) -> datetime:
    """The time that a statement's clock shows at this moment: local, without a zone, the beginning of the hour."""
    return moment.astimezone(zone).replace(minute=0, second=0, microsecond=0, tzinfo=None)


DAYS_FROM_TODAY = {"today": 0, "yesterday": -1, "tomorrow": 1}


def of_word(word: str, now: datetime | None) -> datetime | None:
    """What 'now', 'today', 'yesterday', 'tomorrow' and 'epoch' mean as a date or timestamp; None for other texts."""
    word = word.strip().lower()
    if word == "epoch":
        return datetime(1970, 1, 1)
    if now is None or (word != "now" and word not in DAYS_FROM_TODAY):
        return None
    if word == "now":
        return now
    return datetime(now.year, now.month, now.day) + timedelta(days=DAYS_FROM_TODAY[word])


def reading(node: exp.Expr, now: datetime | None) -> Lit:
    """The constant that a clock function stands for."""
    if now is None:
        raise refuse("the clock cannot be read here", node)
    if isinstance(node, exp.CurrentDate):
        return Lit(now.date(), DATE)
    return Lit(now, TIMESTAMP if isinstance(node, exp.Localtimestamp) else TIMESTAMPTZ)
