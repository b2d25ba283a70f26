"""Asking by accuracy: the least epsilon whose announced error is small enough. Pure search over plans."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal

from dpsql.compiler.algebra import Aggregation
from dpsql.compiler.plan import PlannedRelease, Terms, plan
from dpsql.errors import BAD_PARAMETER, NOT_SUPPORTED, Rejected
from dpsql.policy.schema import Schema
from dpsql.types import Column

_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
_STEPS = 24


def with_epsilon(
    aggregations: tuple[Aggregation, ...], columns: tuple[tuple[Column, ...], ...], schema: Schema, terms: Terms
) -> Terms:
    """The terms with the least epsilon (to four digits) that meets `max_error`; as they are where none is asked for.

    Raises Rejected 22023 where even `max_epsilon` is not enough, and 0A000 for outputs whose error depends on data.
    """
    if terms.max_error is None or not aggregations:
        return terms

    def error(epsilon: Decimal) -> float:
        return _worst(plan(aggregations, columns, schema, replace(terms, epsilon=epsilon)))

    target = float(terms.max_error)
    if error(terms.max_epsilon) > target:
        raise Rejected(
            f"a 95 % error of {terms.max_error} needs more than the epsilon {terms.max_epsilon} a statement may cost",
            sqlstate=BAD_PARAMETER,
            hint=f"At epsilon {terms.max_epsilon} the error is {error(terms.max_epsilon):.4g}; ask for that or more.",
        )
    low, high = terms.min_epsilon, terms.max_epsilon
    if error(low) <= target:
        return replace(terms, epsilon=low)
    for _ in range(_STEPS):
        middle = _DIGITS.sqrt(low * high)
        if middle >= high or middle <= low:
            break
        low, high = (low, middle) if error(middle) <= target else (middle, high)
    return replace(terms, epsilon=high)


def _worst(releases: tuple[PlannedRelease, ...]) -> float:
    """The largest 95 % error of all outputs."""
    errors = [release.error95(output) for release in releases for output in release.outputs]
    known = [error for error in errors if error is not None]
    if len(known) < len(errors):
        raise Rejected(
            "dpsql.max_error works for COUNT and SUM, whose error does not depend on the data",
            sqlstate=NOT_SUPPORTED,
            hint="SET dpsql.max_error = default and name an epsilon for averages, variances and quantiles.",
        )
    return max(known, default=0.0)
