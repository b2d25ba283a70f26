"""Functions of dates that other systems have, as those of Postgres: DATE_DIFF, DATE_ADD, LAST_DAY, time_bucket, ...

Decides which of them have one meaning: where systems differ (the number of a weekday, weeks between dates), they are
refused with the form that says which is meant.
"""

from __future__ import annotations

import re

from sqlglot import exp

from dpsql.compiler.algebra import Expr, Lit
from dpsql.compiler.bind.context import Context, Rule, bind, constant
from dpsql.compiler.bind.numbers import arithmetic, cast_number
from dpsql.compiler.bind.temporal import cast, date_bin, difference, part_of, shift, timed, truncated
from dpsql.compiler.bind.written import formatted
from dpsql.compiler.formats import pieces
from dpsql.compiler.parse import only, refuse
from dpsql.errors import UNDEFINED_FUNCTION
from dpsql.types import DATE, INT4, INT8, NUMERIC, TEXT, TIMESTAMP

_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _date_diff(node: exp.Expr, context: Context) -> Expr:
    """DATE_DIFF('day', a, b): boundaries passed from a to b; DATE_DIFF(b, a, DAY) and DATEDIFF(b, a) the other way."""
    parts = list(node.expressions)
    units = [str(p.this).lower() if isinstance(p, exp.Literal) and p.is_string else "" for p in parts]
    if len(parts) == 3 and units[0].rstrip("s") in (*_SECONDS, "day", *_MONTHS, "week"):
        unit, start, end = units[0].rstrip("s"), parts[1], parts[2]
    elif len(parts) == 3 and units[2]:
        unit, start, end = units[2].rstrip("s"), parts[1], parts[0]
    elif len(parts) == 2:
        unit, start, end = "day", parts[1], parts[0]
    else:
        raise refuse("date_diff takes a unit and two dates", node, sqlstate=UNDEFINED_FUNCTION, hint=_DAYS)
    a, b = timed(start, context), timed(end, context)
    if unit == "day":
        days = [x if x.type == DATE else _as_date(x, node, context) for x in (b, a)]
        return cast_number(difference(days[0], days[1], node), INT8, node)
    if unit in _SECONDS:
        width = Lit(_SECONDS[unit], INT8)
        counts = [
            cast_number(part_of("epoch", truncated(unit, x, TIMESTAMP), NUMERIC, node), INT8, node) for x in (b, a)
        ]
        return arithmetic("div", arithmetic("sub", counts[0], counts[1], node), width, node)
    if unit in _MONTHS:
        return arithmetic("sub", _months(b, unit, node), _months(a, unit, node), node)
    raise refuse(f"systems count {unit or 'such'}s between dates differently", node, hint=_DAYS)


_DAYS = "Write CAST(b AS date) - CAST(a AS date) for days, and divide: ... / 7 for whole weeks."


def _as_date(value: Expr, node: exp.Expr, context: Context) -> Expr:
    return context.coerce(value, DATE, node) if isinstance(value, Lit) else cast(value, DATE, node)


