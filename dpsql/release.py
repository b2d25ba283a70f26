"""The only place where exact cells become a release.

Takes a plan, the exact cells that its query returned and the reservation that has paid for it; draws the noise and
decides which private keys are shown. What comes out, `Release`, is public for ever; `released_relation` turns it into
the columns that the remainder reads, by post-processing alone.

Why this is the mechanism that was priced: every measurement adds independent noise of its planned mechanism to every
group of a public domain (absent groups are exact zeros), or to every shown group; the reservation's cost must equal the
plan's. Private keys without weight are no candidates, draw no noise and leave no trace; a shown key's weight, with
noise, reached the threshold (see dp.selection). Each histogram chooses one bin in every such group, by the planned
mechanism over the scores of all its bins; weights of other groups go no further than here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product, repeat
from math import inf, sqrt

from dpsql.compiler.bins import NumberBins, edge
from dpsql.compiler.cells import ONE, CountOutput, KnownOutput, MomentOutput, SumOutput, linear
from dpsql.compiler.histograms import Histogram, HistogramOutput
from dpsql.compiler.keys import shown
from dpsql.compiler.plan import Measurement, Output, PlannedRelease
from dpsql.dp.mechanisms import DiscreteGaussian, Mechanism, reach95
from dpsql.dp.noise import choose, draw
from dpsql.errors import Failed
from dpsql.replay.recipe import Derived, Recipe
from dpsql.types import ExactCells, Kind, Relation, Release, Reservation, SqlType, Value

LIMIT = 2**63 - 1
"""Noisy totals saturate here instead of leaving bigint."""


def release(
    planned: PlannedRelease, cells: ExactCells, reservation: Reservation, weights: tuple[ExactCells, ...] = ()
) -> Release:
    """The noisy cells of every public key, or of the private keys that pass selection, in key order.

    After them, the chosen bin of every histogram; `weights` are what the histograms' queries returned.
    """
    if reservation.cost != planned.cost:
        raise Failed("the reservation is not for this plan")
    width = len(planned.measurements) + (planned.selection is not None)
    if any(len(row) != width for row in cells.cells):
        raise Failed("the backend returned another number of cells")
    keys, exact = _public(planned, cells) if planned.public else _selected(planned, cells)
    columns = [
        _noisy([row[i] for row in exact], measurement.mechanism) for i, measurement in enumerate(planned.measurements)
    ]
    for histogram, found in zip(planned.histograms, weights, strict=True):
        columns.append(_chosen(planned, histogram, keys, found))
    rows = tuple(zip(*columns, strict=True)) if columns else tuple(() for _ in keys)
    return Release(reservation.key, keys, rows)


def _chosen(
    planned: PlannedRelease, histogram: Histogram, keys: Sequence[tuple[Value, ...]], found: ExactCells
) -> list[int]:
    """One bin for every released group; a group without weight chooses among equals."""
    places: Sequence[tuple[Value, ...]] = _places(planned) if planned.public else [_comparable(key) for key in keys]
    size, types = histogram.choice.bins.size, [key.expr.type for key in planned.keys]
    weights: dict[tuple[Value, ...], list[int]] = {place: [] for place in places}
    for (*key, place), (weight,) in zip(found.keys, found.cells, strict=True):
        group = tuple(key) if planned.public else _comparable(tuple(map(shown, key, types)))
        if type(place) is not int or not 0 <= place < size or (planned.public and group not in weights):
            raise Failed("the backend returned a bin or a key outside its domain")
        if group in weights:
            weights[group] = weights[group] or [0] * size
            weights[group][place] += weight
    return [choose(histogram.mechanism, histogram.scored(weights[group] or [0] * size)) for group in places]


def _comparable(key: tuple[Value, ...]) -> tuple[Value, ...]:
    """A private key of which NaN equals itself."""
    return tuple("NaN" if isinstance(v, float | Decimal) and v != v else v for v in key)


def key_list(planned: PlannedRelease, key: str) -> Release:
    """A release that measures nothing: the public keys alone."""
    if not planned.free or not planned.public:
        raise Failed("only a list of public keys is free")
    keys = tuple(_public_keys(planned))
    return Release(key, keys, tuple(() for _ in keys))


def _noisy(exact: Sequence[int], mechanism: Mechanism) -> list[int]:
    noise = draw(mechanism, len(exact))
    return [max(-LIMIT, min(LIMIT, value + int(extra))) for value, extra in zip(exact, noise, strict=True)]


def _public_keys(planned: PlannedRelease) -> list[tuple[Value, ...]]:
    domains = [key.domain for key in planned.keys]
    if any(domain is None for domain in domains):
        raise Failed("a public release with a private key")
    values = [
        [domain.value(i, key.expr.type) for i in range(domain.size)]
        for key, domain in zip(planned.keys, domains, strict=True)
        if domain is not None
    ]
    return [tuple(v[i] for v, i in zip(values, place, strict=True)) for place in _places(planned)]


def _public(planned: PlannedRelease, cells: ExactCells) -> tuple[tuple[tuple[Value, ...], ...], list[tuple[int, ...]]]:
    """Every key of the domain; groups that no row reached are zero."""
    known = dict(zip(cells.keys, cells.cells, strict=True))
    zeros = (0,) * len(planned.measurements)
    places = _places(planned)
    if len(known) != len(cells.keys) or not set(known) <= set(places):
        raise Failed("the backend returned a key outside the public domain")
    return tuple(_public_keys(planned)), [known.get(place, zeros) for place in places]


def _places(planned: PlannedRelease) -> Sequence[tuple[int, ...]]:
    """The groups of public keys, as indices of their domains."""
    if planned.places is not None:
        return planned.places
    sizes = [key.domain.size for key in planned.keys if key.domain is not None]
    return list(product(*(range(size) for size in sizes)))


def _selected(
    planned: PlannedRelease, cells: ExactCells
) -> tuple[tuple[tuple[Value, ...], ...], list[tuple[int, ...]]]:
    """The private keys whose noisy weight reaches the threshold."""
    selection = planned.selection
    if selection is None:
        raise Failed("private keys without selection")
    candidates = [(key, row) for key, row in zip(cells.keys, cells.cells, strict=True) if row[-1] > 0]
    weights = _noisy([row[-1] for _, row in candidates], selection.mechanism)
    types = [key.expr.type for key in planned.keys]
    passed = [
        (tuple(shown(v, t) for v, t in zip(key, types, strict=True)), row[:-1])
        for (key, row), weight in zip(candidates, weights, strict=True)
        if weight >= selection.threshold
    ]
    passed.sort(key=lambda item: tuple(_rank(value) for value in item[0]))
    return tuple(key for key, _ in passed), [row for _, row in passed]


def _rank(value: Value) -> tuple[int, object]:
    """Ascending, NULL last, NaN after numbers; text in binary order."""
    if value is None:
        return 2, 0
    if isinstance(value, float | Decimal) and value != value:
        return 1, 0
    if isinstance(value, datetime):
        return 0, value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return 0, value.toordinal()
    return 0, value if not isinstance(value, str) else value.encode()


# Post-processing ------------------------------------------------------------------------------------------------


Parts = Sequence[tuple[int, float]]
"""Signed moves of a value, by the places of the measurements that make them."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregate's value in one group with its error: standard deviation and a 95 % interval of the noise.

    `parts`: what one standard deviation of each measurement's noise makes of it. A chosen value has no error that is
    known without the data.
    """

    value: Value
    stddev: float | None = None
    low: float | None = None
    high: float | None = None
    parts: Parts = ()


def released_relation(planned: PlannedRelease, made: Release) -> Relation:
    """The released columns: keys, aggregates, each one's standard deviation and 95 % interval, covariances."""
    scales = tuple(_scale(measurement) for measurement in planned.measurements)
    return _relation(planned, made.keys, made.cells, repeat(scales))


