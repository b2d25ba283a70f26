"""What follows from a stored release: a new one as sums of its cells, with the sums' own error.

Decides from shapes alone (see `shape`) where a sum of stored cells is, but for noise, the very integer that a fresh
measurement would give: the error announced is that of the noise, and holds of nothing else. Two things must be equal.

- Rows. A set of rows that is the disjoint union of sets that were counted in one release.
- Clipping (`Measured.clip`). What a unit adds in a set of rows is scaled by its rows elsewhere, if a release has them
  in other groups; so a cell of a clipped release is no measurement of that cell, and a sum of clipped cells is none of
  their union. It is where nothing is clipped whatever the data. And where the SQL leaves a unit one group: its partial
  is clamped by itself, the same in every set that holds all its rows or none. All other vectors only answer for the
  very same cells under the same bounds, each as the vector that it is.

COUNT(x) and the n of AVG(x) are two vectors: counts are clamped before their norm is taken, the n of moments is not.
They agree where each unit has one group, or nothing is clipped. SUM(x) is clipped by what it adds up to, the moments of
AVG(x) by rows: these agree only where nothing is clipped, and on equal grids, since values are rounded to them.

Why it costs no privacy: all is computed from a release that was paid for, by post-processing, to which differential
privacy is closed. Which one is used, and whether any, is decided from plans and prices. It must never hang on released
values: a statement would then be charged, or not, by what noise showed, and one whose answers are taken from the store
only where they look right is answered with an error that is not the one announced.

The error announced is the derived answer's own: cells have independent noise, so variances add up. A 95 % interval of a
sum of Gaussians is the Gaussian's; where there is Laplace noise it is 2.12 standard deviations, what a single Laplace
cell needs and sums of several do not exceed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, prod
from typing import Final

from dpsql.replay.recipe import ONE, Kin, Measured, Reading, Recipe, Shape
from dpsql.replay.sets import Set, size, within

MAX_TERMS: Final = 200_000
"""Stored cells that one derived answer adds up at most."""

ALLOWED: Final = 1 + 1e-9
"""All of the error that is allowed, up to rounding."""

# Reading ------------------------------------------------------------------------------------------------------------


def reading(asked: Measured, stored: Sequence[Measured]) -> Reading | None:
    """The vector from those of a stored release; None where it does not follow from them."""
    like = {m.text: place for place, m in enumerate(stored) if m.clip == asked.clip}
    if asked.text in like:
        return _combined(stored, ((like[asked.text], Fraction(1)),))
    if not asked.alone:
        return None
    found = {m.role: i for i, m in enumerate(stored) if m.role and m.of == asked.of and m.clip == asked.clip}
    match asked.role:
        case "count" if "n" in found and not asked.nan:
            return _combined(stored, ((found["n"], Fraction(1)),))
        case "n" if "count" in found and not asked.nan:
            return _combined(stored, ((found["count"], Fraction(1)),))
        case "sum" if not asked.clip and {"x", "n"} <= found.keys() and stored[found["x"]].step == asked.step:
            x = stored[found["x"]]
            return _combined(stored, ((found["x"], Fraction(1)), (found["n"], Fraction(x.centre, ONE))))
        case "x" if not (asked.clip or asked.nan) and {"sum", "count"} <= found.keys():
            return _centred(asked, stored, found["sum"], found["count"])
    return None


def _combined(stored: Sequence[Measured], parts: tuple[tuple[int, Fraction], ...]) -> Reading:
    variance = sum(float(factor) ** 2 * stored[place].variance for place, factor in parts)
    return Reading(parts, variance, all(stored[place].summable for place, _ in parts))


def _centred(asked: Measured, stored: Sequence[Measured], total: int, count: int) -> Reading | None:
    """The centred sum S - c N, for an average that is read with the same N.

    An average (S / N) has the variance (var S + mean^2 var N) / N^2. Read as c + (S - c N) / N with errors taken as
    independent it would be (var X + (mean - c)^2 var N) / N^2; this var X makes the two equal at the mean farthest from
    zero, and the second the larger one elsewhere.
    """
    if stored[total].step != asked.step:
        return None
    c = abs(asked.centre)
    extra = max(2 * c * asked.most - c * c, 0) * stored[count].variance / ONE**2
    return Reading(((total, Fraction(1)), (count, Fraction(-asked.centre, ONE))), stored[total].variance + extra, True)


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


# Choosing -----------------------------------------------------------------------------------------------------------

Tiles = tuple[tuple[int, ...], ...]
"""For each asked set of an axis, the places of the stored cells that it is made of; none for an empty set."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A stored release that the asked one follows from. `weight`: the share of the allowed variance that it takes."""

    weight: float
    number: int
    shape: Shape
    readings: tuple[Reading, ...]
    tiles: Mapping[str, Tiles]


