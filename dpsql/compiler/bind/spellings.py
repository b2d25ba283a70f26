"""Older and other spellings of scalar functions, each bound as the form that Postgres has for it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from dpsql.compiler.algebra import Expr, Lit
from dpsql.compiler.bind.context import Context, Rule, bind, number
from dpsql.compiler.bind.numbers import arithmetic
from dpsql.compiler.keys import is_whole
from dpsql.compiler.parse import name_of, only, refuse
from dpsql.errors import UNDEFINED_FUNCTION

_BINARY = ("c", "posix", "ucs_basic")


def _as(build: Callable[[exp.Expr], exp.Expr]) -> Rule:
    return lambda node, context: bind(build(node), context)


def _collate(node: exp.Expr, context: Context) -> Expr:
    """x COLLATE "C": texts are compared by their bytes here, whatever the backend's collation is."""
    only(node, "expression")
    name = name_of(node.args["expression"]).lower() if isinstance(node.args["expression"], exp.Identifier) else ""
    if name not in _BINARY:
        raise refuse('texts are compared as COLLATE "C" here', node, hint="Leave COLLATE out, or compare lower(x).")
    return bind(node.this, context)


def _decode(node: exp.Expr) -> exp.Expr:
    """DECODE(x, a, b, ..., default): the first value that x is not distinct from."""
    x, *rest = node.expressions
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    ifs = [
        exp.If(this=exp.NullSafeEQ(this=x.copy(), expression=a.copy()), true=b.copy())
        for a, b in pairs
    ]  # fmt: skip
    return exp.Case(ifs=ifs, default=rest[-1].copy() if len(rest) % 2 else None)


def _whole_division(node: exp.Expr, context: Context) -> Expr:
    """DIV(a, b): the quotient without its decimals."""
    only(node, "expression")
    a, b = (number(bind(each, context), each, context) for each in (node.this, node.args["expression"]))
    if a.type.is_integer and b.type.is_integer:
        return arithmetic("div", a, b, node)
    quotient = exp.Div(this=node.this.copy(), expression=node.args["expression"].copy())
    return bind(exp.Trunc(this=quotient), context)


def _scaled(factor: float) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: exp.Mul(this=node.this.copy(), expression=exp.Literal.number(repr(factor)))


def _coalesced(node: exp.Expr, context: Context) -> Expr:
    """ISNULL(x, y), as COALESCE."""
    if len(node.expressions) != 2:
        raise refuse("isnull takes two values", node, sqlstate=UNDEFINED_FUNCTION, hint="Write x IS NULL.")
    x, y = (each.copy() for each in node.expressions)
    return bind(exp.Coalesce(this=x, expressions=[y]), context)


def _square(node: exp.Expr, context: Context) -> Expr:
    if len(node.expressions) != 1:
        raise refuse("square takes a number", node, sqlstate=UNDEFINED_FUNCTION)
    x = node.expressions[0]
    return bind(exp.Mul(this=exp.Paren(this=x.copy()), expression=exp.Paren(this=x.copy())), context)


def zero_padded(value: Expr, node: exp.Expr, pattern: str) -> exp.Expr | None:
    """to_char(x, 'FM00') of whole numbers that fit, as lpad(x::text, 2, '0'); None for other formats and numbers."""
    width = len(pattern) - 2
    if not re.fullmatch("FM0+", pattern) or isinstance(value, Lit) or not is_whole(value):
        return None
    lower, upper = value.domain.lower, value.domain.upper
    if lower is None or upper is None or lower < 0 or upper >= 10**width:
        return None
    text = exp.DataType.build("text")
    whole = (
        node.this.copy() if value.type.is_integer else exp.Cast(this=node.this.copy(), to=exp.DataType.build("bigint"))
    )
    return exp.Pad(
        this=exp.Cast(this=whole, to=text),
        expression=exp.Literal.number(width),
        fill_pattern=exp.Literal.string("0"),
        is_left=True,
    )


SPELLING_RULES: dict[type[exp.Expr], Rule] = {
    exp.Collate: _collate,
    exp.DecodeCase: _as(_decode),
    exp.IntDiv: _whole_division,
    exp.Degrees: _as(_scaled(180 / math.pi)),
    exp.Radians: _as(_scaled(math.pi / 180)),
    exp.Pi: _as(lambda node: exp.Literal.number(str(Decimal(repr(math.pi))))),
}
SPELLED_FUNCTIONS: dict[str, Rule] = {"isnull": _coalesced, "square": _square}
