"""Thresholds by exact computation: for every t up to the cap, and one step less fails for some t."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from dp_oracles import Floats, exact_tails

from dpsql.dp.accounting import rho_from_epsilon
from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from dpsql.dp.privacy import amount, cost_of, gaussian_for_rho, laplace_for_epsilon
from dpsql.dp.selection import WEIGHT_ONE, failure_probability, threshold, weight, weight_sensitivity
from dpsql.dp.sensitivity import L1, L2, Norm
from dpsql.errors import Failed

NORMS: tuple[Norm, ...] = ("l1", "l2")
DELTAS = (Fraction(1, 10**5), Fraction(1, 2 * 10**9), Fraction(5, 10**13))
MECHANISMS: tuple[Mechanism, ...] = (
    DiscreteLaplace(700.5),
    DiscreteLaplace(4096.0),
    DiscreteGaussian(150.25),
    DiscreteGaussian(3311.0),
)

cached_tails = cache(exact_tails)


def shown(mechanism: Mechanism, tau: int, weights: Floats) -> Floats:
    """P(weight + X >= tau) for each weight, by summing the law."""
    low, tails = cached_tails(mechanism)
    places = tau - weights.astype(np.int64) - low
    inside: Floats = np.where(places < len(tails), tails[np.clip(places, 0, len(tails) - 1)], 0)
    return inside


def failures(mechanism: Mechanism, tau: int, groups: int, cap: int, norm: Norm, rows: int = 1) -> list[Fraction]:
    """For t = 1..cap: the exact probability that a unit alone in t groups shows any of them.

    The weights are written again from DESIGN.md; `rows` above 1 is what a mutant that counts rows would add.
    """
    share = [Fraction(groups, t) for t in range(1, cap + 1)]
    exact = [s if norm == "l1" else Fraction(math.isqrt(int(s * 4**40)), 2**40) for s in share]
    weights = np.array([math.floor(min(Fraction(1), e) * 1024) * rows for e in exact], dtype=np.longdouble)
    each = np.minimum(np.where(weights > 0, shown(mechanism, tau, weights), 0), 1 - 2.0**-50)
    ts = np.arange(1, cap + 1)
    return [Fraction(float(p)) for p in -np.expm1(ts * np.log1p(-each))]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize(("groups", "cap"), [(1, 1), (1, 4), (3, 12), (12, 48), (3, 4000), (40, 10)])
def test_threshold_holds_for_every_t_and_is_the_least(mechanism: Mechanism, norm: Norm, groups: int, cap: int) -> None:
    for delta in DELTAS:
        tau = threshold(mechanism, groups, cap, delta, norm)
        assert max(failures(mechanism, tau, groups, cap, norm)) <= delta
        assert max(failures(mechanism, tau - 1, groups, cap, norm)) > delta


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_failure_probability_is_the_exact_one(mechanism: Mechanism, norm: Norm) -> None:
    tau = threshold(mechanism, 3, 12, DELTAS[0], norm)
    exact = failures(mechanism, tau, 3, 12, norm)
    for t in range(1, 13):
        claimed = failure_probability(mechanism, tau, t, 3, norm)
        assert exact[t - 1] <= claimed <= float(exact[t - 1]) * (1 + 1e-3)
    assert failure_probability(mechanism, 0, 1, 3, norm) == 1.0


# --- Mutants of the threshold: each a plausible formula that the exact check must refuse.


def only_one_group(mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm) -> int:
    return threshold(mechanism, groups, 1, delta, norm)


def only_l0_groups(mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm) -> int:
    return threshold(mechanism, groups, groups, delta, norm)


def delta_undivided(mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm) -> int:
    low, tails = cached_tails(mechanism)
    return WEIGHT_ONE + low + int(np.argmax(tails <= float(delta)))


def half_the_noise(mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm) -> int:
    if isinstance(mechanism, DiscreteLaplace):
        return threshold(DiscreteLaplace(mechanism.scale / 2), groups, cap, delta, norm)
    return threshold(DiscreteGaussian(mechanism.sigma / 2), groups, cap, delta, norm)


def one_step_low(mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm) -> int:
    return threshold(mechanism, groups, cap, delta, norm) - 1


def weight_forgotten(mechanism: Mechanism, groups: int, cap: int, delta: Fraction, norm: Norm) -> int:
    return threshold(mechanism, groups, cap, delta, norm) - WEIGHT_ONE


@pytest.mark.parametrize(
    "mutant",
    [only_one_group, delta_undivided, half_the_noise, one_step_low, weight_forgotten],
    ids=lambda m: m.__name__,
)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("norm", NORMS)
def test_mutant_thresholds_are_caught(mutant: Callable[..., int], mechanism: Mechanism, norm: Norm) -> None:
    tau = mutant(mechanism, 12, 48, DELTAS[1], norm)
    assert max(failures(mechanism, tau, 12, 48, norm)) > DELTAS[1]


def test_mutant_l0_alone_is_caught_where_weights_fall_slowly() -> None:
    """With wide noise the weight hardly matters, and more groups mean more chances: the worst t lies beyond L0."""
    mechanism = DiscreteLaplace(40_000.0)
    tau = only_l0_groups(mechanism, 12, 48, DELTAS[1], "l2")
    assert max(failures(mechanism, tau, 12, 48, "l2")) > DELTAS[1]
    assert threshold(mechanism, 12, 48, DELTAS[1], "l2") > tau


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("rows", [2, 1000])
def test_mutant_rows_instead_of_units_is_caught(mechanism: Mechanism, rows: int) -> None:
    tau = threshold(mechanism, 3, 12, DELTAS[1], "l1")
    assert max(failures(mechanism, tau, 3, 12, "l1", rows=rows)) > DELTAS[1]


# --- Weights.


def weights_within(formula: Callable[[int, int, Norm], int], norm: Norm) -> bool:
    """Whether a unit's vector of weights stays within the sensitivity that the noise is calibrated for."""
    for groups in (1, 2, 3, 7, 12, 100):
        sensitivity = weight_sensitivity(groups, norm)
        for t in (*range(1, 300), 5000, 10**6):
            w = formula(t, groups, norm)
            moved = t * w if isinstance(sensitivity, L1) else t * w * w
            if moved > (sensitivity.bound if isinstance(sensitivity, L1) else sensitivity.squared):
                return False
    return True


