"""Which chosen values (MIN, MAX, quantiles, MODE) are no more than noise: from released values and the plan alone.

A choice has no error that is known without the data, so it is judged by what stands beside it. It says nothing of a
group in which a count of the same statement tells that there are no more rows than it is off by, or maybe none; a
quantile says nothing where its interval spans all there can be; and of values of the same rows that are in the wrong
order, such as a minimum above the maximum, none can be believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.algebra import Expr, canonical
from dpsql.compiler.histograms import Choice, HistogramOutput
from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.scales import Scale


@dataclass(frozen=True, slots=True)
class Chosen:
    """A chosen value's place among the aggregates. `rank`: 0 of MIN, 1 of MAX, None of MODE.

    `column`: of its bin in a released row. `counts`: measurements that count its rows, and maybe others too.
    `needed`: how many rows a group must have for the choice to say something. `ends`: columns of its interval's ends,
    with the last bin of the upper one.
    """

    place: int
    rank: Fraction | None
    choice: Choice
    column: int
    counts: tuple[int, ...]
    needed: float
    ends: tuple[int, int, int] | None

    @property
    def read(self) -> tuple[str, str]:
        """Equal for choices over the same values of the same rows."""
        return _text(self.choice.argument), _text(self.choice.condition)


def choices_of(planned: PlannedRelease) -> tuple[Chosen, ...]:
    """The chosen values of a release, without the ends of intervals."""
    found = []
    for place, output in enumerate(planned.outputs):
        if not isinstance(output, HistogramOutput) or planned.histograms[output.histogram].choice.end is not None:
            continue
        histogram = planned.histograms[output.histogram]
        choice = histogram.choice
        rank = {"min": Fraction(0), "max": Fraction(1), "quantile": choice.rank}.get(choice.wanted)
        counts = tuple(i for i, m in enumerate(planned.measurements) if _counts(m, choice))
        column = len(planned.measurements) + output.histogram
        found.append(Chosen(place, rank, choice, column, counts, histogram.needed_rows, _ends(planned, choice)))
    return tuple(found)


def _counts(m: Measurement, choice: Choice) -> bool:
    """Whether a measurement counts every row that the choice reads."""
    cell = m.cell
    if not cell.counts or cell.kind not in ("count", "moment") or cell.second is not None:
        return False
    argument, condition = _text(choice.argument), _text(choice.condition)
    return _text(cell.argument) in ("", argument) and _text(cell.condition) in ("", condition)


def _text(expr: Expr | None) -> str:
    return "" if expr is None else canonical(expr)


def _ends(planned: PlannedRelease, choice: Choice) -> tuple[int, int, int] | None:
    places = {h.choice.text: h for h in planned.histograms}
    low, high = (places.get(replace(choice, end=end).text) for end in ("low", "high"))
    if choice.wanted != "quantile" or low is None or high is None:
        return None
    first = len(planned.measurements)
    return first + low.number, first + high.number, high.choice.bins.size - 1


def noise_of_choices(choices: tuple[Chosen, ...], cells: tuple[int, ...], scales: tuple[Scale, ...]) -> Iterator[int]:
    """The places of chosen values that are no more than noise in one group."""
    for each in choices:
        few = any(scales[at].units(cells[at]) <= max(scales[at].error95, each.needed) for at in each.counts)
        wide = each.ends is not None and (cells[each.ends[0]], cells[each.ends[1]]) == (0, each.ends[2])
        if few or wide or any(_disagree(each, other, cells) for other in choices):
            yield each.place


def _disagree(a: Chosen, b: Chosen, cells: tuple[int, ...]) -> bool:
    """Whether two values of the same rows are in the wrong order: their bins are in the order of values."""
    if a.rank is None or b.rank is None or a.read != b.read or a.choice.bins != b.choice.bins:
        return False
    x, y = cells[a.column], cells[b.column]
    return (a.rank < b.rank and x > y) or (a.rank > b.rank and x < y)
