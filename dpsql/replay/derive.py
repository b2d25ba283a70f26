"""What follows from stored releases: a new release as sums and differences of stored cells, and its own error.

Decides from shapes alone (see `shape`): which sets of rows stored cells count, and how noisily. A set of rows that is
the disjoint union of sets that were counted is counted by the sum of their noisy counts; ranges are also subtracted
where that is sound (see `paths`). A sum of clipped cells is never clipped more than one fresh total: a unit's norm is
at most the sum of its parts, and the radius of many groups at least that of one. A single cell may be, where a unit has
much in other groups.

COUNT(x) and the n of AVG(x) have one clipping, by rows. SUM(x) is clipped by what it adds up to, the moments of AVG(x)
by rows: of a unit with many rows of small values the first may keep all, the second little, and the ratio of the first
to a clipped count is no average. So either follows from the other only where nothing is clipped.

Why it costs no privacy: all is computed from releases that were paid for, by post-processing, to which differential
privacy is closed. Which of them are used, and whether any, is decided from plans and prices. It must never hang on
released values: a statement would then be charged, or not, by what noise showed, and one whose answers are taken from
the store only where they look right is answered with an error that is not the one announced.

The error announced is the derived answer's own: cells have independent noise, so variances add up, each with the
square of its coefficient. A 95 % interval of a sum of Gaussians is the Gaussian's; where there is Laplace noise it is
2.12 standard deviations, what a single Laplace cell needs and sums of several do not exceed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import inf, prod
from typing import Final

from dpsql.replay.paths import DONE, Path, Ranges, shortest
from dpsql.replay.recipe import ONE, Axis, Kin, Measured, Reading, Recipe, Shape, Term
from dpsql.replay.sets import Set, size, within

MAX_TERMS: Final = 200_000
"""Stored cells that one derived answer adds up at most."""

# Reading ------------------------------------------------------------------------------------------------------------


def reading(asked: Measured, stored: Sequence[Measured], *, exact: bool) -> Reading | None:
    """The vector from those of a stored release; None where it does not follow from them.

    `exact`: no contribution can have been clipped.
    """
    by_text = {measured.text: place for place, measured in enumerate(stored)}
    place = by_text.get(asked.text)
    if place is not None:
        return Reading(((place, Fraction(1)),), stored[place].variance)
    found = {m.role: i for i, m in enumerate(stored) if m.role and m.of == asked.of}
    match asked.role:
        case "sum" if exact and "x" in found and "n" in found:
            x = stored[found["x"]]
            scale = x.step / asked.step
            return _combined(stored, ((found["x"], scale), (found["n"], x.centre * scale / ONE)))
        case "count" if "n" in found and not asked.nan:
            return _combined(stored, ((found["n"], Fraction(1)),))
        case "n" if "count" in found and not asked.nan:
            return _combined(stored, ((found["count"], Fraction(1)),))
        case "x" if exact and "sum" in found and "count" in found and not asked.nan:
            return _centred(asked, stored, found["sum"], found["count"])
    return None


def _combined(stored: Sequence[Measured], parts: tuple[tuple[int, Fraction], ...]) -> Reading:
    return Reading(parts, sum(float(factor) ** 2 * stored[place].variance for place, factor in parts))


def _centred(asked: Measured, stored: Sequence[Measured], total: int, count: int) -> Reading:
    """The centred sum S - c N, for an average that is read with the same N.

    An average (S / N) has the variance (var S + mean^2 var N) / N^2. Read as c + (S - c N) / N with errors taken as
    independent it would be (var X + (mean - c)^2 var N) / N^2; this var X makes the two equal at the mean farthest from
    zero, and the second the larger one elsewhere.
    """
    scale = stored[total].step / asked.step
    c = abs(asked.centre)
    extra = max(2 * c * asked.most - c * c, 0) * stored[count].variance / ONE**2
    variance = float(scale) ** 2 * stored[total].variance + extra
    return Reading(((total, scale), (count, Fraction(-asked.centre, ONE))), variance)


# Choosing -----------------------------------------------------------------------------------------------------------

Tiles = Mapping[int, tuple[int, ...]]
"""The cells that make up each asked set, by its place; empty sets have none."""


@dataclass(slots=True)
class _Candidate:
    """A stored release that can be read. `weight`: the share of the allowed variance that one of its cells takes.

    `grows`: so do all vectors that are read.
    """

    number: int
    shape: Shape
    readings: tuple[Reading, ...]
    weight: float
    grows: bool
    tiles: dict[str, Tiles | None] = field(default_factory=dict)

    def axis(self, name: str) -> Axis | None:
        return next((axis for axis in self.shape.axes if axis.name == name), None)


def choose(kin: Kin, stored: Sequence[tuple[int, Shape]]) -> Recipe | None:
    """The recipe with the least share of the allowed error, over the axis along which cells of several are joined."""
    asked = kin.shape
    candidates = _candidates(kin, stored)
    if not candidates:
        return None
    single = not all(measured.summable for measured in asked.measured)
    shapes = [asked, *(c.shape for c in candidates)]
    full = {axis.name: axis.full for shape in shapes for axis in shape.axes} or {"": ((0, 1),)}
    wanted = {name: ((whole,)) for name, whole in full.items()} | {axis.name: axis.cells for axis in asked.axes}
    tiled = {name: {i: each for i, each in enumerate(sets) if each} for name, sets in wanted.items()}
    best: tuple[float, str, list[Path]] | None = None
    for name in full:
        paths = _paths(name, wanted[name], tiled, full, candidates, single)
        worst = inf if paths is None else max((path.weight for path in paths), default=inf)
        if paths is not None and worst <= DONE and (best is None or worst < best[0]):
            best = worst, name, paths
    return None if best is None else _recipe(asked, candidates, best[1], best[2])


def _candidates(kin: Kin, stored: Sequence[tuple[int, Shape]]) -> list[_Candidate]:
    """The releases whose vectors, and whose noise, will do."""
    known: dict[tuple[tuple[Measured, ...], bool], tuple[tuple[Reading, ...], float, bool] | None] = {}
    found: list[_Candidate] = []
    last: tuple[tuple[Measured, ...], bool] | None = None
    read = None
    for number, shape in stored:
        if not kin.aimed and shape.epsilon < kin.shape.epsilon:
            continue
        if last is None or shape.measured is not last[0] or shape.exact != last[1]:
            last = shape.measured, shape.exact
            if last not in known:
                known[last] = _readings(kin, *last)
            read = known[last]
        if read is not None:
            found.append(_Candidate(number, shape, *read))
    return found


def _readings(kin: Kin, stored: tuple[Measured, ...], exact: bool) -> tuple[tuple[Reading, ...], float, bool] | None:
    """How each asked vector is read, the largest share of its allowed variance that one cell takes, and `grows`."""
    readings = [reading(measured, stored, exact=exact) for measured in kin.shape.measured]
    found = tuple(r for r in readings if r is not None)
    if not found or len(found) < len(readings) or _leaning(kin.shape.measured, found, stored):
        return None
    weight = max(r.variance / limit if limit > 0 else inf for r, limit in zip(found, kin.limits, strict=True))
    grows = all(len(r.parts) == 1 and stored[r.parts[0][0]].grows for r in found)
    return (found, weight, grows) if weight <= DONE else None


def _leaning(asked: Sequence[Measured], readings: Sequence[Reading], stored: Sequence[Measured]) -> bool:
    """Whether a sum and a count of the same x, read with one noise, are less accurate together than apart.

    SUM(x) = X + c N has a covariance with N of the sign of c. The error of their ratio leaves it out, as that of two
    measurements has none: too much where the ratio has that sign too, too little where it can have the other.
    """
    counted = {m.of for m in asked if m.role == "count"}
    for measured, read in zip(asked, readings, strict=True):
        if measured.role == "sum" and measured.of in counted and len(read.parts) == 2:
            x = stored[read.parts[0][0]]
            if x.centre and 2 * abs(x.centre) < x.most:
                return True
    return False


def _tiles(c: _Candidate, name: str, wanted: Mapping[int, Set], full: Set) -> Tiles | None:
    """The release's cells on this axis that make up the asked sets; None where they do not."""
    if name not in c.tiles:
        axis = c.axis(name)
        c.tiles[name] = _tiled(wanted, (full,) if axis is None else axis.cells)
    return c.tiles[name]


