"""Aggregations become planned releases: keys, measurements, sensitivities, mechanisms and prices.

Decides, from the statement and the policy alone, all that privacy rests on. The price of a statement is what it names;
its measurements (one per clipped vector, and one for each key selection) share it equally. After planning, the cost of
every release is derived again from the mechanisms themselves and must not exceed what was promised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from math import hypot
from typing import Literal

from dpsql.compiler.algebra import Aggregation, Expr, canonical, describe
from dpsql.compiler.cells import Cell, CellOutput, KnownOutput, cell_name, cell_output, cell_text, linear, most_steps
from dpsql.compiler.groups import Groups, Place, groups_of
from dpsql.compiler.histograms import Choice, Histogram, HistogramOutput, histogram, histogram_output, is_choice
from dpsql.compiler.keys import KeyDomain, filled, product
from dpsql.compiler.public.names import UNNAMED
from dpsql.compiler.sharing import may_clip, shared
from dpsql.compiler.shown import shown
from dpsql.compiler.totals import rows_in_all
from dpsql.dp.accounting import key_delta, share_of_statement
from dpsql.dp.mechanisms import DiscreteGaussian, Mechanism, error95, reach95, stddev
from dpsql.dp.privacy import Calibrated, DeltaEvent, best, cost, cost_of, units_up
from dpsql.dp.selection import threshold, weight_sensitivity
from dpsql.dp.sensitivity import L1, L2, ContributionBound, Norm, Sensitivity, clip_l1, clip_l2
from dpsql.errors import Failed, Rejected
from dpsql.policy.model import Privacy
from dpsql.policy.schema import Schema
from dpsql.types import Column, Cost, Relation

Form = Literal["rows", "single", "norm"]
"""How contributions are bounded: each row is a unit; one group a unit (clamp); norm clipping over groups."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A cell with its sensitivity and noise; `column` names it in the backend's result."""

    column: str
    name: str
    cell: Cell
    sensitivity: Sensitivity
    mechanism: Mechanism

    @property
    def resolution(self) -> Fraction:
        return self.cell.resolution

    @property
    def stddev(self) -> float:
        """Of the noise, in the aggregate's units."""
        return stddev(self.mechanism) * float(self.resolution)

    @property
    def error95(self) -> float:
        return error95(self.mechanism) * float(self.resolution)


@dataclass(frozen=True, slots=True)
class Selection:
    """Private keys: a key is shown iff its noisy weight reaches `threshold`."""

    sensitivity: Sensitivity
    mechanism: Mechanism
    threshold: int
    cap: int
    delta: Fraction


Output = CellOutput | HistogramOutput


@dataclass(frozen=True, slots=True)
class Key:
    """A group key; `domain` None: private."""

    name: str
    expr: Expr
    domain: KeyDomain | None


@dataclass(frozen=True, slots=True)
class PlannedRelease:
    """One release, fully decided. `cost` is what the ledger debits for it.

    `bound`: of a unit's rows; what one measurement's vector is clipped to is its `sensitivity`, of cells `bound.l1` (or
    the root of `bound.l2_squared`) times the largest value, and of a histogram's weights `bound.l1` times 1024.
    `measurements` are the columns of its cells; each of `histograms` has a query of its own. `places`: the groups of
    public keys by their indices, in order; None for all combinations.
    """

    index: int
    aggregation: Aggregation
    keys: tuple[Key, ...]
    public: bool
    form: Form
    norm: Norm
    bound: ContributionBound
    measurements: tuple[Measurement, ...]
    selection: Selection | None
    outputs: tuple[Output, ...]
    columns: tuple[Column, ...]
    cost: Cost
    canonical: str
    histograms: tuple[Histogram, ...] = ()
    places: tuple[Place, ...] | None = None

    @property
    def id(self) -> str:
        return f"r{self.index}"

    @property
    def size(self) -> int | None:
        """The number of groups, where it is public."""
        return _size(self.keys, self.places) if self.public else None

    @property
    def free(self) -> bool:
        """A list of public keys: nothing is measured."""
        return not self.has_cells and not self.histograms

    @property
    def has_cells(self) -> bool:
        """Whether noisy cells, or the selection of keys, need a query besides those of the histograms."""
        return bool(self.measurements) or self.selection is not None

    def error95(self, output: Output) -> float | None:
        """The 95 % error of a count or a sum; None where it depends on data."""
        parts = [(self.measurements[place], weight) for place, weight in linear(output)]
        if len(parts) < 2:
            return next((m.error95 for m, _ in parts), None)
        gaussian = all(isinstance(m.mechanism, DiscreteGaussian) for m, _ in parts)
        return reach95(gaussian=gaussian) * hypot(*(m.stddev * weight for m, weight in parts))


