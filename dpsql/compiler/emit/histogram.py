"""A histogram measurement as one backend query: the exact weight of every group and bin that has any.

Why one unit moves all weights together by at most C1 = 1024 * L0 * m: its rows are counted per group and bin (`p`), N
is their sum over all groups and bins (`w`), and where N exceeds L0 * m every count is multiplied by 1024 * L0 * m / N,
with the factor shaved by 2^-30, and truncated: the products add up to less than C1. Otherwise they are multiplied by
1024, which gives at most C1. A count above 2^40 contributes nothing and counts as 2^40. A unit's factor reads its own
rows only. Where each row is (or is the only one of) its unit, it adds 1024 in one bin. The same holds for every bound,
so the shape does not depend on whether a unit has one group or many.
"""

from __future__ import annotations

from dpsql.compiler.cells import ONE
from dpsql.compiler.emit.common import DerivedRows
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.relation import emitter_for
from dpsql.compiler.emit.release import MAX_COUNT, MAX_TOTAL, SHAVE
from dpsql.compiler.emit.rows import RowLevel
from dpsql.compiler.histograms import Histogram
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.walk import used_columns


def emit_histogram(release: PlannedRelease, histogram: Histogram, dialect: Dialect, derived: DerivedRows) -> str:
    """The query: key columns first (`k0`...), then the bin's index (`bin`), then its weight (`h`), above zero only."""
    used = used_columns(release.aggregation)
    emitter = emitter_for(dialect, derived, used)
    keys = [f"k{i}" for i in range(len(release.keys))]
    inside = " AND ".join(f"{column} IS NOT NULL" for column in [*(keys if release.public else []), "bin"])
    rows = f"({RowLevel(release, emitter, used).binned(histogram.choice)}) AS rows WHERE {inside}"
    group = ", ".join([*keys, "bin"])
    if release.form == "rows":
        return _totals(group, f"SELECT {group}, COUNT(*) * {ONE} AS h FROM {rows} GROUP BY {group}")
    counts = f"SELECT u, {group}, COUNT(*) AS n FROM {rows} GROUP BY u, {group}"
    norms = f"SELECT u, SUM(CASE WHEN n > {MAX_COUNT} THEN {MAX_COUNT} ELSE n END) AS x FROM p GROUP BY u"
    most = release.bound.groups * release.bound.rows
    factor = f"({emitter.double(ONE * most * SHAVE)} / CAST(x AS {dialect.double}))"
    scaled = f"CAST(TRUNC(n * {factor}) AS BIGINT)"
    weight = f"CASE WHEN n > {MAX_COUNT} THEN 0 WHEN x > {most} THEN {scaled} ELSE n * {ONE} END"
    steps = f"WITH p AS MATERIALIZED ({counts}), w AS MATERIALIZED ({norms}) "
    return steps + _totals(group, f"SELECT {group}, SUM({weight}) AS h FROM p JOIN w USING (u) GROUP BY {group}")


def _totals(group: str, weights: str) -> str:
    """As bigints within 2^62."""
    clamped = f"CAST(CASE WHEN h > {MAX_TOTAL} THEN {MAX_TOTAL} ELSE h END AS BIGINT) AS h"
    return f"SELECT {group}, {clamped} FROM ({weights}) AS totals WHERE h > 0"
