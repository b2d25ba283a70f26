"""Dates and timestamps in scalar expressions: DATE_TRUNC, EXTRACT, intervals, casts, with their domains.

All of it is computed on local timestamps in the policy's zone, clamped to the years 1000 to 9990 (see `emit`), so that
no part or interval can leave what either backend holds. Intervals are constants of at most 500 years.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

from sqlglot import exp

from dpsql.compiler import domains
from dpsql.compiler.algebra import Call, Domain, Expr, Lit, Op
from dpsql.compiler.bind import literals
from dpsql.compiler.bind.context import Context, Rule, bind, constant, number
from dpsql.compiler.bind.grains import grain
from dpsql.compiler.bind.intervals import interval_of, is_interval
from dpsql.compiler.bind.numbers import arithmetic, cast_number
from dpsql.compiler.bind.weeks import begun, day_less_its_number, plain
from dpsql.compiler.calendar import YEARS, binned, day_of, from_epoch, moved, part_value, truncate_value
from dpsql.compiler.clock import CLOCK_FUNCTIONS, CLOCKS, reading
from dpsql.compiler.keys import is_whole
from dpsql.compiler.parse import only, refuse, unwrap
from dpsql.errors import BAD_PARAMETER, UNDEFINED_FUNCTION
from dpsql.types import DATE, FLOAT8, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType, Value

UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
PARTS: dict[str, tuple[int, int]] = {
    "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "quarter": (1, 4), "dow": (0, 6),
    "isodow": (1, 7), "doy": (1, 366), "week": (1, 53),
}  # fmt: skip
_PLURALS = {
    "years": "year", "months": "month", "mon": "month", "days": "day", "hours": "hour", "minutes": "minute",
    "mins": "minute", "weeks": "week", "quarters": "quarter", "dayofyear": "doy", "isoweek": "week",
    "seconds": "second",
}  # fmt: skip
_WEEKDAYS = "Write EXTRACT(dow FROM x), 0 for Sunday to 6, or EXTRACT(isodow FROM x), 1 for Monday to 7."
_EPOCH_REACH = Fraction(300_000_000_000)


def timed(node: exp.Expr, context: Context) -> Expr:
    bound = bind(node, context)
    if isinstance(bound, Lit) and bound.type.kind is Kind.UNKNOWN:
        bound = context.coerce(bound, TIMESTAMP, node)
    if not bound.type.is_time:
        raise refuse(f"a date or timestamp is needed here, not {bound.type}", node, sqlstate=UNDEFINED_FUNCTION)
    return bound


def truncate(node: exp.Expr, context: Context) -> Expr:
    """DATE_TRUNC(unit, x): a timestamp; with time zone where x is a date or has one, as in Postgres."""
    only(node, "unit", "zone", "input_type_preserved")
    unit = str(node.args["unit"].this).lower() if node.args.get("unit") is not None else ""
    if unit not in UNITS:
        raise refuse(f'DATE_TRUNC takes one of {", ".join(UNITS)}, not "{unit}"', node, sqlstate=BAD_PARAMETER)
    zone = node.args.get("zone")
    if zone is not None:
        _check_zone(zone, node, context)
    inner = timed(node.this, context)
    type_ = TIMESTAMP if inner.type.kind is Kind.TIMESTAMP and zone is None else TIMESTAMPTZ
    return truncated(unit, inner, type_)


def truncated(unit: str, inner: Expr, type_: SqlType) -> Expr:
    if isinstance(inner, Lit):
        at = domains.moment(inner.value)
        return Lit(None if at is None else truncate_value(unit, at), type_)
    first, last = domains.moment(inner.domain.first), domains.moment(inner.domain.last)
    domain = Domain(
        first=truncate_value(unit, first) if first else None,
        last=truncate_value(unit, last) if last else None,
        nullable=inner.domain.nullable,
    )
    return Call("date_trunc", (Lit(unit, TEXT), inner), type_, domain)


def date_bin(node: exp.Expr, context: Context) -> Expr:
    """date_bin(stride, x, origin): the beginning of x's bin, of constant stride and origin."""
    only(node, "expression", "unit", "zone", "origin")
    stride, origin = node.this, node.args.get("origin") or node.args.get("unit")
    if isinstance(stride, exp.Literal):
        stride = exp.Interval(this=stride.copy())
    months, days, micros = interval_of(stride, context) if is_interval(stride) else (1, 0, 0)
    width = days * 86_400_000_000 + micros
    if isinstance(origin, exp.Var):
        origin = exp.Literal.string(origin.name)
    start = None if origin is None else timed(origin, context)
    at = domains.moment(start.value) if isinstance(start, Lit) else None
    if months or width <= 0 or at is None:
        raise refuse(
            "date_bin over private rows takes a constant stride of days or less, and a constant origin",
            node,
            hint="Write date_bin('15 minutes', x, TIMESTAMP '2001-01-01'), or date_trunc for months.",
        )
    inner = timed(node.args["expression"], context)
    type_ = inner.type if inner.type.kind is not Kind.DATE else TIMESTAMP
    return _binned(inner, width, at, type_)


