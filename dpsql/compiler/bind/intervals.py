"""Constant intervals over private rows: literals, their multiples, and constant texts that are cast."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.algebra import Lit
from dpsql.compiler.bind import literals
from dpsql.compiler.bind.context import Context, bind, constant
from dpsql.compiler.parse import refuse, unwrap
from dpsql.types import TEXT


def is_interval(node: exp.Expr) -> bool:
    """Whether it is written as an interval: a literal, its multiple, or a constant text that is cast."""
    node = unwrap(node)
    if isinstance(node, exp.Neg):
        return is_interval(node.this)
    if isinstance(node, exp.Mul):
        return is_interval(node.this) or is_interval(node.args["expression"])
    return isinstance(node, exp.Interval | exp.MakeInterval) or (
        isinstance(node, exp.Cast) and node.to.this is exp.DType.INTERVAL
    )


def interval_of(node: exp.Expr, context: Context) -> tuple[int, int, int]:
    """Months, days and microseconds of a constant interval."""
    node = unwrap(node)
    if isinstance(node, exp.Interval):
        return literals.interval(node)
    if isinstance(node, exp.MakeInterval):
        return _made(node, context)
    if isinstance(node, exp.Neg):
        return _times(interval_of(node.this, context), -1, node)
    if isinstance(node, exp.Mul):
        one, other = node.this, node.args["expression"]
        if not is_interval(one):
            one, other = other, one
        count = bind(other, context)
        if isinstance(count, Lit) and isinstance(count.value, int) and abs(count.value) <= 10**9:
            return _times(interval_of(one, context), count.value, node)
    if isinstance(node, exp.Cast):
        written = constant(node.this, TEXT, context)
        if written is not None:
            return literals.interval(exp.Interval(this=exp.Literal.string(str(written.value))))
    raise refuse(
        "an interval over private rows must be a constant",
        node,
        hint="Write it as INTERVAL '7 days'; for bins of equal width, date_bin('15 minutes', x, '2000-01-01').",
    )


def _made(node: exp.MakeInterval, context: Context) -> tuple[int, int, int]:
    """make_interval(days => 30), of constant whole numbers."""
    words = []
    for key, value in node.args.items():
        count = bind(value.expression if isinstance(value, exp.Kwarg) else value, context)
        if not isinstance(count, Lit) or not isinstance(count.value, int):
            raise refuse("make_interval over private rows takes whole constants", node, hint="Write INTERVAL '7 days'.")
        words.append(f"{count.value} {key}")
    return literals.interval(exp.Interval(this=exp.Literal.string(" ".join(words))))


def _times(parts: tuple[int, int, int], count: int, node: exp.Expr) -> tuple[int, int, int]:
    months, days, micros = (part * count for part in parts)
    return literals.within_limit(months, days, micros, node)
