"""Clipping radii as the contribution bound and the value bound give them, in exact integers."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.dp.sensitivity import L1, L2, ContributionBound, clip_l1, clip_l2, radius
from dpsql.errors import Failed

BOUND = ContributionBound(groups=12, rows=40)


def test_radii_are_those_of_the_fullest_unit() -> None:
    assert clip_l1(BOUND, 1024) == L1(12 * 40 * 1024)
    assert clip_l2(BOUND, 1024) == L2(12 * 40**2 * 1024**2)
    fullest = [40 * 1024] * 12
    assert sum(fullest) == clip_l1(BOUND, 1024).bound
    assert sum(p * p for p in fullest) == clip_l2(BOUND, 1024).squared


def test_radius_is_the_floor_of_the_root() -> None:
    assert radius(L1(7)) == 7
    for squared in (1, 2, 3, 4, 12 * 819200**2 * 4, 10**40 + 1):
        r = radius(L2(squared))
        assert r**2 <= squared < (r + 1) ** 2


def test_nothing_overflows() -> None:
    wide = clip_l2(ContributionBound(2**20, 2**20), 2**20)
    assert wide.squared == 2**100
    assert radius(wide) == 2**50


@pytest.mark.parametrize("bad", [0, -1, 1.0, True, None])
def test_bounds_that_bound_nothing_are_refused(bad: Any) -> None:
    for build in (L1, L2, lambda x: ContributionBound(x, 1), lambda x: ContributionBound(1, x)):
        with pytest.raises(Failed):
            build(bad)
    for clip in (clip_l1, clip_l2):
        with pytest.raises(Failed):
            clip(BOUND, bad)
