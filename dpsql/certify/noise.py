"""What noise costs, and how surely a private key stays hidden: from the mechanism and the derived radius alone.

- Laplace noise of scale s over an L1 radius C: epsilon C / s, and rho epsilon^2 / 2.
- Gaussian noise of deviation s over an L2 radius of square R: rho R / 2 s^2, and no pure epsilon.
- A choice by noisy max of scale s over scores of radius D: epsilon 2 D / s, and rho epsilon^2 / 2.
- The selection of keys: the noise of its weights, and delta.

All in exact fractions of the very float that the sampler is given, each rounded up to the ledger's units (see
`dp.privacy` for the sources). A key is hidden by its threshold: a unit alone in t groups adds to each the weight
min(1, L0 / t), in L2 its root, and shows any of them with probability 1 - (1 - P(noise >= threshold - weight))^t, which
is computed here for every t that the selection lets pass, and never exceeds delta. Weights count units, not rows.

Never: a mechanism with a radius in another norm, an amount rounded to nearest, or a threshold that is taken on trust.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, expm1, isfinite, isqrt, log1p
from typing import TYPE_CHECKING

from dpsql.certify.certificate import Gap
from dpsql.certify.vectors import ONE
from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, NoisyMax, tail
from dpsql.dp.sensitivity import L1, L2, Norm, Scores, Sensitivity
from dpsql.types import Cost

if TYPE_CHECKING:
    from dpsql.compiler.plan import Selection

UNITS = 10**15


def price(mechanism: Mechanism | NoisyMax, moved: Sensitivity | Scores, *, pure: bool) -> Cost:
    """What one noisy vector, or the choices of one release, cost."""
    match mechanism, moved:
        case (DiscreteLaplace(scale), L1(bound)) if _is_scale(scale):
            return _pure(Fraction(bound) / Fraction(scale))
        case (NoisyMax(scale), Scores(bound)) if _is_scale(scale):
            return _pure(2 * Fraction(bound) / Fraction(scale))
        case (DiscreteGaussian(sigma), L2(squared)) if _is_scale(sigma) and not pure:
            return Cost(rho=_units(squared / (2 * Fraction(sigma) ** 2)))
        case _:
            raise Gap(f"{type(mechanism).__name__} proves nothing for {type(moved).__name__}")


def weights(groups: int, norm: Norm) -> Sensitivity:
    """How far one unit moves the weights of all keys: groups * ONE, or its square over groups."""
    return L1(groups * ONE) if norm == "l1" else L2(groups * ONE**2)


def price_of_keys(selection: Selection, groups: int, norm: Norm, *, pure: bool) -> Cost:
    """Raises Gap unless the threshold hides the keys of one unit up to the delta that is paid."""
    moved = weights(groups, norm)
    if selection.sensitivity != moved:
        raise Gap(f"the weights of keys declare {selection.sensitivity}, derived {moved}")
    if selection.cap < groups or not 0 < selection.delta < 1:
        raise Gap("a selection without a cap or a delta")
    if _shown_by_chance(selection.mechanism, selection.threshold, selection.cap, groups, norm) > selection.delta:
        raise Gap("the threshold shows keys of one unit too often")
    return price(selection.mechanism, moved, pure=pure) + Cost(delta=_units(Fraction(selection.delta)))


@lru_cache(maxsize=1024)
def _shown_by_chance(mechanism: Mechanism, threshold: int, cap: int, groups: int, norm: Norm) -> float:
    """The most that a unit alone in t <= cap groups shows any of them, over all t."""
    worst = 0.0
    for t in range(1, cap + 1):
        weight = ONE if t <= groups else ONE * groups // t if norm == "l1" else isqrt(ONE**2 * groups // t)
        shown = tail(mechanism, threshold - weight) if weight else 0.0
        worst = max(worst, 1.0 if shown >= 1 else -expm1(t * log1p(-shown)))
    return worst


def _pure(epsilon: Fraction) -> Cost:
    return Cost(epsilon=_units(epsilon), rho=_units(epsilon**2 / 2))


def _units(amount: Fraction) -> int:
    return ceil(amount * UNITS)


def _is_scale(scale: float) -> bool:
    return isinstance(scale, float) and isfinite(scale) and 0 < scale <= 2.0**55