def _binned(inner: Expr, width: int, origin: datetime, type_: SqlType) -> Expr:
    first, last = (binned(domains.moment(v), origin, width) for v in (inner.domain.first, inner.domain.last))
    if isinstance(inner, Lit):
        return Lit(first, type_)
    domain = Domain(first=first, last=last, nullable=inner.domain.nullable)
    return Call("date_bin", (Lit(width, INT8), inner, Lit(origin, TIMESTAMP)), type_, domain)


def _clock(node: exp.Expr, context: Context) -> Expr:
    return reading(node, context.now)


def _of_epoch(node: exp.Expr, context: Context) -> Expr:
    """to_timestamp(seconds since 1970), of whole seconds."""
    only(node)
    seconds = number(bind(node.this, context), node.this, context)
    if isinstance(seconds, Lit):
        return Lit(from_epoch(domains.number(seconds.value)), TIMESTAMPTZ)
    if not is_whole(seconds):
        raise refuse("to_timestamp over private rows takes whole seconds", node, hint="Write to_timestamp(FLOOR(x)).")
    first, last = (from_epoch(bound) for bound in (seconds.domain.lower, seconds.domain.upper))
    return Call("from_epoch", (seconds,), TIMESTAMPTZ, Domain(first=first, last=last, nullable=seconds.domain.nullable))


def _date(node: exp.Expr, context: Context) -> Expr:
    """DATE(x)."""
    only(node)
    inner = timed(node.this, context)
    return inner if inner.type.kind is Kind.DATE else convert(inner, DATE, node, context)


def convert(inner: Expr, type_: SqlType, node: exp.Expr, context: Context) -> Expr:
    """CAST between dates and timestamps, of constants too."""
    return context.coerce(inner, type_, node) if isinstance(inner, Lit) else cast(inner, type_, node)


def _at_time_zone(node: exp.Expr, context: Context) -> Expr:
    """x AT TIME ZONE the policy's own: timestamps with time zone are local ones here already."""
    only(node, "zone")
    _check_zone(node.args["zone"], node, context)
    inner = timed(node.this, context)
    return convert(inner, TIMESTAMP if inner.type.kind is not Kind.TIMESTAMP else TIMESTAMPTZ, node, context)


def _check_zone(written: exp.Expr, node: exp.Expr, context: Context) -> None:
    zone = constant(written, TEXT, context)
    name, own = str(zone.value) if zone is not None else "", str(context.zone)
    if name != own and not {name.upper(), own.upper()} <= {"UTC", "GMT", "Z", "ETC/UTC"}:
        raise refuse(
            f"timestamps over private rows are read in the policy's time zone, {own}",
            node,
            hint="Leave AT TIME ZONE out, or shift by a constant: x + INTERVAL '2 hours'.",
        )


