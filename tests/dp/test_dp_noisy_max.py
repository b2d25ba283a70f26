"""Choices by noisy max: the exact law, the scores of histograms, and what one unit can change of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from scipy.special import chdtrc

from dpsql.dp.mechanisms import DiscreteLaplace, NoisyMax
from dpsql.dp.noise import choose
from dpsql.dp.privacy import ChoiceEvent, cost_of, event_of, noisy_max_for, permitted, units_down
from dpsql.dp.scores import (
    MAX_SCORE,
    end_scores,
    end_shift,
    extreme_scores,
    extreme_sensitivity,
    mode_scores,
    mode_sensitivity,
    quantile_scores,
    quantile_sensitivity,
    rank_error_of,
    rank_of,
)
from dpsql.dp.sensitivity import L1, Scores
from dpsql.errors import Failed, Rejected

ALPHA = 1e-6
DRAWS = 2000
CASES = [
    (1.0, (0, 0)),
    (1.0, (3, 1, 0)),
    (2.5, (0, -1, -3, -3, -20)),
    (1000.0, (-500, 0, 0, -1500, 700, 650)),
    (0.5, (2**62, 2**62 - 1)),
    (1e6, (0, -2_000_000, -300_000)),
]


def law(scores: Sequence[int], scale: float) -> list[float]:
    """Permute-and-flip from its definition: in random order, each candidate is taken with probability x."""
    best, n = max(scores), len(scores)
    x = [math.exp((s - best) / scale) for s in scores]
    made = []
    for i in range(n):
        others = [1 - x[j] for j in range(n) if j != i]
        before = (math.prod(group) / (n * math.comb(n - 1, k)) for k in range(n) for group in combinations(others, k))
        made.append(x[i] * math.fsum(before))
    return made


def chi_square(found: Sequence[int], expected: Sequence[float]) -> float:
    observed = np.bincount(found, minlength=len(expected))
    pairs = sorted(zip(observed, (p * len(found) for p in expected), strict=True), key=lambda pair: pair[1])
    while len(pairs) > 1 and pairs[0][1] < 10:
        (a, b), (c, d), *rest = pairs
        pairs = sorted([(a + c, b + d), *rest], key=lambda pair: pair[1])
    return float(chdtrc(len(pairs) - 1, sum((o - e) ** 2 / e for o, e in pairs))) if len(pairs) > 1 else 1.0


@pytest.mark.parametrize(("scale", "scores"), CASES)
def test_choices_follow_the_exact_law(scale: float, scores: tuple[int, ...]) -> None:
    expected = law(scores, scale)
    assert math.isclose(sum(expected), 1)
    assert chi_square([choose(NoisyMax(scale), scores) for _ in range(DRAWS)], expected) > ALPHA


def test_mutant_half_scale_is_caught() -> None:
    scores = (0, -1, -3, -3, -20)
    assert chi_square([choose(NoisyMax(1.25), scores) for _ in range(DRAWS)], law(scores, 2.5)) < ALPHA


def test_mutant_exponential_mechanism_is_another_law() -> None:
    scores = (0, -1, -3, -3, -20)
    weights = [math.exp(s / 2.5) for s in scores]
    drawn = Random(1).choices(range(5), weights, k=DRAWS)
    assert chi_square(drawn, law(scores, 2.5)) < ALPHA


def test_what_is_no_choice_is_refused() -> None:
    for mechanism, scores in (
        (NoisyMax(1.0), []),
        (NoisyMax(1.0), [MAX_SCORE + 1]),
        (cast(Any, DiscreteLaplace(1.0)), [1]),
    ):
        with pytest.raises(Failed, match="could not"):
            choose(mechanism, scores)
    for scale in (0.0, math.inf, math.nan, -1.0, 2.0**56, cast(Any, 1)):
        with pytest.raises(Failed, match="could not"):
            NoisyMax(scale)


# Prices ---------------------------------------------------------------------------------------------------------


def test_the_event_is_twice_the_move_over_the_scale() -> None:
    assert event_of(NoisyMax(3.0), Scores(7)) == ChoiceEvent(Fraction(14, 3))
    cost = cost_of(NoisyMax(3.0), Scores(7))
    assert cost.epsilon == math.ceil(Fraction(14, 3) * 10**15)
    assert cost.rho == math.ceil(Fraction(14, 3) ** 2 / 2 * 10**15)
    assert permitted(NoisyMax(1.0), "pure")
    for sensitivity in (L1(7),):
        with pytest.raises(Failed, match="could not"):
            event_of(NoisyMax(3.0), sensitivity)
    with pytest.raises(Failed, match="could not"):
        event_of(DiscreteLaplace(3.0), Scores(7))


@pytest.mark.parametrize("share", [Fraction(1), Fraction(1, 3), Fraction(1234567, 10**12), Fraction(20)])
@pytest.mark.parametrize("bound", [1, 12_288, 10**9 + 7])
def test_the_scale_is_the_least_within_the_share(share: Fraction, bound: int) -> None:
    pure, zcdp = (noisy_max_for(Scores(bound), share, accounting) for accounting in ("pure", "zcdp"))
    assert cost_of(pure, Scores(bound)).epsilon <= units_down(share)
    assert cost_of(zcdp, Scores(bound)).rho <= units_down(share)
    less = [NoisyMax(math.nextafter(math.nextafter(m.scale, 0), 0)) for m in (pure, zcdp)]
    assert cost_of(less[0], Scores(bound)).epsilon > units_down(share) - 1
    assert 2 * (Fraction(bound) / Fraction(less[1].scale)) ** 2 > Fraction(units_down(share), 10**15) * Fraction(
        10**15 - 1, 10**15
    )


def test_a_share_that_is_too_small_is_refused() -> None:
    with pytest.raises(Rejected):
        noisy_max_for(Scores(2**55), Fraction(1, 10**6), "pure")


# Scores ---------------------------------------------------------------------------------------------------------


def test_a_quantile_scores_zero_exactly_at_the_quantiles() -> None:
    assert quantile_scores([1, 0, 1, 1], Fraction(1, 2)) == [-1, -1, 0, -1]
    assert quantile_scores([2, 0, 0, 2], Fraction(1, 2)) == [0, 0, 0, 0]
    assert quantile_scores([1] * 10, Fraction(9, 10)).count(0) == 2
    assert quantile_scores([0, 5, 0], Fraction(0)) == [0, 0, -5]
    assert quantile_scores([0, 5, 0], Fraction(1)) == [-5, 0, 0]
    assert quantile_scores([0, 0], Fraction(1, 3)) == [0, 0]


def test_an_extreme_scores_zero_where_the_weight_beyond_passes_the_rank_error() -> None:
    weights = [50, 0, 40, 6, 3, 0, 0]
    assert extreme_scores(weights, 5, largest=True) == [-88, -88, -8, 0, -4, -10, -10]
    assert extreme_scores(weights, 5, largest=False) == [0, -90, -90, -170, -182, -188, -188]
    assert extreme_scores([0, 100, 0], 5, largest=True) == [-190, 0, -10]


def test_an_extreme_of_a_light_group_is_its_median() -> None:
    weights = [0, 1, 1, 1, 0]
    assert extreme_scores(weights, 1000, largest=True) == quantile_scores(weights, Fraction(1, 2))
    assert extreme_scores(weights, 1000, largest=False) == quantile_scores(weights, Fraction(1, 2))


def test_bins_beyond_the_extreme_seldom_win() -> None:
    """At most 1 in 20, by the exact bound exp(-s / scale) of each."""
    mechanism, bins = NoisyMax(1000.0), 4096
    weights = [10] * 2000 + [0] * 2096
    error = rank_error_of(mechanism, bins)
    scores = extreme_scores(weights, error, largest=True)
    beyond = sum(math.exp((s - max(scores)) / 1000) for s in scores[2000:])
    inner = sum(math.exp((s - max(scores)) / 1000) for b, s in enumerate(scores) if sum(weights[b + 1 :]) > 2 * error)
    assert max(scores) >= -20
    assert beyond < 1 / 19
    assert inner < 1 / 19


def test_an_end_is_looked_for_a_fixed_number_of_ranks_away() -> None:
    """Rows of 10 steps: 23 steps of 1/2 away at scale 10. Bins share ranks, so only where the zero lies matters."""
    mechanism = NoisyMax(10.0)
    assert end_shift(mechanism) == 24
    weights = [10] * 40
    for upper in (False, True):
        scores = end_scores(weights, Fraction(1, 2), mechanism, upper=upper)
        assert scores.index(0) == (21 if upper else 18)
        inner = slice(1, -1)
        assert scores[inner] == quantile_scores(weights, Fraction(1, 2), 24 if upper else -24)[inner]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("rank", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_end_of_a_light_group_is_the_bound(rank: Fraction, upper: bool) -> None:
    """In at least 9 of 10 answers, by the exact weights of the exponential mechanism; a heavy group's hardly ever."""
    mechanism, bins = NoisyMax(1000.0), 4096

    def bound(weights: Sequence[int]) -> float:
        scores = end_scores(weights, rank, mechanism, upper=upper)
        odds = [math.exp((s - max(scores)) / mechanism.scale) for s in scores]
        return odds[-1 if upper else 0] / math.fsum(odds)

    assert bound([0] * bins) > 0.9
    assert bound([0] * 2000 + [100] + [0] * (bins - 2001)) > 0.8
    assert bound([100] * bins) < 1e-6


