"""Released cells as the columns that the remainder reads: values, their errors, and whether they say anything.

Decides all of it from a release, which is public, and from the plan: post-processing, which costs nothing. Nothing here
may see exact cells.

A value is *no more than noise* where nobody who knows the bounds learns anything worth a number from it:

- an average, a deviation, a covariance or a correlation whose group may as well be empty (its noisy count is within its
  own 95 % error of zero), whose 95 % error is at least half of what the bounds allow, so that their middle would be as
  good, or which noise has driven to one of its bounds while the error is not small beside them;
- a chosen value as `dpsql.chosen` says.

The session decides what becomes of such values (`null_noise`); releases that are read by later ones keep them, so that
no measurement hangs on a setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from math import inf, sqrt

from dpsql.chosen import choices_of, noise_of_choices
from dpsql.compiler.bins import NumberBins, edge
from dpsql.compiler.cells import ONE, CountOutput, KnownOutput, MomentOutput, SumOutput, linear
from dpsql.compiler.histograms import HistogramOutput
from dpsql.compiler.keys import shown
from dpsql.compiler.plan import Output, PlannedRelease
from dpsql.dp.mechanisms import reach95
from dpsql.release import public_keys
from dpsql.replay.recipe import Derived, Recipe
from dpsql.scales import Scale, derived_scales, scale
from dpsql.types import Kind, Relation, Release, SqlType, Value

LIMIT = 2**63 - 1
"""Totals saturate here instead of leaving bigint."""


_CLOSE = 20
"""An average that noise drove to its bound is shown where its interval is narrower than a twentieth of all there is."""

Parts = Sequence[tuple[int, float]]
"""Signed moves of a value, by the places of the measurements that make them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate's value in one group with its error: standard deviation and a 95 % interval of the noise.

    `parts`: what one standard deviation of each measurement's noise makes of it. A chosen value has no error that is
    known without the data. `noise`: the value is no more than noise.
    """

    value: Value
    stddev: float | None = None
    low: float | None = None
    high: float | None = None
    parts: Parts = ()
    noise: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Estimated:
    """A released relation, and which of its values are no more than noise: places of aggregates, for each row."""

    planned: PlannedRelease
    relation: Relation
    noise: tuple[frozenset[int], ...]

    def without_noise(self) -> Relation:
        """The relation with NULL in place of such values; their error bars stay."""
        first = len(self.planned.keys)
        rows = [
            tuple(None if at - first in places else value for at, value in enumerate(row)) if places else row
            for row, places in zip(self.relation.rows, self.noise, strict=True)
        ]
        return Relation(self.relation.columns, tuple(rows))

    def count(self, place: int) -> int:
        """In how many groups an aggregate's value is no more than noise."""
        return sum(place in places for places in self.noise)


def estimated(planned: PlannedRelease, made: Release | Derived) -> Estimated:
    """The released columns: keys, aggregates, each one's standard deviation and 95 % interval, covariances."""
    if isinstance(made, Derived):
        return _derived(planned, made)
    scales = tuple(scale(measurement) for measurement in planned.measurements)
    return _estimated(planned, made.keys, made.cells, repeat(scales))


def released_relation(planned: PlannedRelease, made: Release | Derived) -> Relation:
    """The released columns alone, with all values."""
    return estimated(planned, made).relation


def _derived(planned: PlannedRelease, derived: Derived) -> Estimated:
    """Of cells that are sums of released ones, each with an error of its own."""
    known: dict[tuple[float, ...], tuple[Scale, ...]] = {}
    scales = []
    for deviations in derived.recipe.stddevs():
        if deviations not in known:
            known[deviations] = derived_scales(planned, deviations, reach95(gaussian=derived.recipe.gaussian))
        scales.append(known[deviations])
    return _estimated(planned, tuple(public_keys(planned)), derived.cells(), scales)


def derived_error95(planned: PlannedRelease, recipe: Recipe) -> float | None:
    """The largest 95 % error of the counts and sums of a derived release; None where all depend on data."""
    reach = reach95(gaussian=recipe.gaussian)
    deviations = [max(column) for column in zip(*recipe.stddevs(), strict=True)]
    scales = derived_scales(planned, deviations, reach)
    parts = [_parts(output, scales) for output in planned.outputs if linear(output)]
    return max((reach * _root_of_squares(each) for each in parts), default=None)