def derived_relation(planned: PlannedRelease, derived: Derived) -> Relation:
    """The same of cells that are sums of released ones, each with an error of its own."""
    known: dict[tuple[float, ...], tuple[Scale, ...]] = {}
    scales = []
    for deviations in derived.recipe.stddevs():
        if deviations not in known:
            known[deviations] = _derived_scales(planned, deviations, reach95(gaussian=derived.recipe.gaussian))
        scales.append(known[deviations])
    return _relation(planned, tuple(_public_keys(planned)), derived.cells(), scales)


def derived_error95(planned: PlannedRelease, recipe: Recipe) -> float | None:
    """The largest 95 % error of the counts and sums of a derived release; None where all depend on data."""
    reach = reach95(gaussian=recipe.gaussian)
    deviations = [max(column) for column in zip(*recipe.stddevs(), strict=True)]
    scales = _derived_scales(planned, deviations, reach)
    parts = [_parts(output, scales) for output in planned.outputs if linear(output)]
    return max((reach * _root_of_squares(each) for each in parts), default=None)


def _relation(
    planned: PlannedRelease,
    keys: Sequence[tuple[Value, ...]],
    cells: Sequence[tuple[int, ...]],
    scales: Iterable[tuple[Scale, ...]],
) -> Relation:
    frames = tuple(_frame(output) for output in planned.outputs)
    rows = []
    for group, (key, row, by) in enumerate(zip(keys, cells, scales)):  # noqa: B905  (one scale repeats without end)
        found = [_estimate(o, group, row, by, frame) for o, frame in zip(planned.outputs, frames, strict=True)]
        bars = [bar for e in found for bar in (e.stddev, e.low, e.high)]
        together = [_covariance(found[a], found[b]) for a, b in planned.aggregation.pairs]
        rows.append((*key, *(e.value for e in found), *bars, *together))
    return Relation(planned.columns, tuple(rows))


