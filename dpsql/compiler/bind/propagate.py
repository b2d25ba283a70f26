"""Error bars of expressions over several aggregates, by propagation of error. Pure: a tree in, a tree out.

Decides what dp_stddev, dp_interval_low and dp_interval_high of an expression such as SUM(x) / COUNT(*) mean. Each
aggregate moves up and down by its own standard deviation, the others stay; half the difference that this makes is the
aggregate's part t of the error, and independent parts add up in squares: s = sqrt(t1^2 + t2^2 + ...), the first-order
formula (Taylor, An Introduction to Error Analysis, section 3.8) with differences for derivatives, exact where the
expression is linear. Statistics (AVG, VARIANCE, CORR ...) that name a column in common may share measurements, so that
their noise moves together: their parts add up as they are, |t1| + |t2|, which bounds s from above. The interval is the
value -+ 1.96 s. It reads released columns alone, so it is free.

Rounding and casts between numbers are left out of what moves: they have no slope.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.compiler.parse import refuse
from dpsql.errors import TOO_COMPLEX

MAX_PARTS = 8
"""Aggregates of one expression: each is written down twice for every other one."""
WIDE = "1.96"
"""Standard deviations to the end of a 95 % interval of a sum of several noises."""
_STEPS = exp.Round | exp.Floor | exp.Ceil | exp.Trunc
_DOUBLE = exp.DataType.build("double precision", dialect="postgres")


def propagated(
    name: str, node: exp.Anonymous, argument: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]
) -> exp.Expr:
    """The function `name` of an expression, in terms of its aggregates and their dp_stddev.

    Raises Rejected where it has no aggregate, or reads something whose error is not known here.
    """
    found = _aggregates(argument, is_aggregate)
    if not found:
        raise refuse(f"{name} takes an aggregate, such as {name}(COUNT(*)), or an expression over aggregates", node)
    for inner in argument.walk():
        if isinstance(inner, exp.Window | exp.Query):
            what = "a window function" if isinstance(inner, exp.Window) else "a subquery"
            hint = "Ask for the error bars of the aggregates themselves."
            raise refuse(f"{name} does not reach through {what}", inner, hint=hint)
    if len(found) > MAX_PARTS:
        raise refuse(f"{name} takes at most {MAX_PARTS} different aggregates", node, sqlstate=TOO_COMPLEX)
    parts = {text: _part(argument, text, found) for text in found}
    together: list[list[exp.Expr]] = [[exp.Abs(this=parts[text]) for text in cluster] for cluster in _clusters(found)]
    deviation: exp.Expr = exp.Sqrt(this=_sum([_square(_sum(cluster)) for cluster in together]))
    if name == "dp_stddev":
        return deviation
    reach = exp.Mul(this=exp.Literal.number(WIDE), expression=deviation)
    side = exp.Sub if name == "dp_interval_low" else exp.Add
    return exp.Paren(this=side(this=_double(argument.copy()), expression=reach))


def _aggregates(node: exp.Expr, is_aggregate: Callable[[exp.Expr], bool]) -> dict[str, exp.Expr]:
    """The expression's own aggregates, each with its FILTER, by their text."""
    if is_aggregate(node.this if isinstance(node, exp.Filter) else node):
        return {node.sql("postgres"): node}
    found: dict[str, exp.Expr] = {}
    for child in node.iter_expressions():
        found.update(_aggregates(child, is_aggregate))
    return found


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


def _clusters(found: dict[str, exp.Expr]) -> list[list[str]]:
    """The aggregates in clusters of independent noise: statistics that name a common column stay together."""
    clusters: list[tuple[frozenset[str], list[str]]] = []
    for text, node in found.items():
        plain = node.this if isinstance(node, exp.Filter) else node
        measured_alone = isinstance(plain, exp.Count | exp.Sum | exp.CountIf)
        columns = frozenset() if measured_alone else frozenset(c.name.lower() for c in plain.find_all(exp.Column))
        near = [cluster for cluster in clusters if cluster[0] & columns]
        clusters = [cluster for cluster in clusters if cluster not in near]
        names = columns.union(*(cluster[0] for cluster in near))
        clusters.append((names, [*(t for _, texts in near for t in texts), text]))
    return [texts for _, texts in clusters]


def _double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=exp.Paren(this=node), to=_DOUBLE.copy())


def _square(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Mul(this=node.copy(), expression=node.copy()))


def _sum(nodes: list[exp.Expr]) -> exp.Expr:
    total = nodes[0]
    for node in nodes[1:]:
        total = exp.Add(this=total, expression=node)
    return exp.Paren(this=total)
