"""What an answer will not tell of itself, said beforehand: from the plan alone, never from data.

A join with public rows that repeats rows of which the policy counts no more than there were before, and a sum that has
another clipping than it would have alone, are answered and charged, but do not say what they seem to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dpsql.compiler.algebra import Expr, Node, Scan, columns_of
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.cells import SumOutput, aggregate_name
from dpsql.compiler.histograms import Histogram
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.sharing import may_clip
from dpsql.compiler.walk import inputs
from dpsql.dp.selection import WEIGHT_ONE
from dpsql.policy.schema import Schema


@dataclass(frozen=True, slots=True)
class Doubts:
    """What the binder knows of a release that the plan does not show.

    `repeated`: the public side of a join that repeats rows, of which a unit has a fixed number at most, within a group.
    """

    repeated: str | None


def doubts(source: Source, keys: list[Expr], schema: Schema) -> Doubts:
    """Of a release that groups the source's rows by these keys."""
    if schema.policy.privacy.is_row:
        return Doubts(repeated=None)
    return Doubts(_repeated(source, keys, schema))


def cautions(release: PlannedRelease, known: Doubts, unit: str) -> Iterator[str]:
    """In words, for EXPLAIN and the answer's notices."""
    yield from _scaled_otherwise(release, unit)
    if known.repeated is not None:
        rows = f"{release.bound.rows} row{'s' if release.bound.rows > 1 else ''}"
        yield (
            f"The join with {known.repeated} repeats rows of {' and '.join(release.aggregation.tables)}, but one {unit}"
            f" counts as at most {rows} in a group: repeated rows are scaled down to that. Join on, or group by,"
            f" what is unique in {known.repeated}."
        )


def _scaled_otherwise(release: PlannedRelease, unit: str) -> Iterator[str]:
    """Of sums read from an average's measurements: they are clipped by a unit's number of rows, alone by its total."""
    if not may_clip(release.form, release.bound):
        return
    pairs = zip(release.aggregation.aggregates, release.outputs, strict=True)
    found = [
        aggregate_name(aggregate)
        for aggregate, output in pairs
        if isinstance(output, SumOutput) and release.measurements[output.cell].cell.moment is not None
    ]
    if found:
        yield (
            f"{', '.join(dict.fromkeys(found))}: beside an average or a deviation of the same values, what one {unit}"
            " adds is scaled down by how many rows it has, alone by what they add up to. Ask for it in a statement of"
            " its own if many have more rows than the bound, of small values."
        )


def rank_errors(releases: Iterable[PlannedRelease]) -> tuple[str, ...]:
    """Of values that are chosen, in place of an error bar: how many rows of a group may lie between them and the truth.

    For the answer's notices; EXPLAIN says it of each choice. Quantiles whose intervals are asked for need no word.
    """
    off = [h for r in releases for h in r.histograms if h.rank_rows and not _has_interval(h, r)]
    if not off:
        return ()
    found = ", ".join(f"{h.name} by about {h.rank_rows:,.0f}" for h in off)
    words = f"Off in rank, in rows of each group: {found}. In smaller groups they say little."
    if any(h.choice.wanted == "quantile" for h in off):
        words += " dp_interval_low(...) and dp_interval_high(...) of a quantile tell its 95 % interval in values."
    return (words,)


def _has_interval(histogram: Histogram, release: PlannedRelease) -> bool:
    """Whether the release has both ends of the quantile's interval."""
    chosen = {h.choice for h in release.histograms}
    return all(replace(histogram.choice, end=end) in chosen for end in ("low", "high"))


def unseen_groups(releases: Iterable[PlannedRelease]) -> tuple[str, ...]:
    """Why an answer without rows may have none: for the notices of such an answer."""
    thresholds = [release.selection.threshold for release in releases if release.selection is not None]
    if not thresholds:
        return ()
    needed = f"{round(max(thresholds) / WEIGHT_ONE):,}"
    return (
        f"No rows: groups whose keys are not public show only where about {needed} units or more stand behind them."
        " Group by something that more share.",
    )


def _repeated(source: Source, keys: list[Expr], schema: Schema) -> str | None:
    tables = [schema.tables[name] for name in source.tables]
    if not source.multiplies or not all(t.max_rows is not None or t.one_row_per_unit for t in tables):
        return None
    read = {column.name for key in keys for column in columns_of(key)}
    found = [node.table for node in _public(source.node, schema) if not _told_apart(node, read, schema)]
    return found[0] if len(found) == 1 else "public tables" if found else None


def _told_apart(node: Scan, read: set[str], schema: Schema) -> bool:
    """Whether a group has one row of the public relation at most, as far as its text shows."""
    names = {name: column.name for name, column in node.columns}
    return any({names[name] for name in key} <= read for key in schema.tables[node.table].unique)


def _public(node: Node, schema: Schema) -> Iterator[Scan]:
    """The public tables inside."""
    if isinstance(node, Scan) and schema.tables[node.table].public:
        yield node
    for inner in inputs(node):
        yield from _public(inner, schema)
