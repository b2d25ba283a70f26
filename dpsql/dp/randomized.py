"""Randomized response: what a noisy answer tells, and how counts of such answers are debiased.

Each person keeps their value with probability p and else gives one of the other k - 1 values, each with probability q
(Warner 1965 for k = 2; Kairouz, Oh and Viswanath 2014 for any k). With p / q = e^epsilon the answer is epsilon-locally
differentially private whatever is done with it later, so its counts cost no budget.

Debiasing, for a set of s values: of the persons whose value is in it a share P = p + (s - 1) q answers inside, of the
others a share Q = s q. So from n answers with O inside, (O - n Q) / (P - Q) is unbiased for the c persons whose value
is inside, and P - Q = p - q for every s. Its variance is (c P (1 - P) + (n - c) Q (1 - Q)) / (p - q)^2, a sum of
independent answers' (Wang, Blocki, Li and Jha 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import exp


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """`keep` is the probability p of giving one's value, `other` the probability q of each other value."""

    keep: float
    other: float

    @property
    def slope(self) -> float:
        return self.keep - self.other


def response(epsilon: Decimal, values: int) -> RandomizedResponse:
    """k-ary randomized response over `values` values."""
    odds = exp(epsilon)
    return RandomizedResponse(odds / (odds + values - 1), 1 / (odds + values - 1))
