"""Dates and timestamps as SQL: local timestamps between the years 1000 and 9990, on which no function can fail."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from dpsql.compiler.algebra import Call, Case, Expr, Lit
from dpsql.compiler.emit.parsed import parsed
from dpsql.types import TEXT, TIMESTAMP, Kind, SqlType, Value

if TYPE_CHECKING:
    from dpsql.compiler.emit.common import Emitter

_FIRST_SECOND, _LAST_SECOND = -30_610_224_000, 253_086_940_799


def moment(emitter: Emitter, expr: Expr) -> str:
    """See `Emitter.moment`."""
    match expr:
        case Lit(value=value):
            return emitter.literal(_midnight(value), TIMESTAMP)
        case Call(op="date_trunc", args=(Lit(value=unit), inner)):
            return f"DATE_TRUNC({emitter.literal(unit, TEXT)}, {emitter.moment(inner)})"
        case Call(op="add_interval", args=(inner, *parts)):
            return _shifted(emitter, inner, parts)
        case Call(op="date_bin", args=(Lit(value=stride), inner, Lit() as origin)):
            width = f"INTERVAL '{int(str(stride))} microseconds'"
            return _clamped(emitter.dialect.binned(width, emitter.moment(inner), emitter.moment(origin)), TIMESTAMP)
        case Call(op="from_epoch", args=(inner,)):
            seconds = _within_years(emitter, inner)
            return emitter.dialect.seconds_after("TIMESTAMP '1970-01-01 00:00:00'", seconds)
        case Call(op="least" | "greatest", args=args):
            return f"{expr.op.upper()}({', '.join(emitter.moment(a) for a in args)})"
        case Call(op="to_timestamp", args=(inner,)):
            return emitter.moment(inner)
        case Call(op="to_date", args=(inner,)):
            return f"CAST(CAST({emitter.moment(inner)} AS DATE) AS TIMESTAMP)"
        case Call(op="text_to_date" | "text_to_timestamp"):
            return f"CAST({parsed(emitter, expr)} AS TIMESTAMP)"
        case Case() | Call():
            return emitter.choice(expr, emitter.moment)
        case _:
            return _clamped(emitter.value(expr), expr.type)


def _within_years(emitter: Emitter, seconds: Expr) -> str:
    """Whole seconds since 1970 of the years 1000 to 9990."""
    x, low, high = emitter.as_double(seconds), emitter.double(_FIRST_SECOND), emitter.double(_LAST_SECOND)
    return f"CAST(CASE WHEN {x} > {high} THEN {high} WHEN {x} < {low} THEN {low} ELSE FLOOR({x}) END AS BIGINT)"


def _clamped(name: str, type_: SqlType) -> str:
    if type_.kind is Kind.DATE:
        low, high = "DATE '1000-01-01'", "DATE '9990-12-31'"
    else:
        low, high = "TIMESTAMP '1000-01-01 00:00:00'", "TIMESTAMP '9990-12-31 23:59:59.999999'"
    inside = f"CASE WHEN {name} > {high} THEN {high} WHEN {name} < {low} THEN {low} ELSE {name} END"
    return f"CAST({inside} AS TIMESTAMP)"


def _shifted(emitter: Emitter, inner: Expr, parts: list[Expr]) -> str:
    months, days, micros = (int(p.value) if isinstance(p, Lit) and isinstance(p.value, int) else 0 for p in parts)
    amount = f"INTERVAL '{months} months {days} days {micros} microseconds'"
    return _clamped(f"({emitter.moment(inner)} + {amount})", TIMESTAMP)


def _midnight(value: Value) -> Value:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def plain(value: Value) -> Value:
    """A released value as the backend sees it: timestamps are local."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
