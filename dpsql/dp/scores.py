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
- ends of a quantile's 95 % interval: the quantile's scores, but for a rank that is s steps higher or, at the lower end,
  lower: a W + s for a W in both terms. A public s moves with no unit. The end's outermost bin, the bound, has the
  larger of that score and B - min((a W - s)+, (d - a) W), with a and d - a exchanged at the upper end, for a public B:
  terms that move by a V_g and (d - a) V_g. So the bound is taken where too few rows lie on either side of the quantile
  to tell more, as in an empty group, where no bin is better than another. Constant: max(a, d - a), as for the quantile.

Why the rank error: bins beyond the true extreme are many and all score -T. A bin whose score is s below the best is
chosen with probability at most exp(-s/scale), so all K of them with probability at most K exp(-T/scale). With
2t = scale * ln(20 K) they win in at most 5 % of groups with weight 2t or more, and so do the bins with more than 2t
beyond them: in 9 of 10 such groups the answer lies between the true extreme and rank 2t.

Why the interval holds: where values near the quantile are spread evenly, the exponential mechanism chooses a bin more
than t steps beyond the rank on one side with probability exp(-t/scale) / 2, and noisy max is never farther off (McKenna
and Sheldon 2020, theorem 2). So with s = scale * ln 10 an end is on the wrong side of the quantile with probability
1/20 at most. The end shown is the outer one of it and of the released value, whose noise is independent, so the
interval misses only where both are on the same side: with probability (P(value below) + P(value above)) / 20, at most
1/20 in all. With B = scale * ln K, the K bins or fewer beyond a group's last row weigh at most exp(-s/scale) = 1/10 of
what the bound at the other end does, so an end is seldom lost among them. What this leaves out: values spread unevenly.
Where a gap without values, or the edge of a value that many rows share, lies within a few times scale / d of the
quantile, the emptier side has more bins to choose than its ranks deserve, and the interval misses more often.

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


def quantile_scores(weights: Sequence[int], rank: Fraction, shift: int = 0) -> list[int]:
    """In steps of 1 / denominator of the rank; `shift` such steps are added to the rank that is looked for."""
    a, d, total = rank.numerator, rank.denominator, sum(weights)
    scores = []
    for upto, weight in zip(accumulate(weights), weights, strict=True):
        below, above = upto - weight, total - upto
        scores.append(_clamped(-max(d * below - a * total - shift, d * above - (d - a) * total + shift, 0)))
    return scores


def end_scores(weights: Sequence[int], rank: Fraction, mechanism: NoisyMax, *, upper: bool) -> list[int]:
    """Of an end of the interval of the quantile, which is chosen by the same mechanism."""
    a, d, total = rank.numerator, rank.denominator, sum(weights)
    shift = end_shift(mechanism)
    scores = quantile_scores(weights, rank, shift if upper else -shift)
    outer, inner = ((d - a) * total, a * total) if upper else (a * total, (d - a) * total)
    bound, bonus = -1 if upper else 0, math.ceil(mechanism.scale * math.log(len(weights)))
    scores[bound] = max(scores[bound], _clamped(bonus - min(max(outer - shift, 0), inner)))
    return scores


def end_shift(mechanism: NoisyMax) -> int:
    """How far in rank the ends of a quantile's 95 % interval are looked for, in steps of the scores."""
    return math.ceil(mechanism.scale * math.log(10))


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
