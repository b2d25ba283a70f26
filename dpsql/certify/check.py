"""A planned release with the verified schema in, a `Certificate` or what could not be derived out.

Holds together what the other modules derive: the rows (`rows`), what one unit adds to each vector (`vectors`), the
noise, its price and the threshold of private keys (`noise`), and the way in which contributions are bounded, which must
follow from the rows: one row a unit, one group a unit, or a norm over all groups of the column that holds the unit.
What is checked is what is emitted: the relation, the subjects of public keys, and the cells of the planned release;
`Aggregation.one_row`, `one_group` and `aggregates` are never read.

Never: an answer of "proven" by default. Each form, cell and key has its rule here, or the release has no certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from dpsql.certify.certificate import Certificate, Gap, Noised, Unproven
from dpsql.certify.noise import price, price_of_keys, weights
from dpsql.certify.rows import Facts, Reader
from dpsql.certify.vectors import scores, sensitivities
from dpsql.compiler.algebra import Expr
from dpsql.policy.schema import Schema
from dpsql.types import Cost

if TYPE_CHECKING:
    from dpsql.compiler.plan import PlannedRelease


def certify(release: PlannedRelease, schema: Schema) -> Certificate | Unproven:
    """Pure: looks at the plan and the schema only, and takes well under a millisecond."""
    try:
        return _certified(release, schema)
    except Gap as gap:
        return Unproven(release.id, str(gap))


def _certified(release: PlannedRelease, schema: Schema) -> Certificate:
    _check_groups(release)
    if not release.measurements and not release.histograms and release.selection is None:
        made = Certificate(release.id, Cost())
    else:
        _check_form(release, schema)
        made = _measured(release, pure=schema.policy.privacy.accounting == "pure")
    if release.cost != made.price:
        raise Gap(f"the plan costs {release.cost}, derived {made.price}")
    return made


def _measured(release: PlannedRelease, *, pure: bool) -> Certificate:
    moved = sensitivities(release)
    noise: list[Noised] = [(m.mechanism, each) for m, each in zip(release.measurements, moved, strict=True)]
    noise += _choices(release)
    total = sum((price(mechanism, each, pure=pure) for mechanism, each in noise), Cost())
    selection, groups = release.selection, release.bound.groups
    if selection is None:
        return Certificate(release.id, total, tuple(noise))
    total += price_of_keys(selection, groups, release.norm, pure=pure)
    noise.append((selection.mechanism, weights(groups, release.norm)))
    return Certificate(release.id, total, tuple(noise), selection.threshold, selection.delta)


def _choices(release: PlannedRelease) -> list[Noised]:
    """Each histogram's mechanism with how far its scores move."""
    found: list[Noised] = []
    for place, histogram in enumerate(release.histograms):
        moved, made = scores(release, histogram.choice)
        if (histogram.number, histogram.weights, histogram.scores) != (place, moved, made):
            raise Gap(f"choice {place} declares {histogram.scores}, derived {made}")
        found.append((histogram.mechanism, made))
    return found


def _check_groups(release: PlannedRelease) -> None:
    """Public groups are all released, each once, lest one be measured twice. Others are selected."""
    public = all(key.domain is not None for key in release.keys)
    if release.public != public or public != (release.selection is None):
        raise Gap("keys that are neither public nor selected")
    if not public and any(key.domain is not None for key in release.keys):
        raise Gap("keys of which some are public")
    if release.places is not None:
        sizes = [key.domain.size for key in release.keys if key.domain is not None]
        inside = all(
            len(place) == len(sizes) and all(0 <= i < n for i, n in zip(place, sizes, strict=True))
            for place in release.places
        )
        if not public or not inside or len(set(release.places)) != len(release.places):
            raise Gap("groups that are listed twice, or that there are not")


def _check_form(release: PlannedRelease, schema: Schema) -> None:
    """The way in which contributions are bounded follows from the rows."""
    reader, made = Reader(schema), release.aggregation
    facts = reader.relation(made.input)
    reader.read(facts, *_emitted(release))
    if not facts.private or facts.waits is not None:
        raise Gap("rows that belong to nobody")
    by_row = made.unit is None and schema.policy.privacy.is_row
    if not (by_row and release.form == "rows") and made.unit not in facts.unit:
        raise Gap("contributions are bounded by what is not the unit")
    bound, holds = release.bound, False
    match release.form:
        case "rows":
            holds = facts.one_row and (bound.groups, bound.rows, bound.total) == (1, 1, None)
        case "single":
            holds = bound.groups == 1 and bound.rows <= (bound.total or bound.rows) and _one_group(release, facts)
        case "norm":
            holds = bound.groups <= made.max_groups and bound.rows <= made.max_rows
    if not holds:
        raise Gap(f"the form {release.form} of {bound} does not follow from the rows")


def _one_group(release: PlannedRelease, facts: Facts) -> bool:
    """Whether all rows of a unit are in one group: there is only one, or the keys are constant within a unit."""
    sizes = [key.domain.size for key in release.keys if key.domain is not None]
    if release.public and (prod(sizes) if release.places is None else len(release.places)) == 1:
        return True
    return all(facts.steady(e) for e in _keys(release))


def _keys(release: PlannedRelease) -> Sequence[Expr]:
    """What the backend computes for each key: the subject of a public one, whose index it finds."""
    return [key.expr if key.domain is None else key.domain.subject for key in release.keys]


def _emitted(release: PlannedRelease) -> Iterable[Expr | None]:
    """All expressions over the relation that reach the backend."""
    yield from (key.expr for key in release.keys)
    yield from _keys(release)
    for measured in release.measurements:
        yield from (measured.cell.argument, measured.cell.second, measured.cell.condition)
    for histogram in release.histograms:
        yield from (histogram.choice.argument, histogram.choice.condition)
        listed = getattr(histogram.choice.bins, "domain", None)
        yield None if listed is None else listed.subject
