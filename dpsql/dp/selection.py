"""Which private keys may be shown: the weight a unit gives to a key, and the threshold a noisy weight must reach.

A unit that touches t groups adds to each the weight min(1, L0/t) under L1, min(1, sqrt(L0/t)) under L2, in steps of
1/1024 rounded down, or nothing at all if t exceeds the selection cap. Its vector of weights then has L1 norm at most
L0, or L2 norm at most sqrt(L0), so noise for that sensitivity makes the noisy weights of the keys that *other* units
hold private. Keys that only this unit holds exist in one of two neighbouring databases: the release is private up to
the probability that any of them is shown, and that is what the threshold bounds by delta, for every t up to the cap
(Korolova et al., "Releasing Search Queries and Clicks Privately", WWW 2009; Wilson et al., PoPETs 2020, section 4).
If only some of the t groups are the unit's alone, fewer can be shown at the same weight, so all of them is the worst
case. Weights count distinct units, never rows: a unit's rows in a group change nothing.

With independent noise X per key, t groups of weight w show any with probability 1 - (1 - P(w + X >= threshold))^t.
It is computed from the law of X by upper bounds (`mechanisms.tail`), so a threshold may only err upwards.

Never: a threshold from t = 1 or t = L0 alone; the worst t may lie in between or beyond.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpsql.dp.mechanisms import Mechanism, tail
from dpsql.dp.privacy import UNITS
from dpsql.dp.sensitivity import L1, L2, Norm, Sensitivity
from dpsql.errors import Failed

WEIGHT_ONE = 1024
"""Steps of a whole weight."""


def weight(t: int, groups: int, norm: Norm, one: int = WEIGHT_ONE) -> int:
    """What a unit that touches `t` groups adds to each of them, in steps of 1/`one`. The only home of this formula.

    floor(one * min(1, groups/t)) or floor(one * min(1, sqrt(groups/t))), in exact integers.
    """
    if t <= groups:
        return one
    if norm == "l1":
        return one * groups // t
    return math.isqrt(one * one * groups // t)


def weight_sensitivity(groups: int, norm: Norm, one: int = WEIGHT_ONE) -> Sensitivity:
    """How far one unit moves the vector of weights: t * weight <= groups * one, or t * weight^2 <= groups * one^2."""
    return L1(groups * one) if norm == "l1" else L2(groups * one * one)


def failure_probability(
    mechanism: Mechanism, tau: int, t: int, groups: int, norm: Norm, weight_one: int = WEIGHT_ONE
) -> float:
    """An upper bound of the probability that a unit alone in `t` groups shows any of them at threshold `tau`.

    A weight that was rounded down to 0 makes no candidate, so it never shows.
    """
    added = weight(t, groups, norm, weight_one)
    if added == 0:
        return 0.0
    shown = tail(mechanism, tau - added)
    if shown >= 1:
        return 1.0
    return min(1.0, -math.expm1(t * math.log1p(-shown)) * (1 + 1e-11) + 1e-300)


@lru_cache(maxsize=4096)
def threshold(
    mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm, weight_one: int = WEIGHT_ONE
) -> int:
    """The smallest tau at which, for every t <= cap, a unit alone in t groups shows any with probability <= delta.

    A key is shown iff its noisy weight is >= tau. `groups` is L0, `cap` the selection cap, in steps of 1/`weight_one`.
    """
    if groups < 1 or cap < 1 or not Fraction(1, UNITS) <= delta < 1:
        raise Failed(f"no threshold for groups {groups}, cap {cap}, delta {delta}")
    allowed = math.nextafter(float(delta), 0.0)
    tau = weight_one
    for t in sorted(range(1, cap + 1), key=lambda t: abs(t - groups)):
        if failure_probability(mechanism, tau, t, groups, norm, weight_one) > allowed:
            tau = _least_tau(mechanism, tau, t, groups, allowed, norm, weight_one)
    return tau


def _least_tau(
    mechanism: Mechanism, fails: int, t: int, groups: int, allowed: float, norm: Norm, weight_one: int
) -> int:
    """The least tau above `fails` that holds for this `t`: double the step until one holds, then bisect."""
    step = 1
    while failure_probability(mechanism, fails + step, t, groups, norm, weight_one) > allowed:
        fails, step = fails + step, 2 * step
    holds = fails + step
    while holds - fails > 1:
        middle = (fails + holds) // 2
        if failure_probability(mechanism, middle, t, groups, norm, weight_one) > allowed:
            fails = middle
        else:
            holds = middle
    return holds
