"""What costs a statement its accuracy, and what would help: from the plan and the policy alone, never from data.

Decides which few things are worth saying, and by how much the error would shrink. Each gain follows from the plan:
noise is in proportion to the sensitivity and, at one price, to the square root of the number of measurements that share
it (under `pure`: to that number). What a tighter bound would clip away depends on the data, so it is only mentioned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, sqrt
from typing import Literal

from dpsql.compiler import Compiled
from dpsql.compiler.algebra import Col, columns_of
from dpsql.compiler.cells import MomentOutput
from dpsql.compiler.keys import key_domain
from dpsql.compiler.plan import Measurement, Output, PlannedRelease
from dpsql.dp.mechanisms import DiscreteGaussian
from dpsql.policy.model import Privacy

Subject = Literal["private_keys", "too_many_keys", "max_groups", "small_groups", "wide_bounds", "measurements"]

SMALL_GROUP = 100
"""Rows of the group that errors are compared with."""

_WORTH_SHARING = 3
_WORTH_WIDTH = 0.1
_PAYABLE = 20
_WORTH_PAYING = 1.1


@dataclass(frozen=True, slots=True)
class Advice:
    """`gain`: the error would be so many times smaller; None where no single number says it."""

    about: Subject
    text: str
    gain: float | None = None


def as_lines(advice: tuple[Advice, ...]) -> list[str]:
    """For EXPLAIN's text."""
    return [f"Advice: {each.text}" for each in advice]


def as_json(advice: tuple[Advice, ...]) -> list[dict[str, str | float | None]]:
    """For EXPLAIN's JSON (see docs/explain.md)."""
    return [{"about": each.about, "text": each.text, "gain": each.gain} for each in advice]


def advise(compiled: Compiled, privacy: Privacy, most: Decimal) -> tuple[Advice, ...]:
    """What to say of the statement, the most useful first. `most`: the largest epsilon that one may cost here."""
    paid = [release for release in compiled.releases if not release.free]
    shares = sum(_shares(release) for release in paid)
    times = float(most / compiled.epsilon)
    found = [advice for release in paid for advice in (*_of(release, shares, privacy), *_small(release, most, times))]
    if shares >= _WORTH_SHARING:
        found.append(_sharing(shares, privacy))
    return tuple(dict.fromkeys(found))


def _shares(release: PlannedRelease) -> int:
    return len(release.measurements) + len(release.histograms) + (release.selection is not None)


def _of(release: PlannedRelease, shares: int, privacy: Privacy) -> Iterator[Advice]:
    yield from _keys(release, shares, privacy)
    yield from _groups(release, privacy)
    yield from _wide(release)


def _keys(release: PlannedRelease, shares: int, privacy: Privacy) -> Iterator[Advice]:
    """Private keys that could be public."""
    if release.selection is None:
        return
    unknown = [key for key in release.keys if key_domain(key.expr, privacy.max_keys) is None]
    if not unknown:
        text = (
            f"the groups have more than max_keys ({privacy.max_keys:,}) possible combinations, so only those with many"
            " units are shown: filter, or group more coarsely, and all of them are"
        )
        yield Advice("too_many_keys", text)
        return
    columns = [c for key in unknown for c in columns_of(key.expr) if c.origin is not None]
    names = ", ".join(dict.fromkeys(map(_name, columns))) or ", ".join(key.name for key in unknown)
    text = (
        f"groups of {names} are shown only where enough units are in them, and finding them takes a part of the price. "
    )
    if not columns:
        yield Advice("private_keys", text + "Coarser groups, as by FLOOR(x / 10), hold more units each")
        return
    gain = None if shares < 2 else _shared(shares, privacy) / _shared(shares - 1, privacy)
    smaller = "" if gain is None else f", and errors are {gain:.2f} times smaller"
    if all(c.type.is_time for c in columns):
        text += f"Longer periods, or fewer years by WHERE: up to {privacy.max_keys:,} periods are all shown{smaller}"
    else:
        text += f"If everybody knows the values, the owner can declare `values` or `references`: all are shown{smaller}"
    yield Advice("private_keys", text, gain)


