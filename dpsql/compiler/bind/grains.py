"""Time grains that DATE_TRUNC does not have, as BI tools write them: `date_trunc('hour', x) + INTERVAL '5 minutes' *
FLOOR(EXTRACT(minute FROM x) / 5)` and its like are bins of five minutes.

Decides that by computing: the multiple is evaluated for each value that its part of x can take, and the sum is a bin
only if each lands on the beginning of one. So every spelling of the same arithmetic is known, and no other one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, trunc

from sqlglot import exp

from dpsql.compiler.algebra import Call, Expr, Lit, Op, canonical
from dpsql.compiler.bind.context import Context, bind
from dpsql.compiler.bind.intervals import interval_of, is_interval
from dpsql.compiler.domains import number
from dpsql.compiler.keys import exactly
from dpsql.compiler.parse import unwrap

_SECOND = 1_000_000
_PARTS = {"hour": (24, 3600 * _SECOND), "minute": (60, 60 * _SECOND), "second": (60, _SECOND)}
"""How many values a part of a timestamp has, and the microseconds of one."""
_WITHIN = {"day": ("hour",), "hour": ("minute", "hour"), "minute": ("second", "minute"), "second": ("second",)}
"""The parts that count from what DATE_TRUNC gives, or, if it is its own unit, back from it."""


@dataclass(frozen=True, slots=True)
class _Multiple:
    """`count` times `unit`, an interval literal."""

    unit: exp.Expr
    count: exp.Expr
    sign: int = 1


def grain(op: Op, left: exp.Expr, right: exp.Expr, context: Context) -> tuple[int, Call] | None:
    """The width in microseconds of the bins that `left +- right` is the beginning of, and the DATE_TRUNC in it."""
    found = _multiple(unwrap(right))
    if found is None:
        return None
    start, count, unit = bind(left, context), bind(found.count, context), interval_of(found.unit, context)
    whole = _uncast(start)
    if isinstance(count, Lit) or unit[:2] != (0, 0) or not isinstance(whole, Call) or whole.op != "date_trunc":
        return None
    step = unit[2] * found.sign * (1 if op == "add" else -1)
    truncated = str(whole.args[0].value) if isinstance(whole.args[0], Lit) else ""
    for part in _WITHIN.get(truncated, ()):
        width = _width(part, truncated, step, count, whole.args[1])
        if width is not None:
            return width, whole
    return None


def _width(part: str, truncated: str, step: int, count: Expr, of: Expr) -> int | None:
    values, each = _PARTS[part]
    starts = []
    for value in range(values):
        times = _value(count, value, lambda e: _is_part(e, part, of), whole=part != "second")
        if times is None:
            return None
        starts.append(times * step + (value * each if part == truncated else 0))
    for size in (n for n in range(1, values + 1) if values % n == 0):
        if starts == [value // size * size * each for value in range(values)]:
            return size * each
    return None


def _multiple(node: exp.Expr) -> _Multiple | None:
    match node:
        case exp.Neg():
            inner = _multiple(unwrap(node.this))
            return None if inner is None else _Multiple(inner.unit, inner.count, -inner.sign)
        case exp.Mul():
            for unit, count in ((node.this, node.expression), (node.expression, node.this)):
                if isinstance(unwrap(unit), exp.Interval):
                    return _Multiple(unwrap(unit), count)
            inner = _multiple(unwrap(node.this)) if is_interval(node.this) else None
            return None if inner is None else _Multiple(inner.unit, _product(inner.count, node.expression), inner.sign)
        case exp.Cast() if node.to.this is exp.DType.INTERVAL:
            return _written(unwrap(node.this))
        case exp.MakeInterval():
            given = [(key, value) for key, value in node.args.items() if isinstance(value, exp.Expr)]
            if len(given) == 1 and given[0][0] not in ("years", "months"):
                key, value = given[0]
                return _Multiple(_one(key), value.expression if isinstance(value, exp.Kwarg) else value)
    return None


def _written(node: exp.Expr) -> _Multiple | None:
    """`(n || ' minutes')::interval`."""
    parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    if not isinstance(node, exp.DPipe | exp.Concat) or len(parts) != 2:
        return None
    count, word = (unwrap(part) for part in parts)
    if isinstance(count, exp.Cast) and count.to.this in exp.DataType.TEXT_TYPES:
        count = count.this
    return _Multiple(_one(str(word.this).strip()), count) if isinstance(word, exp.Literal) and word.is_string else None


def _one(unit: str) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(f"1 {unit}"))


def _product(a: exp.Expr, b: exp.Expr) -> exp.Expr:
    return exp.Mul(this=exp.Paren(this=a.copy()), expression=exp.Paren(this=b.copy()))


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Call) and expr.op == "to_timestamp":
        expr = expr.args[0]
    return expr


def _is_part(expr: Expr, part: str, of: Expr) -> bool:
    """Whether it is this part of the same timestamp; the seconds of a minute are a difference of epochs."""
    match expr:
        case Call(op="extract", args=(Lit(value=name), inner)):
            return name == part and _same(inner, of)
        case Call(
            op="sub",
            args=(
                Call(op="extract", args=(Lit(value="epoch"), x)),
                Call(op="extract", args=(Lit(value="epoch"), Call(op="date_trunc", args=(Lit(value="minute"), y)))),
            ),
        ):
            return part == "second" and _same(x, of) and _same(y, of)
        case _:
            return False


def _same(a: Expr, b: Expr) -> bool:
    return canonical(_uncast(a)) == canonical(_uncast(b))


def _value(expr: Expr, at: int, is_part: Callable[[Expr], bool], *, whole: bool) -> Fraction | None:
    """The expression where its part has this value; None where it has none, or reads anything else.

    A part that is not `whole` lies between `at` and the next number: it counts only under FLOOR or TRUNC, alone or
    divided by a whole number, which do not tell where.
    """
    if isinstance(expr, Lit):
        return number(expr.value)
    if is_part(expr):
        return Fraction(at) if whole else None
    if not isinstance(expr, Call):
        return None
    if expr.op in ("floor", "trunc") and not whole:
        inner, by = _uncast_number(expr.args[0]), Fraction(1)
        if isinstance(inner, Call) and inner.op == "div":
            divisor = _value(inner.args[1], at, is_part, whole=whole)
            inner, by = _uncast_number(inner.args[0]), divisor or Fraction(0)
        if is_part(inner):
            return Fraction(at // int(by)) if by > 0 and by.denominator == 1 and _to_units(expr) else None
    values = [_value(arg, at, is_part, whole=whole) for arg in expr.args]
    known = [value for value in values if value is not None]
    return _applied(expr.op, known) if len(known) == len(values) else None


def _to_units(call: Call) -> bool:
    return isinstance(call.args[1], Lit) and call.args[1].value == 0


def _uncast_number(expr: Expr) -> Expr:
    while isinstance(expr, Call) and expr.op in ("to_float", "to_numeric"):
        expr = expr.args[0]
    return expr


def _applied(op: str, values: list[Fraction]) -> Fraction | None:
    a, b = (*values, Fraction(0))[:2]
    match op:
        case "to_float" | "to_numeric" | "neg" | "add" | "sub" | "mul":
            return exactly(op, a, b)
        case "to_int":
            return Fraction(_rounded(a))
        case "floor" | "ceil" | "trunc" | "round" if b == 0:
            return Fraction(_ROUNDINGS[op](a))
        case "div" if b:
            return a / b
        case "idiv" if b:
            return Fraction(trunc(a / b))
        case "mod" if b:
            return a - b * trunc(a / b)
        case _:
            return None


def _rounded(value: Fraction) -> int:
    half = floor(abs(value) + Fraction(1, 2))
    return half if value >= 0 else -half


_ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"floor": floor, "ceil": ceil, "trunc": trunc, "round": _rounded}