def parsed_time(node: exp.Expr, context: Context) -> Expr:
    """TO_TIMESTAMP(text, format) and TO_DATE(text, format) of constants, read here."""
    only(node, "format")
    text, form = node.this, node.args.get("format")
    if not isinstance(text, exp.Literal) or not isinstance(form, exp.Literal):
        raise refuse("TO_TIMESTAMP and TO_DATE take constants over private rows", node)
    try:
        found = datetime.strptime(str(text.this).strip(), str(form.this))
    except (ValueError, re.error):  # a field that stands twice in the format is no pattern
        raise refuse(f'"{text.this}" does not have this format', node, sqlstate="22007") from None
    whole = isinstance(node, exp.StrToDate | exp.TsOrDsToDate)
    return literals.coerce(Lit(found, TIMESTAMP), DATE if whole else TIMESTAMPTZ, node, context.zone)


def extract(node: exp.Expr, context: Context) -> Expr:
    """EXTRACT(part FROM x): numeric; whole numbers, and `epoch` in seconds."""
    only(node, "expression")
    part = str(node.this.this) if isinstance(node.this, exp.Var | exp.Literal) else str(node.this.name)
    if part.lower() == "date":
        return _date(exp.Date(this=node.args["expression"].copy()), context)
    return _part_of(part.lower(), node.args["expression"], NUMERIC, node, context)


def _part_of(part: str, of: exp.Expr, type_: SqlType, node: exp.Expr, context: Context) -> Expr:
    """A part of a timestamp, or the seconds between two: EXTRACT(EPOCH FROM a - b)."""
    between = unwrap(of)
    if part == "epoch" and isinstance(between, exp.Sub) and not is_interval(between.args["expression"]):
        a, b = (timed(side, context) for side in (between.this, between.args["expression"]))
        return arithmetic("sub", part_of(part, a, type_, node), part_of(part, b, type_, node), node)
    return part_of(part, timed(of, context), type_, node)


def date_part(node: exp.Expr, context: Context) -> Expr:
    """date_part('part', x): double precision."""
    part = constant(node.expressions[0], TEXT, context) if len(node.expressions) == 2 else None
    if part is None:
        raise refuse("date_part takes a constant part and a date or timestamp", node, sqlstate=UNDEFINED_FUNCTION)
    return _part_of(str(part.value).lower(), node.expressions[1], FLOAT8, node, context)


