"""Bins: the finite public list of values of which an aggregate such as MEDIAN, MAX or MODE chooses one.

Decides them from the policy and the statement alone: the argument's own finite domain (text with declared values,
booleans, DATE_TRUNC, CASE with literals), else a grid over its derived interval: its natural points (integers,
decimals, days) where there are few enough, else a power of two of units, days or seconds. Values outside the interval
count in its outermost bins, values outside a list nowhere. Never looks at data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import floor

from dpsql.compiler.algebra import Call, End, Expr
from dpsql.compiler.domains import moment
from dpsql.compiler.keys import KeyDomain, Released, WholeNumbers, key_domain
from dpsql.types import Kind, SqlType, Value

MAX_BINS = 4096
MIN_BINS = 64
MAX_CANDIDATES = 2**19
"""Bins over all groups of a release: each is a candidate that must be drawn for."""


@dataclass(frozen=True, slots=True)
class NumberBins:
    """The grid points `low`..`high` times `resolution`; a value belongs to the nearest."""

    resolution: Fraction
    low: int
    high: int
    lower: Fraction
    upper: Fraction

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def value(self, index: int) -> Fraction:
        """The bin's point, inside the bounds."""
        return min(max((self.low + index) * self.resolution, self.lower), self.upper)


@dataclass(frozen=True, slots=True)
class DayBins:
    """Every `step` days from `first` on; a date belongs to the nearest."""

    first: date
    last: date
    step: int

    @property
    def size(self) -> int:
        return _nearest((self.last - self.first).days, self.step) + 1

    def value(self, index: int) -> Value:
        return min(self.first + timedelta(days=index * self.step), self.last)


@dataclass(frozen=True, slots=True)
class SecondBins:
    """Every `step` seconds from the second of `first` on; a timestamp belongs to the nearest."""

    first: datetime
    last: datetime
    step: int

    @property
    def origin(self) -> datetime:
        return self.first.replace(microsecond=0)

    @property
    def size(self) -> int:
        return _nearest((self.last.replace(microsecond=0) - self.origin) // _SECOND, self.step) + 1

    def value(self, index: int) -> Value:
        return min(max(self.origin + index * self.step * _SECOND, self.first), self.last)


@dataclass(frozen=True, slots=True)
class ListedBins:
    """The values of a finite domain, NULL apart."""

    domain: KeyDomain

    @property
    def size(self) -> int:
        return self.domain.size

    def value(self, index: int) -> Value | Fraction:
        return self.domain.raw(index)


Bins = NumberBins | DayBins | SecondBins | ListedBins


def values_between(argument: Expr, bins: Bins) -> bool:
    """Whether values may lie between the points of its bins, and count in the nearest."""
    match bins:
        case NumberBins(resolution=resolution):
            return resolution != _natural(argument.type)
        case DayBins(step=step):
            return step > 1
        case SecondBins():
            return True
        case ListedBins():
            return False


def edge(bins: Bins, index: int, end: End) -> Value | Fraction:
    """Where the values that count in a bin begin or end: half a step from its point, inside the bounds."""
    sign = -1 if end == "low" else 1
    match bins:
        case NumberBins(resolution=resolution, low=low, lower=lower, upper=upper):
            return min(max((low + index) * resolution + sign * resolution / 2, lower), upper)
        case DayBins(first=day, last=last_day, step=step):
            return min(max(day + timedelta(days=index * step + sign * (step // 2)), day), last_day)
        case SecondBins(first=first, last=last, step=step):
            return min(max(bins.origin + (2 * index + sign) * step * _SECOND / 2, first), last)
        case ListedBins():
            return bins.value(index)


_SECOND = timedelta(seconds=1)


def bins_of(argument: Expr, most: int, *, listed: bool, ordered: bool) -> Bins | None:
    """The bins of an argument, or None where it has neither a finite domain nor bounds.

    At most `most` on a grid. `listed`: the domain's own values are wanted, `ordered`: in ascending order.
    """
    found = _listed(argument, ordered) if listed else None
    return found or (_numbers(argument, most) if argument.type.is_number else _times(argument, most))


def _listed(argument: Expr, ordered: bool) -> Bins | None:
    domain = key_domain(argument, MAX_BINS)
    if domain is None or domain.size == 0 or isinstance(domain.of, Released) or (ordered and domain.image is not None):
        return None
    if domain.image is None and argument.domain.values is None and _has_grid(argument, domain):
        return None
    return ListedBins(replace(domain, nullable=False))


def _has_grid(argument: Expr, domain: KeyDomain) -> bool:
    """Whether a grid has the same values, and a simpler form in the backend."""
    op = argument.op if isinstance(argument, Call) else None
    if op == "coalesce":  # its domain is a list, of values that lie on a grid
        return argument.type.is_integer or argument.type.kind is Kind.DATE
    return isinstance(domain.of, WholeNumbers) or (argument.type.kind is Kind.DATE and op != "date_trunc")


def _numbers(argument: Expr, most: int) -> Bins | None:
    lower, upper = argument.domain.lower, argument.domain.upper
    if lower is None or upper is None:
        return None
    upper = max(lower, upper)
    resolution = _natural(argument.type) or Fraction(2) ** -60
    least = max(abs(lower), abs(upper)) / 2**50
    if _points(lower, upper, resolution) > most or resolution < least:
        resolution = Fraction(1) if argument.type.is_integer else Fraction(2) ** -60
        while _points(lower, upper, resolution) > most or resolution < least:
            resolution *= 2
    return NumberBins(resolution, _nearest(lower, resolution), _nearest(upper, resolution), lower, upper)


def _natural(type_: SqlType) -> Fraction | None:
    if type_.is_integer:
        return Fraction(1)
    if type_.kind is Kind.NUMERIC and type_.scale is not None:
        return Fraction(10) ** -type_.scale
    return None


def _points(lower: Fraction, upper: Fraction, resolution: Fraction) -> int:
    return _nearest(upper, resolution) - _nearest(lower, resolution) + 1


def _nearest(value: Fraction | int, step: Fraction | int) -> int:
    return floor(Fraction(value) / step + Fraction(1, 2))


def _times(argument: Expr, most: int) -> Bins | None:
    first, last = moment(argument.domain.first), moment(argument.domain.last)
    if first is None or last is None or not argument.type.is_time:
        return None
    last = max(first, last)
    made: DayBins | SecondBins = SecondBins(first, last, 1)
    if argument.type.kind is Kind.DATE:
        made = DayBins(first.date(), last.date(), 1)
    while made.size > most:
        made = replace(made, step=2 * made.step)
    return made
