"""Replay of neighbours for histograms: weights per group and bin, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compiler_replay import Cells, cells, made_up, spoken
from compiler_sites import NOBODY, Site

from dpsql.compiler import Compiled
from dpsql.compiler.emit import emit_histogram
from dpsql.compiler.emit.histogram import OF_CANDIDATES
from dpsql.compiler.histograms import Histogram
from dpsql.compiler.plan import PlannedRelease, with_released_keys
from dpsql.errors import Failed

Mutation = Callable[[str], str]
Weights = dict[int, int]


def _same(sql: str) -> str:
    return sql


def weights(site: Site, compiled: Compiled, name: str | None = None, mutation: Mutation = _same) -> list[Cells]:
    """The weights of all histograms by key and bin, those of groups that are no candidates too."""
    derived = made_up(compiled)
    found = []
    for release in compiled.releases:
        filled = with_released_keys(release, derived)
        for histogram in release.histograms:
            sql = mutation(emit_histogram(filled, histogram, spoken(site), derived).replace(OF_CANDIDATES, ""))
            found.append(cells(site.fetch(sql, len(release.keys) + 1, name)))
    return found


def histogram_violations(
    site: Site, compiled: Compiled, names: tuple[str, ...] | None = None, mutation: Mutation = _same
) -> Iterator[str]:
    """Every way in which the histograms break their promise on this site."""
    derived = made_up(compiled)
    plans = [(with_released_keys(r, derived), h) for r in compiled.releases for h in r.histograms]
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
