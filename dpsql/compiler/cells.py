"""Cells: what one aggregate measures, as vectors of whole grid steps, and how it is read back from them.

Grid: each measured value is a whole number of steps of `resolution`: the natural unit of integers and decimals where
that leaves at most about 2^20 steps, else a power of two (DESIGN.md section 3, "Exact integers"). AVG, VARIANCE, COVAR
and CORR are measured as moments: a row count and sums of products of values centred at the grid point nearest the
middle of the bounds, all scaled by one factor. Decides sensitivities' other half, the largest value one row can add.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal

from dpsql.compiler.algebra import Aggregate, AggregateKind, Expr, canonical
from dpsql.compiler.shown import shown
from dpsql.dp.sensitivity import ContributionBound, Norm
from dpsql.errors import BAD_PARAMETER, Failed, Rejected
from dpsql.types import Kind, SqlType, Value

ONE = 1024
"""Steps of a whole row or unit: scaling does not round counts away."""


MAX_STEPS = 2**20
_FINEST = Fraction(1, 2**60)


MAX_RADIUS = {"l1": 2**50, "l2": 2**43}
"""Above these, norms could leave the backends' 128-bit integers (2^43 squared, over 2^40 groups)."""


CellKind = Literal["count", "sum", "moment", "units", "distinct"]


@dataclass(frozen=True, slots=True)
class Grid:
    """Values clamped to [low, high] grid steps of `resolution` units, less `centre` steps."""

    resolution: Fraction
    low: int
    high: int
    centre: int = 0

    @property
    def largest(self) -> int:
        return max(self.high - self.centre, self.centre - self.low, 1)


@dataclass(frozen=True, slots=True)
class Moment:
    """The product x^i * y^j of centred grid values, shifted down by `shift` bits; (0, 0) counts the rows.

    `x`, `y`: the axes' grids; `y` None where there is one argument. A count of all rows has the grid `EVERY_ROW`.
    """

    i: int
    j: int
    x: Grid
    y: Grid | None = None
    shift: int = 0

    @property
    def largest(self) -> int:
        y = self.y.largest if self.y is not None else 1
        return max(int(self.x.largest**self.i * y**self.j) >> self.shift, 1)

    @property
    def resolution(self) -> Fraction:
        y = self.y.resolution if self.y is not None else Fraction(1)
        return Fraction(self.x.resolution**self.i * y**self.j * 2**self.shift)

    @property
    def order(self) -> int:
        return self.i + self.j


