"""How far one privacy unit can move a vector of exact integers: decided here, from declared bounds only.

Neighbouring databases differ in all rows of one unit. The emitted SQL clips the unit's vector of partials, over all
groups, to a norm; what the unit adds is then that vector, and removing the unit moves the released vector by exactly
it. So the clipping radius *is* the sensitivity, in the same norm (DESIGN.md section 3, "norm clipping"; Wilson et al.,
"Differentially Private SQL with Bounded User Contribution", PoPETs 2020, section 3, for the reduction).

A unit that keeps to the contribution bound (`groups` groups, `rows` rows in each, absolute grid value at most `b`)
passes untouched: its L1 norm is at most groups*rows*b, its squared L2 norm at most groups*(rows*b)^2.

Never: a float, or a sensitivity rounded down. The L2 sensitivity is kept as its exact integer square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpsql.errors import Failed

Norm = Literal["l1", "l2"]


@dataclass(frozen=True, slots=True)
class ContributionBound:
    """What one unit may contribute unclipped: `rows` rows in each of `groups` groups."""

    groups: int
    rows: int

    def __post_init__(self) -> None:
        _require_positive("max_groups", self.groups)
        _require_positive("max_rows_per_group", self.rows)


@dataclass(frozen=True, slots=True)
class L1:
    """One unit moves the vector by at most `bound` grid steps in the L1 norm."""

    bound: int

    def __post_init__(self) -> None:
        _require_positive("an L1 sensitivity", self.bound)


@dataclass(frozen=True, slots=True)
class L2:
    """One unit moves the vector by at most sqrt(`squared`) grid steps in the L2 norm."""

    squared: int

    def __post_init__(self) -> None:
        _require_positive("a squared L2 sensitivity", self.squared)


Sensitivity = L1 | L2


@dataclass(frozen=True, slots=True)
class Scores:
    """One unit moves the scores of a group's candidates by at most some number, these adding up to `bound` over groups.

    Not the largest over groups: a release chooses in every group, and the losses of all its choices add up.
    """

    bound: int

    def __post_init__(self) -> None:
        _require_positive("a sensitivity of scores", self.bound)


def clip_l1(bound: ContributionBound, b: int) -> L1:
    """The L1 radius C1 = groups * rows * b for values of at most `b` grid steps, and the sensitivity it gives."""
    _require_positive("the largest absolute grid value", b)
    return L1(bound.groups * bound.rows * b)


def clip_l2(bound: ContributionBound, b: int) -> L2:
    """The squared L2 radius R = groups * rows^2 * b^2 for values of at most `b` grid steps, and its sensitivity."""
    _require_positive("the largest absolute grid value", b)
    return L2(bound.groups * (bound.rows * b) ** 2)


def radius(sensitivity: Sensitivity) -> int:
    """The largest integer that one coordinate of a clipped vector can reach: the radius, rounded down."""
    match sensitivity:
        case L1(bound):
            return bound
        case L2(squared):
            return math.isqrt(squared)


def _require_positive(what: str, value: int) -> None:
    if type(value) is not int or value < 1:
        raise Failed(f"{what} must be an integer of at least 1, not {value!r}")