def with_released_keys(planned: PlannedRelease, derived: Mapping[int, Relation | None]) -> PlannedRelease:
    """The release with the key values of those before it filled in."""
    keys = tuple(
        key if key.domain is None else replace(key, domain=filled(key.domain, derived)) for key in planned.keys
    )
    return replace(planned, keys=keys)


@dataclass(frozen=True, slots=True)
class Terms:
    """What the session asks for: the statement's epsilon, at the smaller of the user's and the dataset's delta.

    `max_error`: the least epsilon from `min_epsilon` to `max_epsilon` is taken whose 95 % error is at most this on
    every output.
    `error_bars`: the answer has the ends of each aggregate's interval as columns of its own.
    """

    epsilon: Decimal
    delta: Decimal
    mechanism: Literal["auto", "laplace", "gaussian"] = "auto"
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_error: Decimal | None = None
    max_epsilon: Decimal = Decimal(100)
    min_epsilon: Decimal = Decimal("0.0001")
    error_bars: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """An aggregation before its noise is known."""

    aggregation: Aggregation
    keys: tuple[Key, ...]
    public: bool
    form: Form
    bound: ContributionBound
    cells: tuple[Cell, ...]
    choices: tuple[Choice, ...]
    outputs: tuple[Output, ...]
    places: tuple[Place, ...] | None

    @property
    def shares(self) -> int:
        return len(self.cells) + len(self.choices) + (not self.public)


def plan(
    aggregations: tuple[Aggregation, ...], columns: tuple[tuple[Column, ...], ...], schema: Schema, terms: Terms
) -> tuple[PlannedRelease, ...]:
    """All releases of a statement; `columns[i]` are the released columns of `aggregations[i]`."""
    privacy = schema.policy.privacy
    norm: Norm = "l1" if privacy.accounting == "pure" or terms.mechanism == "laplace" else "l2"
    outlines = tuple(_outline(a, schema, norm) for a in aggregations)
    shares = sum(outline.shares for outline in outlines)
    if not shares:
        return tuple(_planned(i, o, columns[i], privacy, terms, Fraction(0), norm) for i, o in enumerate(outlines))
    total = share_of_statement(privacy.accounting, terms.epsilon, terms.delta, privacy.key_delta_share)
    share = total / shares
    planned = tuple(_planned(i, o, columns[i], privacy, terms, share, norm) for i, o in enumerate(outlines))
    _check_price(planned, total, privacy)
    return planned


def _outline(aggregation: Aggregation, schema: Schema, norm: Norm) -> Outline:
    groups = groups_of(aggregation, schema.policy.privacy.max_keys, schema.tables)
    keys, public = _keys(aggregation, groups), groups.public
    if aggregation.preserved and not public:
        raise Rejected(
            "This outer join keeps the rows of a public table, but not all group keys are public.",
            hint="Group by columns of the public table only, or use an inner join.",
        )
    size = _size(keys, groups.places) if public else None
    form, bound = _form(aggregation, size, rows_in_all(aggregation.input, schema))
    cells: list[Cell] = []
    choices: list[Choice] = []
    clips = may_clip(form, bound)
    ways = shared(aggregation.aggregates, aggregation.input, bound, norm, clips=clips)
    outputs = tuple(
        KnownOutput(groups.known[i])
        if i in groups.known
        else histogram_output(way.aggregate, size, choices)
        if is_choice(way.aggregate)
        else cell_output(way, bound, norm, cells)
        for i, way in enumerate(ways)
    )
    if choices:
        most_steps(bound, "l1")
    return Outline(aggregation, keys, public, form, bound, tuple(cells), tuple(choices), outputs, groups.places)


def _size(keys: tuple[Key, ...], places: tuple[Place, ...] | None) -> int:
    """The number of groups of public keys."""
    return product(tuple(k.domain for k in keys if k.domain is not None)) if places is None else len(places)


def _keys(aggregation: Aggregation, groups: Groups) -> tuple[Key, ...]:
    """Public only if every key has a domain and there are few enough groups; all private otherwise."""
    return tuple(
        Key(shown(expr) if name == UNNAMED else name, expr, domain if groups.public else None)
        for name, expr, domain in zip(aggregation.names, aggregation.keys, groups.domains, strict=True)
    )


def _form(aggregation: Aggregation, size: int | None, in_all: int) -> tuple[Form, ContributionBound]:
    """`size`: how many groups there are, where it is public. `in_all`: the most rows of a unit there can be."""
    if aggregation.one_row:
        return "rows", ContributionBound(1, 1)
    groups = aggregation.max_groups if not size else min(aggregation.max_groups, size)
    if aggregation.one_group or size == 1:
        return "single", _bounded(1, aggregation.max_rows, in_all)
    return "norm", _bounded(groups, aggregation.max_rows, in_all)


def _bounded(groups: int, rows: int, in_all: int) -> ContributionBound:
    """A unit with T rows in all has at most T groups, and at most T rows in one. More than L0 m in all say nothing."""
    if in_all > groups * rows:
        return ContributionBound(groups, rows)
    return ContributionBound(min(groups, in_all), min(rows, in_all), in_all)


