"""What EXPLAIN and `dpsql explain` show: a plan in words and as stable JSON. Pure, free, and never from data."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

from dpsql.compiler import Compiled
from dpsql.compiler.emit import DIALECTS, emit
from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from dpsql.dp.privacy import amount
from dpsql.dp.sensitivity import L1, L2, Sensitivity
from dpsql.types import Cost


def as_json(compiled: Compiled, epsilon: str, dialect: str) -> dict[str, Any]:
    """The stable interface: price, remainder and releases (see docs/explain.md)."""
    return {
        "price": _price(compiled, epsilon),
        "remainder_sql": compiled.remainder.sql,
        "releases": [_release(r, compiled, dialect) for r in compiled.releases],
    }


def _price(compiled: Compiled, epsilon: str) -> dict[str, float]:
    spends = any(not r.free for r in compiled.releases)
    return {
        "epsilon": float(epsilon) if spends else 0.0,
        "delta": float(amount(compiled.cost.delta)),
        "rho": float(amount(compiled.cost.rho)),
    }


def _release(release: PlannedRelease, compiled: Compiled, dialect: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": release.id,
        "kind": "cells",
        "depends_on": depends_on(release, compiled),
        "backend_sql": emit(release, DIALECTS[dialect], {}),
        "keys": {
            "names": [key.name for key in release.keys],
            "kind": "public" if release.public else "private",
            "size": release.size,
        },
        "cost": {"rho": float(amount(release.cost.rho)), "epsilon": float(amount(release.cost.epsilon))},
        "contribution_bound": {"max_groups": release.bound.groups, "max_rows_per_group": release.bound.rows},
        "measurements": [_measurement(m) for m in release.measurements],
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
    names: dict[str, None] = {}
    for index in release.aggregation.depends_on:
        for name in compiled.derived[index].relations:
            if name.startswith("_r"):
                names[name[1:]] = None
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
    for m in release.measurements:
        yield f"  Measure {m.name}: {_noise_words(m)}"


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
            return f"a unit counts as at most {release.bound.groups} groups of {rows}"


def _noise_words(m: Measurement) -> str:
    name = "Gaussian" if isinstance(m.mechanism, DiscreteGaussian) else "Laplace"
    words = f"{name} noise, standard deviation {m.stddev:.4g}"
    if m.cell.moment is not None:
        return words + "; the error of what it is part of depends on the data"
    return words + f", 95 % error {m.error95:.4g}"
