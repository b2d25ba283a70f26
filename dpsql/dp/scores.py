"""Scores of the bins of a weighted histogram, of which one is then chosen: quantiles, extremes, the mode.

One unit adds non-negative whole weights to the bins, C1 in all over all groups and bins (its L1 sensitivity; V_g of it
in group g). Each score below moves by at most a constant times V_g in group g, so the moves add up over groups to that
constant times C1: what `sensitivity.Scores` asks for. Scores are whole numbers by construction: were they rounded, each
group that a unit touches would move by up to one more, and a unit may touch many.

- quantile of rank q = a/d: u(b) = -max(d W_lt(b) - a W, d W_gt(b) - (d - a) W, 0), with the weights below b, above b
  and in all: how much weight lies on the wrong side, in steps of 1/d. It is 0 exactly at the q-quantiles. Of the two
  terms the first moves by -a V_g to (d - a) V_g, the other by -(d - a) V_g to a V_g. Constant: max(a, d - a).
- extremes: u(b) = -max(2 W_beyond(b) - T, T - 2 W_at_or_beyond(b), 0), T = min(2t, W), for a public rank error t: 0 at
  the bin where the weight beyond passes t, or half of all if that is less. As max and min of terms that move by at most
  2 V_g (2 W_beyond - 2t; 2 W_beyond - W; 2t - 2 W_at_or_beyond; W - 2 W_at_or_beyond) it moves by no more. Constant: 2.
  That the bin itself counts in the second term matters: otherwise one that holds much of the weight, as the largest
  rating does, would score like all the empty bins beyond it. And without W, a group of less weight than t would score
  best beyond its other end; as it is, its median is what is found.
- mode: the weight of the bin. Constant: 1.

Why the rank error: bins beyond the true extreme are many and all score -T. A bin whose score is s below the best is
chosen with probability at most exp(-s/scale), so all K of them with probability at most K exp(-T/scale). With
2t = scale * ln(20 K) they win in at most 5 % of groups with weight 2t or more, and so do the bins with more than 2t
beyond them: in 9 of 10 such groups the answer lies between the true extreme and rank 2t.

Never: a float in a score. Scores beyond +-2^62 are clamped, which cannot move two of them further apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

from dpsql.dp.mechanisms import NoisyMax
from dpsql.dp.sensitivity import L1, Scores
from dpsql.errors import Failed

MAX_SCORE = 2**62
MAX_DENOMINATOR = 10_000
"""Ranks are read as fractions with at most this denominator."""


def rank_of(q: Fraction) -> Fraction:
    """A quantile's rank as the scores use it: the nearest fraction with a small denominator."""
    if not 0 <= q <= 1:
        raise Failed(f"a rank must be between 0 and 1, not {q}")
    return q.limit_denominator(MAX_DENOMINATOR)


def quantile_sensitivity(weights: L1, rank: Fraction) -> Scores:
    """For `quantile_scores`."""
    return Scores(max(rank.numerator, rank.denominator - rank.numerator) * weights.bound)


def extreme_sensitivity(weights: L1) -> Scores:
    """For `extreme_scores`."""
    return Scores(2 * weights.bound)


def mode_sensitivity(weights: L1) -> Scores:
    """For `mode_scores`."""
    return Scores(weights.bound)


def quantile_scores(weights: Sequence[int], rank: Fraction) -> list[int]:
    """In steps of 1 / denominator of the rank."""
    a, d, total = rank.numerator, rank.denominator, sum(weights)
    scores = []
    for upto, weight in zip(accumulate(weights), weights, strict=True):
        below, above = upto - weight, total - upto
        scores.append(_clamped(-max(d * below - a * total, d * above - (d - a) * total, 0)))
    return scores


def extreme_scores(weights: Sequence[int], rank_error: int, *, largest: bool) -> list[int]:
    """Of the largest or the smallest value, in steps of 1/2."""
    ordered = weights[::-1] if largest else weights
    aim = min(2 * rank_error, sum(weights))
    scores = [
        _clamped(-max(2 * (upto - weight) - aim, aim - 2 * upto, 0))
        for upto, weight in zip(accumulate(ordered), ordered, strict=True)
    ]
    return scores[::-1] if largest else scores


def mode_scores(weights: Sequence[int]) -> list[int]:
    return [_clamped(weight) for weight in weights]


def rank_error_of(mechanism: NoisyMax, bins: int) -> int:
    """The weight that an extreme leaves beyond it on purpose."""
    return min(math.ceil(mechanism.scale * math.log(20 * bins) / 2), MAX_SCORE)


def _clamped(score: int) -> int:
    return max(-MAX_SCORE, min(MAX_SCORE, score))
