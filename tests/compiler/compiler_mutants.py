"""Mutants of the compiler: each breaks one step of the argument; `MUTANTS` names a statement that must notice.

A mutant changes the compiler (by monkeypatch) or the SQL of a release whose declared sensitivities stay what they are.
If a mutant survives, the replay has no teeth there.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import compiler_replay
import pytest

from dpsql.compiler.algebra import Call, Case, Exists, Expr, Join, Node, Project, Scan, canonical
from dpsql.compiler.bind import joins, subqueries, union, units
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.cells import Grid
from dpsql.compiler.emit import relation as relations
from dpsql.compiler.emit import release as emitted
from dpsql.compiler.emit.common import DerivedRows
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.rows import RowLevel, reads
from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.compiler.split import private, sources
from dpsql.dp.sensitivity import L1, L2, ContributionBound, Sensitivity, radius

PLAN = sys.modules["dpsql.compiler.plan"]
"""The module: the package has a function of the same name."""

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]
MUTANTS: dict[str, tuple[str, str, Mutant]] = {}
"""Name of the mutant -> world, named statement that notices, and the change."""


def mutant(case: str, world: str = "integer") -> Callable[[Mutant], Mutant]:
    def register(change: Mutant) -> Mutant:
        MUTANTS[change.__name__] = (world, case, change)
        return change

    return register


def _emitting(patch: Patch, change: Callable[[PlannedRelease], PlannedRelease]) -> None:
    """The SQL of another release than the one that was priced."""

    def emit(release: PlannedRelease, dialect: Dialect, derived: DerivedRows) -> str:
        return emitted.emit(change(release), dialect, derived)

    patch.setattr(compiler_replay, "emit", emit)


def _with_sensitivities(release: PlannedRelease, change: Callable[[Measurement], Sensitivity]) -> PlannedRelease:
    return replace(release, measurements=tuple(replace(m, sensitivity=change(m)) for m in release.measurements))


def _squared(m: Measurement) -> int:
    assert isinstance(m.sensitivity, L2)
    return m.sensitivity.squared


@mutant("count by public key")
def no_clip(patch: Patch) -> None:
    _emitting(patch, lambda r: _with_sensitivities(r, lambda m: L2(2**120)))


@mutant("sum")
def no_clip_in_one_group(patch: Patch) -> None:
    _emitting(patch, lambda r: _with_sensitivities(r, lambda m: L2(2**120)))


@mutant("average by public key")
def no_clip_of_averages(patch: Patch) -> None:
    _emitting(patch, lambda r: replace(r, bound=ContributionBound(r.bound.groups, 2**30)))


@mutant("average")
def no_clip_of_averages_in_one_group(patch: Patch) -> None:
    _emitting(patch, lambda r: replace(r, bound=ContributionBound(r.bound.groups, 2**30)))


@mutant("sum by public key")
def l1_radius_for_l2(patch: Patch) -> None:
    """(L0 * m * B)^2 where L0 * (m * B)^2 was declared."""
    _emitting(patch, lambda r: _with_sensitivities(r, lambda m: L2(_squared(m) * r.bound.groups)))


@mutant("shared by public key")
def no_factor_for_what_shares_a_count(patch: Patch) -> None:
    """Sums whose factor comes from the count of all rows, left unscaled."""
    shape = emitted._Shape
    scaled = shape._moment_scaled

    def only_own(self: emitted._Shape, m: Measurement) -> str:
        own = any(o.cell.counts and reads(o.cell) == reads(m.cell) for o in self.summed if o.cell.moment is not None)
        return scaled(self, m) if own else f"s{m.column[1:]}"

    patch.setattr(shape, "_moment_scaled", only_own)


@mutant("shared by private key")
def factor_of_fewer_rows(patch: Patch) -> None:
    """Sums scaled by the factor of the rows that meet another aggregate's FILTER."""
    patch.setattr(
        emitted._Shape,
        "_count_of",
        lambda self, m: [f"n{o.column[1:]}" for o in self.summed if o.cell.moment is not None and o.cell.counts][-1],
    )


@mutant("shared")
def shared_sums_not_centred(patch: Patch) -> None:
    """The sum that AVG and SUM are read from, of values as they are: larger than half the width of their bounds."""
    value = RowLevel._grid_value
    patch.setattr(RowLevel, "_grid_value", lambda self, x, grid: value(self, x, replace(grid, centre=0)))


