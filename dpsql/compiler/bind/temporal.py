"""Dates and timestamps in scalar expressions: DATE_TRUNC, EXTRACT, intervals, casts, with their domains.

All of it is computed on local timestamps in the policy's zone, clamped to the years 1000 to 9990 (see `emit`), so that
no part or interval can leave what either backend holds. Intervals are constants of at most 500 years.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler import domains
from dpsql.compiler.algebra import Call, Domain, Expr, Lit, Op
from dpsql.compiler.bind import literals
from dpsql.compiler.parse import only, refuse, unwrap
from dpsql.errors import BAD_PARAMETER, UNDEFINED_FUNCTION
from dpsql.types import DATE, FLOAT8, INT4, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType, Value

if TYPE_CHECKING:
    from dpsql.compiler.bind.expr import Context

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
PARTS: dict[str, tuple[int, int]] = {
    "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "quarter": (1, 4), "dow": (0, 6),
    "isodow": (1, 7), "doy": (1, 366), "week": (1, 53),
}  # fmt: skip
_YEARS = (1000, 9990)
_EPOCH_REACH = Fraction(300_000_000_000)


def _bind(node: exp.Expr, context: Context) -> Expr:
    from dpsql.compiler.bind.expr import bind

    bound = bind(node, context)
    if isinstance(bound, Lit) and bound.type.kind is Kind.UNKNOWN:
        bound = context.coerce(bound, TIMESTAMP, node)
    if not bound.type.is_time:
        raise refuse(f"a date or timestamp is needed here, not {bound.type}", node, sqlstate=UNDEFINED_FUNCTION)
    return bound


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


def truncate(node: exp.Expr, context: Context) -> Expr:
    """DATE_TRUNC(unit, x): a timestamp; with time zone where x is a date or has one, as in Postgres."""
    only(node, "unit", "zone", "input_type_preserved")
    unit = str(node.args["unit"].this).lower() if node.args.get("unit") is not None else ""
    if unit not in UNITS or node.args.get("zone"):
        raise refuse(f'DATE_TRUNC takes one of {", ".join(UNITS)}, not "{unit}"', node, sqlstate=BAD_PARAMETER)
    inner = _bind(node.this, context)
    first, last = domains.moment(inner.domain.first), domains.moment(inner.domain.last)
    domain = Domain(
        first=truncate_value(unit, first) if first else None,
        last=truncate_value(unit, last) if last else None,
        nullable=inner.domain.nullable,
    )
    type_ = TIMESTAMP if inner.type.kind is Kind.TIMESTAMP else TIMESTAMPTZ
    return Call("date_trunc", (Lit(unit, TEXT), inner), type_, domain)


def parsed_time(node: exp.Expr, context: Context) -> Expr:
    """TO_TIMESTAMP(text, format) and TO_DATE(text, format) of constants, read here."""
    only(node, "format")
    text, form = node.this, node.args.get("format")
    if not isinstance(text, exp.Literal) or not isinstance(form, exp.Literal):
        raise refuse("TO_TIMESTAMP and TO_DATE take constants over private rows", node)
    try:
        found = datetime.strptime(str(text.this).strip(), str(form.this))
    except ValueError:
        raise refuse(f'"{text.this}" does not have this format', node, sqlstate="22007") from None
    whole = isinstance(node, exp.StrToDate | exp.TsOrDsToDate)
    return literals.coerce(Lit(found, TIMESTAMP), DATE if whole else TIMESTAMPTZ, node, context.zone)


def extract(node: exp.Expr, context: Context) -> Expr:
    """EXTRACT(part FROM x): numeric; whole numbers, and `epoch` in seconds."""
    only(node, "expression")
    part = str(node.this.this) if isinstance(node.this, exp.Var | exp.Literal) else str(node.this.name)
    return _part(part.lower(), _bind(node.args["expression"], context), NUMERIC, node)


def date_part(node: exp.Anonymous, context: Context) -> Expr:
    """date_part('part', x): double precision."""
    if len(node.expressions) != 2 or not isinstance(node.expressions[0], exp.Literal):
        raise refuse("date_part takes a constant part and a date or timestamp", node, sqlstate=UNDEFINED_FUNCTION)
    part = str(node.expressions[0].this).lower()
    return _part(part, _bind(node.expressions[1], context), FLOAT8, node)


def _part(part: str, inner: Expr, type_: SqlType, node: exp.Expr) -> Expr:
    if part == "epoch":
        domain = _epoch_domain(inner.domain)
    elif part == "year":
        domain = _year_domain(inner.domain)
    elif part in PARTS:
        domain = _part_domain(part, inner.domain)
    else:
        shown = ", ".join(["year", *PARTS, "epoch"])
        raise refuse(f'EXTRACT takes one of {shown}, not "{part}"', node, sqlstate=BAD_PARAMETER)
    return Call("extract", (Lit(part, TEXT), inner), type_, domain)


def _epoch_domain(inner: Domain) -> Domain:
    first, last = domains.moment(inner.first), domains.moment(inner.last)
    origin = datetime(1970, 1, 1)
    lower = Fraction((first - origin) // timedelta(seconds=1)) if first else None
    upper = Fraction((last - origin) // timedelta(seconds=1) + 1) if last else None
    return Domain(lower, upper, nullable=inner.nullable, reach=_EPOCH_REACH, grain=Fraction(1, 10**6))


def _year_domain(inner: Domain) -> Domain:
    first, last = domains.moment(inner.first), domains.moment(inner.last)
    lower = Fraction(first.year) if first else None
    upper = Fraction(last.year) if last else None
    return Domain(lower, upper, nullable=inner.nullable, reach=Fraction(10_000), grain=Fraction(1))


def _part_domain(part: str, inner: Domain) -> Domain:
    low, high = PARTS[part]
    first, last = domains.moment(inner.first), domains.moment(inner.last)
    if part in ("month", "quarter") and first and last and first.year == last.year:
        low = first.month if part == "month" else (first.month + 2) // 3
        high = last.month if part == "month" else (last.month + 2) // 3
    return Domain(Fraction(low), Fraction(high), nullable=inner.nullable, reach=Fraction(1000), grain=Fraction(1))


def shift(op: Op, node: exp.Expr, context: Context) -> Expr:
    """x +- INTERVAL '...': a timestamp."""
    left, right = unwrap(node.this), unwrap(node.args["expression"])
    if isinstance(left, exp.Interval) and op == "add":
        left, right = right, left
    if not isinstance(right, exp.Interval):
        raise refuse("an interval can only be added to a date or timestamp", node, sqlstate=UNDEFINED_FUNCTION)
    months, days, micros = literals.interval(right)
    sign = 1 if op == "add" else -1
    inner = _bind(left, context)
    parts = (sign * months, sign * days, sign * micros)
    type_ = TIMESTAMP if inner.type.kind is Kind.DATE else inner.type
    if isinstance(inner, Lit):
        return Lit(moved(inner.value, parts), type_)
    domain = Domain(
        first=moved(inner.domain.first, parts), last=moved(inner.domain.last, parts), nullable=inner.domain.nullable
    )
    return Call("add_interval", (inner, *(Lit(p, INT4) for p in parts)), type_, domain)


def shift_days(op: Op, a: Expr, b: Expr, node: exp.Expr) -> Expr:
    """date +- a constant number of days: a date."""
    if op not in ("add", "sub") or not isinstance(b, Lit) or not isinstance(b.value, int) or abs(b.value) > 180_000:
        raise refuse("a date takes + or - a constant number of days", node)
    days = b.value if op == "add" else -b.value
    parts = (0, days, 0)
    if isinstance(a, Lit):
        shifted_day = moved(a.value, parts)
        return Lit(shifted_day.date() if isinstance(shifted_day, datetime) else None, DATE)
    domain = Domain(first=moved(a.domain.first, parts), last=moved(a.domain.last, parts), nullable=a.domain.nullable)
    shifted = Call("add_interval", (a, *(Lit(p, INT4) for p in parts)), TIMESTAMP, domain)
    return cast(shifted, DATE, node)


def moved(value: Value, parts: tuple[int, int, int]) -> Value:
    """A date or timestamp shifted by months, days and microseconds; None where it leaves the calendar."""
    at = domains.moment(value)
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


def difference(a: Expr, b: Expr, node: exp.Expr) -> Expr:
    """date - date: days, an integer."""
    if a.type.kind is not Kind.DATE or b.type.kind is not Kind.DATE:
        raise refuse(
            "the difference of timestamps is an interval, which cannot be aggregated",
            node,
            hint="Write EXTRACT(EPOCH FROM a) - EXTRACT(EPOCH FROM b) for seconds, or cast both to date for days.",
        )
    lower, upper = _days(a.domain.first, b.domain.last), _days(a.domain.last, b.domain.first)
    nullable = a.domain.nullable or b.domain.nullable
    domain = Domain(lower, upper, nullable=nullable, reach=Fraction(4_000_000), grain=Fraction(1))
    return Call("date_diff", (a, b), INT4, domain)


def _days(a: Value, b: Value) -> Fraction | None:
    left, right = domains.moment(a), domains.moment(b)
    return Fraction((left - right).days) if left is not None and right is not None else None


def cast(value: Expr, type_: SqlType, node: exp.Expr) -> Expr:
    """CAST between date and timestamps."""
    first, last = value.domain.first, value.domain.last
    if type_.kind is Kind.DATE:
        first, last = _day(first), _day(last)
        return Call("to_date", (value,), DATE, Domain(first=first, last=last, nullable=value.domain.nullable))
    domain = Domain(first=domains.moment(first), last=domains.moment(last), nullable=value.domain.nullable)
    return Call("to_timestamp", (value,), type_, domain)


def _day(value: Value) -> date | None:
    at = domains.moment(value)
    return at.date() if at is not None else None
