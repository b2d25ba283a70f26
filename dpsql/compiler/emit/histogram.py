"""A histogram measurement as one backend query: the exact weight of every group and bin that has any.

Why one unit moves all weights together by at most C1 = 1024 * R, where R is the L1 radius of rows (`bound.l1`): its
rows are counted per group and bin (`p`), N is their sum over all groups and bins (`w`), and where N exceeds R every
count is multiplied by 1024 * R / N, with the factor shaved by 2^-30, and truncated: the products add up to less than
C1. Otherwise they are multiplied by
1024, which gives at most C1. A count above 2^40 contributes nothing and counts as 2^40. A unit's factor reads its own
rows only. Where each row is (or is the only one of) its unit, it adds 1024 in one bin. The same holds for every bound,
so the shape does not depend on whether a unit has one group or many.

Private keys: only the bins of groups that are candidates are returned, those that a unit within the selection's cap is
in (counted on all rows, as the selection does: those outside of every bin are `p`'s rows with bin NULL). A group
without any is never shown, so nothing that is released reads it; but its bins would count against the backend's limit,
and so tell of a unit that must leave no trace.
"""

from __future__ import annotations

from dpsql.compiler.cells import ONE
from dpsql.compiler.emit.common import DerivedRows
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.relation import emitter_for
from dpsql.compiler.emit.release import MAX_COUNT, MAX_TOTAL, SHAVE
from dpsql.compiler.emit.rows import RowLevel, inside
from dpsql.compiler.histograms import Histogram
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.walk import used_columns

OF_CANDIDATES = " AND c > 0"


def emit_histogram(release: PlannedRelease, histogram: Histogram, dialect: Dialect, derived: DerivedRows) -> str:
    """The query: key columns first (`k0`...), then the bin's index (`bin`), then its weight (`h`), above zero only."""
    used = used_columns(release.aggregation)
    emitter = emitter_for(dialect, derived, used)
    keys = [f"k{i}" for i in range(len(release.keys))]
    selected = release.selection is not None and release.form == "norm"
    conditions = [*inside(release), *([] if selected else ["bin IS NOT NULL"])]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = f"({RowLevel(release, emitter, used).binned(histogram.choice)}) AS rows{where}"
    group = ", ".join([*keys, "bin"])
    if release.form == "rows":
        return _totals(group, f"SELECT {group}, COUNT(*) * {ONE} AS h FROM {rows} GROUP BY {group}")
    counts = f"SELECT u, {group}, COUNT(*) AS n FROM {rows} GROUP BY u, {group}"
    most = release.bound.l1
    factor = f"({emitter.double(ONE * most * SHAVE)} / CAST(x AS {dialect.double}))"
    scaled = f"CAST(TRUNC(n * {factor}) AS BIGINT)"
    weight = f"CASE WHEN n > {MAX_COUNT} THEN 0 WHEN x > {most} THEN {scaled} ELSE n * {ONE} END"
    if selected:
        return _of_candidates(release, counts, keys, weight)
    steps = f"WITH p AS MATERIALIZED ({counts}), w AS MATERIALIZED ({_norms('p')}) "
    return steps + _totals(group, f"SELECT {group}, SUM({weight}) AS h FROM p JOIN w USING (u) GROUP BY {group}")


def _norms(counted: str) -> str:
    return f"SELECT u, SUM(CASE WHEN n > {MAX_COUNT} THEN {MAX_COUNT} ELSE n END) AS x FROM {counted} GROUP BY u"


def _of_candidates(release: PlannedRelease, counts: str, keys: list[str], weight: str) -> str:
    """The same where keys are private and a unit may have many groups; `c`: units within the cap."""
    cap = release.selection.cap if release.selection is not None else 0
    group, key = ", ".join([*keys, "bin"]), ", ".join(keys)
    groups = f"SELECT u, COUNT(*) AS groups FROM (SELECT DISTINCT u, {key} FROM p) AS own GROUP BY u"
    steps = [
        f"p AS MATERIALIZED ({counts})",
        f"w AS MATERIALIZED ({_norms('p WHERE bin IS NOT NULL')})",
        f"g AS MATERIALIZED ({groups})",
    ]
    binned = f"CASE WHEN bin IS NOT NULL THEN {weight} ELSE 0 END"
    within = f"SUM(CASE WHEN groups <= {cap} THEN 1 ELSE 0 END)"
    sums = f"SUM({binned}) AS h, SUM({within}) OVER (PARTITION BY {key}) AS c"
    weights = f"SELECT {group}, {sums} FROM p JOIN g USING (u) LEFT JOIN w USING (u) GROUP BY {group}"
    return f"WITH {', '.join(steps)} " + _totals(group, weights, OF_CANDIDATES)


def _totals(group: str, weights: str, of: str = "") -> str:
    """As bigints within 2^62."""
    clamped = f"CAST(CASE WHEN h > {MAX_TOTAL} THEN {MAX_TOTAL} ELSE h END AS BIGINT) AS h"
    return f"SELECT {group}, {clamped} FROM ({weights}) AS totals WHERE h > 0{of}"
