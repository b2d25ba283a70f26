"""Error bars asked for by a setting: each released value of the outermost query gets the ends of its 95 % interval.

Decides which output columns get them: those that hold aggregates and for which dp_interval_low and dp_interval_high
exist. They are appended as `<name>_low` and `<name>_high` behind the others, as if the statement had asked for them
itself; so what is measured, its noise and its price stay as they are. Hence columns that read MIN, MAX, a quantile or
MODE get none: a quantile's interval is measured too, which takes from the budget of all beside it, so it has to be
asked for. Other columns get none: no bar is better than a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlglot import exp

from dpsql.compiler.bind.choices import chooses
from dpsql.compiler.bind.grouping import has_aggregates
from dpsql.compiler.bind.measured import ERROR_FUNCTIONS
from dpsql.compiler.public.names import output_name
from dpsql.errors import Rejected

Made = TypeVar("Made")

_ENDS = (("dp_interval_low", "_low"), ("dp_interval_high", "_high"))
MOST = 16
"""Columns tried one by one where they cannot all have bars: each try compiles the statement."""


def compiled_with_bars(parsed: Callable[[], exp.Query], compiled: Callable[[exp.Query], Made]) -> Made:
    """The statement with as many error bars as it can have, else as it is; `parsed` gives a fresh tree each time.

    Raises what `compiled` raises for the statement as it is.
    """
    places = _places(parsed())
    made = _attempt(parsed, compiled, places) if places else None
    if made is None and 1 < len(places) <= MOST:
        able = [place for place in places if _attempt(parsed, compiled, [place]) is not None]
        made = _attempt(parsed, compiled, able) if able else None
    return compiled(parsed()) if made is None else made


def _attempt(
    parsed: Callable[[], exp.Query], compiled: Callable[[exp.Query], Made], places: Sequence[int]
) -> Made | None:
    try:
        return compiled(_widened(parsed(), places))
    except Rejected:
        return None


def _places(tree: exp.Query) -> list[int]:
    """The output columns that hold aggregates of which the error is known."""
    if not isinstance(tree, exp.Select) or tree.args.get("distinct"):
        return []
    return [place for place, item in enumerate(tree.expressions) if _is_estimate(item)]


def _is_estimate(item: exp.Expr) -> bool:
    calls = (str(node.this).lower() for node in item.find_all(exp.Anonymous))
    if any(call in ERROR_FUNCTIONS for call in calls) or any(chooses(node) for node in item.walk()):
        return False
    return has_aggregates(exp.Select(expressions=[item.copy()]))


def _widened(tree: exp.Query, places: Sequence[int]) -> exp.Query:
    items = list(tree.expressions)
    bars = [_bar(items[place], function, suffix) for place in places for function, suffix in _ENDS]
    tree.set("expressions", [*items, *bars])
    return tree


def _bar(item: exp.Expr, function: str, suffix: str) -> exp.Expr:
    inner = item.this if isinstance(item, exp.Alias) else item
    name = exp.to_identifier(output_name(item) + suffix, quoted=True)
    return exp.Alias(this=exp.Anonymous(this=function, expressions=[inner.copy()]), alias=name)