def choose(kin: Kin, stored: Sequence[tuple[int, Shape]]) -> Iterator[Recipe]:
    """The recipes within the allowed error, from the most accurate on; of equal ones, the first stored."""
    read: dict[int, tuple[tuple[Reading, ...], float] | None] = {}  # one tuple stands for many shapes
    ways: list[_Way] = []
    for number, shape in stored:
        if not kin.aimed and shape.epsilon < kin.shape.epsilon:
            continue
        if id(shape.measured) not in read:
            read[id(shape.measured)] = _readings(kin, shape.measured)
        readings = read[id(shape.measured)]
        way = None if readings is None else _way(kin.shape, number, shape, *readings)
        if way is not None:
            ways.append(way)
    for way in sorted(ways, key=lambda each: each.weight):
        made = _recipe(kin.shape, way)
        if made is not None:
            yield made


def _readings(kin: Kin, stored: tuple[Measured, ...]) -> tuple[tuple[Reading, ...], float] | None:
    """How each asked vector is read, and the largest share of its allowed variance that one cell takes."""
    readings = [reading(measured, stored) for measured in kin.shape.measured]
    found = tuple(r for r in readings if r is not None)
    if not found or len(found) < len(readings) or _leaning(kin.shape.measured, found, stored):
        return None
    weight = max(r.variance / limit if limit > 0 else inf for r, limit in zip(found, kin.limits, strict=True))
    return (found, weight) if weight <= ALLOWED else None


def _way(asked: Shape, number: int, shape: Shape, readings: tuple[Reading, ...], weight: float) -> _Way | None:
    """How the asked cells are made of this release's; None where they are not, or are too noisy."""
    wanted = {axis.name: axis.cells for axis in asked.axes}
    kept = {axis.name: axis.cells for axis in shape.axes}
    full = {axis.name: (axis.full,) for axis in (*asked.axes, *shape.axes)}
    summable = all(each.summable for each in readings)
    tiles: dict[str, Tiles] = {}
    for name, whole in full.items():
        found = _tiled(wanted.get(name, whole), kept.get(name, whole))
        most = 0 if found is None else max(map(len, found), default=0)
        if found is None or (most > 1 and not summable):
            return None
        tiles[name] = found
        weight *= max(most, 1)
        if weight > ALLOWED:
            return None
    return _Way(weight, number, shape, readings, tiles)


def _tiled(wanted: Sequence[Set], cells: Sequence[Set]) -> Tiles | None:
    """The cells that each wanted set is the union of; None where there are none such."""
    starts = sorted((cell[0][0], place) for place, cell in enumerate(cells) if cell)
    lows = [low for low, _ in starts]
    found: list[tuple[int, ...]] = []
    for asked in wanted:
        places = tuple(
            place
            for low, high in asked
            for _, place in starts[bisect_left(lows, low) : bisect_left(lows, high)]
            if within(cells[place], asked)
        )
        if sum(size(cells[place]) for place in places) != size(asked):
            return None
        found.append(places)
    return tuple(found)


def _recipe(asked: Shape, way: _Way) -> Recipe | None:
    """The stored rows behind each asked cell; None where these are too many in all."""
    names = [axis.name for axis in asked.axes]
    cells: list[tuple[int, ...]] = []
    count = 0
    for chosen in product(*(range(len(axis.cells)) for axis in asked.axes)):
        rows = tuple(_rows(way, dict(zip(names, chosen, strict=True))))
        count += len(rows)
        if count > MAX_TERMS:
            return None
        cells.append(rows)
    gaussian = all(m.gaussian for m in way.shape.measured)
    return Recipe(way.number, way.readings, tuple(cells), gaussian)


def _rows(way: _Way, at: Mapping[str, int]) -> Iterator[int]:
    """The rows of the stored release that make up an asked cell: none where no row within bounds and filter has it."""
    axes = way.shape.axes
    if any(not places[at.get(name, 0)] for name, places in way.tiles.items()):
        return
    strides = [prod(len(axis.cells) for axis in axes[i + 1 :]) for i in range(len(axes))]
    for places in product(*(way.tiles[axis.name][at.get(axis.name, 0)] for axis in axes)):
        yield sum(place * stride for place, stride in zip(places, strides, strict=True))