def _estimated(
    planned: PlannedRelease,
    keys: Sequence[tuple[Value, ...]],
    cells: Sequence[tuple[int, ...]],
    scales: Iterable[tuple[Scale, ...]],
) -> Estimated:
    frames = tuple(_frame(output) for output in planned.outputs)
    choices = choices_of(planned)
    rows, noise = [], []
    for group, (key, row, by) in enumerate(zip(keys, cells, scales)):  # noqa: B905  (one scale repeats without end)
        found = [_estimate(o, group, row, by, frame) for o, frame in zip(planned.outputs, frames, strict=True)]
        bars = [bar for e in found for bar in (e.stddev, e.low, e.high)]
        together = [_covariance(found[a], found[b]) for a, b in planned.aggregation.pairs]
        rows.append((*key, *(e.value for e in found), *bars, *together))
        statistics = (place for place, e in enumerate(found) if e.noise)
        noise.append(frozenset((*statistics, *noise_of_choices(choices, row, by))))
    return Estimated(planned, Relation(planned.columns, tuple(rows)), tuple(noise))


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a statistic's values lie: the centre of its grid, and what the exact statistic cannot leave."""

    centre: float
    least: float
    most: float


def _frame(output: Output) -> Frame:
    if not isinstance(output, MomentOutput):
        return Frame(0.0, -inf, inf)
    return Frame(float(output.grid.centre * output.grid.resolution), *_range(output))