EVERY_ROW = Grid(Fraction(1), 0, 0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One measured vector: what is added up, before its noise is chosen.

    `grid` of a sum; `moment` and `second` of the vectors that AVG, VARIANCE, COVAR and CORR are made of. A moment
    without `argument` counts all rows, for arguments that are never NULL.
    """

    kind: CellKind
    argument: Expr | None
    condition: Expr | None
    grid: Grid | None = None
    second: Expr | None = None
    moment: Moment | None = None

    @property
    def counts(self) -> bool:
        """Whether it adds up rows, units or distinct values, in steps of 1 / 2^10."""
        return self.grid is None and (self.moment is None or self.moment.order == 0)

    @property
    def largest(self) -> int:
        """The largest absolute value that one row adds, in grid steps."""
        if self.moment is not None and self.moment.order:
            return self.moment.largest
        return ONE if self.grid is None else self.grid.largest

    @property
    def resolution(self) -> Fraction:
        if self.moment is not None and self.moment.order:
            return self.moment.resolution
        return Fraction(1, ONE) if self.grid is None else self.grid.resolution


@dataclass(frozen=True, slots=True)
class CountOutput:
    cell: int


@dataclass(frozen=True, slots=True)
class SumOutput:
    """A sum of its own; or one of centred values, to which `centre` steps are added for each of the rows in `rows`."""

    cell: int
    resolution: Fraction
    type: SqlType
    rows: int | None = None
    centre: int = 0


@dataclass(frozen=True, slots=True)
class MomentOutput:
    """A statistic of centred moments: AVG, variance, standard deviation, covariance or correlation.

    `cells`: the places of the moments by their powers. `grid`, `lower` and `upper` are those of the first argument.
    """

    kind: AggregateKind
    cells: tuple[tuple[tuple[int, int], int], ...]
    grid: Grid
    lower: Fraction
    upper: Fraction
    type: SqlType


@dataclass(frozen=True, slots=True)
class KnownOutput:
    """Values that public data tell, one for each group: nothing is measured."""

    values: tuple[Value, ...]


CellOutput = CountOutput | SumOutput | MomentOutput | KnownOutput


@dataclass(frozen=True, slots=True)
class Way:
    """How an aggregate is read (see `sharing`): COUNT and SUM from `moments`, or from a cell of their own.

    `every_row`: no argument is ever NULL, so the number of values is that of all rows (that meet the condition).
    """

    aggregate: Aggregate
    moments: bool = False
    every_row: bool = False


def cells_of(output: CellOutput) -> tuple[int, ...]:
    """The places of all cells that an output is read from."""
    match output:
        case MomentOutput(cells=cells):
            return tuple(place for _, place in cells)
        case SumOutput(cell=cell, rows=int() as rows):
            return rows, cell
        case CountOutput(cell=cell) | SumOutput(cell=cell):
            return (cell,)
        case KnownOutput():
            return ()


def linear(output: object) -> tuple[tuple[int, float], ...]:
    """The cells that a count or a sum is made of, each with its weight per unit; empty for other statistics."""
    match output:
        case CountOutput(cell=cell) | SumOutput(cell=cell, rows=None):
            return ((cell, 1.0),)
        case SumOutput(cell=cell, rows=int() as rows):
            return (cell, 1.0), (rows, float(output.centre * output.resolution))
        case _:
            return ()


def cell_output(way: Way, bound: ContributionBound, norm: Norm, cells: list[Cell]) -> CellOutput:
    """How an aggregate is read from cells; adds those that are not there yet."""
    aggregate = way.aggregate
    match aggregate.kind:
        case "count" if way.moments:
            return CountOutput(_moment(way, (0, 0), bound, norm, cells))
        case "count":
            return CountOutput(_cell(Cell("count", aggregate.argument, aggregate.condition), cells))
        case "count_units":
            return CountOutput(_cell(Cell("units", aggregate.argument, aggregate.condition), cells))
        case "count_distinct":
            return CountOutput(_cell(Cell("distinct", aggregate.argument, aggregate.condition), cells))
        case "sum" if way.moments:
            x = avg_grid(_argument(aggregate), bound, norm)
            rows, total = (_moment(way, power, bound, norm, cells) for power in _powers("avg"))
            return SumOutput(total, x.resolution, aggregate.type, rows, x.centre)
        case "sum":
            grid = sum_grid(_argument(aggregate), bound, norm)
            cell = Cell("sum", aggregate.argument, aggregate.condition, grid)
            return SumOutput(_cell(cell, cells), grid.resolution, aggregate.type)
        case _:
            lower, upper = _interval(_argument(aggregate))
            places = tuple((power, _moment(way, power, bound, norm, cells)) for power in _powers(aggregate.kind))
            grid = avg_grid(_argument(aggregate), bound, norm)
            return MomentOutput(aggregate.kind, places, grid, lower, upper, aggregate.type)


MOMENT_NAMES = {(0, 0): "n", (1, 0): "x", (2, 0): "xx", (0, 1): "y", (0, 2): "yy", (1, 1): "xy"}


def _powers(kind: AggregateKind) -> tuple[tuple[int, int], ...]:
    """The moments that a statistic is made of."""
    match kind:
        case "avg":
            return ((0, 0), (1, 0))
        case "covar_pop" | "covar_samp":
            return ((0, 0), (1, 0), (0, 1), (1, 1))
        case "corr":
            return tuple(MOMENT_NAMES)
        case _:
            return ((0, 0), (1, 0), (2, 0))


def _moment(way: Way, power: tuple[int, int], bound: ContributionBound, norm: Norm, cells: list[Cell]) -> int:
    """The place of a moment, measured once for all aggregates of the same arguments."""
    aggregate, (i, j) = way.aggregate, power
    argument, second = aggregate.argument, aggregate.second
    if power == (0, 0) and (way.every_row or argument is None):
        return _cell(Cell("moment", None, aggregate.condition, moment=Moment(0, 0, EVERY_ROW)), cells)
    if argument is None:
        raise Failed("a moment of nothing")
    if second is not None and way.every_row:  # the same rows for all: of one argument alone, or of both in either order
        if 0 in power:
            argument, second, (i, j) = argument if i else second, None, (i + j, 0)
        elif canonical(second) < canonical(argument):
            argument, second = second, argument
    x = avg_grid(argument, bound, norm)
    y = avg_grid(second, bound, norm) if second is not None else None
    moment = Moment(i, j, x, y, _shift(i, j, x, y, most_steps(bound, norm)))
    return _cell(Cell("moment", argument, aggregate.condition, second=second, moment=moment), cells)


def _shift(i: int, j: int, x: Grid, y: Grid | None, most: int) -> int:
    """Bits by which a product of grid values is shifted down, to leave at most about `most` steps."""
    if i + j < 2:
        return 0
    largest = int(x.largest**i * (y.largest if y is not None else 1) ** j)
    return max(largest.bit_length() - most.bit_length() + 1, 0)


def _cell(cell: Cell, cells: list[Cell]) -> int:
    mine = cell_text(cell)
    for index, known in enumerate(cells):
        if cell_text(known) == mine:
            return index
    cells.append(cell)
    return len(cells) - 1


def cell_text(cell: Cell) -> str:
    """What a cell measures, canonically."""
    argument = "*" if cell.argument is None else canonical(cell.argument)
    condition = "" if cell.condition is None else canonical(cell.condition)
    second = "" if cell.second is None else canonical(cell.second)
    return f"{cell.kind}({argument}|{second}|{condition}|{cell.grid}|{cell.moment})"


def _argument(aggregate: Aggregate) -> Expr:
    if aggregate.argument is None:
        raise Failed(f"{aggregate.kind} without an argument")
    return aggregate.argument


def _interval(argument: Expr) -> tuple[Fraction, Fraction]:
    lower, upper = argument.domain.lower, argument.domain.upper
    if lower is None or upper is None:
        raise Failed("a measured argument without bounds")
    return (lower, upper) if lower <= upper else (lower, lower)


def sum_grid(argument: Expr, bound: ContributionBound, norm: Norm) -> Grid:
    """The grid of SUM's argument: its interval around zero."""
    lower, upper = _interval(argument)
    resolution = _resolution(max(abs(lower), abs(upper)), argument.type, most_steps(bound, norm))
    return Grid(resolution, _steps(lower, resolution), _steps(upper, resolution))


def avg_grid(argument: Expr, bound: ContributionBound, norm: Norm) -> Grid:
    """The grid of AVG's argument: its interval around the middle."""
    lower, upper = _interval(argument)
    resolution = _resolution((upper - lower) / 2, argument.type, most_steps(bound, norm))
    least = max(abs(lower), abs(upper)) / 2**50
    while resolution < least:
        resolution *= 2
    low, high = _steps(lower, resolution), _steps(upper, resolution)
    return Grid(resolution, low, high, (low + high) // 2)


def _steps(value: Fraction, resolution: Fraction) -> int:
    return int((value / resolution + Fraction(1, 2)).__floor__())


def most_steps(bound: ContributionBound, norm: Norm) -> int:
    """The largest grid value whose clipping radius stays within what norms are computed in."""
    factor = bound.l1 if norm == "l1" else isqrt(bound.l2_squared) + 1
    most = min(MAX_STEPS, MAX_RADIUS[norm] // factor)
    if most < ONE:
        raise Rejected(
            "max_groups and max_rows_per_group are too large to be computed with.",
            sqlstate=BAD_PARAMETER,
            hint="Lower them in the policy: they should be what a typical unit contributes.",
        )
    return most


def power_of_two(least: Fraction) -> Fraction:
    """The least power of two that is not below `least`, nor below 2^-60."""
    if least <= _FINEST:
        return _FINEST
    place = least.numerator.bit_length() - least.denominator.bit_length()
    below = Fraction(2) ** place
    return below if below >= least else 2 * below


def _resolution(extent: Fraction, type_: SqlType, most: int) -> Fraction:
    """Units per grid step: the natural unit if coarse enough, else the least power of two that is."""
    natural = None
    if type_.is_integer:
        natural = Fraction(1)
    elif type_.kind is Kind.NUMERIC and type_.scale is not None:
        natural = Fraction(10) ** -type_.scale
    if natural is not None and extent <= most * natural:
        return natural
    resolution = power_of_two(extent / most)
    return resolution if natural is None or not type_.is_integer else max(resolution, Fraction(1))


_WORDS = {"count": "COUNT", "sum": "SUM", "units": "COUNT of units", "distinct": "COUNT of distinct"}


def cell_name(cell: Cell) -> str:
    """What is measured, for EXPLAIN: moments are what AVG, VARIANCE, COVAR and CORR are made of."""
    parts = [shown(e) for e in (cell.argument, cell.second) if e is not None]
    made = f"{_WORDS.get(cell.kind)}({', '.join(parts) or '*'})"
    if cell.moment is not None:
        factors = [*parts[:1] * cell.moment.i, *parts[-1:] * cell.moment.j]
        made = f"moment SUM({' * '.join(factors)})" if factors else f"moment COUNT({', '.join(parts) or '*'})"
    return made + _filter(cell.condition)


def aggregate_name(aggregate: Aggregate) -> str:
    """What is asked for, for EXPLAIN."""
    parts = [shown(e) for e in (aggregate.argument, aggregate.second) if e is not None]
    words = {"count_units": "COUNT(DISTINCT ", "count_distinct": "COUNT(DISTINCT "}
    name = words.get(aggregate.kind, f"{aggregate.kind.upper()}(")
    return f"{name}{', '.join(parts) or '*'}){_filter(aggregate.condition)}"


def _filter(condition: Expr | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {shown(condition)})"