def test_huge_weights_are_clamped() -> None:
    assert quantile_scores([2**62, 2**62], Fraction(1, 10_000)) == [0, -(2**62)]
    assert mode_scores([2**70]) == [MAX_SCORE]


def test_ranks_have_small_denominators() -> None:
    assert rank_of(Fraction("0.9999")) == Fraction(9999, 10_000)
    assert rank_of(Fraction(1, 10**9)) == 0
    with pytest.raises(Failed, match="could not"):
        rank_of(Fraction(3, 2))


# Neighbours -----------------------------------------------------------------------------------------------------

RANKS = [Fraction(0), Fraction(1, 2), Fraction(1, 3), Fraction(19, 20), Fraction(1)]
Scored = Callable[[Sequence[int]], list[int]]
SCORERS: dict[str, tuple[Scored, Callable[[L1], Scores]]] = {
    **{
        f"quantile {rank}": (
            lambda w, rank=rank: quantile_scores(w, rank),  # type: ignore[misc]
            lambda c, rank=rank: quantile_sensitivity(c, rank),  # type: ignore[misc]
        )
        for rank in RANKS
    },
    **{
        f"{'high' if upper else 'low'} end of quantile {rank}": (
            lambda w, rank=rank, upper=upper: end_scores(w, rank, NoisyMax(1.5), upper=upper),  # type: ignore[misc]
            lambda c, rank=rank: quantile_sensitivity(c, rank),  # type: ignore[misc]
        )
        for rank in RANKS
        for upper in (False, True)
    },
    "max": (lambda w: extreme_scores(w, 3, largest=True), extreme_sensitivity),
    "min": (lambda w: extreme_scores(w, 3, largest=False), extreme_sensitivity),
    "mode": (mode_scores, mode_sensitivity),
}


