"""Ways along an ordered axis: a range as sums and differences of stored ones, on the shortest path between its ends.

Every stored range is an edge between its two ends, whose length is the variance of its noise, as a share of what is
allowed. Going back along an edge subtracts. Decides which differences are sound. Let F(A) be what a unit counts in the
set of rows A, and p(A) what its rows there come to without clipping.

- Where nothing is clipped, F = p, and any path will do.
- Where a unit counts as F(A) = min(p(A), c) with p never negative (`grows`: totals of one group, of counts or of values
  of one sign), F is submodular and gains no more than p does. So once [a, c) has been joined to something between
  F([a, c)) and p([a, c)), the stored ranges [b, c) and [b, d) with a <= b <= c < d add [c, d): F([b, d)) - F([b, c)) is
  at least F([a, d)) - F([a, c)), and at most p([c, d)). The same holds from right to left. Then a unit that keeps to
  the bounds on [a, d) counts in full, and no other counts for less than in a fresh answer, or for more than its rows.
- Every other difference is wrong for some data. One that reads rows outside [a, d) is: a unit with enough of them adds
  to neither of the two ranges, and so none of its rows inside. A fresh answer would count these.
- Else ranges are only put side by side.

Source: min(p, c) is a concave function of a modular one, hence submodular (Lovasz 1983, Submodular functions and
convexity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import Final

from dpsql.replay.sets import Position, Set

DONE: Final = 1 + 1e-9
"""All of the error that is allowed, up to rounding."""

MAX_SEARCH: Final = 20_000
"""Edges times asked intervals, up to which ranges are read by any path."""

Cell = tuple[Position, Position, float, int, int]
"""(low, high, length, candidate, its cell on the axis): a stored range."""

Node = tuple[Position, int]
"""(position, -1); or (b, i): a range that begins at b has been subtracted, the i-th that begins there may be added."""

Step = tuple[Cell, int]
"""A stored range and its sign."""

Moves = Callable[[Node], Iterator[tuple[Node, Step | None]]]


@dataclass(frozen=True, slots=True)
class Path:
    """One asked set: (candidate, its cell, coefficient) and the share of the allowed variance that these take."""

    weight: float
    terms: tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class Ranges:
    """The stored ranges of one axis, by what may be done with them."""

    forward: dict[Position, list[Cell]] = field(default_factory=dict)
    exact: list[Cell] = field(default_factory=list)
    growing: list[Cell] = field(default_factory=list)

    def add(self, cell: Cell, *, exact: bool, grows: bool) -> None:
        self.forward.setdefault(cell[0], []).append(cell)
        if exact:
            self.exact.append(cell)
        elif grows:
            self.growing.append(cell)


def shortest(ranges: Ranges, wanted: Sequence[Set]) -> Iterator[Path | None]:
    """For each asked set, when its turn comes, the best way that was found."""
    searches = [_rising(ranges.forward)]
    if ranges.exact and len(ranges.exact) * sum(map(len, wanted)) <= MAX_SEARCH:
        searches.append(_any_way(ranges.exact))
    growing = _near(ranges.growing, wanted)
    if growing:
        near = _near((cell for cells in ranges.forward.values() for cell in cells), wanted)
        searches.append(_exchanging(near, growing))
        searches.append(_facing(_exchanging(map(_mirrored, near), map(_mirrored, growing))))
    found = ([search(asked) for search in searches] for asked in wanted)
    return (min((p for p in paths if p is not None), key=lambda p: p.weight, default=None) for paths in found)


def _near(cells: Iterable[Cell], wanted: Sequence[Set]) -> list[Cell]:
    """Those that do not reach beyond all that is asked."""
    asked = [each for each in wanted if each]
    if not asked:
        return []
    least, most = min(each[0][0] for each in asked), max(each[-1][1] for each in asked)
    return [cell for cell in cells if least <= cell[0] and cell[1] <= most]


Search = Callable[[Set], Path | None]


def _rising(forward: dict[Position, list[Cell]]) -> Search:
    """Ranges side by side."""

    def moves(high: Position) -> Moves:
        def of(node: Node) -> Iterator[tuple[Node, Step | None]]:
            for cell in forward.get(node[0], ()):
                if cell[1] <= high:
                    yield (cell[1], -1), (cell, 1)

        return of

    return lambda asked: _joined(asked, lambda low, high: moves(high))


def _any_way(cells: Iterable[Cell]) -> Search:
    edges: dict[Position, list[tuple[Node, Step | None]]] = {}
    for cell in cells:
        edges.setdefault(cell[0], []).append(((cell[1], -1), (cell, 1)))
        edges.setdefault(cell[1], []).append(((cell[0], -1), (cell, -1)))
    return lambda asked: _joined(asked, lambda low, high: lambda node: iter(edges.get(node[0], ())))


def _exchanging(cells: Iterable[Cell], growing: Iterable[Cell]) -> Search:
    """Ranges side by side, or one in exchange for a shorter one of the same beginning, all within what is asked."""
    forward, chains = _by_beginning(cells), _by_beginning(growing)
    entries: dict[Position, list[tuple[Cell, int]]] = {}
    for chain in chains.values():
        chain.sort(key=lambda cell: cell[1])
        for place, cell in enumerate(chain):
            entries.setdefault(cell[1], []).append((cell, place))

    def moves(low: Position, high: Position) -> Moves:
        def of(node: Node) -> Iterator[tuple[Node, Step | None]]:
            at, place = node
            if place < 0:
                for cell in forward.get(at, ()):
                    if cell[1] <= high:
                        yield (cell[1], -1), (cell, 1)
                for cell, entry in entries.get(at, ()):
                    if cell[0] >= low:
                        yield (cell[0], entry + 1), (cell, -1)
            elif place < len(chains[at]) and chains[at][place][1] <= high:
                yield (at, place + 1), None
                yield (chains[at][place][1], -1), (chains[at][place], 1)

        return of

    return lambda asked: _joined(asked, moves)


def _by_beginning(cells: Iterable[Cell]) -> dict[Position, list[Cell]]:
    found: dict[Position, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell[0], []).append(cell)
    return found


def _mirrored(cell: Cell) -> Cell:
    return (-cell[1], -cell[0], *cell[2:])


def _facing(search: Search) -> Search:
    """The search from right to left, over mirrored cells."""
    return lambda asked: search(tuple((-high, -low) for low, high in reversed(asked)))


def _joined(asked: Set, moves: Callable[[Position, Position], Moves]) -> Path | None:
    """A path for each interval, together within the allowed error."""
    used: Counter[tuple[int, int]] = Counter()
    weights: dict[tuple[int, int], float] = {}
    for low, high in asked:
        steps = _shortest(low, high, moves(low, high))
        if steps is None:
            return None
        for (_, _, weight, place, number), sign in steps:
            used[place, number] += sign
            weights[place, number] = weight
    terms = tuple((place, number, by) for (place, number), by in used.items() if by)
    weight = sum(by * by * weights[place, number] for place, number, by in terms)
    return Path(weight, terms) if terms and weight <= DONE else None


def _shortest(low: Position, high: Position, moves: Moves) -> list[Step] | None:
    """Dijkstra's shortest path, no longer than what is allowed."""
    start, goal = (low, -1), (high, -1)
    heap: list[tuple[float, Node]] = [(0.0, start)]
    best: dict[Node, float] = {start: 0.0}
    came: dict[Node, tuple[Node, Step | None]] = {}
    while heap:
        distance, node = heappop(heap)
        if node == goal:
            return list(_back(start, goal, came))
        if distance > best[node]:
            continue
        for to, step in moves(node):
            length = distance + (0.0 if step is None else step[0][2])
            if length > DONE or length >= best.get(to, inf):
                continue
            best[to] = length
            came[to] = node, step
            heappush(heap, (length, to))
    return None


def _back(start: Node, node: Node, came: dict[Node, tuple[Node, Step | None]]) -> Iterator[Step]:
    while node != start:
        node, step = came[node]
        if step is not None:
            yield step
