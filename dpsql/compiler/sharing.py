"""Which aggregates of one release are read from shared measurements, so that the budget is split over fewer of them.

Decided from the statement and the policy alone: from bounds and grids, never from data.

The statistics of a column (AVG, VARIANCE, STDDEV) are read from moments: the number n of its rows and the sum s of its
values less the middle c of their bounds. These also give

- COUNT(x) = n. Both have the sensitivity that of row counts, so the noise is the same, and one measurement is
  saved;
- SUM(x) = s + c n, of variance B'^2 + c^2 in units of n's, where B' is half the width of the bounds. A sum of its own
  has the variance B^2 with B = |c| + B', which is 2 B' |c| more. So it is never the better one, even before it is
  counted that it takes a share of the budget. For the same reason AVG is not read from a SUM of its own: that would be
  (B^2 + a^2) / n^2 for an average a, against (B'^2 + (a - c)^2) / n^2, which is at most 2 B'^2 / n^2.

SUM(x) alone is measured as it is: s and n at half the budget each would be no better, since at their best split they
come to (B' + |c|)^2 = B^2. SUM(x) and COUNT(x) without a statistic take two measurements either way, and the moments
have the smaller error; but moments are clipped by the number of a unit's rows, a sum by what it adds up to, which
leaves more of a unit with many small values. So moments are taken only where the SQL leaves nothing to clip.

COUNT(*) counts the same rows as COUNT(x) where x is never NULL (see `presence`), so it is the n of all such x.

COVAR and CORR read rows where both arguments have a value. Where neither is ever NULL those are all rows, and the
moments of x and of y in them are the ones that AVG(x) and AVG(y) read: measured once, with n, for all; only that of x y
is their own. Where either may be NULL the rows differ, and nothing is shared but among the statistics of one pair.

What is read from moments has the clipping of moments. No sensitivity changes: all are those of `plan`, of every cell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dpsql.compiler.algebra import Aggregate, Expr, Node, canonical
from dpsql.compiler.cells import Way, avg_grid, sum_grid
from dpsql.compiler.presence import always_there, demanded, present_in
from dpsql.dp.sensitivity import ContributionBound, Norm

_STATISTICS = ("avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
_PAIRS = ("covar_pop", "covar_samp", "corr")
_NOTHING: frozenset[str] = frozenset()


def shared(
    aggregates: tuple[Aggregate, ...], node: Node, bound: ContributionBound, norm: Norm, *, clips: bool
) -> tuple[Way, ...]:
    """The ways of a release over the rows of `node`; `clips`: a unit's contribution may be scaled down."""
    ways = tuple(Way(_as_rows(a, there), every_row=there) for a, there in ((a, _there(a, node)) for a in aggregates))
    counted = {_counted(way) for way in ways if way.aggregate.kind == "count"}
    measured = {_subject(way.aggregate) for way in ways if way.aggregate.kind in _STATISTICS}
    measured |= {s for way in ways if way.aggregate.kind in _PAIRS and way.every_row for s in _subjects(way.aggregate)}
    if not clips:
        measured |= {
            _subject(way.aggregate)
            for way in ways
            if way.aggregate.kind == "sum" and _counted(way) in counted and _better(way.aggregate, bound, norm)
        }
    rows = {_counted(way) for way in ways if _subject(way.aggregate) in measured}
    return tuple(replace(way, moments=_from_moments(way, measured, rows)) for way in ways)


def may_share(a: Aggregate, b: Aggregate) -> bool:
    """Whether two aggregates of one release could read a measurement in common: their noise may move together."""
    if _text(a.condition) != _text(b.condition):
        return False
    return all(each.kind in ("count", "sum", *_STATISTICS, *_PAIRS) for each in (a, b))


def may_clip(form: Literal["rows", "single", "norm"], bound: ContributionBound) -> bool:
    """Whether a contribution may be scaled down: not with one row a unit, or so few that no norm exceeds its radius.

    A unit's T rows have norms of at most T * B in any grouping, and where all may be in one group every radius is that.
    """
    return form != "rows" and not (bound.total is not None and bound.total <= bound.rows)


def _there(aggregate: Aggregate, node: Node) -> bool:
    """Whether the argument, or each of two different ones, has a value in all rows that meet the condition."""
    if aggregate.argument is None or aggregate.kind not in ("count", "sum", *_STATISTICS, *_PAIRS):
        return False
    if _text(aggregate.argument) == _text(aggregate.second):
        return False
    asked = _NOTHING if aggregate.condition is None else demanded((aggregate.condition,))
    present = present_in(node) | asked
    return all(always_there(x, present) for x in (aggregate.argument, aggregate.second) if x is not None)


def _as_rows(aggregate: Aggregate, there: bool) -> Aggregate:
    return replace(aggregate, argument=None) if there and aggregate.kind == "count" else aggregate


def _from_moments(way: Way, measured: set[tuple[str, str]], rows: set[tuple[str, str]]) -> bool:
    if way.aggregate.kind == "count":
        return _counted(way) in rows
    return way.aggregate.kind == "sum" and _subject(way.aggregate) in measured


def _better(total: Aggregate, bound: ContributionBound, norm: Norm) -> bool:
    """Whether SUM has the smaller error as s + c n than as a sum of its own, each with two measurements in all."""
    if total.argument is None:
        return False
    centred, own = avg_grid(total.argument, bound, norm), sum_grid(total.argument, bound, norm)
    squares = (centred.largest**2 + centred.centre**2) * centred.resolution**2
    return squares < (own.largest * own.resolution) ** 2


def _subject(aggregate: Aggregate) -> tuple[str, str]:
    return _text(aggregate.argument), _text(aggregate.condition)


def _subjects(pair: Aggregate) -> tuple[tuple[str, str], ...]:
    """The two arguments, each as the subject of a statistic of its own."""
    return tuple((_text(x), _text(pair.condition)) for x in (pair.argument, pair.second))


def _counted(way: Way) -> tuple[str, str]:
    """The rows that belong to the aggregate."""
    return "*" if way.every_row else _text(way.aggregate.argument), _text(way.aggregate.condition)


def _text(expr: Expr | None) -> str:
    return "*" if expr is None else canonical(expr)