def _name(column: Col) -> str:
    """As the policy has it; what the statement computes has no name there."""
    return "a computed column" if column.origin is None else ".".join(column.origin)


def _shared(shares: int, privacy: Privacy) -> float:
    """How much larger noise is for sharing one price."""
    return shares if privacy.accounting == "pure" else sqrt(shares)


def _groups(release: PlannedRelease, privacy: Privacy) -> Iterator[Advice]:
    groups = release.bound.groups
    if release.form != "norm" or groups < 2 or not (release.measurements or release.selection):
        return
    mechanisms = [m.mechanism for m in release.measurements] + (
        [release.selection.mechanism] if release.selection is not None else []
    )
    bound, one = release.bound, replace(release.bound, groups=1)
    gaussian = all(isinstance(m, DiscreteGaussian) for m in mechanisms)
    gain = sqrt(bound.l2_squared / one.l2_squared) if gaussian else bound.l1 / one.l1
    if gain <= 1:
        return
    text = (
        f"one {privacy.unit} counts in full in up to {groups} of these groups. If most are in one only,"
        f" SET dpsql.max_groups = 1: errors are {gain:.2f} times smaller, and units in more groups are scaled down"
    )
    yield Advice("max_groups", text, gain)


def _small(release: PlannedRelease, most: Decimal, payable: float) -> Iterator[Advice]:
    """Groups of a hundred rows that drown. `most`: what may be paid, `payable` times the price."""
    counts = [m.error95 for m in release.measurements if m.cell.kind in ("count", "units")]
    counts += [m.error95 for m in release.measurements if m.cell.moment is not None and m.cell.moment.order == 0]
    if not counts or max(counts) <= SMALL_GROUP / 10:
        return
    error = max(counts)
    times = error / (SMALL_GROUP / 10)
    text = f"counts are off by up to {_number(error)} (95 %): within 10 % only for groups above {_number(10 * error)}. "
    text += "Ask for larger groups"
    if times <= min(payable, _PAYABLE):
        text += f", or pay {_number(times)} times the epsilon to know groups of {SMALL_GROUP} as well"
    elif payable >= _WORTH_PAYING:
        text += f", or pay epsilon {most.normalize():f}, the most you may: then above {_number(10 * error / payable)}"
    yield Advice("small_groups", text, times)


def _wide(release: PlannedRelease) -> Iterator[Advice]:
    """Averages whose noise in a small group is a good part of the bounds' width."""
    for output in release.outputs:
        measured = _first_moment(output, release)
        if measured is None or not isinstance(output, MomentOutput):
            continue
        width = float(output.upper - output.lower)
        error = measured.error95 / SMALL_GROUP
        if width <= 0 or error <= _WORTH_WIDTH * width or not isinstance(measured.cell.argument, Col):
            continue
        name = _name(measured.cell.argument)
        tighter = f"WHERE {name} BETWEEN ... AND ..., or tighter bounds in the policy"
        if measured.cell.argument.origin is None:
            tighter = "LEAST(..., ...) of it, or tighter bounds of what it is made of"
        bounds = f"{_number(float(output.lower))} to {_number(float(output.upper))}"
        far = f"is off by up to {_number(error)}" if error < width else "tells nothing"
        text = (
            f"in a group of {SMALL_GROUP} rows, an average of {name} between its bounds ({bounds}) {far}. Half of that"
            f" width is half the error: {tighter}"
        )
        yield Advice("wide_bounds", text, 2.0)


def _first_moment(output: Output, release: PlannedRelease) -> Measurement | None:
    if not isinstance(output, MomentOutput):
        return None
    places = dict(output.cells)
    return release.measurements[places[1, 0]] if (1, 0) in places else None


def _sharing(shares: int, privacy: Privacy) -> Advice:
    gain = _shared(shares, privacy)
    text = (
        f"{shares} measurements share the price of this statement: alone, each has errors {gain:.2f} times smaller."
        " Ask only for what you need; what is computed from one measurement (shares, HAVING, ORDER BY) is free"
    )
    return Advice("measurements", text, gain)


def _number(value: float) -> str:
    """Two digits or so: `2,600`, `0.35`."""
    if abs(value) >= 100:
        return f"{ceil(value):,}"
    return f"{value:.3g}"
