"""Bounds of contributions that a statement names for one aggregate, as ZetaSQL and BigQuery write them.

Decides what they mean here. Per row (`contribution_bounds_per_row`, and CLAMPED of a variance or quantile) they clip
each value, which tightens the policy's own bounds; outside of those they are refused. Per group they clip what one
unit adds to a group: that is the same where a unit has one row, and else a query over one row for each unit, which the
refusal writes down.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from dpsql.compiler.algebra import Lit
from dpsql.compiler.bind.expr import Context, bind
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.domains import number
from dpsql.compiler.facts import narrowed
from dpsql.compiler.grammar import CLAMPED
from dpsql.compiler.parse import refuse
from dpsql.errors import BAD_PARAMETER

_PER_ROW, _PER_GROUP = "contribution_bounds_per_row", "contribution_bounds_per_group"
_BY_VALUE = (exp.VariancePop, exp.Variance, exp.StddevPop, exp.Stddev, exp.Anonymous)
"""Aggregates whose CLAMPED means each value."""


def within(node: exp.Expr, source: Source, context: Context) -> exp.Expr:
    """The aggregate without its bounds, its argument clipped to them."""
    given = _given(node)
    if given is None:
        return node
    name = given.this.name.lower()
    low, high = _ends(given, context)
    plain = _without(node)
    single = frozenset() in source.unique and not source.multiplies
    by_value = name == _PER_ROW or (name == CLAMPED and isinstance(node, _BY_VALUE))
    if name not in (_PER_ROW, _PER_GROUP, CLAMPED):
        raise refuse(f"{name} is not known", node, hint=f"Write {_PER_ROW} => (0, 10) or {_PER_GROUP} => (0, 10).")
    if not by_value and not single:
        raise _two_steps(plain, low, high, source, context)
    if isinstance(plain, exp.Count):
        if low > 0 or high < 1:
            raise refuse("bounds of a count must hold 0 and 1", node, sqlstate=BAD_PARAMETER)
        return plain
    argument = plain.expressions[0] if isinstance(plain, exp.Anonymous) else plain.this
    clipped = _clipped(argument, low, high, source, context)
    made = plain.copy()
    if isinstance(made, exp.Anonymous):
        made.set("expressions", [clipped, *[e.copy() for e in plain.expressions[1:]]])
    else:
        made.set("this", clipped)
    return made


def _given(node: exp.Expr) -> exp.Kwarg | None:
    found = node.args.get("bounds")
    if found is None and isinstance(node, exp.Count) and node.expressions:
        last = node.expressions[-1]
        found = last if isinstance(last, exp.Kwarg) and isinstance(last.expression, exp.Tuple) else None
    return found if isinstance(found, exp.Kwarg) else None


def _without(node: exp.Expr) -> exp.Expr:
    plain = node.copy()
    plain.set("bounds", None)
    if isinstance(plain, exp.Count):
        plain.set("expressions", None)
    return plain


def _ends(given: exp.Kwarg, context: Context) -> tuple[Decimal, Decimal]:
    pair = given.expression
    parts = pair.expressions if isinstance(pair, exp.Tuple) else []
    bound = [bind(each, context) for each in parts]
    values = [number(each.value) if isinstance(each, Lit) else None for each in bound]
    if len(values) != 2 or values[0] is None or values[1] is None or values[0] > values[1]:
        raise refuse("bounds are two constant numbers, the smaller first", given, sqlstate=BAD_PARAMETER)
    low, high = (Decimal(v.numerator) / Decimal(v.denominator) for v in values if v is not None)
    return low, high


def _clipped(node: exp.Expr, low: Decimal, high: Decimal, source: Source, context: Context) -> exp.Expr:
    """The argument between the bounds; NULL stays NULL."""
    domain = narrowed(bind(node, context), source.known).domain
    if domain.lower is not None and domain.upper is not None and (low < domain.lower or high > domain.upper):
        lower, upper = (f"{float(v):.15g}" for v in (domain.lower, domain.upper))
        raise refuse(
            f"bounds from {low} to {high} leave those of the policy, {lower} to {upper}",
            node,
            sqlstate=BAD_PARAMETER,
            hint=f"A statement may only tighten them: write {lower} to {upper} or less, or leave them out.",
        )
    ends = [exp.Literal.number(f"{abs(end):f}") for end in (low, high)]
    first, last = (exp.Neg(this=n) if end < 0 else n for n, end in zip(ends, (low, high), strict=True))
    inner = exp.Greatest(this=node.copy(), expressions=[first])
    between = exp.Least(this=inner, expressions=[last])
    there = exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null()))
    return exp.Case(ifs=[exp.If(this=there, true=between)])


def _two_steps(plain: exp.Expr, low: Decimal, high: Decimal, source: Source, context: Context) -> Exception:
    unit = next((f.name for f in context.fields if getattr(f.expr, "name", None) in source.units), "unit")
    outer = "AVG" if isinstance(plain, exp.Avg) else "SUM"
    tables = ", ".join(dict.fromkeys(source.tables))
    return refuse(
        "bounds of what one unit adds to a group are not supported here: a unit has several rows, each of which is "
        "clipped by the policy's bounds",
        plain,
        hint=f"Clip each unit's own result: SELECT {outer}(LEAST(GREATEST(v, {low}), {high})) FROM (SELECT {unit}, "
        f"{plain.sql('postgres')} AS v FROM {tables} GROUP BY {unit}) AS per_unit. Group keys go into both.",
    )
