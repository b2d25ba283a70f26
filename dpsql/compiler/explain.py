"""What EXPLAIN and `dpsql explain` show: a plan in words and as stable JSON. Pure, free, and never from data."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

from dpsql.compiler import Compiled
from dpsql.compiler.algebra import Aggregate
from dpsql.compiler.cells import ONE, CellOutput, aggregate_name, cells_of
from dpsql.compiler.emit import Dialect, emit, emit_histogram
from dpsql.compiler.histograms import Histogram, HistogramOutput
from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from dpsql.dp.privacy import amount, cost_of
from dpsql.dp.sensitivity import L1, L2, Sensitivity
from dpsql.types import Cost


def as_json(compiled: Compiled, epsilon: str, dialect: Dialect) -> dict[str, Any]:
    """The stable interface: price, remainder and releases (see docs/explain.md)."""
    return {
        "price": _price(compiled, epsilon),
        "remainder_sql": compiled.remainder.sql,
        "cautions": list(compiled.cautions),
        "releases": [entry for r in compiled.releases for entry in _entries(r, compiled, dialect)],
    }


def _price(compiled: Compiled, epsilon: str) -> dict[str, float]:
    spends = any(not r.free for r in compiled.releases)
    return {
        "epsilon": float(epsilon) if spends else 0.0,
        "delta": float(amount(compiled.cost.delta)),
        "rho": float(amount(compiled.cost.rho)),
    }


def _entries(release: PlannedRelease, compiled: Compiled, dialect: Dialect) -> Iterator[dict[str, Any]]:
    """A release's cells, and each of its histograms: every query that the backend is asked."""
    if release.has_cells or release.free:
        yield _cells(release, compiled, dialect)
    for histogram in release.histograms:
        yield _histogram(release, histogram, compiled, dialect)


def _common(release: PlannedRelease, compiled: Compiled) -> dict[str, Any]:
    """What the cells and the histograms of a release share."""
    inner = [r for r in compiled.releases if r.id in depends_on(release, compiled)]
    return {
        "depends_on": [id_ for r in inner for id_ in _ids(r)],
        "contribution_bound": {
            "max_groups": release.bound.groups,
            "max_rows_per_group": release.bound.rows,
            "max_rows": release.bound.total,
        },
    }


def _ids(release: PlannedRelease) -> list[str]:
    cells = [release.id] if release.has_cells or release.free else []
    return [*cells, *(f"{release.id}h{h.number}" for h in release.histograms)]


def _histogram(release: PlannedRelease, histogram: Histogram, compiled: Compiled, dialect: Dialect) -> dict[str, Any]:
    """`sensitivity` is of the weights in `h`, `score_sensitivity` of what the mechanism sees."""
    bins = histogram.choice.bins.size
    return {
        "id": f"{release.id}h{histogram.number}",
        "kind": "histogram",
        **_common(release, compiled),
        "backend_sql": emit_histogram(release, histogram, dialect, {}),
        "keys": {
            "names": [*(key.name for key in release.keys), "bin"],
            "kind": "public" if release.public else "private",
            "size": None if release.size is None else release.size * bins,
        },
        "cost": _loss(cost_of(histogram.mechanism, histogram.scores)),
        "measurements": [
            {
                "name": histogram.name,
                "column": "h",
                **_sensitivity(histogram.weights),
                "resolution": 1 / ONE,
                "mechanism": "noisy_max",
                "scale": histogram.mechanism.scale,
                "score_sensitivity": histogram.scores.bound,
                "bins": bins,
                "error95": None,
            }
        ],
    }


def _loss(cost: Cost) -> dict[str, float]:
    return {"rho": float(amount(cost.rho)), "epsilon": float(amount(cost.epsilon))}


def _cells(release: PlannedRelease, compiled: Compiled, dialect: Dialect) -> dict[str, Any]:
    chosen = sum((cost_of(h.mechanism, h.scores) for h in release.histograms), Cost())
    made: dict[str, Any] = {
        "id": release.id,
        "kind": "cells",
        **_common(release, compiled),
        "backend_sql": emit(release, dialect, {}),
        "keys": {
            "names": [key.name for key in release.keys],
            "kind": "public" if release.public else "private",
            "size": release.size,
        },
        "cost": _loss(Cost(release.cost.epsilon - chosen.epsilon, release.cost.rho - chosen.rho)),
        "measurements": [_measurement(m) for m in release.measurements],
        "outputs": [_output(release, a, o) for a, o in _read(release)],
    }
    if release.selection is not None:
        selection = release.selection
        made["threshold"] = selection.threshold
        made["selection"] = {
            "column": "w",
            **_sensitivity(selection.sensitivity),
            **_mechanism(selection.mechanism),
            "cap": selection.cap,
            "delta": float(selection.delta),
        }
    return made


def depends_on(release: PlannedRelease, compiled: Compiled) -> list[str]:
    """Ids of the releases whose rows this one reads."""
    inner = {f"_{each.id}": each.id for each in compiled.releases}
    names: dict[str, None] = {}
    for index in release.aggregation.depends_on:
        names |= {inner[name]: None for name in compiled.derived[index].relations if name in inner}
    return list(names)


def _measurement(m: Measurement) -> dict[str, Any]:
    return {
        "name": m.name,
        "column": m.column,
        **_sensitivity(m.sensitivity),
        "resolution": float(m.resolution),
        **_mechanism(m.mechanism),
        "error95": None if m.cell.moment is not None else m.error95,
    }


