"""What a mechanism costs, and which mechanism fits a share of the budget: two directions, checked against each other.

Cost, from the mechanism and the sensitivity alone (exact fractions of the very float that the sampler is given):
- Laplace: epsilon = C1 / scale, pure DP; it is also (epsilon^2 / 2)-zCDP (Bun, Steinke, "Concentrated Differential
  Privacy", TCC 2016, proposition 1.4).
- Gaussian: rho = R / 2 sigma^2 (see dp.mechanisms). It has no pure epsilon, so it is refused under pure accounting.
- Choice by noisy max: epsilon = 2 D / scale, pure DP. D is how far one unit moves scores, added up over the groups of
  the release (sensitivity.Scores). In one group, where they move by D_g, permute-and-flip loses at most 2 D_g / scale
  (McKenna, Sheldon 2020, theorem 1); choices in different groups are independent, so their losses add up, to at most
  2 (D_1 + D_2 + ...) / scale. So all groups of one release together cost one epsilon, as with Laplace noise.
- Key selection fails with probability delta, which adds up (approximate zCDP: same paper, section 8).
Costs compose by addition, each component on its own: epsilons by basic composition, rhos by lemma 1.7 of that paper.

Calibration goes the other way and may only err towards more noise: the share is rounded down to the ledger's units of
1e-15, and the scale is raised, float by float, until it does not exceed that in exact arithmetic, so `cost_of` of what
is returned never exceeds the share. `auto` needs no search: at equal rho the Gaussian's standard deviation is
sqrt(R / 2 rho), below the Laplace's C1 / sqrt(rho), as R <= C1^2 always; under pure accounting only the Laplace exists.

Never: a cost rounded to nearest, or a scale from a float formula without the exact check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from dpsql.dp.mechanisms import MAX_SCALE, DiscreteGaussian, DiscreteLaplace, Mechanism, NoisyMax
from dpsql.dp.sensitivity import L1, L2, Scores, Sensitivity
from dpsql.errors import BAD_PARAMETER, Failed, Rejected
from dpsql.types import COST_UNIT, Cost

Accounting = Literal["zcdp", "pure"]
Preference = Literal["auto", "laplace", "gaussian"]
Amount = Fraction | Decimal

UNITS = int(1 / COST_UNIT)
"""Units of `Cost` in one epsilon, rho or delta."""


@dataclass(frozen=True, slots=True)
class PureEvent:
    """Laplace noise of this epsilon was added."""

    epsilon: Amount


@dataclass(frozen=True, slots=True)
class ChoiceEvent:
    """An epsilon-DP choice was made. Costs what Laplace noise does; nothing more may be assumed of its loss."""

    epsilon: Amount


@dataclass(frozen=True, slots=True)
class ZcdpEvent:
    """A rho-zCDP mechanism ran."""

    rho: Amount


@dataclass(frozen=True, slots=True)
class DeltaEvent:
    """Something that fails with probability at most `delta` ran: key selection."""

    delta: Amount


Event = PureEvent | ChoiceEvent | ZcdpEvent | DeltaEvent


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A mechanism together with the sensitivity it was calibrated for."""

    mechanism: Mechanism
    sensitivity: Sensitivity


def units_up(amount: Amount) -> int:
    """The amount in units of 1e-15, rounded up: for what is spent."""
    return math.ceil(Fraction(amount) * UNITS)


def units_down(amount: Amount) -> int:
    """The amount in units of 1e-15, rounded down: for what may be spent."""
    return math.floor(Fraction(amount) * UNITS)


def amount(units: int) -> Decimal:
    """Units of 1e-15 as a plain, exact decimal without trailing zeros: the inverse of the two above, for showing."""
    return Decimal(f"{units // UNITS}.{units % UNITS:015d}".rstrip("0").rstrip("."))


def event_of(mechanism: Mechanism | NoisyMax, sensitivity: Sensitivity | Scores) -> PureEvent | ChoiceEvent | ZcdpEvent:
    """The privacy event of one noisy vector, or of the choices of one release.

    A mechanism paired with another kind of sensitivity raises Failed.
    """
    match mechanism, sensitivity:
        case DiscreteLaplace(scale), L1(bound):
            return PureEvent(bound / Fraction(scale))
        case DiscreteGaussian(sigma), L2(squared):
            return ZcdpEvent(squared / (2 * Fraction(sigma) ** 2))
        case NoisyMax(scale), Scores(bound):
            return ChoiceEvent(2 * bound / Fraction(scale))
        case _:
            raise Failed(f"{type(mechanism).__name__} has no guarantee under {type(sensitivity).__name__}")