def _tiled(wanted: Mapping[int, Set], cells: tuple[Set, ...]) -> Tiles | None:
    starts = sorted((cell[0][0], place) for place, cell in enumerate(cells) if cell)
    lows = [low for low, _ in starts]
    found: dict[int, tuple[int, ...]] = {}
    for number, asked in wanted.items():
        places = [
            place
            for low, high in asked
            for _, place in starts[bisect_left(lows, low) : bisect_left(lows, high)]
            if within(cells[place], asked)
        ]
        if sum(size(cells[place]) for place in places) != size(asked):
            return None
        found[number] = tuple(places)
    return found


def _paths(
    name: str,
    wanted: Sequence[Set],
    tiled: Mapping[str, Mapping[int, Set]],
    full: Mapping[str, Set],
    candidates: Sequence[_Candidate],
    single: bool,
) -> list[Path] | None:
    """How each asked set of one axis is joined from cells that fit on all other axes."""
    ranges = Ranges()
    equal: dict[Set, Path] = {}
    for place, c in enumerate(candidates):
        times = _times(c, name, tiled, full, single)
        weight = c.weight * times
        if weight > DONE:
            continue
        axis = c.axis(name)
        for number, cell in enumerate((full[name],) if axis is None else axis.cells):
            if cell and (cell not in equal or weight < equal[cell].weight):
                equal[cell] = Path(weight, ((place, number, 1),))
            if not single and len(cell) == 1:
                ranges.add((*cell[0], weight, place, number), exact=c.shape.exact, grows=c.grows and times == 1)
    found: list[Path] = []
    for asked, joined in zip(wanted, shortest(ranges, wanted), strict=True):
        if not asked:  # no row within bounds and filter has this key: it counts nothing, without noise
            found.append(Path(0.0, ()))
            continue
        best = min((way for way in (equal.get(asked), joined) if way), key=lambda way: way.weight, default=None)
        if best is None:
            return None
        found.append(best)
    return found


