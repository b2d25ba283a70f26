"""The moments that tell apart all that a statement reads of a date or timestamp.

Decides how fine they must lie: EXTRACT, DATE_TRUNC, DATE_BIN and to_char are constant within a period, so one moment of
each period stands for all of it. Where the moment itself is read, as in a comparison, days do for dates, and nothing
does for timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from dpsql.compiler import formats
from dpsql.compiler.algebra import Call, Col, Expr, Lit, children
from dpsql.compiler.calendar import next_value, truncate_value
from dpsql.compiler.domains import moment
from dpsql.types import Kind

_ORDER = ("minute", "hour", "day", "week", "month", "quarter", "year")
_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000}
_OF_PART = {
    "year": "year", "decade": "year", "century": "year", "quarter": "quarter", "month": "month", "week": "week",
    "isoyear": "week", "day": "day", "dow": "day", "isodow": "day", "doy": "day", "hour": "hour", "minute": "minute",
}  # fmt: skip
_EXACT = "exact"
"""No period: the moment itself is read."""


def moments(col: Col, exprs: Iterable[Expr], most: int) -> list[datetime] | None:
    """One moment of every period between the column's bounds that the expressions tell apart; None where too many."""
    first, last, unit = moment(col.domain.first), moment(col.domain.last), period_of(col, exprs)
    if first is None or last is None or unit is None:
        return None
    found, at = list[datetime](), truncate_value(unit, first)
    while at <= last:
        if len(found) >= most:
            return None
        found.append(at)
        at = next_value(unit, at)
    return found


def period_of(col: Col, exprs: Iterable[Expr]) -> str | None:
    """The longest period within which none of the expressions tells two moments of the column apart."""
    return _finest({period for expr in exprs for period in _periods(expr, col.name, _EXACT)}, col)


def _finest(periods: set[str], col: Col) -> str | None:
    if _EXACT in periods:
        return "day" if col.type.kind is Kind.DATE and not periods & {"hour", "minute"} else None
    if "week" in periods and periods & {"month", "quarter", "year"}:
        periods = {*periods, "day"}
    return min(periods, key=_ORDER.index, default=None)


def _periods(expr: Expr, name: str, wanted: str) -> Iterator[str]:
    """The periods whose values an expression tells apart, where `wanted` is what is read of it."""
    match expr:
        case Col():
            yield from (wanted,) if expr.name == name else ()
        case Call(op="date_trunc" | "extract", args=(Lit(value=part), inner)):
            yield from _periods(inner, name, _OF_PART.get(str(part), _EXACT))
        case Call(op="to_char", args=(inner, Lit(value=pattern))):
            yield from _periods(inner, name, _of_format(str(pattern)))
        case Call(op="date_bin", args=(Lit(value=width), inner, Lit(value=origin))):
            yield from _periods(inner, name, _dividing(int(str(width)), moment(origin)))
        case Call(op="to_date", args=(inner,)):
            yield from _periods(inner, name, wanted if wanted in _ORDER[3:] else "day")
        case Call(op="to_timestamp", args=(inner,)):
            yield from _periods(inner, name, wanted)
        case Call(op="add_interval", args=(inner, Lit(), Lit(), Lit(value=micros))) if wanted != _EXACT:
            shift = _dividing(int(str(micros)), None)
            yield from _periods(
                inner, name, shift if _EXACT in (shift, wanted) else min(shift, wanted, key=_ORDER.index)
            )
        case _:
            for child in children(expr):
                yield from _periods(child, name, _EXACT)


def _of_format(pattern: str) -> str:
    parts = formats.pieces(pattern)
    found = _EXACT if parts is None else formats.period(parts)
    return found if found in _ORDER else _EXACT


def _dividing(micros: int, origin: datetime | None) -> str:
    """The longest period that divides a shift, or bins of that width from the origin on."""
    for unit, length in _MICROS.items():
        if micros % length == 0 and (origin is None or truncate_value(unit, origin) == origin):
            return unit
    return _EXACT
