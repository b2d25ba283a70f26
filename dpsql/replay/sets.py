"""Sets on an ordered line as disjoint half-open intervals, and lists of them as text.

Pure arithmetic on positions (integers, or fractions where a domain is not discrete). A set is in one form only:
ascending, disjoint, no two intervals that touch; so equal sets are equal tuples.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Final

Position = int | Fraction
Interval = tuple[Position, Position]
Set = tuple[Interval, ...]

NOTHING: Final[Set] = ()


def union(intervals: Iterable[Interval]) -> Set:
    """The set of all positions in any of the intervals."""
    made: list[Interval] = []
    for low, high in sorted(i for i in intervals if i[0] < i[1]):
        if made and low <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], high))
        else:
            made.append((low, high))
    return tuple(made)


def common(a: Set, b: Set) -> Set:
    """What two sets share."""
    found: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            found.append((low, high))
        if a[i][1] <= b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def without(a: Set, b: Set) -> Set:
    """What of `a` is not in `b`."""
    if not a:
        return a
    edges = [a[0][0], *(end for interval in b for end in interval), a[-1][1]]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return common(a, tuple((low, high) for low, high in gaps if low < high))


def within(a: Set, b: Set) -> bool:
    """Whether all of `a` is in `b`."""
    lows = [low for low, _ in b]
    for low, high in a:
        place = bisect_right(lows, low) - 1
        if place < 0 or high > b[place][1]:
            return False
    return True


def size(a: Set) -> Position:
    return sum((high - low for low, high in a), start=0)


# As text ------------------------------------------------------------------------------------------------------------

Packed = list[list[int | str]]


def packed(cells: Sequence[Set]) -> Packed:
    """Sets as JSON: the ends of their intervals, or `[start, width, count]` for neighbours of one width."""
    made: Packed = []
    for cell in cells:
        if len(cell) == 1 and type(cell[0][0]) is int and type(cell[0][1]) is int:
            low, width = cell[0][0], cell[0][1] - cell[0][0]
            last = made[-1] if made else []
            if len(last) == 3 and last[1] == width and last[0] + width * last[2] == low:  # type: ignore[operator]
                last[2] += 1  # type: ignore[operator]
            else:
                made.append([low, width, 1])
        else:
            made.append([_end(end) for interval in cell for end in interval])
    return made


def unpacked(made: Packed) -> tuple[Set, ...]:
    """The inverse of `packed`."""
    cells: list[Set] = []
    for part in made:
        if len(part) == 3:
            low, width, count = (int(number) for number in part)
            cells += [((low + i * width, low + (i + 1) * width),) for i in range(count)]
        else:
            ends = [Fraction(end) if isinstance(end, str) else end for end in part]
            cells.append(tuple(zip(ends[::2], ends[1::2], strict=True)))
    return tuple(cells)


def _end(end: Position) -> int | str:
    return end if isinstance(end, int) else str(end)