def cost(event: Event) -> Cost:
    """The event in the ledger's integer units, rounded up. Amounts that are not above 0 raise Failed."""
    match event:
        case PureEvent(epsilon) | ChoiceEvent(epsilon):
            exact = _positive(epsilon)
            return Cost(epsilon=units_up(exact), rho=units_up(exact**2 / 2))
        case ZcdpEvent(rho):
            return Cost(rho=units_up(_positive(rho)))
        case DeltaEvent(delta):
            return Cost(delta=units_up(_positive(delta)))


def cost_of(mechanism: Mechanism | NoisyMax, sensitivity: Sensitivity | Scores) -> Cost:
    """What one noisy vector, or the choices of one release, cost.

    The Gaussian's has epsilon 0, as it has none: `permitted` keeps it out of pure.
    """
    return cost(event_of(mechanism, sensitivity))


def permitted(mechanism: Mechanism | NoisyMax, accounting: Accounting) -> bool:
    """Whether the accounting can price the mechanism at all."""
    return accounting == "zcdp" or not isinstance(mechanism, DiscreteGaussian)


def laplace_for_epsilon(sensitivity: L1, epsilon: Fraction) -> DiscreteLaplace:
    """The least scale of which epsilon = C1 / scale is within the share."""
    return DiscreteLaplace(_least_scale(1, Fraction(sensitivity.bound), epsilon))


def laplace_for_rho(sensitivity: L1, rho: Fraction) -> DiscreteLaplace:
    """The least scale of which rho = C1^2 / 2 scale^2 is within the share."""
    return DiscreteLaplace(_least_scale(2, Fraction(sensitivity.bound**2, 2), rho))


def gaussian_for_rho(sensitivity: L2, rho: Fraction) -> DiscreteGaussian:
    """The least sigma of which rho = R / 2 sigma^2 is within the share."""
    return DiscreteGaussian(_least_scale(2, Fraction(sensitivity.squared, 2), rho))


def noisy_max_for(scores: Scores, share: Fraction, accounting: Accounting) -> NoisyMax:
    """The least scale of which epsilon = 2 D / scale, or under zcdp epsilon^2 / 2, is within the share."""
    if accounting == "pure":
        return NoisyMax(_least_scale(1, Fraction(2 * scores.bound), share))
    return NoisyMax(_least_scale(2, Fraction(2 * scores.bound**2), share))


def best(l1: L1, l2: L2, share: Fraction, accounting: Accounting, preference: Preference = "auto") -> Calibrated:
    """The mechanism for a measurement that may spend `share`: an epsilon under pure accounting, a rho under zcdp.

    `l1` and `l2` are the same measurement's sensitivities, each if clipped in its own norm. Raises Rejected where
    the share is too small, or the Gaussian is asked for under pure accounting.
    """
    if accounting == "pure":
        if preference == "gaussian":
            raise _no_gaussian()
        return Calibrated(laplace_for_epsilon(l1, share), l1)
    if preference == "laplace":
        return Calibrated(laplace_for_rho(l1, share), l1)
    return Calibrated(gaussian_for_rho(l2, share), l2)


def _least_scale(power: int, numerator: Fraction, share: Fraction) -> float:
    """A float s, the least but for its neighbour, with numerator / s^power <= share exactly, in whole units of it."""
    available = units_down(share)
    if available < 1:
        raise _too_little()
    target = numerator * UNITS / available
    if target > Fraction(MAX_SCALE) ** power:
        raise _too_little()
    scale = float(target) if power == 1 else math.sqrt(target)
    while Fraction(scale) ** power < target:
        scale = math.nextafter(scale, math.inf)
    return scale


def _positive(amount: Amount) -> Fraction:
    exact = Fraction(amount)
    if exact <= 0:
        raise Failed(f"a privacy loss must be above 0, not {amount}")
    return exact


def _too_little() -> Rejected:
    return Rejected(
        "The privacy loss left for this measurement is too small: its noise would exceed what a result can hold.",
        sqlstate=BAD_PARAMETER,
        hint="Ask with a larger dpsql.epsilon, or for fewer aggregates in one statement.",
    )


def _no_gaussian() -> Rejected:
    return Rejected(
        "Gaussian noise has no pure epsilon, and this dataset's accounting is pure.",
        sqlstate=BAD_PARAMETER,
        hint="SET dpsql.mechanism = 'auto' or 'laplace'.",
    )
