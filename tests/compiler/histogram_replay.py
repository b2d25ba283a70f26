"""Replay of neighbours for histograms: weights per group and bin, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from compiler_replay import Cells, _made_up, cells
from compiler_statements import PRIVATE_KEYS, PUBLIC_KEYS, From, Writer
from compiler_worlds import NOBODY, Site

from dpsql.compiler import Compiled
from dpsql.compiler.emit import DIALECTS, emit_histogram
from dpsql.compiler.histograms import Histogram
from dpsql.compiler.plan import PlannedRelease
from dpsql.errors import Failed

Mutation = Callable[[str], str]
Weights = dict[int, int]

NUMBERS = (
    "MIN({0})",
    "MAX({0})",
    "MEDIAN({0})",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {0} DESC)",
    "PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY {0})",
    "QUANTILE_CONT({0}, 0.123)",
    "APPROX_QUANTILE({0}, 0.01)",
    "MODE({0})",
)
ANY = ("MODE() WITHIN GROUP (ORDER BY {0})", "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY {0})", "MAX({0})", "MIN({0})")
TIMES = (
    "MEDIAN({0})",
    "MIN({0})",
    "MAX({0})",
    "MODE({0})",
    "QUANTILE_DISC({0}, 0.7)",
    "MODE(DATE_TRUNC('month', {0}))",
)


class Chooser(Writer):
    """Random statements of which most aggregates choose a value."""

    def aggregate(self, source: From) -> str:
        time, number = self._column("time"), self.random.random()
        if number < 0.15:
            return super().aggregate(source)
        if number < 0.35 and time is not None:
            made = self.random.choice(TIMES).format(time)
        elif number < 0.5:
            named = self._named((*PUBLIC_KEYS, *PRIVATE_KEYS)) or "'a'"
            made = self.random.choice(ANY).format(self.random.choice((named, named, f"({self.condition(1)})")))
        else:
            made = self.random.choice(NUMBERS).format(self.measured())
        return made if self.random.random() < 0.7 else f"{made} FILTER (WHERE {self.condition(1)})"


def _same(sql: str) -> str:
    return sql


def weights(site: Site, compiled: Compiled, name: str | None = None, mutation: Mutation = _same) -> list[Cells]:
    """The weights of all histograms by key and bin."""
    derived = {i: _made_up(remainder.columns) for i, remainder in enumerate(compiled.derived)}
    found = []
    for release in compiled.releases:
        for histogram in release.histograms:
            sql = mutation(emit_histogram(release, histogram, DIALECTS[site.backend.dialect], derived))
            found.append(cells(site.fetch(sql, len(release.keys) + 1, name)))
    return found


def histogram_violations(
    site: Site, compiled: Compiled, names: tuple[str, ...] | None = None, mutation: Mutation = _same
) -> Iterator[str]:
    """Every way in which the histograms break their promise on this site."""
    plans = [(r, h) for r in compiled.releases for h in r.histograms]
    try:
        whole = weights(site, compiled, None, mutation)
        for name in names or tuple(site.around):
            there = weights(site, compiled, name, mutation)
            for (release, histogram), a, b in zip(plans, whole, there, strict=True):
                yield from (f"{name}: {histogram.name}: {p}" for p in _broken(release, histogram, a, b, name))
    except Failed as error:
        yield f"backend failure {error.cause}"


def _broken(release: PlannedRelease, histogram: Histogram, a: Cells, b: Cells, name: str) -> Iterator[str]:
    yield from (problem for found in (a, b) for problem in _outside(release, histogram, found))
    moved = {key: a.get(key, (0,))[0] - b.get(key, (0,))[0] for key in a.keys() | b.keys()}
    total = sum(map(abs, moved.values()))
    if name == NOBODY and total:
        yield "counts rows of nobody"
    if total > histogram.weights.bound:
        yield f"weights move by {total}, declared {histogram.weights}"
    if any(value < 0 for value in moved.values()):
        yield "a unit takes weight away from others"
    mine, theirs = _by_group(a), _by_group(b)
    changed = [group for group in mine.keys() | theirs.keys() if mine.get(group) != theirs.get(group)]
    scored = sum(_score_move(histogram, mine.get(group, {}), theirs.get(group, {})) for group in changed)
    if scored > histogram.scores.bound:
        yield f"scores move by {scored}, declared {histogram.scores}"


def _outside(release: PlannedRelease, histogram: Histogram, found: Cells) -> Iterator[str]:
    for key, (weight,) in found.items():
        if weight <= 0:
            yield f"weight {weight} of {key}"
        if not (key[-1].isdigit() and int(key[-1]) < histogram.choice.bins.size):
            yield f"bin {key[-1]} of {histogram.choice.bins.size}"
        for value, declared in zip(key, release.keys, strict=False):
            if declared.domain is not None and not (value.isdigit() and int(value) < declared.domain.size):
                yield f"key {key} lies outside the domain of {declared.name}"


def _score_move(histogram: Histogram, mine: Weights, theirs: Weights) -> int:
    """How far the scores of one group's bins move. Of the empty bins between others one stands for all."""
    size = histogram.choice.bins.size
    near = {bin + step for bin in (*mine, *theirs) for step in (-1, 0, 1)}
    places = sorted(bin for bin in near if 0 <= bin < size)
    before, after = (histogram.scored([found.get(bin, 0) for bin in places]) for found in (mine, theirs))
    return max(abs(x - y) for x, y in zip(before, after, strict=True))


def _by_group(found: Cells) -> dict[tuple[str, ...], Weights]:
    groups: dict[tuple[str, ...], Weights] = {}
    for key, (weight,) in found.items():
        groups.setdefault(key[:-1], {})[int(key[-1])] = weight
    return groups


def some(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    """One neighbour, and nobody's rows where there are any."""
    units = [n for n in names if n != NOBODY]
    return (Random(seed).choice(units), *([NOBODY] if NOBODY in names else []))
