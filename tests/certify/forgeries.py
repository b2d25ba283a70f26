"""Forged plans: each breaks one step of the argument in a plan that is otherwise as the planner made it.

A forgery gives the changed release, or None where it does not apply. Where it can, the lie is consistent: sensitivities
and prices are computed anew from what is claimed, so that only the derivation from the algebra can tell. `rewritten`
changes a relation bottom up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from dpsql.compiler.algebra import (
    Call,
    Case,
    Exists,
    Expr,
    Filter,
    Join,
    Node,
    PerUnit,
    Project,
    Scan,
    UnionAll,
    conjuncts,
)
from dpsql.compiler.plan import Form, Measurement, PlannedRelease
from dpsql.compiler.walk import nodes, with_children
from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, NoisyMax
from dpsql.dp.privacy import DeltaEvent, cost, cost_of
from dpsql.dp.selection import threshold
from dpsql.dp.sensitivity import L1, L2, ContributionBound, Scores, Sensitivity, clip_l1, clip_l2
from dpsql.types import BOOL, Cost, TableName

Forgery = Callable[[PlannedRelease], PlannedRelease | None]
FORGERIES: dict[str, Forgery] = {}


def forgery(change: Forgery) -> Forgery:
    FORGERIES[change.__name__] = change
    return change


def priced(release: PlannedRelease) -> PlannedRelease:
    """The release at the price that its own mechanisms and sensitivities say."""
    total = sum((cost_of(m.mechanism, m.sensitivity) for m in release.measurements), Cost())
    total += sum((cost_of(h.mechanism, h.scores) for h in release.histograms), Cost())
    if release.selection is not None:
        chosen = release.selection
        total += cost_of(chosen.mechanism, chosen.sensitivity) + cost(DeltaEvent(chosen.delta))
    return replace(release, cost=total)


def with_measurement(release: PlannedRelease, place: int, **changes: object) -> PlannedRelease:
    made = list(release.measurements)
    made[place] = replace(made[place], **changes)  # type: ignore[arg-type]
    return replace(release, measurements=tuple(made))


def with_selection(release: PlannedRelease, **changes: object) -> PlannedRelease | None:
    if release.selection is None:
        return None
    return priced(replace(release, selection=replace(release.selection, **changes)))  # type: ignore[arg-type]


def rewritten(node: Node, change: Callable[[Node], Node]) -> Node:
    match node:
        case Filter() | Project() | PerUnit():
            node = replace(node, input=rewritten(node.input, change))
        case Join(left=left, right=right):
            node = replace(node, left=rewritten(left, change), right=rewritten(right, change))
        case UnionAll(inputs=inputs):
            node = replace(node, inputs=tuple(rewritten(each, change) for each in inputs))
        case _:
            pass
    return change(node)


def with_relation(release: PlannedRelease, change: Callable[[Node], Node]) -> PlannedRelease | None:
    """The release over another relation; None where nothing has changed."""
    made = rewritten(release.aggregation.input, change)
    if made == release.aggregation.input:
        return None
    return replace(release, aggregation=replace(release.aggregation, input=made))


# How contributions are bounded ----------------------------------------------------------------------------------


def as_form(release: PlannedRelease, form: Form, bound: ContributionBound) -> PlannedRelease:
    """The release bounded in another way, with all that follows computed as the planner does."""

    def moved(m: Measurement) -> Sensitivity:
        mine = replace(bound, rows=1) if m.cell.kind == "units" else bound
        return clip_l1(mine, m.cell.largest) if release.norm == "l1" else clip_l2(mine, m.cell.largest)

    weights = clip_l1(bound, 1024)
    before = release.histograms[0].weights.bound if release.histograms else 1
    histograms = tuple(
        replace(h, weights=weights, scores=Scores(max(h.scores.bound * weights.bound // before, 1)))
        for h in release.histograms
    )
    selection = release.selection
    if selection is not None:
        groups = L1(1024 * bound.groups) if release.norm == "l1" else L2(1024**2 * bound.groups)
        cap = max(selection.cap if form == "norm" else 1, bound.groups)
        tau = threshold(selection.mechanism, bound.groups, cap, selection.delta, release.norm)
        selection = replace(selection, sensitivity=groups, threshold=tau, cap=cap)
    measurements = tuple(replace(m, sensitivity=moved(m)) for m in release.measurements)
    made = replace(release, form=form, bound=bound, measurements=measurements, histograms=histograms)
    return priced(replace(made, selection=selection))


@forgery
def one_row_that_is_not(release: PlannedRelease) -> PlannedRelease | None:
    claimed = replace(release, aggregation=replace(release.aggregation, one_row=True, one_group=True))
    return as_form(claimed, "rows", ContributionBound(1, 1)) if release.form != "rows" else None


@forgery
def one_group_that_is_not(release: PlannedRelease) -> PlannedRelease | None:
    claimed = replace(release, aggregation=replace(release.aggregation, one_group=True))
    return as_form(claimed, "single", ContributionBound(1, release.bound.rows)) if release.form == "norm" else None


@forgery
def no_unit(release: PlannedRelease) -> PlannedRelease | None:
    known = release.aggregation.unit
    return None if known is None else replace(release, aggregation=replace(release.aggregation, unit=None))


@forgery
def another_unit(release: PlannedRelease) -> PlannedRelease | None:
    """A column of the first scan that is not the unit."""
    first = next((n for n in nodes(release.aggregation) if isinstance(n, Scan) and n.unit is not None), None)
    other = None if first is None else next((c.name for _, c in first.columns if c.name != first.unit), None)
    if other is None or release.aggregation.unit is None:
        return None
    return replace(release, aggregation=replace(release.aggregation, unit=other))


@forgery
def bound_halved(release: PlannedRelease) -> PlannedRelease | None:
    """Where the SQL clips is not where the sensitivities say."""
    bound = release.bound
    if bound.rows < 2 or not any(m.cell.kind != "units" for m in release.measurements):
        return None
    return replace(release, bound=replace(bound, rows=bound.rows // 2))


@forgery
def groups_doubled(release: PlannedRelease) -> PlannedRelease | None:
    bound = release.bound
    return replace(release, bound=replace(bound, groups=bound.groups * 2)) if not release.free else None


# Sensitivities --------------------------------------------------------------------------------------------------


def with_sensitivity(
    release: PlannedRelease, change: Callable[[Sensitivity, ContributionBound], Sensitivity]
) -> PlannedRelease | None:
    """Another sensitivity of the first measurement, at its price."""
    if not release.measurements:
        return None
    first = release.measurements[0]
    made = change(first.sensitivity, release.bound)
    return None if made == first.sensitivity else priced(with_measurement(release, 0, sensitivity=made))


@forgery
def radius_halved(release: PlannedRelease) -> PlannedRelease | None:
    return with_sensitivity(release, lambda s, _: L1(s.bound // 2) if isinstance(s, L1) else L2(s.squared // 4))


@forgery
def radius_rounded_down(release: PlannedRelease) -> PlannedRelease | None:
    return with_sensitivity(release, lambda s, _: L1(s.bound - 1) if isinstance(s, L1) else L2(s.squared - 1))


@forgery
def groups_missing(release: PlannedRelease) -> PlannedRelease | None:
    def without(s: Sensitivity, b: ContributionBound) -> Sensitivity:
        return L1(s.bound // b.groups) if isinstance(s, L1) else L2(s.squared // b.groups)

    return with_sensitivity(release, without)


@forgery
def root_of_groups_for_l1(release: PlannedRelease) -> PlannedRelease | None:
    def rooted(s: Sensitivity, b: ContributionBound) -> Sensitivity:
        return L1(s.bound * math.isqrt(b.groups) // b.groups) if isinstance(s, L1) else s

    return with_sensitivity(release, rooted)


@forgery
def other_norm(release: PlannedRelease) -> PlannedRelease | None:
    """Clipped in one norm, noise for the other."""
    if not release.has_cells or release.bound.groups == 1:
        return None
    return replace(release, norm="l2" if release.norm == "l1" else "l1")


@forgery
def sensitivity_of_the_other_norm(release: PlannedRelease) -> PlannedRelease | None:
    if not release.measurements or not isinstance(release.measurements[0].sensitivity, L2):
        return None
    squared = release.measurements[0].sensitivity.squared
    noise = DiscreteLaplace(math.sqrt(squared))
    return priced(with_measurement(release, 0, sensitivity=L1(math.isqrt(squared)), mechanism=noise))


@forgery
def grid_widened(release: PlannedRelease) -> PlannedRelease | None:
    """The clamp of what is summed let out, noise for the old one."""
    for place, m in enumerate(release.measurements):
        if m.cell.grid is not None:
            grid = replace(m.cell.grid, high=2 * m.cell.grid.high + 1, low=2 * m.cell.grid.low - 1)
            return with_measurement(release, place, cell=replace(m.cell, grid=grid))
    return None


@forgery
def centre_forgotten(release: PlannedRelease) -> PlannedRelease | None:
    for place, m in enumerate(release.measurements):
        moment = m.cell.moment
        if moment is not None and moment.i == 1 and moment.x.centre and moment.x.low >= 0:
            cell = replace(m.cell, moment=replace(moment, x=replace(moment.x, centre=0)))
            return with_measurement(release, place, cell=cell)
    return None


@forgery
def products_not_shifted(release: PlannedRelease) -> PlannedRelease | None:
    for place, m in enumerate(release.measurements):
        if m.cell.moment is not None and m.cell.moment.shift:
            return with_measurement(release, place, cell=replace(m.cell, moment=replace(m.cell.moment, shift=0)))
    return None


@forgery
def powers_of_one_value(release: PlannedRelease) -> PlannedRelease | None:
    """x y measured as x x, as if it were bounded by a y of 1."""
    for place, m in enumerate(release.measurements):
        moment = m.cell.moment
        if moment is not None and moment.y is not None and (moment.i, moment.j) == (1, 1):
            return with_measurement(release, place, cell=replace(m.cell, second=None, moment=replace(moment, y=None)))
    return None


@forgery
def moment_without_its_count(release: PlannedRelease) -> PlannedRelease | None:
    """Nothing bounds what a unit adds to a sum of moments whose rows are not counted."""
    moments = [m for m in release.measurements if m.cell.moment is not None]
    kept = [m for m in moments if not m.cell.counts]
    if not kept or len(kept) == len(moments):
        return None
    named = tuple(replace(m, column=f"m{i}") for i, m in enumerate(kept))
    return priced(replace(release, measurements=named))


@forgery
def moment_counted_by_fewer_rows(release: PlannedRelease) -> PlannedRelease | None:
    """The count of a moment holds the rows of a FILTER only."""
    for place, m in enumerate(release.measurements):
        others = any(o.cell.moment and not o.cell.counts for o in release.measurements)
        counts = sum(1 for o in release.measurements if o.cell.moment and o.cell.counts)
        if m.cell.moment is not None and m.cell.counts and others and counts == 1 and m.cell.condition is None:
            fewer = Call("is_null", (next(iter(o.cell.argument for o in release.measurements if o.cell.argument)),),
                         BOOL)  # fmt: skip
            return with_measurement(release, place, cell=replace(m.cell, condition=fewer))
    return None


@forgery
def one_column_on_two_grids(release: PlannedRelease) -> PlannedRelease | None:
    """Two cells read one column, which is clamped for the first of them alone."""
    for m in release.measurements:
        if m.cell.grid is not None and m.cell.grid.high > 2:
            small = replace(m.cell.grid, high=1, low=0, centre=0)
            bound, norm = release.bound, release.norm
            moved: Sensitivity = clip_l1(bound, 1) if norm == "l1" else clip_l2(bound, 1)
            cell = replace(m.cell, grid=small)
            again = replace(m, column=f"m{len(release.measurements)}", cell=cell, sensitivity=moved)
            return priced(replace(release, measurements=(*release.measurements, again)))
    return None


@forgery
def columns_swapped(release: PlannedRelease) -> PlannedRelease | None:
    if len(release.measurements) < 2:
        return None
    first, second, *rest = release.measurements
    swapped = (replace(first, column=second.column), replace(second, column=first.column), *rest)
    return replace(release, measurements=swapped)


# Noise and price ------------------------------------------------------------------------------------------------


def quieter(mechanism: object, factor: float) -> object:
    name = "sigma" if isinstance(mechanism, DiscreteGaussian) else "scale"
    return replace(mechanism, **{name: getattr(mechanism, name) * factor})  # type: ignore[type-var]


@forgery
def noise_halved(release: PlannedRelease) -> PlannedRelease | None:
    if not release.measurements:
        return None
    return with_measurement(release, 0, mechanism=quieter(release.measurements[0].mechanism, 0.5))


@forgery
def scale_rounded_down(release: PlannedRelease) -> PlannedRelease | None:
    if not release.measurements:
        return None
    return with_measurement(release, 0, mechanism=quieter(release.measurements[0].mechanism, 1 - 1e-9))


@forgery
def weights_of_keys_with_less_noise(release: PlannedRelease) -> PlannedRelease | None:
    if release.selection is None:
        return None
    mechanism = quieter(release.selection.mechanism, 1 - 1e-6)
    return replace(release, selection=replace(release.selection, mechanism=mechanism))  # type: ignore[arg-type]


@forgery
def price_of_one_measurement_too_few(release: PlannedRelease) -> PlannedRelease | None:
    if not release.measurements:
        return None
    last = release.measurements[-1]
    return replace(release, cost=_less(release.cost, cost_of(last.mechanism, last.sensitivity)))


@forgery
def price_without_choices(release: PlannedRelease) -> PlannedRelease | None:
    if not release.histograms:
        return None
    last = release.histograms[-1]
    return replace(release, cost=_less(release.cost, cost_of(last.mechanism, last.scores)))


@forgery
def price_without_delta(release: PlannedRelease) -> PlannedRelease | None:
    return None if release.selection is None else replace(release, cost=replace(release.cost, delta=0))


@forgery
def free_of_charge(release: PlannedRelease) -> PlannedRelease | None:
    return None if release.free else replace(release, cost=Cost())


@forgery
def a_unit_of_the_ledger_too_little(release: PlannedRelease) -> PlannedRelease | None:
    return None if release.free else replace(release, cost=_less(release.cost, Cost(rho=1)))


def _less(whole: Cost, part: Cost) -> Cost:
    return Cost(whole.epsilon - part.epsilon, whole.rho - part.rho, whole.delta - part.delta)


@forgery
def scores_halved(release: PlannedRelease) -> PlannedRelease | None:
    if not release.histograms:
        return None
    first, *rest = release.histograms
    made = replace(first, scores=Scores(first.scores.bound // 2))
    return priced(replace(release, histograms=(made, *rest)))


@forgery
def choice_with_half_the_noise(release: PlannedRelease) -> PlannedRelease | None:
    if not release.histograms:
        return None
    first, *rest = release.histograms
    return replace(release, histograms=(replace(first, mechanism=NoisyMax(first.mechanism.scale / 2)), *rest))


@forgery
def rank_of_the_smaller_side(release: PlannedRelease) -> PlannedRelease | None:
    """A quantile whose scores move by the larger of the two sides of its rank, priced by the smaller."""
    for place, h in enumerate(release.histograms):
        a, d = h.choice.rank.numerator, h.choice.rank.denominator
        if h.choice.wanted == "quantile" and 0 < min(a, d - a) < max(a, d - a):
            made = replace(h, scores=Scores(min(a, d - a) * h.weights.bound))
            others = (*release.histograms[:place], made, *release.histograms[place + 1 :])
            return priced(replace(release, histograms=others))
    return None


# Private keys and groups ----------------------------------------------------------------------------------------


@forgery
def threshold_one_step_lower(release: PlannedRelease) -> PlannedRelease | None:
    selection = release.selection
    return None if selection is None else with_selection(release, threshold=selection.threshold - 1)


@forgery
def threshold_of_rows(release: PlannedRelease) -> PlannedRelease | None:
    """As if each of a unit's rows counted, and a group of so many were large."""
    selection = release.selection
    return None if selection is None else with_selection(release, threshold=selection.threshold // 2)


@forgery
def threshold_of_one_group(release: PlannedRelease) -> PlannedRelease | None:
    chosen = release.selection
    if chosen is None or release.bound.groups == 1:
        return None
    tau = threshold(chosen.mechanism, 1, 1, chosen.delta, release.norm)
    return with_selection(release, threshold=tau) if tau < chosen.threshold else None


@forgery
def cap_let_out(release: PlannedRelease) -> PlannedRelease | None:
    """A unit of more groups than the threshold was made for."""
    chosen = release.selection
    if chosen is None or release.form != "norm":
        return None
    made = with_selection(release, cap=chosen.cap * 50)
    tau = threshold(chosen.mechanism, release.bound.groups, chosen.cap * 50, chosen.delta, release.norm)
    return made if tau > chosen.threshold else None


@forgery
def delta_halved(release: PlannedRelease) -> PlannedRelease | None:
    return None if release.selection is None else with_selection(release, delta=release.selection.delta / 2)


@forgery
def delta_of_zero(release: PlannedRelease) -> PlannedRelease | None:
    if release.selection is None:
        return None
    zero = replace(release.selection, delta=Fraction(0))
    return replace(release, selection=zero, cost=replace(release.cost, delta=0))


@forgery
def weights_without_groups(release: PlannedRelease) -> PlannedRelease | None:
    if release.selection is None or release.bound.groups == 1:
        return None
    one: Sensitivity = L1(1024) if release.norm == "l1" else L2(1024**2)
    return with_selection(release, sensitivity=one)


@forgery
def private_keys_not_selected(release: PlannedRelease) -> PlannedRelease | None:
    if release.selection is None:
        return None
    return priced(replace(release, selection=None, public=True))


@forgery
def a_group_twice(release: PlannedRelease) -> PlannedRelease | None:
    if not release.places:
        return None
    return replace(release, places=(*release.places, release.places[0]))


# Relations ------------------------------------------------------------------------------------------------------


def _all_conjuncts(conditions: tuple[Expr, ...]) -> Iterator[Expr]:
    for condition in conditions:
        yield from conjuncts(condition)


def _is_private(node: Node, public: frozenset[str]) -> bool:
    match node:
        case Scan(table=table):
            return table not in public
        case Filter() | Project() | PerUnit():
            return _is_private(node.input, public)
        case Join(left=left, right=right):
            return _is_private(left, public) or _is_private(right, public)
        case UnionAll(inputs=inputs):
            return any(_is_private(each, public) for each in inputs)
        case _:
            return False


PUBLIC = frozenset({"shops", "promo", "tags", "Counters"})


@forgery
def join_without_its_equalities(release: PlannedRelease) -> PlannedRelease | None:
    """Rows of two private relations that meet on anything."""

    def change(node: Node) -> Node:
        if not isinstance(node, Join) or not (_is_private(node.left, PUBLIC) and _is_private(node.right, PUBLIC)):
            return node
        kept = tuple(c for c in _all_conjuncts(node.conditions) if not (isinstance(c, Call) and c.op == "eq"))
        return replace(node, conditions=kept)

    return with_relation(release, change)


@forgery
def join_by_less_or_equal(release: PlannedRelease) -> PlannedRelease | None:
    def change(node: Node) -> Node:
        if not isinstance(node, Join) or not (_is_private(node.left, PUBLIC) and _is_private(node.right, PUBLIC)):
            return node
        loose = tuple(
            replace(c, op="le") if isinstance(c, Call) and c.op == "eq" else c for c in _all_conjuncts(node.conditions)
        )
        return replace(node, conditions=loose)

    return with_relation(release, change)


@forgery
def join_under_or(release: PlannedRelease) -> PlannedRelease | None:
    """The proof as one side of an OR."""

    def change(node: Node) -> Node:
        if not isinstance(node, Join) or not (_is_private(node.left, PUBLIC) and _is_private(node.right, PUBLIC)):
            return node
        return replace(node, conditions=(Call("or", (*node.conditions, *node.conditions), BOOL),))

    return with_relation(release, change)


@forgery
def outer_join_of_public_rows(release: PlannedRelease) -> PlannedRelease | None:
    """Rows of a public table kept, with nobody's private row beside them."""

    def change(node: Node) -> Node:
        if isinstance(node, Join) and node.kind == "inner" and _is_private(node.left, PUBLIC):
            public = not _is_private(node.right, PUBLIC) and isinstance(node.right, Scan)
            return replace(node, kind="left", left=node.right, right=node.left) if public else node
        return node

    return with_relation(release, change)


@forgery
def grouped_without_the_unit(release: PlannedRelease) -> PlannedRelease | None:
    """One row for each value of another column, of several units, under the name of the unit."""

    def change(node: Node) -> Node:
        if not isinstance(node, PerUnit):
            return node
        below = next((n for n in _scans(node.input) if n.unit is not None), None)
        other = None if below is None else next((c for _, c in below.columns if c.name != below.unit), None)
        keys = tuple((name, other if other is not None and i == 0 else key) for i, (name, key) in enumerate(node.keys))
        return replace(node, keys=keys)

    return with_relation(release, change)


def _scans(node: Node) -> Iterator[Scan]:
    match node:
        case Scan():
            yield node
        case Filter() | Project() | PerUnit():
            yield from _scans(node.input)
        case Join(left=left, right=right):
            yield from _scans(left)
            yield from _scans(right)
        case _:
            return


def _loosened(expr: Expr) -> Expr:
    """EXISTS without the equality of units."""
    if isinstance(expr, Exists) and _is_private(expr.relation, PUBLIC):
        kept = tuple(c for c in _all_conjuncts(expr.conditions) if not (isinstance(c, Call) and c.op == "eq"))
        return replace(expr, conditions=kept)
    return with_children(expr, _loosened) if isinstance(expr, Call | Case | Exists) else expr


@forgery
def subqueries_of_anybody(release: PlannedRelease) -> PlannedRelease | None:
    def change(node: Node) -> Node:
        if isinstance(node, Filter | Join):
            return replace(node, conditions=tuple(map(_loosened, node.conditions)))
        return node

    return with_relation(release, change)


@forgery
def subqueries_of_anybody_in_a_measure(release: PlannedRelease) -> PlannedRelease | None:
    for place, m in enumerate(release.measurements):
        made = None if m.cell.argument is None else _loosened(m.cell.argument)
        if made != m.cell.argument:
            return with_measurement(release, place, cell=replace(m.cell, argument=made))
    return None


@forgery
def union_of_another_column(release: PlannedRelease) -> PlannedRelease | None:
    """One side of UNION ALL names another column as its unit."""

    def change(node: Node) -> Node:
        if not isinstance(node, UnionAll) or not isinstance(node.inputs[0], Project):
            return node
        first = node.inputs[0]
        other = next((c for s in _scans(first) for _, c in s.columns if c.name != s.unit), None)
        if other is None:
            return node
        made = replace(first, columns=((first.columns[0][0], other), *first.columns[1:]))
        return replace(node, inputs=(made, *node.inputs[1:]))

    return with_relation(release, change)


@forgery
def rows_not_cut(release: PlannedRelease) -> PlannedRelease | None:
    """`max_rows: 1` declared, and neither verified nor made true."""
    return _cut_otherwise(release, None)


@forgery
def cut_to_two_rows(release: PlannedRelease) -> PlannedRelease | None:
    return _cut_otherwise(release, 2)


def _cut_otherwise(release: PlannedRelease, limit: int | None) -> PlannedRelease | None:
    """What a GROUP BY makes one row of needs no cut."""
    if release.form != "rows" or any(isinstance(n, PerUnit) for n in nodes(release.aggregation)):
        return None

    def change(node: Node) -> Node:
        cut = isinstance(node, Scan) and node.enforce_rows == 1
        return replace(node, enforce_rows=limit) if cut and isinstance(node, Scan) else node

    return with_relation(release, change)


@forgery
def another_stored_table(release: PlannedRelease) -> PlannedRelease | None:
    """Another table of the backend than the one whose keys were verified."""
    return with_relation(release, lambda n: replace(n, source=TableName("elsewhere")) if isinstance(n, Scan) else n)


@forgery
def a_scan_without_its_unit(release: PlannedRelease) -> PlannedRelease | None:
    return with_relation(release, lambda n: replace(n, unit=None) if isinstance(n, Scan) and n.unit else n)


@forgery
def another_column_under_the_units_name(release: PlannedRelease) -> PlannedRelease | None:
    """The scan reads a column of the same type as the unit under the unit's name."""

    def change(node: Node) -> Node:
        if not isinstance(node, Scan) or node.unit is None or node.row_unit:
            return node
        made = [("_" + stored if col.name == node.unit else stored, col) for stored, col in node.columns]
        return replace(node, columns=tuple(made))

    return with_relation(release, change)


@forgery
def rows_for_units(release: PlannedRelease) -> PlannedRelease | None:
    """Each row a unit of its own, where the policy names a column."""
    return with_relation(
        release,
        lambda n: (
            replace(n, row_unit=True, enforce_rows=None) if isinstance(n, Scan) and n.unit and not n.row_unit else n
        ),
    )
