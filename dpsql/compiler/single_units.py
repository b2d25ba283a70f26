"""Groups of one unit each, by keys that are private: refused, with the query of two levels that says what is meant.

A key that holds the unit, or determines it, makes groups that one unit stands behind. None reaches the threshold, so
the answer would have no rows and cost its price. Decides from the plan alone, before any debit; which query to propose
is decided by compiling the proposals, so that a hint always runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sqlglot import exp

from dpsql.compiler.parse import parse, refuse
from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.selection import WEIGHT_ONE
from dpsql.errors import Rejected

Try = Callable[[exp.Query], object]


def check_groups(grouped: Iterable[tuple[PlannedRelease, exp.Select | None]], unit: str, compiles: Try) -> None:
    """`grouped`: each release, with its query where rows of one group belong to one unit. Raises Rejected."""
    for release, select in grouped:
        if select is None or release.selection is None:
            continue
        needed = round(release.selection.threshold / WEIGHT_ONE)
        proposed = next((text for text in proposals(select) if _runs(text, compiles)), None)
        instead = (
            f"Aggregate per {unit} first: {proposed}" if proposed else f"Aggregate per {unit} in a subquery first."
        )
        raise refuse(
            f"Every group here is one {unit}, and groups with private keys are shown only where about {needed} or more"
            " stand behind them: none would be.",
            select,
            hint=f"{instead}" if proposed else f"{instead} Or group by something that many share.",
        )


def proposals(select: exp.Select) -> Iterator[str]:
    """Queries over one row per unit and key, the most telling first: means of the aggregates, or how many rows."""
    inner = select.copy()
    for clause in ("order", "limit", "offset", "with_"):
        inner.set(clause, None)
    names = []
    for place, node in enumerate(inner.expressions):
        if node.find(exp.AggFunc) is not None and not isinstance(node, exp.Alias):
            node.replace(exp.alias_(node.copy(), f"v{place}"))
        if node.find(exp.AggFunc) is not None:
            names.append(inner.expressions[place].alias)
    below = f"FROM ({inner.sql('postgres')}) AS per_unit"
    means = ", ".join(f"AVG({exp.to_identifier(name).sql('postgres')})" for name in names)
    if means:
        yield f"SELECT {means} {below}"
    yield f"SELECT COUNT(*) {below}"


def _runs(text: str, compiles: Try) -> bool:
    try:
        compiles(parse(text))
    except Rejected:
        return False
    return True