def _estimate(output: Output, group: int, cells: tuple[int, ...], scales: tuple[Scale, ...], frame: Frame) -> Estimate:
    """`group`: its place among the groups."""
    match output:
        case KnownOutput(values=values):
            return Estimate(values[group])
        case CountOutput(cell=index):
            return _around((cells[index] * 2 + ONE) // (2 * ONE), cells[index] / ONE, _parts(output, scales), scales)
        case SumOutput(cell=index, resolution=resolution, type=type_):
            exact = cells[index] * resolution
            if output.rows is not None:
                exact += Fraction(output.centre * cells[output.rows], ONE) * resolution
            return _around(_as_number(exact, type_), float(exact), _parts(output, scales), scales)
        case MomentOutput():
            return _statistic(output, cells, scales, frame)
        case HistogramOutput(histogram=index):
            return Estimate(_point(output, cells[len(scales) + index]))


def _point(output: HistogramOutput, place: int) -> Value:
    """What a bin stands for: its own value, or where its values begin or end."""
    value = output.bins.value(place) if output.edge is None else edge(output.bins, place, output.edge)
    if isinstance(output.bins, NumberBins) and isinstance(value, Fraction):
        return _as_number(value, output.type)
    return shown(value, output.type)


def _parts(output: Output, scales: Sequence[Scale]) -> Parts:
    """Of a count or a sum."""
    return [(place, weight * scales[place].stddev) for place, weight in linear(output)]


def _root_of_squares(parts: Parts) -> float:
    return sqrt(sum(move * move for _, move in parts))


def _covariance(a: Estimate, b: Estimate) -> float:
    """Of two aggregates' noise: measurements have independent noise, so only those that both read count."""
    moves = dict(b.parts)
    return sum(move * moves.get(place, 0.0) for place, move in a.parts)


def _around(value: Value, exact: float, parts: Parts, scales: Sequence[Scale]) -> Estimate:
    if len(parts) == 1:
        scale = scales[parts[0][0]]
        return Estimate(value, scale.stddev, exact - scale.error95, exact + scale.error95, parts)
    deviation = _root_of_squares(parts)
    reach = max(scales[place].wide for place, _ in parts) * deviation
    return Estimate(value, deviation, exact - reach, exact + reach, parts)


def _statistic(output: MomentOutput, cells: tuple[int, ...], scales: tuple[Scale, ...], frame: Frame) -> Estimate:
    """A statistic of noisy moments, inside its bounds. Its error is propagated through each moment's own noise.

    The standard deviation is the root of the sum over moments of half the squared change that one standard deviation
    up or down makes: first order, and exact for linear statistics; moments have independent noise. Of a standard
    deviation it is the variance's, whose ends are rooted: a variance that noise made negative counts as 0, but its
    error does not.
    """
    places = dict(output.cells)
    exact = {power: scales[place].units(cells[place]) for power, place in places.items()}
    rooted = output.kind.startswith("stddev")
    least, most = frame.least, frame.most**2 if rooted else frame.most
    raw = _from_moments(output, exact, frame)
    value = min(max(raw, least), most)
    parts = []
    for power, place in places.items():
        step = scales[place].stddev
        up = _from_moments(output, {**exact, power: exact[power] + step}, frame)
        down = _from_moments(output, {**exact, power: exact[power] - step}, frame)
        parts.append((place, (up - down) / 2))
    deviation = _root_of_squares(parts)
    reach = max(scales[place].wide for place, _ in parts) * deviation
    low, high = max(value - reach, least), min(value + reach, most)
    rows = places[0, 0]
    noise = least < most and (
        exact[0, 0] <= scales[rows].error95
        or 2 * reach >= most - least
        or (raw != value and _CLOSE * 2 * reach >= most - least)
    )
    if rooted:
        low, high, value = sqrt(low), sqrt(high), sqrt(value)
        slope = (high - low) / (2 * reach) if reach else 0.0
        parts, deviation = [(place, part * slope) for place, part in parts], deviation * slope
    return Estimate(_as_number(Fraction(value), output.type), deviation, low, high, parts, noise)


def _range(output: MomentOutput) -> tuple[float, float]:
    """What the exact statistic cannot leave: the bounds, half the width squared, -1..1."""
    lower, upper = float(output.lower), float(output.upper)
    half = (upper - lower) / 2
    match output.kind:
        case "avg":
            return lower, upper
        case "corr":
            return -1.0, 1.0
        case "covar_pop" | "covar_samp":
            return -inf, inf
        case "var_pop" | "stddev_pop":
            return 0.0, half**2 if output.kind == "var_pop" else half
        case _:
            most = 2 * half**2
            return 0.0, most if output.kind == "var_samp" else sqrt(most)


def possible(output: Output) -> tuple[Value, Value] | None:
    """The least and the largest value that a statistic or a choice can have, from bounds; None where it has none."""
    match output:
        case MomentOutput():
            least, most = _range(output)
            return (least, most) if -inf < least < most < inf else None
        case HistogramOutput(bins=bins):
            return (_point(output, 0), _point(output, bins.size - 1)) if bins.size > 1 else None
        case _:
            return None


def _from_moments(output: MomentOutput, moments: dict[tuple[int, int], float], frame: Frame) -> float:
    """The statistic of centred moments; the count is taken as at least 1 (2 for sample statistics).

    Of a standard deviation its square. Variances may be negative.
    """
    n = max(moments[0, 0], 2.0 if output.kind.endswith("samp") else 1.0)
    mean = {power: total / n for power, total in moments.items()}
    match output.kind:
        case "avg":
            value = frame.centre + mean[1, 0]
        case "covar_pop" | "covar_samp":
            value = mean[1, 1] - mean[1, 0] * mean[0, 1]
        case "corr":
            x, y = mean[2, 0] - mean[1, 0] ** 2, mean[0, 2] - mean[0, 1] ** 2
            value = (mean[1, 1] - mean[1, 0] * mean[0, 1]) / sqrt(x * y) if x > 0 and y > 0 else 0.0
        case _:
            value = mean[2, 0] - mean[1, 0] ** 2
    if output.kind.endswith("samp"):
        value *= n / (n - 1)
    return value


def _as_number(value: Fraction, type_: SqlType) -> Value:
    if type_.is_float:
        return float(value)
    if type_.kind is Kind.NUMERIC:
        digits = max(type_.scale or 0, 6)
        scaled = Decimal(round(value * 10**digits)).scaleb(-digits)
        return scaled.normalize() if scaled == scaled.to_integral() else scaled
    return max(-LIMIT, min(LIMIT, round(value)))
