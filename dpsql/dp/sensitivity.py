"""How far one privacy unit can move a vector of exact integers: decided here, from declared bounds only.

Neighbouring databases differ in all rows of one unit. The emitted SQL clips the unit's vector of partials, over all
groups, to a norm; what the unit adds is then that vector, and removing the unit moves the released vector by exactly
it. So the clipping radius *is* the sensitivity, in the same norm (DESIGN.md section 3, "norm clipping"; Wilson et al.,
"Differentially Private SQL with Bounded User Contribution", PoPETs 2020, section 3, for the reduction).

A unit that keeps to the contribution bound (`groups` groups, `rows` rows in each, `total` rows in all, absolute grid
value at most `b`) passes untouched. With n[g] its rows in group g, its L1 norm is at most b * sum n[g], and its squared
L2 norm at most b^2 * sum n[g]^2, where sum n[g]^2 <= max n[g] * sum n[g]: the radii of `ContributionBound`. Privacy
does not hang on a unit keeping to it: whatever the radius is, the clip enforces it.

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
    """What one unit may contribute unclipped: `rows` rows in each of `groups` groups, and `total` rows in all.

    `total` None: nothing but the other two bounds it.
    """

    groups: int
    rows: int
    total: int | None = None

    def __post_init__(self) -> None:
        _require_positive("max_groups", self.groups)
        _require_positive("max_rows_per_group", self.rows)
        if self.total is not None:
            _require_positive("the rows of a unit in all", self.total)

    @property
    def l1(self) -> int:
        """The L1 radius of row counts: min(T, L0 m)."""
        most = self.groups * self.rows
        return most if self.total is None else min(self.total, most)

    @property
    def l2_squared(self) -> int:
        """The square of the L2 radius of row counts: min(T^2, T m, L0 m^2)."""
        most = self.groups * self.rows**2
        return most if self.total is None else min(self.total**2, self.total * self.rows, most)


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
    """The L1 radius C1 = b * bound.l1 for values of at most `b` grid steps, and the sensitivity it gives."""
    _require_positive("the largest absolute grid value", b)
    return L1(bound.l1 * b)


def clip_l2(bound: ContributionBound, b: int) -> L2:
    """The squared L2 radius R = b^2 * bound.l2_squared for values of at most `b` grid steps, and its sensitivity."""
    _require_positive("the largest absolute grid value", b)
    return L2(bound.l2_squared * b**2)


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