@pytest.mark.parametrize("norm", NORMS)
def test_weights_stay_within_their_sensitivity(norm: Norm) -> None:
    assert weights_within(weight, norm)


def no_scaling(t: int, groups: int, norm: Norm) -> int:
    return WEIGHT_ONE


def rounded_up(t: int, groups: int, norm: Norm) -> int:
    return weight(t, groups, norm) + (t > groups)


def root_in_l1(t: int, groups: int, norm: Norm) -> int:
    return weight(t, groups, "l2")


@pytest.mark.parametrize(
    ("mutant", "norm"),
    [(no_scaling, "l1"), (no_scaling, "l2"), (rounded_up, "l1"), (rounded_up, "l2"), (root_in_l1, "l1")],
)
def test_mutant_weights_are_caught(mutant: Callable[[int, int, Norm], int], norm: Norm) -> None:
    assert not weights_within(mutant, norm)


def test_mutant_sensitivity_without_root_of_l0_is_caught() -> None:
    """The L2 sensitivity of weights is sqrt(L0), not 1: with L0 groups of whole weight the vector is that long."""
    assert weight_sensitivity(12, "l2") == L2(sum(weight(12, 12, "l2") ** 2 for _ in range(12)))
    assert weight_sensitivity(12, "l1") == L1(sum(weight(12, 12, "l1") for _ in range(12)))


@pytest.mark.parametrize("norm", NORMS)
def test_weights_are_floors_and_never_grow(norm: Norm) -> None:
    for groups in (1, 3, 12):
        series = [weight(t, groups, norm) for t in range(1, 3000)]
        assert series[:groups] == [1024] * groups
        assert series == sorted(series, reverse=True)
        for t in range(groups + 1, 3000):
            w = series[t - 1]
            full = Fraction(1024 * groups, t) if norm == "l1" else Fraction(1024**2 * groups, t)
            power = 1 if norm == "l1" else 2
            assert w**power <= full < (w + 1) ** power


# --- The whole: selection at a statement's price.


def test_thresholds_of_a_statement_are_a_few_units() -> None:
    delta = Fraction(1, 2 * 10**9)
    rho = rho_from_epsilon(amount(10**15), amount(5 * 10**8))
    gaussian = gaussian_for_rho(L2(12 * 1024**2), rho)
    laplace = laplace_for_epsilon(L1(12 * 1024), Fraction(1))
    assert 100 * 1024 < threshold(gaussian, 12, 48, delta, "l2") < 115 * 1024
    assert 250 * 1024 < threshold(laplace, 12, 48, delta, "l1") < 310 * 1024
    assert cost_of(gaussian, L2(12 * 1024**2)).rho <= rho * 10**15


@pytest.mark.parametrize(
    ("groups", "cap", "delta"), [(0, 1, 1e-6), (1, 0, 1e-6), (1, 1, 0), (1, 1, 1), (1, 1, 1e-16), (1, 1, -1e-6)]
)
def test_thresholds_that_cannot_be_are_refused(groups: int, cap: int, delta: Any) -> None:
    with pytest.raises(Failed):
        threshold(DiscreteLaplace(1.0), groups, cap, Fraction(delta), "l1")


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(0.01), DiscreteGaussian(0.01), DiscreteGaussian(1.0)], ids=str)
def test_even_little_noise_needs_more_than_one_unit(mechanism: Mechanism) -> None:
    tau = threshold(mechanism, 1, 4, Fraction(1, 10**9), "l1", 1)
    assert tau >= 2
    assert failure_probability(mechanism, tau, 1, 1, "l1", 1) <= 1e-9
