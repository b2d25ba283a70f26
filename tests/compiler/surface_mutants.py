"""Mutants of the surface's shapes, which claim of a unit's rows what is not so; `EVERY` holds those of cells too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import histogram_replay
from compiler_mutants import MUTANTS, Patch
from histogram_mutants import MUTATIONS
from histogram_replay import Mutation

from dpsql.compiler.algebra import Aggregation, outputs
from dpsql.compiler.bind import measured, per_unit, union
from dpsql.compiler.bind.measured import Grouping
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.emit import Dialect, emit_histogram
from dpsql.compiler.emit.common import DerivedRows
from dpsql.compiler.histograms import Histogram
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.split import private, query

Change = Callable[[Patch], None]


def rollup_as_one_group(patch: Patch) -> None:
    """ROLLUP, CUBE and GROUPING SETS as if a unit were in one of the finest groups only."""
    made = measured.aggregation

    def claimed(asked: Grouping, *bounds: int | None) -> Aggregation:
        aggregation: Aggregation = made(asked, *bounds)
        return replace(aggregation, one_group=True) if asked.sets else aggregation

    patch.setattr(private, "aggregation", claimed)


def _one_row_a_unit(source: Source) -> Source:
    return replace(source, unique=(frozenset(),), constants=outputs(source.node))


def two_levels_as_one_row(patch: Patch) -> None:
    """GROUP BY unit and another key, taken for one row a unit."""
    build = per_unit._Grouped.build
    patch.setattr(per_unit._Grouped, "build", lambda self, select: _one_row_a_unit(build(self, select)))


def union_as_one_row(patch: Patch) -> None:
    """One row a unit on each side, taken for one row in all."""
    joined: Callable[..., Source] = union.union_all

    def claimed(*args: Any) -> Source:
        return _one_row_a_unit(joined(*args))

    patch.setattr(query, "union_all", claimed)


def in_histograms(mutation: Mutation) -> Change:
    """A change of the histograms' SQL alone."""

    def change(patch: Patch) -> None:
        def emitted(r: PlannedRelease, h: Histogram, dialect: Dialect, derived: DerivedRows) -> str:
            return mutation(emit_histogram(r, h, dialect, derived))

        patch.setattr(histogram_replay, "emit_histogram", emitted)

    return change


EVERY: Mapping[str, Change] = {
    **{name: change for name, (_, _, change) in MUTANTS.items()},
    **{f"histograms: {name}": in_histograms(mutation) for name, (_, mutation) in MUTATIONS.items()},
    **{made.__name__: made for made in (rollup_as_one_group, two_levels_as_one_row, union_as_one_row)},
}

UNBOUNDED = (
    "no_clip",
    "no_clip_of_averages",
    "values_not_clamped",
    "distinct_values_added_over_units",
    "histograms: no factor",
)
"""What a unit adds is not bounded: statements of every shape must notice one of these."""