@mutant("average by public key")
def half_sensitivity(patch: Patch) -> None:
    patch.setattr(PLAN, "clip_l2", lambda bound, b: L2(max(bound.groups * (bound.rows * b) ** 2 // 4, 1)))


@mutant("count", "row")
def half_sensitivity_of_rows(patch: Patch) -> None:
    patch.setattr(PLAN, "clip_l2", lambda bound, b: L2(max(bound.groups * (bound.rows * b) ** 2 // 4, 1)))


@mutant("count by public key (l1)")
def sqrt_of_groups_for_l1(patch: Patch) -> None:
    patch.setattr(PLAN, "clip_l1", lambda bound, b: L1(bound.rows * b))
    _emitting(patch, lambda r: _with_sensitivities(r, lambda m: L1(r.bound.groups * r.bound.rows * 1024)))


@mutant("sum by public key")
def norm_of_clamped_scales_unclamped(patch: Patch) -> None:
    """The vector that is scaled must be the one whose norm was taken."""
    shape = emitted._Shape
    vector, scaled = shape._vector, shape._scaled

    def both(self: emitted._Shape, m: Measurement) -> str:
        return f"{vector(self, m)} AS {m.column}, CAST(s{m.column[1:]} AS DOUBLE)"

    def unclamped(self: emitted._Shape, m: Measurement) -> str:
        return scaled(self, m).replace(f"{m.column} * ", f"raw{m.column} * ")

    clipped = shape._norm_clipped

    def named(self: emitted._Shape, rows: str, steps: list[str]) -> str:
        made = clipped(self, rows, steps)
        steps[:] = [re.sub(r"(CAST\(s\d AS DOUBLE\)) AS (m\d)", r"\1 AS raw\2", step) for step in steps]
        return made

    patch.setattr(shape, "_vector", both)
    patch.setattr(shape, "_scaled", unclamped)
    patch.setattr(shape, "_norm_clipped", named)


@mutant("sum by public key")
def partials_not_clamped_in_one_group_of_many(patch: Patch) -> None:
    """Clamped to the radius, never scaled: fine for one group, too much for several."""
    patch.setattr(emitted._Shape, "_scaled", lambda self, m: m.column)


@mutant("count by private key")
def factor_rounded_up(patch: Patch) -> None:
    patch.setattr(emitted, "SHAVE", 1.0)
    patch.setattr(emitted._Shape, "_truncated", lambda self, sql: f"CAST(CEIL({sql}) AS BIGINT)")


@mutant("count by private key")
def norm_of_each_group(patch: Patch) -> None:
    """The norm per unit and group, not per unit."""
    clipped = emitted._Shape._norm_clipped

    def broken(self: emitted._Shape, rows: str, steps: list[str]) -> str:
        made = clipped(self, rows, steps)
        steps[-1] = steps[-1].replace("(SELECT u, ", "(SELECT u, k0, ").replace("GROUP BY u", "GROUP BY u, k0")
        return made.replace("USING (u)", "USING (u, k0)")

    patch.setattr(emitted._Shape, "_norm_clipped", broken)


@mutant("count by public key")
def keys_outside_the_domain_kept(patch: Patch) -> None:
    shape = emitted._Shape
    partials = shape._partials
    patch.setattr(shape, "_partials", lambda self, rows: partials(self, rows).replace(" WHERE k0 IS NOT NULL", ""))


def _null_units_kept(patch: Patch) -> None:
    rows, scan = RowLevel.query, relations._scan
    patch.setattr(RowLevel, "query", lambda self: rows(self).rpartition(" WHERE ")[0])
    patch.setattr(relations, "_scan", lambda *args: scan(*args).replace(' WHERE "uid" IS NOT NULL', ""))


@mutant("count")
def null_units_kept(patch: Patch) -> None:
    _null_units_kept(patch)


@mutant("average by private key")
def null_units_kept_among_groups(patch: Patch) -> None:
    _null_units_kept(patch)
    clipped = emitted._Shape._norm_clipped

    def kept(self: emitted._Shape, rows: str, steps: list[str]) -> str:
        return clipped(self, rows, steps).replace("JOIN w USING (u)", "JOIN w ON p.u IS NOT DISTINCT FROM w.u")

    patch.setattr(emitted._Shape, "_norm_clipped", kept)


@mutant("one row a unit, finest key")
def rows_enforced_over_all_units(patch: Patch) -> None:
    """ROW_NUMBER without PARTITION BY: one unit's rows decide about another's."""
    at_most = relations._at_most
    patch.setattr(relations, "_at_most", lambda *args: at_most(*args).replace('PARTITION BY "t0_uid" ', ""))


@mutant("one row a unit")
def max_rows_only_declared(patch: Patch) -> None:
    """The claim of one row a unit without the SQL that makes it true."""
    scan = units.scan

    def trusting(*args: object) -> Source:
        source = scan(*args)  # type: ignore[arg-type]
        assert isinstance(source.node, Scan)
        return replace(source, node=replace(source.node, enforce_rows=None))

    patch.setattr(sources, "scan", trusting)


@mutant("join that one unit has rows for")
def units_not_proven_equal(patch: Patch) -> None:
    """The join without `l.unit = r.unit`: one unit's row meets everyone."""
    join, filtered = joins._join_private, joins._filtered

    def others(known: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(c for c in known if not (isinstance(c, Call) and c.op == "eq" and "_uid" in canonical(c)))

    def unproven(kind: Literal["inner", "left"], left: Source, right: Source, known: tuple[Expr, ...]) -> Source:
        source = join(kind, left, right, known)
        assert isinstance(source.node, Join)
        return replace(source, node=replace(source.node, conditions=others(source.node.conditions)))

    patch.setattr(joins, "_join_private", unproven)
    patch.setattr(joins, "_filtered", lambda source, known: filtered(source, others(known)))


@mutant("count by private key")
def weights_of_rows(patch: Patch) -> None:
    weight = emitted._Shape._weight
    patch.setattr(emitted._Shape, "_weight", lambda self: f"({weight(self)}) * m0 / 1024")


@mutant("many keys")
def weights_without_cap(patch: Patch) -> None:
    def uncapped(release: PlannedRelease) -> PlannedRelease:
        assert release.selection is not None
        return replace(release, selection=replace(release.selection, cap=2**40))

    _emitting(patch, uncapped)


@mutant("many keys")
def weights_not_shared_among_groups(patch: Patch) -> None:
    patch.setattr(emitted._Shape, "_weight", lambda self: "1024")


@mutant("many keys")
def weights_by_the_other_norm(patch: Patch) -> None:
    """1 / t would do, sqrt(L0 / t) was declared for Gaussian noise; the other way round is too much."""
    patch.setattr(emitted._Shape, "_weight", lambda self: "CAST(1024 * SQRT(SQRT(3.0 / groups)) AS BIGINT)")


@mutant("average by private key")
def average_clamps_its_own_sums(patch: Patch) -> None:
    """Sums clipped to their own radius in each group instead of scaled by the factor of the counts."""
    scaled = emitted._Shape._moment_scaled

    def own(self: emitted._Shape, m: Measurement) -> str:
        if m.cell.counts:
            return scaled(self, m)
        limit = radius(m.sensitivity)
        return f"CASE WHEN s{m.column[1:]} > {limit} THEN {limit} ELSE s{m.column[1:]} END"

    patch.setattr(emitted._Shape, "_moment_scaled", own)


@mutant("variance by public key")
def squares_not_shifted(patch: Patch) -> None:
    """Squares measured as they are, priced as shifted."""
    product = emitted._Shape._product

    def whole(self: emitted._Shape, m: Measurement, x: str, y: str | None) -> str:
        assert m.cell.moment is not None
        return product(self, replace(m, cell=replace(m.cell, moment=replace(m.cell.moment, shift=0))), x, y)

    patch.setattr(emitted._Shape, "_product", whole)


@mutant("covariance by public key")
def moments_of_rows_that_lack_one(patch: Patch) -> None:
    """Sums over rows whose other argument is NULL: not bounded by the count of pairs."""
    added = emitted._Shape._added_up

    def alone(self: emitted._Shape, m: Measurement) -> str:
        made = added(self, m)
        return made if m.cell.counts else re.sub(r"CASE WHEN q\d+y? IS NOT NULL THEN (.*?) END", r"\1", made)

    patch.setattr(emitted._Shape, "_added_up", alone)


@mutant("distinct values by public key")
def distinct_values_added_over_units(patch: Patch) -> None:
    """Distinct values of a unit unweighted: a unit with many counts in full."""
    distinct = emitted._Shape._distinct

    def unweighted(self: emitted._Shape, m: Measurement, steps: list[str]) -> str:
        made = distinct(self, m, steps)
        steps[-1] = re.sub(r"CASE WHEN x > \d+ THEN .*? ELSE 1024 END AS weight", "1024 AS weight", steps[-1])
        return made

    patch.setattr(emitted._Shape, "_distinct", unweighted)


@mutant("sum of sums, unit in many rows")
def inner_sums_over_units(patch: Patch) -> None:
    """The inner GROUP BY without the unit: rows that belong to several."""
    per_unit = relations._per_unit

    def mixed(*args: object) -> str:
        made = per_unit(*args)  # type: ignore[arg-type]
        return re.sub(r'SELECT "(\w+)" AS', r'SELECT MIN("\1") AS', made, count=1).rpartition(" GROUP BY ")[0]

    patch.setattr(relations, "_per_unit", mixed)


@mutant("semi-join")
def exists_of_other_units(patch: Patch) -> None:
    """EXISTS without `outer.unit = inner.unit`."""
    all_ = relations._all
    patch.setattr(
        relations, "_all", lambda conditions, emitter: all_((c for c in conditions if not _of_units(c)), emitter)
    )


def _of_units(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "eq" and canonical(expr).count("_uid") == 2


@mutant("rows in a union")
def a_union_of_other_units(patch: Patch) -> None:
    """EXISTS over UNION ALL without the equality of units."""
    all_ = relations._all
    patch.setattr(
        relations, "_all", lambda conditions, emitter: all_((c for c in conditions if not _over_union(c)), emitter)
    )


def _over_union(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "eq" and re.search(r"\bv\d+_(u|0)\b", canonical(expr)) is not None


@mutant("union of a table with itself")
def a_union_that_forgets_whose_rows(patch: Patch) -> None:
    """Rows are bounded by what they hold instead of by whose they are."""
    side = union._side

    def mixed(source: Source, names: tuple[str, ...], *rest: Any) -> Node:
        made = side(source, names, *rest)
        assert isinstance(made, Project)
        other = tuple((n, made.columns[-1][1] if i == 0 else e) for i, (n, e) in enumerate(made.columns))
        return replace(made, columns=other)

    patch.setattr(union, "_side", mixed)


@mutant("not in, three values")
def not_in_of_all_units(patch: Patch) -> None:
    """What may be equal is looked for among everybody's rows."""
    made = subqueries.membership

    def unproven(inner: Source, correlated: tuple[Expr, ...], *rest: Any) -> Expr:
        found = made(inner, correlated, *rest)
        assert isinstance(found, Case)
        (surely, yes), (perhaps, unknown) = found.branches
        assert isinstance(perhaps, Exists)
        loose = replace(perhaps, conditions=tuple(c for c in perhaps.conditions if not _of_units(c)))
        return replace(found, branches=((surely, yes), (loose, unknown)))

    patch.setattr(private, "membership", unproven)


@mutant("sum by public key")
def values_not_clamped(patch: Patch) -> None:
    """1e308 as a grid value: the backend must not even see the cast."""
    value = RowLevel._grid_value

    def raw(self: RowLevel, argument: Expr, grid: Grid) -> str:
        return value(self, argument, grid).replace(" >= ", " >= 1e308 * ").replace(" <= ", " <= 1e308 * ")

    patch.setattr(RowLevel, "_grid_value", raw)


@mutant("rows multiplied", "row")
def multiplied_rows_as_units(patch: Patch) -> None:
    """A row that a join has copied is more than one row."""
    one = joins._join_one_public
    patch.setattr(joins, "_join_one_public", lambda *args: replace(one(*args), multiplies=False))


@mutant("path not joined")
def whole_table_as_one_group(patch: Patch) -> None:
    """Trusting that a unit is in one group only."""
    _emitting(patch, lambda r: replace(r, form="single"))
