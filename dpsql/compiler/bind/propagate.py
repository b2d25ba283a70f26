"""Error bars of expressions over several aggregates, by propagation of error. Pure: a tree in, a tree out.

Decides what dp_stddev, dp_interval_low and dp_interval_high of an expression such as SUM(x) / COUNT(*) mean. Each
aggregate moves up and down by its own standard deviation s_i, the others stay; half the difference that this makes is
the aggregate's part t_i of the error. Parts of independent noise add up in squares, and of two aggregates that may
share measurements the covariance c_ij of their noise counts too: s^2 = sum t_i^2 + 2 sum t_i t_j c_ij / (s_i s_j), the
first-order formula (Taylor, An Introduction to Error Analysis, sections 3.8 and 9.2) with differences for derivatives,
exact where the expression is linear. The interval is the value -+ 1.96 s. It reads released columns alone, so it is
free.

Rounding and casts between numbers are left out of what moves: they have no slope.

A quantile has no standard deviation that is known, but an interval of its own. What rises or falls with one quantile
alone, by arithmetic with constants, rounding and casts, has the interval between its values at the two ends.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.compiler.bind.choices import chooses, ranks
from dpsql.compiler.parse import refuse
from dpsql.errors import TOO_COMPLEX

MAX_PARTS = 8
"""Aggregates of one expression: each is written down twice for every other one."""
WIDE = "1.96"
"""Standard deviations to the end of a 95 % interval of a sum of several noises."""
_STEPS = exp.Round | exp.Floor | exp.Ceil | exp.Trunc
_DOUBLE = exp.DataType.build("double precision", dialect="postgres")


COVARIANCE = "covariance"
"""Marks, in its meta, a call of two aggregates that stands for the covariance of their noise."""


def propagated(
    name: str,
    node: exp.Anonymous,
    argument: exp.Expr,
    is_aggregate: Callable[[exp.Expr], bool],
    may_share: Callable[[exp.Expr, exp.Expr], bool],
) -> exp.Expr:
    """The function `name` of an expression, in terms of its aggregates, their dp_stddev and their covariances.

    `may_share`: whether the noise of two aggregates may move together. Raises Rejected where it has no aggregate, or
    reads something whose error is not known here.
    """
    found = _aggregates(argument, is_aggregate)
    if not found:
        raise refuse(f"{name} takes an aggregate, such as {name}(COUNT(*)), or an expression over aggregates", node)
    for inner in argument.walk():
        if isinstance(inner, exp.Window | exp.Query):
            what = "a window function" if isinstance(inner, exp.Window) else "a subquery"
            hint = "Ask for the error bars of the aggregates themselves."
            raise refuse(f"{name} does not reach through {what}", inner, hint=hint)
    chosen = [part for part in found.values() if chooses(_plain(part))]
    if chosen:
        return _between_ends(name, node, argument, chosen, is_aggregate)
    if len(found) > MAX_PARTS:
        raise refuse(f"{name} takes at most {MAX_PARTS} different aggregates", node, sqlstate=TOO_COMPLEX)
    parts = {text: _part(argument, text, found) for text in found}
    terms: list[exp.Expr] = []
    for place, (text, part) in enumerate(parts.items()):
        near = [other for other in list(found)[place + 1 :] if may_share(found[text], found[other])]
        twice = [
            exp.Mul(this=exp.Literal.number("2.0"), expression=_sharing(text, other, parts, found)) for other in near
        ]
        terms.append(exp.Paren(this=exp.Mul(this=part, expression=_sum([part.copy(), *twice]))))
    total: exp.Expr = (
        exp.Greatest(this=_sum(terms), expressions=[exp.Literal.number("0.0")]) if len(terms) > 1 else terms[0]
    )
    deviation: exp.Expr = exp.Sqrt(this=total)
    if name == "dp_stddev":
        return deviation
    reach = exp.Mul(this=exp.Literal.number(WIDE), expression=deviation)
    side = exp.Sub if name == "dp_interval_low" else exp.Add
    return exp.Paren(this=side(this=_double(argument.copy()), expression=reach))


def written(argument: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]) -> int:
    """About how many nodes `propagated` makes of an expression: it is written down for each pair of its aggregates."""
    return sum(1 for _ in argument.walk()) * len(_aggregates(argument, is_aggregate)) ** 2


def _aggregates(node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]) -> dict[str, exp.Expr]:
    """The expression's own aggregates by their text."""
    return {found.sql("postgres"): found for found in _outermost(node, is_aggregate)}


def _plain(node: exp.Expr) -> exp.Expr:
    """An aggregate without its FILTER."""
    return node.this if isinstance(node, exp.Filter) else node


