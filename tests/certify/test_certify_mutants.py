"""Mutants of the binder and the planner: what they plan is refused by the certificate alone.

Each changes one rule of what is checked, for a statement that needs it. Where the binder is broken as it once was,
nothing but the tree it makes tells.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from certified_cases import gaps
from compiler_cases import cases
from compiler_mutants import max_rows_only_declared, units_not_proven_equal
from compiler_replay import compiled_on
from compiler_sites import Site, duckdb_site
from compiler_statements import Statement
from compiler_worlds import WORLDS
from path_statements import TRICKS
from path_worlds import duckdb_paths
from test_path_mutants import (
    VICTIMS,
    any_column_of_the_path_will_do,
    families_are_compared,
    keys_of_a_group_are_one_row,
    rows_of_a_table_are_one,
    times_with_zone_are_exact,
    unit_of_the_row_outside,
)
from test_path_neighbours import TERMS

from dpsql.certify import Unproven
from dpsql.certify.check import certify
from dpsql.compiler.algebra import Aggregation, Project
from dpsql.compiler.bind import joins, measured, subqueries, union, units
from dpsql.compiler.split import private
from dpsql.dp import privacy
from dpsql.dp.sensitivity import L1, L2, ContributionBound

PLAN = sys.modules["dpsql.compiler.plan"]
Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]

PATHS: dict[str, tuple[str, str, Mutant]] = {
    "rows of a table are one": ("integer", TRICKS["grouped"], rows_of_a_table_are_one),
    "keys of a group are one row": ("integer", TRICKS["grouped, left join"], keys_of_a_group_are_one_row),
    "unit of the row outside": ("integer", TRICKS["exists"], unit_of_the_row_outside),
    "any column of the path will do": ("integer", TRICKS["in"], any_column_of_the_path_will_do),
    "families are compared": ("two decimals", VICTIMS, families_are_compared),
    "times with zone are exact": ("timestamptz", VICTIMS, times_with_zone_are_exact),
}


@pytest.mark.parametrize("name", PATHS)
def test_wrong_paths_are_refused(tmp_path: Path, monkeypatch: Patch, name: str) -> None:
    kind, text, change = PATHS[name]
    change(monkeypatch)
    site = duckdb_paths(kind, tmp_path / "paths.duckdb")
    try:
        assert gaps(compiled_on(site, Statement(text, TERMS)), site.schema), f"{name} is certified"
    finally:
        site.backend.close()


MUTANTS: dict[str, tuple[str, Mutant]] = {
    "max_rows only declared": ("one row a unit", max_rows_only_declared),
    "units not proven equal": ("join that one unit has rows for", units_not_proven_equal),
}


def mutant(case: str) -> Callable[[Mutant], Mutant]:
    def register(change: Mutant) -> Mutant:
        MUTANTS[change.__name__.replace("_", " ")] = case, change
        return change

    return register


def _claiming(patch: Patch, **claims: Any) -> None:
    made = measured.aggregation

    def claimed(*args: Any) -> Aggregation:
        return replace(made(*args), **claims)

    patch.setattr(private, "aggregation", claimed)


@mutant("count by public key")
def one_row_claimed(patch: Patch) -> None:
    _claiming(patch, one_row=True, one_group=True)


@mutant("count by private key")
def one_group_claimed(patch: Patch) -> None:
    _claiming(patch, one_group=True)


@mutant("count")
def no_unit_claimed(patch: Patch) -> None:
    _claiming(patch, unit=None, one_row=True, one_group=True)


@mutant("rows multiplied")
def public_rows_multiply_nothing(patch: Patch) -> None:
    """A join with a public table keeps what is unique, whatever it is joined on."""
    patch.setattr(joins, "_covers", lambda unique, columns: True)
    patch.setattr(PLAN, "_form", lambda *args: ("rows", ContributionBound(1, 1)))


@mutant("sum by public key")
def radius_without_groups(patch: Patch) -> None:
    patch.setattr(PLAN, "clip_l2", lambda bound, b: L2((bound.rows * b) ** 2))


@mutant("average by public key")
def half_the_radius(patch: Patch) -> None:
    patch.setattr(PLAN, "clip_l2", lambda bound, b: L2(max(bound.l2_squared * b**2 // 4, 1)))


@mutant("count by public key (l1)")
def root_of_groups_in_l1(patch: Patch) -> None:
    patch.setattr(PLAN, "clip_l1", lambda bound, b: L1(bound.rows * b))


@mutant("SELECT shop, MEDIAN(amount) FROM visits GROUP BY shop")
def histogram_of_one_group(patch: Patch) -> None:
    histograms = sys.modules["dpsql.compiler.histograms"]
    patch.setattr(histograms, "clip_l1", lambda bound, b: L1(bound.rows * b))


@mutant("count by private key")
def threshold_of_the_first_group(patch: Patch) -> None:
    found = PLAN.threshold
    patch.setattr(PLAN, "threshold", lambda mechanism, groups, cap, delta, norm: found(mechanism, 1, 1, delta, norm))


@mutant("count by private key")
def threshold_for_twice_the_delta(patch: Patch) -> None:
    found = PLAN.threshold
    patch.setattr(
        PLAN, "threshold", lambda mechanism, groups, cap, delta, norm: found(mechanism, groups, cap, 2 * delta, norm)
    )


@mutant("sum by public key")
def the_price_of_half_the_noise(patch: Patch) -> None:
    """Costs a quarter of what the mechanism does, which is calibrated for more than the share."""
    cost_of = privacy.cost_of

    def cheaper(mechanism: Any, sensitivity: Any) -> Any:
        found = cost_of(mechanism, sensitivity)
        return replace(found, epsilon=found.epsilon // 4, rho=found.rho // 4)

    patch.setattr(PLAN, "cost_of", cheaper)
    patch.setattr(PLAN, "_check_price", lambda *args: None)


@mutant("sum by public key")
def scales_rounded_to_nearest(patch: Patch) -> None:
    """A scale a little too small, at the price of the share."""
    least, cost_of = privacy._least_scale, privacy.cost_of
    patch.setattr(privacy, "_least_scale", lambda power, numerator, share: least(power, numerator, share) * (1 - 1e-9))

    def promised(mechanism: Any, sensitivity: Any) -> Any:
        right = replace(mechanism, sigma=mechanism.sigma / (1 - 1e-9))
        return cost_of(right, sensitivity)

    patch.setattr(PLAN, "cost_of", promised)


@mutant("SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.i_order = o.o_id)")
def subqueries_without_their_unit(patch: Patch) -> None:
    patch.setattr(subqueries, "equality", lambda a, b: units.equality(a, a))


@mutant("union by unit")
def union_keeps_the_left_sides_unit(patch: Patch) -> None:
    """The right side's rows under a constant instead of their unit."""
    side = union._side

    def other(source: Any, names: Any, types: Any, unit: str, tree: Any) -> Any:
        made = side(source, names, types, unit, tree)
        columns = [c for c in source.fields if c.expr.type == source.unit.type and c.expr != source.unit]
        swapped = columns[0].expr if columns else units.equality(source.unit, source.unit)
        assert isinstance(made, Project)
        return replace(made, columns=((unit, swapped), *made.columns[1:]))

    patch.setattr(union, "_side", other)


