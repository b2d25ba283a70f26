"""Aggregates that are arithmetic over others: the regression functions, as Postgres defines them over pairs.

Decides only the formula: what stands here is written out above the release, of aggregates that are measured with their
own bounds. Every part is of the pairs of which neither value is NULL. A slope has no bounds of its own: where noise
drowns the variance of x it is far off, and NULL where that variance is 0.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.compiler.parse import only, refuse, written
from dpsql.errors import UNDEFINED_FUNCTION


def composed(node: exp.Expr) -> exp.Expr | None:
    """The expression that a regression function stands for, with its FILTER; None for everything else."""
    plain, condition = (node.this, node.args["expression"].this) if isinstance(node, exp.Filter) else (node, None)
    formula = _FORMULAS.get(type(plain))
    if formula is None:
        return None
    only(plain, "expression")
    if plain.args.get("expression") is None:
        raise refuse(f"{written(plain)} takes two arguments", plain, sqlstate=UNDEFINED_FUNCTION)
    return exp.Paren(this=formula(_Pairs(plain.this, plain.args["expression"], condition)))


class _Pairs:
    """Aggregates over the pairs (y, x) that are complete."""

    def __init__(self, y: exp.Expr, x: exp.Expr, condition: exp.Expr | None) -> None:
        self.y = y
        self.x = x
        self._condition = condition

    def _filtered(self, function: exp.Expr, *present: exp.Expr) -> exp.Expr:
        parts = [_there(each) for each in present] + ([self._condition.copy()] if self._condition is not None else [])
        if not parts:
            return function
        return exp.Filter(this=function, expression=exp.Where(this=exp.and_(*parts)))

    def count(self) -> exp.Expr:
        return self._filtered(exp.Count(this=self.y.copy(), big_int=True), self.x)

    def mean_x(self) -> exp.Expr:
        return self._filtered(exp.Avg(this=self.x.copy()), self.y)

    def mean_y(self) -> exp.Expr:
        return self._filtered(exp.Avg(this=self.y.copy()), self.x)

    def variance_x(self) -> exp.Expr:
        return self._filtered(exp.VariancePop(this=self.x.copy()), self.y)

    def variance_y(self) -> exp.Expr:
        return self._filtered(exp.VariancePop(this=self.y.copy()), self.x)

    def covariance(self) -> exp.Expr:
        return self._filtered(exp.CovarPop(this=self.y.copy(), expression=self.x.copy()))

    def correlation(self) -> exp.Expr:
        return self._filtered(exp.Corr(this=self.y.copy(), expression=self.x.copy()))

    def slope(self) -> exp.Expr:
        divisor = exp.Nullif(this=self.variance_x(), expression=exp.Literal.number(0))
        return exp.Div(this=_double(self.covariance()), expression=divisor)


def _there(node: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=node.copy(), expression=exp.Null()))


def _double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def _intercept(pairs: _Pairs) -> exp.Expr:
    return exp.Sub(
        this=_double(pairs.mean_y()), expression=exp.Mul(this=exp.Paren(this=pairs.slope()), expression=pairs.mean_x())
    )


_FORMULAS: dict[type[exp.Expr], Callable[[_Pairs], exp.Expr]] = {
    exp.RegrSlope: _Pairs.slope,
    exp.RegrIntercept: _intercept,
    exp.RegrR2: lambda pairs: exp.Pow(this=pairs.correlation(), expression=exp.Literal.number(2)),
    exp.RegrCount: _Pairs.count,
    exp.RegrAvgx: lambda pairs: _double(pairs.mean_x()),
    exp.RegrAvgy: lambda pairs: _double(pairs.mean_y()),
    exp.RegrSxx: lambda pairs: exp.Mul(this=pairs.count(), expression=_double(pairs.variance_x())),
    exp.RegrSyy: lambda pairs: exp.Mul(this=pairs.count(), expression=_double(pairs.variance_y())),
    exp.RegrSxy: lambda pairs: exp.Mul(this=pairs.count(), expression=_double(pairs.covariance())),
}