def _sensitivities(cell: Cell, bound: ContributionBound) -> tuple[L1, L2]:
    if cell.kind == "units":
        bound = ContributionBound(bound.groups, 1)
    return clip_l1(bound, cell.largest), clip_l2(bound, cell.largest)


def _planned(
    index: int,
    outline: Outline,
    columns: tuple[Column, ...],
    privacy: Privacy,
    terms: Terms,
    share: Fraction,
    norm: Norm,
) -> PlannedRelease:
    measurements = []
    for number, cell in enumerate(outline.cells):
        l1, l2 = _sensitivities(cell, outline.bound)
        chosen = best(l1, l2, share, privacy.accounting, terms.mechanism)
        measurements.append(Measurement(f"m{number}", cell_name(cell), cell, chosen.sensitivity, chosen.mechanism))
    selection = None if outline.public else _selection(outline, privacy, terms, share, norm)
    histograms = tuple(
        histogram(number, choice, outline.bound, share, privacy.accounting)
        for number, choice in enumerate(outline.choices)
    )
    total = sum((cost_of(m.mechanism, m.sensitivity) for m in measurements), Cost())
    total += sum((cost_of(h.mechanism, h.scores) for h in histograms), Cost())
    if selection is not None:
        total += cost_of(selection.mechanism, selection.sensitivity) + cost(DeltaEvent(selection.delta))
    return PlannedRelease(
        index=index,
        aggregation=outline.aggregation,
        keys=outline.keys,
        public=outline.public,
        form=outline.form,
        norm=norm,
        bound=outline.bound,
        measurements=tuple(measurements),
        selection=selection,
        outputs=outline.outputs,
        columns=columns,
        cost=total,
        canonical=_canonical(outline, tuple(measurements), selection, histograms),
        histograms=histograms,
        places=outline.places,
    )


def _selection(outline: Outline, privacy: Privacy, terms: Terms, share: Fraction, norm: Norm) -> Selection:
    delta = (
        Fraction(privacy.key_delta)
        if privacy.key_delta is not None
        else key_delta(privacy.accounting, terms.delta, privacy.key_delta_share)
    )
    if delta <= 0:
        raise Rejected(
            "The group keys are private, and this policy keeps no delta for private keys.",
            hint="Group by columns with declared values or bounds, or ask the owner for key_delta_share above 0.",
        )
    groups = outline.bound.groups
    cap = 1 if outline.form != "norm" else privacy.cap(groups)
    chosen = _weight_noise(groups, privacy, terms, share)
    tau = threshold(chosen.mechanism, groups, max(cap, groups), delta, norm)
    return Selection(chosen.sensitivity, chosen.mechanism, tau, max(cap, groups), delta)


def _weight_noise(groups: int, privacy: Privacy, terms: Terms, share: Fraction) -> Calibrated:
    l1, l2 = weight_sensitivity(groups, "l1"), weight_sensitivity(groups, "l2")
    if not isinstance(l1, L1) or not isinstance(l2, L2):
        raise Failed("weights with the other norm's sensitivity")
    return best(l1, l2, share, privacy.accounting, terms.mechanism)


def _canonical(
    outline: Outline,
    measurements: tuple[Measurement, ...],
    selection: Selection | None,
    histograms: tuple[Histogram, ...],
) -> str:
    """What is measured and how, for the release's key: equal texts mean the same random experiment."""
    aggregation = outline.aggregation
    keys = ";".join(f"{canonical(k.expr)}:{k.expr.type}={_domain_text(k.domain)}" for k in outline.keys)
    cells = ";".join(f"{cell_text(m.cell)}~{m.sensitivity}~{m.mechanism}" for m in measurements)
    bounding = f"{outline.form},{outline.bound},{aggregation.unit}"
    chosen = "".join(f"\n{h.choice.text}~{h.weights}~{h.mechanism}" for h in histograms)
    places = "" if outline.places is None else sha256(repr(outline.places).encode()).hexdigest()
    return f"{describe(aggregation.input)}\n{keys}{places}\n{bounding}\n{cells}\n{selection}{chosen}"


def _domain_text(domain: KeyDomain | None) -> str:
    return "private" if domain is None else repr(domain)


def _check_price(planned: tuple[PlannedRelease, ...], total: Fraction, privacy: Privacy) -> None:
    """The price derived from the mechanisms must be the one promised, never above it."""
    spent = sum((p.cost for p in planned), Cost())
    amount = spent.epsilon if privacy.accounting == "pure" else spent.rho
    promised = units_up(total)
    if amount > promised + sum(len(p.measurements) + len(p.histograms) + 1 for p in planned):
        raise Failed("the plan costs more than its price")
    if amount < promised - max(promised // 10**6, 1000):
        raise Failed("the plan costs less than its price")