def _times(
    c: _Candidate, moving: str, tiled: Mapping[str, Mapping[int, Set]], full: Mapping[str, Set], single: bool
) -> float:
    """How many cells of all other axes are added up for one on the moving axis; infinite where these do not fit."""
    times = 1.0
    for name, whole in full.items():
        if name == moving:
            continue
        tiles = _tiles(c, name, tiled[name], whole)
        most = inf if tiles is None else max(map(len, tiles.values()), default=0)
        if tiles is None or (single and most > 1):
            return inf
        times *= max(most, 1)
    return times


def _recipe(asked: Shape, candidates: Sequence[_Candidate], moving: str, paths: Sequence[Path]) -> Recipe | None:
    """The rows behind the paths, for the product of the asked cells on all axes."""
    used = sorted({place for path in paths for place, _, _ in path.terms})
    if not used:
        return None
    source = {place: number for number, place in enumerate(used)}
    names = [axis.name for axis in asked.axes]
    cells: list[tuple[Term, ...]] = []
    count = 0
    for chosen in product(*(range(len(axis.cells)) for axis in asked.axes)):
        at = dict(zip(names, chosen, strict=True))
        terms = [
            (source[place], row, by)
            for place, number, by in paths[at.get(moving, 0)].terms
            for row in _rows(candidates[place], moving, number, at)
        ]
        count += len(terms)
        if count > MAX_TERMS:
            return None
        cells.append(tuple(terms))
    return Recipe(
        sources=tuple(candidates[place].number for place in used),
        readings=tuple(candidates[place].readings for place in used),
        cells=tuple(cells),
        gaussian=all(m.gaussian for place in used for m in candidates[place].shape.measured),
    )


def _rows(c: _Candidate, moving: str, number: int, at: Mapping[str, int]) -> Iterator[int]:
    """The rows of a stored release that make up an asked cell."""
    strides = [prod(len(axis.cells) for axis in c.shape.axes[i + 1 :]) for i in range(len(c.shape.axes))]
    choices = [
        (number,) if axis.name == moving else (c.tiles[axis.name] or {}).get(at.get(axis.name, 0), ())
        for axis in c.shape.axes
    ]
    for places in product(*choices):
        yield sum(place * stride for place, stride in zip(places, strides, strict=True))