def _months(value: Expr, unit: str, node: exp.Expr) -> Expr:
    """Years, quarters or months since the year 0."""
    year = cast_number(part_of("year", value, NUMERIC, node), INT4, node)
    if unit == "year":
        return year
    within = cast_number(part_of(unit, value, NUMERIC, node), INT4, node)
    return arithmetic("add", arithmetic("mul", year, Lit(12 // _MONTHS[unit], INT4), node), within, node)


def _moved(sign: int) -> Rule:
    """DATE_ADD(x, INTERVAL '1 day') and DATE_SUB."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression", "unit")
        sum_ = (exp.Add if sign > 0 else exp.Sub)(this=node.this.copy(), expression=node.args["expression"].copy())
        return shift("add" if sign > 0 else "sub", sum_, context)

    return rule


def _dateadd(node: exp.Expr, context: Context) -> Expr:
    """DATEADD(day, 1, x)."""
    unit = constant(node.expressions[0], TEXT, context) if len(node.expressions) == 3 else None
    count = bind(node.expressions[1], context) if unit is not None else None
    if unit is None or not isinstance(count, Lit) or not isinstance(count.value, int):
        raise refuse("dateadd takes a unit, a constant number and a date", node, hint="Write x + INTERVAL '1 day'.")
    interval = exp.Interval(this=exp.Literal.string(f"{count.value} {unit.value!s}"))
    return shift("add", exp.Add(this=node.expressions[2].copy(), expression=interval), context)


def _last_day(node: exp.Expr, context: Context) -> Expr:
    """LAST_DAY(x): of its month."""
    only(node)
    month = exp.TimestampTrunc(this=node.this.copy(), unit=exp.Var(this="MONTH"))
    interval = exp.Interval(this=exp.Literal.string("1 month -1 day"))
    last = shift("add", exp.Add(this=month, expression=interval), context)
    return _as_date(last, node, context)


def _time_bucket(node: exp.Expr, context: Context) -> Expr:
    """time_bucket(width, x), as DATE_BIN from Monday 2000-01-03."""
    if len(node.expressions) != 2:
        raise refuse("time_bucket takes a width and a date or timestamp", node, hint="Write date_bin with an origin.")
    width, x = (each.copy() for each in node.expressions)
    return date_bin(exp.DateBin(this=width, expression=x, origin=exp.Literal.string("2000-01-03")), context)


_CODES = {
    "Y": "YYYY", "y": "YY", "m": "MM", "d": "DD", "H": "HH24", "I": "HH12", "M": "MI", "S": "SS", "b": "Mon",
    "B": "FMMonth", "a": "Dy", "A": "FMDay", "j": "DDD", "V": "IW", "G": "IYYY", "p": "AM", "F": "YYYY-MM-DD",
    "T": "HH24:MI:SS", "Q": "Q",
}  # fmt: skip


def _strftime(node: exp.Expr, context: Context) -> Expr:
    """STRFTIME(x, '%Y-%m') and FORMAT_DATE('%Y-%m', x), as to_char."""
    parts = list(node.expressions)
    if str(node.this).lower().startswith("format_"):
        parts.reverse()
    pattern = constant(parts[1], TEXT, context) if len(parts) == 2 else None
    form = None if pattern is None else _form(str(pattern.value))
    if form is None:
        raise refuse("this format is not known over private rows", node, hint="Write to_char(x, 'YYYY-MM').")
    return formatted(timed(parts[0], context), form)


def _form(pattern: str) -> str | None:
    """A format with % as one of to_char."""
    made = ""
    for part in re.findall(r"%.|[^%]+|%", pattern, re.DOTALL):
        if part.startswith("%") and part != "%%":
            if part[1:] not in _CODES:
                return None
            made += _CODES[part[1:]]
        elif '"' in part or "\\" in part:
            return None
        else:
            made += f'"{"%" if part == "%%" else part}"'
    return made if pieces(made) is not None else None


def _named(pattern: str) -> Rule:
    """DAYNAME(x), MONTHNAME(x): the whole name."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "abbreviated")
        return formatted(timed(node.this, context), pattern)

    return rule


def _timezone(node: exp.Expr, context: Context) -> Expr:
    """timezone('UTC', x), as AT TIME ZONE."""
    if len(node.expressions) != 2:
        raise refuse("timezone takes a zone and a timestamp", node, sqlstate=UNDEFINED_FUNCTION)
    zone, x = (each.copy() for each in node.expressions)
    return bind(exp.AtTimeZone(this=x, zone=zone), context)


DATE_RULES: dict[type[exp.Expr], Rule] = {
    exp.DateAdd: _moved(1),
    exp.DateSub: _moved(-1),
    exp.LastDay: _last_day,
    exp.Dayname: _named("FMDay"),
    exp.Monthname: _named("FMMonth"),
}
DATE_FUNCTIONS: dict[str, Rule] = {
    "date_diff": _date_diff,
    "datediff": _date_diff,
    "dateadd": _dateadd,
    "time_bucket": _time_bucket,
    "strftime": _strftime,
    "format_date": _strftime,
    "format_timestamp": _strftime,
    "format_datetime": _strftime,
    "timezone": _timezone,
}
