"""Beginnings of weeks as they are written where DATE_TRUNC begins them on another day: a day less its number.

Decides which expressions say so; `temporal` makes the week of them, whose values are few and public.
"""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from dpsql.compiler.algebra import Call, Expr, Lit, Op, canonical
from dpsql.compiler.bind.context import Context, bind
from dpsql.compiler.bind.intervals import interval_of, is_interval
from dpsql.compiler.parse import unwrap
from dpsql.types import TEXT


def day_less_its_number(op: Op, left: exp.Expr, right: exp.Expr, context: Context) -> Call | None:
    """date_trunc('day', x) of date_trunc('day', x) - EXTRACT(DOW FROM x) * INTERVAL '1 day', x's Sunday."""
    if not isinstance(right, exp.Mul) or not is_interval(right.args["expression"]):
        return None
    count, unit = unwrap(right.this), unwrap(right.args["expression"])
    if isinstance(count, exp.Neg):
        op, count = ("sub" if op == "add" else "add"), unwrap(count.this)
    day = bind(left, context)
    if not isinstance(count, exp.Extract | exp.Anonymous) or op != "sub" or interval_of(unit, context) != (0, 1, 0):
        return None
    part = bind(count, context)
    if not isinstance(day, Call) or day.op != "date_trunc" or not isinstance(part, Call) or part.op != "extract":
        return None
    same = canonical(plain(day.args[1])) == canonical(plain(part.args[1]))
    return day if same and day.args[0] == Lit("day", TEXT) and part.args[0] == Lit("dow", TEXT) else None


def begun(a: Expr, b: Expr) -> Literal["dow", "isodow"] | None:
    """By which number of the day: a is x and b EXTRACT(DOW FROM x), its Sunday, or EXTRACT(ISODOW FROM x) - 1."""
    count, less = _uncast(b), 0
    if isinstance(count, Call) and count.op == "sub" and isinstance(count.args[1], Lit) and count.args[1].value == 1:
        count, less = _uncast(count.args[0]), 1
    if not isinstance(count, Call) or count.op != "extract" or canonical(plain(a)) != canonical(plain(count.args[1])):
        return None
    match count.args[0], less:
        case Lit(value="dow"), 0:
            return "dow"
        case Lit(value="isodow"), 1:
            return "isodow"
        case _:
            return None


def _uncast(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Call) and expr.op == "to_int" else expr


def plain(expr: Expr) -> Expr:
    """What was cast to a date or timestamp."""
    while isinstance(expr, Call) and expr.op in ("to_date", "to_timestamp"):
        expr = expr.args[0]
    return expr
