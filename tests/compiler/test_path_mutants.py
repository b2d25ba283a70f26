"""Mutants of the proof along paths: each is killed by a statement of the replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from path_statements import TRICKS
from path_worlds import duckdb_paths
from test_path_neighbours import problems

from dpsql.compiler.algebra import Col, Expr
from dpsql.compiler.bind import joins, proofs, subqueries, units
from dpsql.compiler.bind.proofs import Pair
from dpsql.compiler.emit import common
from dpsql.policy import resolve, values
from dpsql.types import Kind, SqlType

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def rows_of_a_table_are_one(patch: Patch) -> None:
    """The proof of two tables instead of two rows."""
    equated = proofs.equated

    def merged(conditions: Iterable[Expr], mine: frozenset[str], theirs: frozenset[str]) -> list[Pair]:
        return [(_of_the_table(a), _of_the_table(b)) for a, b in equated(conditions, mine, theirs)]

    for module in (joins, subqueries):
        patch.setattr(module, "equated", merged)


def _of_the_table(col: Col) -> Col:
    return col if col.origin is None else replace(col, row=col.origin[0])


def keys_of_a_group_are_one_row(patch: Patch) -> None:
    """What a group's keys were read from forgotten: the group itself taken for the row."""
    from dpsql.compiler.bind.per_unit import _Grouped

    key = _Grouped._key

    def forgetful(self: _Grouped, name: str, expr: Expr) -> Col:
        return replace(key(self, name, expr), row=f"g{self.number}")

    patch.setattr(_Grouped, "_key", forgetful)


def unit_of_the_row_outside(patch: Patch) -> None:
    """A child inside takes the unit of the row outside by the proof of tables, and its SQL says nothing of units."""
    rows_of_a_table_are_one(patch)
    patch.setattr(subqueries, "equality", lambda a, b: units.equality(a, a))


def any_column_of_the_path_will_do(patch: Patch) -> None:
    """A child that meets its parent on a part of the key."""
    enough = proofs._enough
    patch.setattr(proofs, "_enough", lambda *args: [frozenset(sorted(n)[:1]) for n in enough(*args)])
    patch.setattr(subqueries, "equality", lambda a, b: units.equality(a, a))


def families_are_compared(patch: Patch) -> None:
    """Numbers of one family taken for comparable, as doubles."""
    for module in (resolve, units, proofs):
        patch.setattr(module, "compared_exactly", lambda a, b: values.family(a) == values.family(b))
    patch.setattr(common, "_in_one_type", lambda parts: False)


def times_with_zone_are_exact(patch: Patch) -> None:
    exact = values.compared_exactly

    def trusting(a: SqlType, b: SqlType) -> bool:
        return exact(a, b) or (a == b and a.kind is Kind.TIMESTAMPTZ)

    for module in (resolve, units, proofs):
        patch.setattr(module, "compared_exactly", trusting)


VICTIMS = "SELECT COUNT(*) FROM pays WHERE p_v = 7"
"""Rows that one unit alone has."""

MUTANTS: dict[str, tuple[str, str, Mutant]] = {
    "rows of a table are one": ("integer", TRICKS["grouped"], rows_of_a_table_are_one),
    "keys of a group are one row": ("integer", TRICKS["grouped, left join"], keys_of_a_group_are_one_row),
    "unit of the row outside": ("integer", TRICKS["exists"], unit_of_the_row_outside),
    "any column of the path will do": ("integer", TRICKS["in"], any_column_of_the_path_will_do),
    "families are compared": ("two decimals", VICTIMS, families_are_compared),
    "times with zone are exact": ("timestamptz", VICTIMS, times_with_zone_are_exact),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_killed(tmp_path: Path, monkeypatch: Patch, name: str) -> None:
    kind, text, change = MUTANTS[name]
    change(monkeypatch)
    site = duckdb_paths(kind, tmp_path / "paths.duckdb")
    try:
        assert problems(site, text), f"{name} survives"
    finally:
        site.backend.close()
