"""Ranges read from ranges: right whatever a unit's rows, where they are clipped as where they are not."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest

from dpsql.replay.derive import choose
from dpsql.replay.recipe import Axis, Kin, Measured, Recipe, Shape
from dpsql.replay.sets import Set

PLACES = 12
Range = tuple[int, int]


def shape(low: int, high: int, *, exact: bool = False, grows: bool = True) -> Shape:
    measured = Measured("m", True, True, 1.0, role="count", of="*", grows=grows)
    axis = Axis("x", ((-1, PLACES + 1),), (((low, high),),))
    return Shape("f", (axis,), (measured,), exact, Decimal(1))


def recipe(asked: Range, stored: list[Range], *, error: float = 1e9, exact: bool = False) -> Recipe | None:
    shapes = [shape(*each, exact=exact) for each in stored]
    return choose(Kin(shape(*asked, exact=exact), (error**2,)), list(enumerate(shapes)))


def terms(made: Recipe, stored: list[Range]) -> list[tuple[Range, int]]:
    (cell,) = made.cells
    return [(stored[made.sources[source]], by) for source, _, by in cell]


def counted(rows: list[int], part: Range, most: int) -> int:
    """What a unit with these rows, by place, counts in a range."""
    return min(sum(rows[slice(*part)]), most)


def units(random: Random) -> list[list[int]]:
    """Rows by place of some units: few, many, and many in one place only."""
    few = [[random.choice((0, 0, 0, 1)) for _ in range(PLACES)] for _ in range(3)]
    many = [[random.choice((0, 1, 5)) for _ in range(PLACES)] for _ in range(3)]
    peaks = [[99 if place == peak else random.choice((0, 0, 1)) for place in range(PLACES)] for peak in range(PLACES)]
    return [*few, *many, *peaks]


def test_no_unit_counts_for_less_than_measured_or_more_than_its_rows() -> None:
    """Thousands of pairs of stored ranges and an asked one, with units that are clipped in some, all, or none."""
    random = Random(11)
    ranges = [(a, b) for a in range(PLACES) for b in range(a + 1, PLACES + 1)]
    derived = subtracted = 0
    for _ in range(3000):
        asked, *stored = random.sample(ranges, random.randint(3, 30))
        made = recipe(asked, stored)
        if made is None:
            continue
        found = terms(made, stored)
        derived, subtracted = derived + 1, subtracted + any(by < 0 for _, by in found)
        for rows in units(random):
            for most in (1, 3, 7):
                value = sum(by * counted(rows, part, most) for part, by in found)
                assert counted(rows, asked, most) <= value <= counted(rows, asked, 10**9), (asked, found, rows, most)
    assert derived > 500
    assert subtracted > 50


def test_what_is_not_clipped_is_exact() -> None:
    random = Random(12)
    ranges = [(a, b) for a in range(PLACES) for b in range(a + 1, PLACES + 1)]
    for _ in range(1000):
        asked, *stored = random.sample(ranges, random.randint(3, 30))
        made = recipe(asked, stored, exact=True)
        found = [] if made is None else terms(made, stored)
        for rows in units(random) if found else ():
            assert sum(by * counted(rows, part, 10**9) for part, by in found) == counted(rows, asked, 10**9)


EXCHANGED = (
    ((0, 9), [(0, 6), (3, 6), (3, 9)]),
    ((0, 9), [(3, 9), (3, 6), (0, 6)]),
    ((0, 9), [(0, 6), (2, 6), (2, 8), (5, 8), (5, 9)]),
    ((0, 9), [(0, 4), (4, 6), (2, 6), (2, 9)]),
)
NOT_SOUND = (
    ((0, 6), [(0, 9), (6, 9)]),  # rows outside
    ((3, 6), [(0, 6), (0, 3)]),
    ((3, 9), [(3, 6), (0, 6), (0, 9)]),
    ((0, 6), [(0, 9), (3, 9), (3, 6)]),
)


@pytest.mark.parametrize(("asked", "stored"), EXCHANGED)
def test_overlapping_ranges(asked: Range, stored: list[Range]) -> None:
    made = recipe(asked, stored)
    assert made is not None
    assert len(made.sources) == len(stored)
    assert recipe(asked, stored, error=len(stored) ** 0.5) is not None
    assert recipe(asked, stored, error=len(stored) ** 0.5 - 0.01) is None


@pytest.mark.parametrize(("asked", "stored"), NOT_SOUND)
def test_differences_that_are_wrong_for_some_data(asked: Range, stored: list[Range]) -> None:
    assert recipe(asked, stored) is None


@pytest.mark.parametrize("stored", [[(0, 6), (6, 9), (3, 9), (3, 12)], [(6, 12), (3, 6), (3, 9), (0, 9)]])
def test_each_of_several_is_read_from_within(stored: list[Range]) -> None:
    """What is within all that is asked, but not within the one range, tells nothing of that either."""
    measured = shape(0, 1).measured
    axis = Axis("x", ((-1, PLACES + 1),), (((0, 6),), ((6, 12),)))
    asked = Kin(Shape("f", (axis,), measured, False, Decimal(1)), (1e9,))
    assert choose(asked, list(enumerate(shape(*each) for each in stored))) is None
    assert choose(asked, list(enumerate(shape(*each, exact=True) for each in stored))) is not None


def test_only_what_grows_is_exchanged() -> None:
    asked, stored = EXCHANGED[0]
    shapes = [shape(*each, grows=False) for each in stored]
    assert choose(Kin(shape(*asked), (1e9,)), list(enumerate(shapes))) is None


def test_positions_may_be_fractions() -> None:
    half = Fraction(1, 2)
    parts: list[Set] = [((0, half),), ((half, 3),)]
    shapes = [Shape("f", (Axis("x", ((0, 9),), (part,)),), shape(0, 1).measured, False, Decimal(1)) for part in parts]
    assert choose(Kin(shape(0, 3), (9.0,)), list(enumerate(shapes))) is not None


def test_what_is_stored_cannot_make_a_choice_long() -> None:
    """Everybody who asks the ledger waits for it: keys without a row, and ranges that only a long way joins."""
    count = shape(0, 1).measured
    full: Set = ((-1, 10_001),)

    def wide(*axes: tuple[Set, ...]) -> Shape:
        named = tuple(Axis(name, full, cells) for name, cells in zip("ab", axes, strict=False))
        return Shape("f", named, count, True, Decimal(1))

    def ranges(first: int, last: int, step: int, width: int) -> tuple[Set, ...]:
        return tuple(((low, low + width),) for low in range(first, last, step))

    part: tuple[Set, ...] = (((0, 5),),)
    odd = [wide(ranges(0, 10_000, 2, 2)), wide(ranges(1, 9_998, 2, 2)), wide(ranges(0, 1, 1, 1))]
    near = [wide(ranges(low, low + 1, 1, 5), part) for low in range(300)]
    choices = [(wide(((),) * 10_000, part), near)]
    choices += [(wide((tuple((low, low + 1) for low in range(8_000, 9_000, 2)),)), odd)]
    choices += [(wide(ranges(0, 10_000, 1, 1)), [wide(part)])] * 50
    start = time.process_time()
    for asked, stored in choices:
        assert choose(Kin(asked, (1e12,)), list(enumerate(stored))) is None
    assert time.process_time() - start < 2
