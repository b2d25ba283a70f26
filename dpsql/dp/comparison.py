"""What the same privacy events would add up to by other accountants: for reports, never as a gate.

Each figure is an epsilon at one delta, for events that were fixed beforehand; under adaptive choice only the filter of
`dpsql.dp.accounting` holds.

- basic: epsilons and deltas are added (Dwork, Roth, "The Algorithmic Foundations of Differential Privacy", 3.5);
- advanced: Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015, theorem 3.5, with
  half of delta for the composition;
- PLD: dp_accounting's privacy loss distributions, with the discrete noises taken as the continuous ones they approach;
  Gaussians compose exactly, their rhos add up; a choice is taken as the worst mechanism of its epsilon.

A Gaussian has no epsilon of its own; the first two read each at an equal share of (the rest of) delta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dpsql.dp.accounting import epsilon_from_rho
from dpsql.dp.privacy import UNITS


@dataclass(frozen=True, slots=True)
class Figures:
    """Epsilons at one delta, of so many events. `advanced` never exceeds `basic`."""

    events: int
    basic: float
    advanced: float
    pld: float


def figures(
    gaussians: Mapping[int, int], laplaces: Mapping[int, int], choices: Mapping[int, int], delta: Decimal
) -> Figures:
    """How often each rho was spent by Gaussian noise, and each epsilon by Laplace noise and by choices.

    Amounts in units of 1e-15; 0 < delta < 1.
    """
    pure = [(epsilon / UNITS, count) for made in (laplaces, choices) for epsilon, count in made.items()]
    basic = sum(count * epsilon for epsilon, count in (*_epsilons(gaussians, delta), *pure))
    advanced = _advanced([*_epsilons(gaussians, delta / 2), *pure], float(delta / 2))
    events = sum(count for made in (gaussians, laplaces, choices) for count in made.values())
    return Figures(events, basic, min(basic, advanced), _pld(gaussians, laplaces, choices, float(delta)))


def _epsilons(gaussians: Mapping[int, int], delta: Decimal) -> list[tuple[float, int]]:
    each = delta / max(1, sum(gaussians.values()))
    return [(float(epsilon_from_rho(Fraction(rho, UNITS), each)), count) for rho, count in gaussians.items()]


def _advanced(epsilons: list[tuple[float, int]], slack: float) -> float:
    drift = sum(count * epsilon * math.tanh(epsilon / 2) for epsilon, count in epsilons)
    squares = sum(count * epsilon**2 for epsilon, count in epsilons)
    return drift + math.sqrt(2 * math.log(1 / slack) * squares)


def _pld(gaussians: Mapping[int, int], laplaces: Mapping[int, int], choices: Mapping[int, int], delta: float) -> float:
    from dp_accounting.pld import common  # takes a second, and only a report needs it
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity()
    if rho := sum(rho * count for rho, count in gaussians.items()):
        total = total.compose(pld.from_gaussian_mechanism(math.sqrt(UNITS / (2 * rho))))
    for epsilon, count in laplaces.items():
        total = total.compose(pld.from_laplace_mechanism(UNITS / epsilon).self_compose(count))
    for epsilon, count in choices.items():
        pure = common.DifferentialPrivacyParameters(epsilon / UNITS, 0)
        total = total.compose(pld.from_privacy_parameters(pure).self_compose(count))
    return float(total.get_epsilon_for_delta(delta))