@dataclass(frozen=True, slots=True)
class Scale:
    """What a measurement's cells mean, found once for all rows: units per grid step as a ratio, and the noise."""

    numerator: int
    denominator: int
    stddev: float
    error95: float
    wide: float
    """Standard deviations to the end of a 95 % interval."""

    def units(self, cell: int) -> float:
        return cell * self.numerator / self.denominator


def _scale(measurement: Measurement) -> Scale:
    reach = reach95(gaussian=isinstance(measurement.mechanism, DiscreteGaussian))
    return Scale(*measurement.resolution.as_integer_ratio(), measurement.stddev, measurement.error95, reach)


def _derived_scales(planned: PlannedRelease, deviations: Sequence[float], reach: float) -> tuple[Scale, ...]:
    """`deviations` in steps, one for each measurement; `reach` of them is the 95 % error."""
    pairs = zip(planned.measurements, deviations, strict=True)
    made = [(m.resolution.as_integer_ratio(), sd * float(m.resolution)) for m, sd in pairs]
    return tuple(Scale(*ratio, sd, reach * sd, reach) for ratio, sd in made)


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
    value = min(max(_from_moments(output, exact, frame), least), most)
    parts = []
    for power, place in places.items():
        step = scales[place].stddev
        up = _from_moments(output, {**exact, power: exact[power] + step}, frame)
        down = _from_moments(output, {**exact, power: exact[power] - step}, frame)
        parts.append((place, (up - down) / 2))
    deviation = _root_of_squares(parts)
    reach = max(scales[place].wide for place, _ in parts) * deviation
    low, high = max(value - reach, least), min(value + reach, most)
    if rooted:
        low, high, value = sqrt(low), sqrt(high), sqrt(value)
        slope = (high - low) / (2 * reach) if reach else 0.0
        parts, deviation = [(place, part * slope) for place, part in parts], deviation * slope
    return Estimate(_as_number(Fraction(value), output.type), deviation, low, high, parts)


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
