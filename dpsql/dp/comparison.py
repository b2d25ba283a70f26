"""What the same privacy events would add up to by other accountants: for reports, never as a gate.

Each figure is an epsilon at one delta, for events that were fixed beforehand; under adaptive choice only the filter of
`dpsql.dp.accounting` holds.

- basic: epsilons and deltas are added (Dwork, Roth, "The Algorithmic Foundations of Differential Privacy", 3.5);
- advanced: Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015, theorem 3.5, with
  half of delta for the composition;
- PLD: dp_accounting's privacy loss distributions, with the discrete noises taken as the continuous ones they approach;
  Gaussians compose exactly, their rhos add up.

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
    """Epsilons at one delta, of so many noisy vectors. `advanced` never exceeds `basic`."""

    vectors: int
    basic: float
    advanced: float
    pld: float


def figures(gaussians: Mapping[int, int], laplaces: Mapping[int, int], delta: Decimal) -> Figures:
    """`gaussians`: how often each rho was spent, `laplaces`: each epsilon; amounts in units of 1e-15. 0 < delta < 1."""
    vectors = sum(gaussians.values()) + sum(laplaces.values())
    basic = sum(count * epsilon for epsilon, count in _epsilons(gaussians, laplaces, delta))
    advanced = _advanced(_epsilons(gaussians, laplaces, delta / 2), float(delta / 2))
    return Figures(vectors, basic, min(basic, advanced), _pld(gaussians, laplaces, float(delta)))


def _epsilons(gaussians: Mapping[int, int], laplaces: Mapping[int, int], delta: Decimal) -> list[tuple[float, int]]:
    each = delta / max(1, sum(gaussians.values()))
    return [
        *((float(epsilon_from_rho(Fraction(rho, UNITS), each)), count) for rho, count in gaussians.items()),
        *((epsilon / UNITS, count) for epsilon, count in laplaces.items()),
    ]


def _advanced(epsilons: list[tuple[float, int]], slack: float) -> float:
    drift = sum(count * epsilon * math.tanh(epsilon / 2) for epsilon, count in epsilons)
    squares = sum(count * epsilon**2 for epsilon, count in epsilons)
    return drift + math.sqrt(2 * math.log(1 / slack) * squares)


def _pld(gaussians: Mapping[int, int], laplaces: Mapping[int, int], delta: float) -> float:
    import dp_accounting  # takes a second, and only a report needs it
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    if rho := sum(rho * count for rho, count in gaussians.items()):
        accountant.compose(dp_accounting.GaussianDpEvent(math.sqrt(UNITS / (2 * rho))))
    for epsilon, count in laplaces.items():
        accountant.compose(dp_accounting.LaplaceDpEvent(UNITS / epsilon), count)
    return float(accountant.get_epsilon(delta))