def worlds(seed: int) -> tuple[list[list[int]], list[list[int]]]:
    """Weights of a few groups, without and with one unit that touches several of them."""
    random = Random(seed)
    bins = random.randint(1, 5)
    without = [[random.choice((0, 0, 1, 2, 5, 9)) for _ in range(bins)] for _ in range(random.randint(1, 4))]
    added = [[w + random.choice((0, 0, 0, 1, 1, 4)) for w in group] for group in without]
    return without, added


@pytest.mark.parametrize("name", SCORERS)
def test_one_unit_moves_scores_and_choices_by_no_more_than_declared(name: str) -> None:
    """The loss over all groups, from the exact laws, is at most what the event says."""
    scored, sensitivity = SCORERS[name]
    scale, reached = 2.0, 0.0
    for seed in range(300):
        without, added = worlds(seed)
        total = sum(map(sum, added)) - sum(map(sum, without))
        if not total:
            continue
        moved = loss = 0.0
        for a, b in zip(without, added, strict=True):
            moved += max(abs(x - y) for x, y in zip(scored(a), scored(b), strict=True))
            laws = zip(law(scored(a), scale), law(scored(b), scale), strict=True)
            loss += max(abs(math.log(p / q)) for p, q in laws)
        declared = sensitivity(L1(total))
        assert moved <= declared.bound
        event = event_of(NoisyMax(scale), declared)
        assert isinstance(event, ChoiceEvent)
        assert loss <= float(event.epsilon) * (1 + 1e-9)
        reached = max(reached, moved / declared.bound)
    assert reached == 1


def _shifted_by_a_share(weights: Sequence[int]) -> list[int]:
    """A tenth of the group's rows instead of a fixed number."""
    return quantile_scores(weights, Fraction(1, 2), sum(weights) // 5)


def _no_further_than_all(weights: Sequence[int]) -> list[int]:
    """The rank that is looked for stops at the group's last row."""
    total = sum(weights)
    return quantile_scores(weights, Fraction(1, 2), min(3, total))


def _bound_for_few_rows(weights: Sequence[int]) -> list[int]:
    """The bound's score falls with all rows instead of those on one side."""
    scores = quantile_scores(weights, Fraction(1, 2), 3)
    return [*scores[:-1], max(scores[-1], 20 - 2 * sum(weights))]


@pytest.mark.parametrize("broken", [_shifted_by_a_share, _no_further_than_all, _bound_for_few_rows])
def test_mutant_ends_move_by_more(broken: Scored) -> None:
    """What a shift that is not public, or a bound's score that is not one of ranks, would break."""
    over = 0
    for seed in range(300):
        without, added = worlds(seed)
        total = sum(map(sum, added)) - sum(map(sum, without))
        moved = sum(
            max(abs(x - y) for x, y in zip(broken(a), broken(b), strict=True))
            for a, b in zip(without, added, strict=True)
        )
        over += moved > total
    assert over


def test_mutant_rounded_scores_move_by_more_over_many_groups() -> None:
    """Why scores are whole by construction: the floor of half a weight moves by one in each of many groups."""
    rank = Fraction(1, 2)
    without, added = [[1, 1]] * 8, [[2, 1]] * 8

    def rounded(weights: Sequence[int]) -> list[int]:
        return [math.floor(Fraction(s, rank.denominator)) for s in quantile_scores(weights, rank)]

    moved = sum(
        max(abs(x - y) for x, y in zip(rounded(a), rounded(b), strict=True))
        for a, b in zip(without, added, strict=True)
    )
    assert moved > math.ceil(rank * 8) + 1