@mutant("sum")
def sums_on_a_wider_grid(patch: Patch) -> None:
    """The SQL clamps to twice what the sensitivity was made for."""
    planned = PLAN._planned

    def wider(*args: Any) -> Any:
        made = planned(*args)
        cells = [replace(m.cell, grid=replace(m.cell.grid, high=2 * m.cell.grid.high)) for m in made.measurements]
        measured = tuple(replace(m, cell=c) for m, c in zip(made.measurements, cells, strict=True))
        return replace(made, measurements=measured)

    patch.setattr(PLAN, "_planned", wider)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = duckdb_site(WORLDS["integer"](), tmp_path_factory.mktemp("mutants") / "integer.duckdb")
    yield made
    made.backend.close()


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_refused(site: Site, monkeypatch: Patch, name: str) -> None:
    case, change = MUTANTS[name]
    statement = cases().get(case) or Statement(case, TERMS)
    assert not gaps(compiled_on(site, statement), site.schema)
    change(monkeypatch)
    assert gaps(compiled_on(site, statement), site.schema), f"{name} is certified"


def test_a_key_that_nobody_verified_proves_nothing(tmp_path: Path) -> None:
    """The same plan under a schema in which the parent's key is not unique."""
    site = duckdb_paths("integer", tmp_path / "paths.duckdb")
    try:
        (release,) = compiled_on(site, Statement("SELECT COUNT(*) FROM pays", TERMS)).releases
        tables = dict(site.schema.tables)
        tables["orders"] = replace(tables["orders"], unique=())
        assert isinstance(certify(release, replace(site.schema, tables=tables)), Unproven)
        tables["orders"] = replace(tables["orders"], unique=(frozenset({"store", "no", "amt"}),))
        assert isinstance(certify(release, replace(site.schema, tables=tables)), Unproven)
    finally:
        site.backend.close()


def test_delta_is_no_float(site: Site) -> None:
    (release,) = compiled_on(site, cases()["count by private key"]).releases
    found = certify(release, site.schema)
    assert not isinstance(found, Unproven)
    assert isinstance(found.delta, Fraction)