def _named_part(part: str) -> Rule:
    """year(x), month(x), ...: whole numbers."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node)
        return cast_number(part_of(part, timed(node.this, context), NUMERIC, node), INT4, node)

    return rule


def part_of(part: str, inner: Expr, type_: SqlType, node: exp.Expr) -> Expr:
    """EXTRACT(part FROM x) of a bound date or timestamp."""
    part = _PLURALS.get(part, part)
    if part == "second" and not isinstance(inner, Lit):
        return _second(inner, type_, node)
    if part == "epoch":
        domain = _epoch_domain(inner.domain)
    elif part in YEARS:
        domain = _year_domain(part, inner.domain)
    elif part in PARTS:
        domain = _part_domain(part, inner.domain)
    else:
        shown = ", ".join([*YEARS, *PARTS, "second", "epoch"])
        hint = _WEEKDAYS if part in ("dayofweek", "weekday") else None
        raise refuse(f'EXTRACT takes one of {shown}, not "{part}"', node, sqlstate=BAD_PARAMETER, hint=hint)
    if isinstance(inner, Lit):
        return Lit(part_value(part, inner.value), type_)
    return Call("extract", (Lit(part, TEXT), inner), type_, domain)


def _second(inner: Expr, type_: SqlType, node: exp.Expr) -> Expr:
    """EXTRACT(second FROM x): with its fraction, what has passed since the minute began."""
    begun = part_of("epoch", truncated("minute", inner, TIMESTAMP), type_, node)
    passed = arithmetic("sub", part_of("epoch", inner, type_, node), begun, node)
    domain = replace(passed.domain, lower=Fraction(0), upper=60 - Fraction(1, 10**6))
    return replace(passed, domain=domain) if isinstance(passed, Call) else passed


def _epoch_domain(inner: Domain) -> Domain:
    first, last = domains.moment(inner.first), domains.moment(inner.last)
    origin = datetime(1970, 1, 1)
    lower = Fraction((first - origin) // timedelta(seconds=1)) if first else None
    upper = Fraction((last - origin) // timedelta(seconds=1) + 1) if last else None
    return Domain(lower, upper, nullable=inner.nullable, reach=_EPOCH_REACH, grain=Fraction(1, 10**6))


def _year_domain(part: str, inner: Domain) -> Domain:
    first, last = domains.moment(inner.first), domains.moment(inner.last)
    lower = Fraction(part_value(part, first) or 0) if first else None
    upper = Fraction(part_value(part, last) or 0) if last else None
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
    if is_interval(left) and op == "add":
        left, right = right, left
    if not is_interval(right):
        raise refuse("an interval can only be added to a date or timestamp", node, sqlstate=UNDEFINED_FUNCTION)
    day = day_less_its_number(op, left, right, context)
    if day is not None:
        return _sunday_of(day.args[1], day.type)
    bins = grain(op, left, right, context)
    if bins is not None:
        width, whole = bins
        return _binned(whole.args[1], width, datetime(2000, 1, 1), whole.type)
    months, days, micros = interval_of(right, context)
    sign = 1 if op == "add" else -1
    return _shifted(timed(left, context), (sign * months, sign * days, sign * micros))


def _shifted(inner: Expr, parts: tuple[int, int, int]) -> Expr:
    type_ = TIMESTAMP if inner.type.kind is Kind.DATE else inner.type
    if isinstance(inner, Lit):
        return Lit(moved(inner.value, parts), type_)
    domain = Domain(
        first=moved(inner.domain.first, parts), last=moved(inner.domain.last, parts), nullable=inner.domain.nullable
    )
    return Call("add_interval", (inner, *(Lit(p, INT4) for p in parts)), type_, domain)


def _sunday_of(inner: Expr, type_: SqlType) -> Expr:
    """The Sunday that begins its week."""
    return _shifted(truncated("week", _shifted(inner, (0, 1, 0)), type_), (0, -1, 0))


def shift_days(op: Op, a: Expr, b: Expr, node: exp.Expr) -> Expr:
    """date +- a constant number of days: a date; or minus its day of the week, the beginning of the week."""
    day = begun(a, b) if op == "sub" else None
    if day is not None:
        monday = day == "isodow"
        week = truncated("week", plain(a), TIMESTAMP) if monday else _sunday_of(plain(a), TIMESTAMP)
        return cast(week, DATE, node)
    if op not in ("add", "sub") or not isinstance(b, Lit) or not isinstance(b.value, int) or abs(b.value) > 180_000:
        raise refuse("a date takes + or - a constant number of days", node)
    days = b.value if op == "add" else -b.value
    parts = (0, days, 0)
    if isinstance(a, Lit):
        return Lit(day_of(moved(a.value, parts)), DATE)
    domain = Domain(first=moved(a.domain.first, parts), last=moved(a.domain.last, parts), nullable=a.domain.nullable)
    shifted = Call("add_interval", (a, *(Lit(p, INT4) for p in parts)), TIMESTAMP, domain)
    return cast(shifted, DATE, node)


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
        first, last = day_of(first), day_of(last)
        return Call("to_date", (value,), DATE, Domain(first=first, last=last, nullable=value.domain.nullable))
    domain = Domain(first=domains.moment(first), last=domains.moment(last), nullable=value.domain.nullable)
    return Call("to_timestamp", (value,), type_, domain)


TIME_RULES: dict[type[exp.Expr], Rule] = {
    exp.Extract: extract,
    exp.StrToTime: parsed_time,
    exp.StrToDate: parsed_time,
    exp.TimestampTrunc: truncate,
    exp.DateTrunc: truncate,
    exp.DateBin: date_bin,
    exp.Date: _date,
    exp.AtTimeZone: _at_time_zone,
    exp.UnixToTime: _of_epoch,
    exp.Year: _named_part("year"),
    exp.Quarter: _named_part("quarter"),
    exp.Month: _named_part("month"),
    exp.Day: _named_part("day"),
    exp.Hour: _named_part("hour"),
    exp.Minute: _named_part("minute"),
    exp.DayOfYear: _named_part("doy"),
    exp.WeekOfYear: _named_part("week"),
    **dict.fromkeys(CLOCKS, _clock),
}
TIME_FUNCTIONS: dict[str, Rule] = {"date_part": date_part, **dict.fromkeys(CLOCK_FUNCTIONS, _clock)}
