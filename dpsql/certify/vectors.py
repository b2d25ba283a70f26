"""How far one unit moves what is measured: from the cells that are emitted, and from how contributions are bounded.

Of each row a cell adds at most `largest` steps, because the emitted SQL clamps the measured value to the ends of the
cell's own grid before anything is added. Cells that read the same columns share one, with the grid of the first, so
theirs must be the same. One unit's vector over all groups then has the norm that the form gives it:

- `rows`: a unit has one row, which adds one value to one group.
- `single`: its only partial is clamped to the radius; moments are scaled by m / count, and |sum| <= largest * count.
- `norm`: the vector is clipped to the radius, in the release's norm; moments are scaled by the factor of the row
  counts, which bounds their sums as above. So each needs a count, in the same release, of all rows that it reads.

The radius is that of L0 groups with m rows of the largest value b, of at most T rows in all where that is declared: b
times min(T, L0 m), or the exact square, b^2 min(T^2, T m, L0 m^2). T need not be true: the clip enforces it.

Never: the planner's own `largest`, a norm other than the release's, or a radius that is rounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.certify.certificate import Gap
from dpsql.compiler.algebra import Expr, canonical
from dpsql.dp.sensitivity import L1, L2, Scores, Sensitivity

if TYPE_CHECKING:  # only their fields are read: no code of the planner runs here
    from dpsql.compiler.cells import Cell, Grid
    from dpsql.compiler.histograms import Choice
    from dpsql.compiler.plan import PlannedRelease

ONE = 1024
"""Steps of a counted row, unit or value."""


def radius(release: PlannedRelease, largest: int, *, units: bool = False) -> Sensitivity:
    """What one unit's vector is held to. `units`: it counts once in a group, however many rows it has."""
    groups, rows = release.bound.groups, 1 if units else release.bound.rows
    total = _in_all(release) if not units else groups
    if release.norm == "l1":
        return L1(largest * min(groups * rows, total))
    return L2(largest**2 * min(groups * rows**2, total * rows, total**2))


def _in_all(release: PlannedRelease) -> int:
    return release.bound.groups * release.bound.rows if release.bound.total is None else release.bound.total


def sensitivities(release: PlannedRelease) -> tuple[Sensitivity, ...]:
    """Of each measurement, in order. Raises Gap where the release declares another one, or nothing bounds it."""
    cells = [m.cell for m in release.measurements]
    _share_columns(cells)
    found = []
    for place, measured in enumerate(release.measurements):
        cell = measured.cell
        made = radius(release, _largest(cell), units=cell.kind == "units")
        if measured.column != f"m{place}" or measured.sensitivity != made:
            raise Gap(f"measurement {place} declares {measured.sensitivity}, derived {made}")
        if cell.moment is not None and not _is_count(cell) and not any(_counts_rows_of(o, cell) for o in cells):
            raise Gap(f"measurement {place} is a moment without the count of its rows")
        found.append(made)
    return tuple(found)


def scores(release: PlannedRelease, choice: Choice) -> tuple[L1, Scores]:
    """How far one unit moves a histogram's weights, and the scores made of them (see `dp.scores` for the constants)."""
    weights = ONE * min(release.bound.groups * release.bound.rows, _in_all(release))
    match choice.wanted:
        case "quantile" if 0 <= choice.rank <= 1:
            most = max(choice.rank.numerator, choice.rank.denominator - choice.rank.numerator)
        case "min" | "max" if choice.end is None:
            most = 2
        case "mode" if choice.end is None:
            most = 1
        case _:
            raise Gap("a choice that is not known")
    return L1(weights), Scores(most * weights)


def _largest(cell: Cell) -> int:
    """The largest absolute value, in steps, that one row adds."""
    match cell.kind:
        case "count" | "units" | "distinct" if cell.grid is None and cell.moment is None:
            return ONE
        case "sum" if cell.grid is not None and cell.moment is None and cell.argument is not None:
            return _reach(cell.grid)
        case "moment" if cell.moment is not None and cell.grid is None:
            return _largest_moment(cell)
        case _:
            raise Gap(f"a {cell.kind} that is not made like one")


def _reach(grid: Grid) -> int:
    if grid.low > grid.high or grid.resolution <= 0:
        raise Gap("a grid without an inside")
    return max(abs(grid.high - grid.centre), abs(grid.low - grid.centre), 1)


def _largest_moment(cell: Cell) -> int:
    """Of x^i y^j, shifted down; a count adds ONE."""
    moment = cell.moment
    if moment is None or min(moment.i, moment.j, moment.shift) < 0 or (moment.y is None) != (cell.second is None):
        raise Gap("a moment that is not made like one")
    if _is_count(cell):
        return ONE
    if cell.argument is None or (moment.j and moment.y is None):
        raise Gap("a moment of nothing")
    y = 1 if moment.y is None else _reach(moment.y)
    return max(int(_reach(moment.x) ** moment.i * y**moment.j) >> moment.shift, 1)


def _is_count(cell: Cell) -> bool:
    return cell.moment is not None and (cell.moment.i, cell.moment.j) == (0, 0)


def _counts_rows_of(count: Cell, cell: Cell) -> bool:
    """Whether a count holds every row that adds to a moment: those with its arguments, or all that meet its FILTER."""
    if not _is_count(count) or _text(count.condition) != _text(cell.condition):
        return False
    arguments = _text(count.argument), _text(count.second)
    return arguments in ((_text(cell.argument), _text(cell.second)), ("", ""))


def _share_columns(cells: list[Cell]) -> None:
    """Cells that read the same are emitted over one column: no two of them may think of it on different grids."""
    seen: dict[tuple[str, ...], object] = {}
    for cell in cells:
        if cell.grid is None and (cell.moment is None or cell.argument is None):
            continue
        key = (cell.kind, _text(cell.argument), _text(cell.second), _text(cell.condition))
        grids = cell.grid if cell.moment is None else (cell.moment.x, cell.moment.y)
        if seen.setdefault(key, grids) != grids:
            raise Gap("one column measured on two grids")


def _text(expr: Expr | None) -> str:
    return "" if expr is None else canonical(expr)
