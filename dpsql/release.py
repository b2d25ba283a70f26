"""The only place where exact cells become a release.

Takes a plan, the exact cells that its query returned and the reservation that has paid for it; draws the noise and
decides which private keys are shown. What comes out, `Release`, is public for ever; `dpsql.estimates` turns it into the
columns that the remainder reads, by post-processing alone.

Why this is the mechanism that was priced: every measurement adds independent noise of its planned mechanism to every
group of a public domain (absent groups are exact zeros), or to every shown group; the reservation's cost must equal the
plan's. Private keys without weight are no candidates, draw no noise and leave no trace; a shown key's weight, with
noise, reached the threshold (see dp.selection). Each histogram chooses one bin in every such group, by the planned
mechanism over the scores of all its bins; weights of other groups go no further than here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

from dpsql.compiler.histograms import Histogram
from dpsql.compiler.keys import shown
from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.mechanisms import Mechanism
from dpsql.dp.noise import choose, draw
from dpsql.errors import Failed
from dpsql.types import ExactCells, Release, Reservation, Value

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
    keys = tuple(public_keys(planned))
    return Release(key, keys, tuple(() for _ in keys))


def _noisy(exact: Sequence[int], mechanism: Mechanism) -> list[int]:
    noise = draw(mechanism, len(exact))
    return [max(-LIMIT, min(LIMIT, value + int(extra))) for value, extra in zip(exact, noise, strict=True)]


def public_keys(planned: PlannedRelease) -> list[tuple[Value, ...]]:
    """All keys of a public domain, in order."""
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
    return tuple(public_keys(planned)), [known.get(place, zeros) for place in places]


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