def _between_ends(
    name: str, node: exp.Expr, argument: exp.Expr, chosen: list[exp.Expr], is_aggregate: Callable[[exp.Expr], bool]
) -> exp.Expr:
    """The lower or the higher of the expression's values at the ends of the interval of its one quantile."""
    if name == "dp_stddev" or not ranks(_plain(chosen[0])) or not _follows(argument, is_aggregate):
        hint = "MIN, MAX and MODE have no interval: ask for a quantile, such as percentile_cont(0.95), and its own."
        quantiles = [part.sql("postgres") for part in chosen if ranks(_plain(part))]
        if quantiles:
            hint = f"Ask for the interval of the quantile itself: dp_interval_low({quantiles[0]})"
        raise refuse(f"{name} is not known of an expression over a chosen value", node, hint=hint)
    ends = [argument.copy(), argument.copy()]
    for end, function in zip(ends, ("dp_interval_low", "dp_interval_high"), strict=True):
        (quantile,) = _outermost(end, is_aggregate)
        quantile.replace(exp.Anonymous(this=function, expressions=[quantile.copy()]))
    outer = exp.Least if name == "dp_interval_low" else exp.Greatest
    return outer(this=ends[0], expressions=ends[1:])


_ORDERED = (exp.DataType.NUMERIC_TYPES | exp.DataType.TEMPORAL_TYPES) - {exp.DType.TIME, exp.DType.TIMETZ}
"""Casts that keep the order: the time of day begins anew with every day."""


def _follows(node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]) -> bool:
    """Whether the expression has one aggregate, and rises, or falls, wherever that rises."""
    if is_aggregate(_plain(node)):
        return True
    match node:
        case exp.Paren() | exp.Neg():
            return _follows(node.this, is_aggregate)
        case exp.Cast():
            return node.to.this in _ORDERED and _follows(node.this, is_aggregate)
        case exp.Round() | exp.Floor() | exp.Ceil() | exp.Trunc() | exp.Div():
            others = [child for child in node.iter_expressions() if child is not node.this]
            return _follows(node.this, is_aggregate) and not any(_outermost(each, is_aggregate) for each in others)
        case exp.Add() | exp.Sub() | exp.Mul():
            sides = [side for side in (node.this, node.expression) if _outermost(side, is_aggregate)]
            return len(sides) == 1 and _follows(sides[0], is_aggregate)
        case _:
            return False


def _outermost(node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]) -> list[exp.Expr]:
    """The places where the expression reads its own aggregates, each with its FILTER."""
    if is_aggregate(_plain(node)):
        return [node]
    return [found for child in node.iter_expressions() for found in _outermost(child, is_aggregate)]


def _part(argument: exp.Expr, moving: str, found: dict[str, exp.Expr]) -> exp.Expr:
    """Half of what the expression changes when one aggregate goes from a deviation below to one above."""
    ends = [exp.Paren(this=_moved(argument, moving, side, found)) for side in (exp.Add, exp.Sub)]
    difference = exp.Paren(this=exp.Sub(this=ends[0], expression=ends[1]))
    return exp.Paren(this=exp.Div(this=difference, expression=exp.Literal.number("2.0")))


def _moved(node: exp.Expr, moving: str, side: type[exp.Add] | type[exp.Sub], found: dict[str, exp.Expr]) -> exp.Expr:
    text = node.sql("postgres")
    if text in found:
        value = _double(node.copy())
        if text != moving:
            return value
        deviation = exp.Anonymous(this="dp_stddev", expressions=[node.copy()])
        return exp.Paren(this=side(this=value, expression=deviation))
    if isinstance(node, _STEPS) or (isinstance(node, exp.Cast) and node.to.this in exp.DataType.NUMERIC_TYPES):
        return _moved(node.this, moving, side, found)
    made = node.copy()
    for key, value in node.args.items():
        if isinstance(value, list):
            made.set(key, [_moved(v, moving, side, found) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr) and not isinstance(value, exp.Identifier | exp.DataType):
            made.set(key, _moved(value, moving, side, found))
    return made


def _sharing(one: str, other: str, parts: dict[str, exp.Expr], found: dict[str, exp.Expr]) -> exp.Expr:
    """The other's part times the correlation of the two; nothing where one has no noise."""
    ends = [found[one], found[other]]
    covariance = exp.Anonymous(this=COVARIANCE, expressions=[end.copy() for end in ends])
    covariance.meta[COVARIANCE] = True
    deviations = [exp.Anonymous(this="dp_stddev", expressions=[end.copy()]) for end in ends]
    product = exp.Paren(this=exp.Mul(this=deviations[0], expression=deviations[1]))
    known = exp.Nullif(this=product, expression=exp.Literal.number("0.0"))
    correlation = exp.Coalesce(this=exp.Div(this=covariance, expression=known), expressions=[exp.Literal.number("0.0")])
    return exp.Paren(this=exp.Mul(this=parts[other].copy(), expression=correlation))


def _double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=exp.Paren(this=node), to=_DOUBLE.copy())


def _sum(nodes: list[exp.Expr]) -> exp.Expr:
    total = nodes[0]
    for node in nodes[1:]:
        total = exp.Add(this=total, expression=node)
    return exp.Paren(this=total)