def _read(release: PlannedRelease) -> Iterator[tuple[Aggregate, CellOutput]]:
    """The aggregates that are read from cells, with how they are."""
    for aggregate, output in zip(release.aggregation.aggregates, release.outputs, strict=True):
        if not isinstance(output, HistogramOutput):
            yield aggregate, output


def _output(release: PlannedRelease, aggregate: Aggregate, output: CellOutput) -> dict[str, Any]:
    columns = [release.measurements[place].column for place in cells_of(output)]
    return {"name": aggregate_name(aggregate), "columns": columns, "error95": release.error95(output)}


def _sensitivity(sensitivity: Sensitivity) -> dict[str, Any]:
    match sensitivity:
        case L1(bound=bound):
            return {"norm": "l1", "sensitivity": bound}
        case L2(squared=squared):
            return {"norm": "l2", "sensitivity": sqrt(squared), "sensitivity_squared": squared}


def _mechanism(mechanism: Mechanism) -> dict[str, Any]:
    match mechanism:
        case DiscreteLaplace(scale=scale):
            return {"mechanism": "discrete_laplace", "scale": scale}
        case DiscreteGaussian(sigma=sigma):
            return {"mechanism": "discrete_gaussian", "scale": sigma}


def as_text(compiled: Compiled, epsilon: str, accounting: str) -> list[str]:
    """The plan in lines for a person."""
    return list(_lines(compiled, epsilon, accounting))


def _lines(compiled: Compiled, epsilon: str, accounting: str) -> Iterator[str]:
    if all(r.free for r in compiled.releases):
        yield "Price: free (reads public tables and public keys only)"
    else:
        yield f"Price: {_cost_words(compiled.cost, epsilon, accounting)}, before replay"
    for release in compiled.releases:
        yield from _release_lines(release, compiled)
    yield from (f"Caution: {words}" for words in compiled.cautions)
    names = ", ".join(f"{c.name} {c.type}" for c in compiled.columns)
    yield f"Remainder (free): {names}"


def _cost_words(cost: Cost, epsilon: str, accounting: str) -> str:
    words = f"epsilon {epsilon}"
    if accounting == "zcdp":
        words += f" (rho {float(amount(cost.rho)):.4g})"
    if cost.delta:
        words += f", delta {float(amount(cost.delta)):.2g} for private keys"
    return words


def _release_lines(release: PlannedRelease, compiled: Compiled) -> Iterator[str]:
    tables = ", ".join(release.aggregation.tables)
    after = depends_on(release, compiled)
    yield f"Release {release.id} over {tables}" + (f", after {', '.join(after)}" if after else "")
    yield f"  Keys: {_key_words(release)}"
    yield f"  Contribution bound: {_bound_words(release)}"
    unknown = {place for _, o in _read(release) if release.error95(o) is None for place in cells_of(o)}
    for place, m in enumerate(release.measurements):
        yield f"  Measure {m.name}: {_noise_words(m, known=place not in unknown)}"
    if any(m.cell.moment is not None for m in release.measurements):
        yield from (f"  Answer {words}" for words in _answers(release))
    for h in release.histograms:
        yield f"  Choose {h.name}: {_choice_words(h)}"


def _answers(release: PlannedRelease) -> Iterator[str]:
    """Counts and sums that are read from moments, which others are read from as well."""
    for aggregate, output in _read(release):
        found = [release.measurements[place] for place in cells_of(output)]
        error = release.error95(output)
        if error is not None and any(m.cell.moment is not None for m in found):
            yield f"{aggregate_name(aggregate)}: from {' and '.join(m.name for m in found)}, 95 % error {error:.4g}"


def _key_words(release: PlannedRelease) -> str:
    names = ", ".join(key.name for key in release.keys)
    if not release.keys:
        return "none, one row"
    if release.public:
        return f"{names}: public, all {release.size} are released"
    selection = release.selection
    if selection is None:
        return f"{names}: private"
    units = selection.threshold / 1024
    return f"{names}: private, shown where about {units:.0f} or more units stand behind them"


def _bound_words(release: PlannedRelease) -> str:
    rows = f"{release.bound.rows} row{'s' if release.bound.rows > 1 else ''}"
    match release.form:
        case "rows":
            return "one row a unit"
        case "single":
            return f"a unit's rows count as at most {rows} in its one group"
        case "norm":
            groups = release.bound.groups
            total = "" if release.bound.total is None else f", {release.bound.total} in all"
            return f"a unit counts as at most {groups} group{'s' if groups > 1 else ''} of {rows}{total}"


def _choice_words(h: Histogram) -> str:
    words = f"one of {h.choice.bins.size} values by noisy max"
    if h.choice.end is not None:
        side = "below" if h.choice.end == "low" else "above"
        return words + f", {h.shifted_rows:.3g} rows {side} the quantile's rank"
    if h.rank_error is not None:
        words += f", leaving about {h.rank_rows:.3g} rows beyond it"
    elif h.rank_rows is not None:
        words += f", mostly within {h.rank_rows:.3g} rows of its rank"
    return words + "; its error in values depends on the data"


def _noise_words(m: Measurement, *, known: bool) -> str:
    name = "Gaussian" if isinstance(m.mechanism, DiscreteGaussian) else "Laplace"
    words = f"{name} noise, standard deviation {m.stddev:.4g}"
    if not known:
        return words + "; the error of what it is part of depends on the data"
    return words + f", 95 % error {m.error95:.4g}"
