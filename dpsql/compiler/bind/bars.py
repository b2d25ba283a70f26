"""Error bars in a grouped query: dp_stddev, dp_interval_low and dp_interval_high of what it releases.

Decides what stands for them: the hidden columns of one aggregate, sums of their squares in a coarser group, and for an
expression over several the formula of `propagate`, which reads the covariances of aggregates that share noise.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.compiler.algebra import Aggregate
from dpsql.compiler.bind.aggregates import aggregate
from dpsql.compiler.bind.measured import (
    ERROR_FUNCTIONS,
    Grouping,
    covariance_name,
    index_of,
    is_aggregate,
    reference,
    released,
    summed,
)
from dpsql.compiler.bind.propagate import WIDE, propagated, written
from dpsql.compiler.parse import unwrap
from dpsql.compiler.sharing import may_share


def bar_of_one(node: exp.Anonymous, grouping: Grouping) -> exp.Expr | None:
    """The error bar of one aggregate, over released columns; None for that of an expression: see `bar_formula`."""
    inner = _measured(node, grouping)
    if not _is_one(inner):
        return None
    name, found = str(node.this).lower(), _one(inner, grouping)
    if grouping.sets:
        return _summed_bar(name, found, grouping)
    if found.kind in ("quantile_cont", "quantile_disc") and name != "dp_stddev":
        return _end_of_interval(name, found, grouping)
    return reference(f"_a{index_of(found, grouping)}_{ERROR_FUNCTIONS[name]}", grouping, node)


def _end_of_interval(name: str, quantile: Aggregate, grouping: Grouping) -> exp.Expr:
    """Of a quantile: the outer one of its value and of the end, which is measured for it."""
    low = name == "dp_interval_low"
    end = replace(quantile, end="low" if low else "high")
    outer = exp.Least if low else exp.Greatest
    return outer(this=released(quantile, grouping), expressions=[released(end, grouping)])


def bar_formula(node: exp.Anonymous, grouping: Grouping) -> exp.Expr:
    """The error bar of an expression over some aggregates, as a formula over aggregates, yet to be rewritten."""

    def share(a: exp.Expr, b: exp.Expr) -> bool:
        return may_share(_one(a, grouping), _one(b, grouping))

    inner = _measured(node, grouping)
    grouping.room.take(written(inner, is_aggregate), node)
    return propagated(str(node.this).lower(), node, inner, is_aggregate, share)


def _measured(node: exp.Anonymous, grouping: Grouping) -> exp.Expr:
    """What the error bar is of."""
    inner = unwrap(node.expressions[0]) if len(node.expressions) == 1 else node
    average = isinstance(inner.this if isinstance(inner, exp.Filter) else inner, exp.Avg)
    return _ratio(inner) if grouping.sets and average else inner


def _is_one(node: exp.Expr) -> bool:
    """Whether the node is a single aggregate, with or without FILTER."""
    return is_aggregate(node.this if isinstance(node, exp.Filter) else node)


def _one(node: exp.Expr, grouping: Grouping) -> Aggregate:
    plain, condition = (node.this, node.args["expression"].this) if isinstance(node, exp.Filter) else (node, None)
    return aggregate(plain, condition, grouping.source, grouping.context)


def covariance(node: exp.Anonymous, grouping: Grouping) -> exp.Expr:
    """Of the noise of two aggregates; of a coarser group, the sum over the finest ones."""
    first, second = sorted(index_of(_one(each, grouping), grouping) for each in node.expressions)
    if (first, second) not in grouping.pairs:
        grouping.pairs.append((first, second))
    found = reference(covariance_name((first, second)), grouping, exp.Null())
    return exp.Sum(this=found) if grouping.sets else found


def _ratio(average: exp.Expr) -> exp.Expr:
    """AVG(x), with its FILTER, as what stands for it in a coarser group: SUM(x) / NULLIF(COUNT(x), 0)."""
    parts = []
    for function in (exp.Sum, exp.Count):
        part = average.copy()
        old = part.this if isinstance(part, exp.Filter) else part
        new = function(this=old.this)
        if part is old:
            part = new
        else:
            part.set("this", new)
        parts.append(part)
    return exp.Div(this=parts[0], expression=exp.Nullif(this=parts[1], expression=exp.Literal.number(0)))


def _summed_bar(name: str, aggregate: Aggregate, grouping: Grouping) -> exp.Expr:
    """The error bar of a coarser group: the noise of the finest groups is independent, so its squares add up."""
    total = summed(aggregate, grouping)
    deviation = reference(f"_a{index_of(aggregate, grouping)}_sd", grouping, exp.Null())
    spread = exp.Sqrt(this=exp.Sum(this=exp.Mul(this=deviation, expression=deviation.copy())))
    if name == "dp_stddev":
        return spread
    reach = exp.Mul(this=exp.Literal.number(WIDE), expression=spread)
    side = exp.Sub if name == "dp_interval_low" else exp.Add
    return exp.Paren(this=side(this=total, expression=reach))
