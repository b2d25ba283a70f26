"""Aggregates that choose a value: MIN, MAX, MEDIAN, the percentiles and MODE, in Postgres's and DuckDB's spellings.

Decides which value is meant and the type of the answer. The argument must have a finite public list of values or bounds
from which one is made (`compiler.bins`); NULL is never chosen, nor is it counted.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import isfinite

from sqlglot import exp

from dpsql.compiler.algebra import Aggregate, AggregateKind, Expr, Lit, columns_of
from dpsql.compiler.bind.expr import Context, bind
from dpsql.compiler.bins import MAX_BINS, bins_of
from dpsql.compiler.facts import Narrowed, narrowed
from dpsql.compiler.parse import only, refuse, unwrap
from dpsql.errors import BAD_PARAMETER, TYPE_MISMATCH, Rejected
from dpsql.types import FLOAT8, TEXT, Kind

_HALF = Fraction(1, 2)
_FUNCTIONS: dict[str, AggregateKind] = {
    "quantile_cont": "quantile_cont", "quantile_disc": "quantile_disc", "approx_percentile": "quantile_disc",
    "percentile_approx": "quantile_disc",
}  # fmt: skip
_NAMED: dict[type[exp.Expr], AggregateKind] = {
    exp.Min: "min",
    exp.Max: "max",
    exp.Mode: "mode",
    exp.Median: "quantile_cont",
    exp.Quantile: "quantile_disc",
    exp.ApproxQuantile: "quantile_disc",
}
_ORDERED: dict[type[exp.Expr], AggregateKind] = {
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Mode: "mode",
}


def chooses(node: exp.Expr) -> bool:
    """Whether it is the call of such an aggregate."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _FUNCTIONS
    return type(node) in _NAMED or isinstance(node, exp.WithinGroup)


def ranks(node: exp.Expr) -> bool:
    """Whether it is the call of a quantile, which has an interval; MIN, MAX and MODE have none."""
    inner = node.this if isinstance(node, exp.WithinGroup) else node
    return chooses(node) and not isinstance(inner, exp.Min | exp.Max | exp.Mode)


def choice(node: exp.Expr, where: Expr | None, context: Context, known: Narrowed) -> Aggregate:
    """The aggregate that the call means. Its argument is None where the rank is NULL: so is the answer."""
    subject, rank_node, kind, falling = _parts(node)
    argument = narrowed(bind(subject, context), known)
    if isinstance(argument, Lit) and argument.type.kind is Kind.UNKNOWN:
        argument = context.coerce(argument, TEXT, subject)
    if kind == "quantile_cont" and not (argument.type.is_number or argument.type.is_time):
        raise refuse(
            f"this takes numbers or dates, not {argument.type}",
            subject,
            sqlstate=TYPE_MISMATCH,
            hint="percentile_disc(0.5) WITHIN GROUP (ORDER BY x) takes any ordered values.",
        )
    type_ = FLOAT8 if kind == "quantile_cont" and argument.type.is_number else argument.type
    if bins_of(argument, MAX_BINS, listed=kind != "quantile_cont", ordered=kind != "mode") is None:
        raise _no_bins(argument, subject)
    if not kind.startswith("quantile"):
        return Aggregate(kind, argument, where, type_)
    rank = _HALF if rank_node is None else _rank(rank_node, context)
    if rank is None:
        return Aggregate(kind, None, where, type_)
    return Aggregate(kind, argument, where, type_, rank=1 - rank if falling else rank)


def _parts(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None, AggregateKind, bool]:
    """What the values are, the rank, the kind, and whether the order is descending."""
    match node:
        case exp.WithinGroup():
            return _within_group(node)
        case exp.Anonymous(expressions=[subject, rank]):
            return subject, rank, _FUNCTIONS[str(node.this).lower()], False
        case exp.Quantile() | exp.ApproxQuantile():
            only(node, "quantile")
            return node.this, node.args["quantile"], _NAMED[type(node)], False
        case exp.Min() | exp.Max() | exp.Mode() | exp.Median() if node.this is not None:
            only(node)
            if isinstance(node.this, exp.Distinct):
                only(node.this, "expressions")
                if isinstance(node, exp.Min | exp.Max) and len(node.this.expressions) == 1:
                    return node.this.expressions[0], None, _NAMED[type(node)], False
                raise refuse("DISTINCT is not supported here", node)
            return node.this, None, _NAMED[type(node)], False
        case _:
            raise refuse("this aggregate takes other arguments", node, hint=f"Write it as {_FORMS}.")


_FORMS = "median(x), percentile_cont(0.9) WITHIN GROUP (ORDER BY x), quantile_cont(x, 0.9) or mode(x)"


def _within_group(node: exp.WithinGroup) -> tuple[exp.Expr, exp.Expr | None, AggregateKind, bool]:
    only(node, "expression")
    function, order = node.this, node.args.get("expression")
    kind = _ORDERED.get(type(function))
    ordered = order.expressions if isinstance(order, exp.Order) else []
    if kind is None or len(ordered) != 1 or (kind == "mode" and function.this is not None):
        raise refuse("this ordered-set aggregate is not supported over private rows", node, hint=f"Write {_FORMS}.")
    only(function)
    only(ordered[0], "desc", "nulls_first")
    return ordered[0].this, function.this, kind, bool(ordered[0].args.get("desc"))


def _rank(node: exp.Expr, context: Context) -> Fraction | None:
    """The constant between 0 and 1; None for NULL."""
    if isinstance(unwrap(node), exp.Array):
        ranks = [each.sql("postgres") for each in unwrap(node).expressions][:5] or ["0.5"]
        shown = ", ".join(f"percentile_cont({rank}) WITHIN GROUP (ORDER BY x)" for rank in ranks)
        raise refuse("one percentile at a time is released", node, hint=f"Write one for each: SELECT {shown}")
    found = bind(node, context)
    if isinstance(found, Lit) and found.type.kind is Kind.UNKNOWN:
        found = context.coerce(found, FLOAT8, node)
    if not isinstance(found, Lit):
        raise refuse("the percentile must be a constant", node, sqlstate=BAD_PARAMETER, hint="Write it as 0.9.")
    if found.value is None:
        return None
    value = found.value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise refuse(f"the percentile must be a number, not {found.type}", node, sqlstate=TYPE_MISMATCH)
    if not isfinite(value) or not 0 <= value <= 1:
        raise refuse(f"percentile value {value} is not between 0 and 1", node, sqlstate=BAD_PARAMETER)
    return Fraction(str(value))


def _no_bins(argument: Expr, node: exp.Expr) -> Rejected:
    names = sorted({f"{c.origin[0]}.{c.origin[1]}" for c in columns_of(argument) if c.origin})
    what = ", ".join(names) or "the argument"
    return refuse(
        f"{what} has no declared bounds or values, so there is no public list of values to choose from",
        node,
        hint="Declare lower and upper, or values, for it in the policy, or filter it with BETWEEN or IN.",
    )
