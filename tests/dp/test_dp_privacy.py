"""Costs are exact, calibration never under-noises, and the promised (epsilon, delta) holds by the laws themselves."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from dp_oracles import lattice, mp

from dpsql.dp.accounting import rho_from_epsilon
from dpsql.dp.mechanisms import MAX_SCALE, DiscreteGaussian, DiscreteLaplace, Mechanism, error95, stddev
from dpsql.dp.privacy import (
    UNITS,
    Calibrated,
    DeltaEvent,
    PureEvent,
    ZcdpEvent,
    amount,
    best,
    cost,
    cost_of,
    gaussian_for_rho,
    laplace_for_epsilon,
    laplace_for_rho,
    permitted,
    units_down,
    units_up,
)
from dpsql.dp.sensitivity import L1, L2, ContributionBound, Sensitivity, clip_l1, clip_l2
from dpsql.errors import Failed, Rejected
from dpsql.types import Cost

Calibration = Callable[[int, Fraction], tuple[Mechanism, Sensitivity]]


def pure_laplace(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return laplace_for_epsilon(L1(bound), share), L1(bound)


def zcdp_laplace(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return laplace_for_rho(L1(bound), share), L1(bound)


def zcdp_gaussian(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return gaussian_for_rho(L2(bound), share), L2(bound)


def exact_loss(mechanism: Mechanism, sensitivity: Sensitivity, in_epsilon: bool) -> Fraction:
    """The loss by the theorems, from the very float that the sampler gets; written again on purpose."""
    if isinstance(mechanism, DiscreteGaussian):
        return Fraction(cast(L2, sensitivity).squared) / (2 * Fraction(mechanism.sigma) ** 2)
    epsilon = Fraction(cast(L1, sensitivity).bound) / Fraction(mechanism.scale)
    return epsilon if in_epsilon else epsilon**2 / 2


def shares() -> Iterator[tuple[int, Fraction]]:
    """Sensitivities and shares: decimal, thirds, of many sizes; a third of them hits floats' ties and exact squares."""
    dice = random.Random(5)
    for _ in range(400):
        bound = dice.choice((1, 2, 3, 1024, dice.randrange(1, 2**20), dice.randrange(1, 2**30)))
        share = dice.choice((Fraction(1, 3), Fraction(dice.randrange(1, 1000), 100), Fraction(dice.random())))
        yield bound, share * dice.choice((1, 1, Fraction(1, 1000), 40))


def under_noised(calibrate: Calibration, in_epsilon: bool) -> int:
    """How many of the shares are exceeded, exactly."""
    return sum(exact_loss(*calibrate(bound, share), in_epsilon=in_epsilon) > share for bound, share in shares())


@pytest.mark.parametrize("calibrate", [pure_laplace, zcdp_laplace, zcdp_gaussian])
def test_calibration_never_exceeds_its_share(calibrate: Calibration) -> None:
    in_epsilon = calibrate is pure_laplace
    assert under_noised(calibrate, in_epsilon) == 0
    for bound, share in shares():
        mechanism, sensitivity = calibrate(bound, share)
        priced = cost_of(mechanism, sensitivity)
        assert (priced.epsilon if in_epsilon else priced.rho) <= share * UNITS
        assert priced.rho >= exact_loss(mechanism, sensitivity, in_epsilon=False) * UNITS


@pytest.mark.parametrize("calibrate", [pure_laplace, zcdp_laplace, zcdp_gaussian])
def test_calibration_is_the_least_sufficient(calibrate: Calibration) -> None:
    """One float less of noise, and the share in whole units of 1e-15 is exceeded."""
    for bound, share in shares():
        mechanism, sensitivity = calibrate(bound, share)
        less = math.nextafter(getattr(mechanism, mechanism.__slots__[0]), 0.0)
        loss = exact_loss(type(mechanism)(less), sensitivity, in_epsilon=calibrate is pure_laplace)
        assert loss > Fraction(units_down(share), UNITS)


def rounded_to_nearest(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return DiscreteLaplace(float(bound / share)), L1(bound)


def float_formula(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return DiscreteGaussian(math.sqrt(bound / (2 * float(share)))), L2(bound)


def half_scale(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return DiscreteGaussian(gaussian_for_rho(L2(bound), share).sigma / 2), L2(bound)


def root_rounded_down(bound: int, share: Fraction) -> tuple[Mechanism, Sensitivity]:
    return gaussian_for_rho(L2(math.isqrt(bound) ** 2), share), L2(bound)


@pytest.mark.parametrize("mutant", [rounded_to_nearest, float_formula, half_scale, root_rounded_down])
def test_mutant_calibrations_are_caught(mutant: Calibration) -> None:
    assert under_noised(mutant, in_epsilon=mutant is rounded_to_nearest) > 0


def test_costs_are_exact_and_rounded_up() -> None:
    assert cost_of(DiscreteLaplace(10.0), L1(1)) == Cost(epsilon=UNITS // 10, rho=UNITS // 200)
    assert cost_of(DiscreteGaussian(100.0), L2(1)) == Cost(rho=UNITS // 20_000)
    third = cost_of(DiscreteLaplace(3.0), L1(1))
    assert third.epsilon == 333_333_333_333_334
    assert third.rho == 55_555_555_555_556
    assert cost(DeltaEvent(Decimal("1e-9"))) == Cost(delta=10**6)
    assert cost(DeltaEvent(Fraction(1, 10**17))) == Cost(delta=1)
    assert cost(PureEvent(Decimal("0.1"))) == Cost(epsilon=10**14, rho=5 * 10**12)
    assert cost(ZcdpEvent(Fraction(1, 3))) == Cost(rho=333_333_333_333_334)


def test_ten_tenths_make_one() -> None:
    spent = Cost()
    for _ in range(10):
        spent += cost(PureEvent(Decimal("0.1")))
    assert spent.epsilon == UNITS


@pytest.mark.parametrize("event", [PureEvent, ZcdpEvent, DeltaEvent])
@pytest.mark.parametrize("nothing", [Fraction(0), Fraction(-1), Decimal(0)])
def test_an_event_costs_something(event: type[Any], nothing: Fraction | Decimal) -> None:
    with pytest.raises(Failed):
        cost(event(nothing))


def test_a_mechanism_is_priced_in_its_own_norm_only() -> None:
    mismatched: tuple[tuple[Mechanism, Sensitivity], ...] = (
        (DiscreteLaplace(1.0), L2(1)),
        (DiscreteGaussian(1.0), L1(1)),
    )
    for mechanism, sensitivity in mismatched:
        with pytest.raises(Failed):
            cost_of(mechanism, sensitivity)


def test_amounts_are_shown_plainly() -> None:
    assert [str(amount(units)) for units in (0, UNITS, 10 * UNITS, UNITS // 4)] == ["0", "1", "10", "0.25"]
    assert units_up(amount(123)) == units_down(amount(123)) == 123
    assert amount(10**40 + 1) * UNITS != 0


@pytest.mark.parametrize("calibrate", [pure_laplace, zcdp_laplace, zcdp_gaussian])
def test_too_small_a_share_is_refused_with_a_way_out(calibrate: Calibration) -> None:
    for bound, share in ((1, Fraction(1, 10**16)), (1, Fraction(0)), (2**60, Fraction(1, 10**14)), (1, Fraction(-1))):
        if calibrate is zcdp_gaussian and share == Fraction(1, 10**14):
            bound = 2**112
        with pytest.raises(Rejected) as refusal:
            calibrate(bound, share)
        assert refusal.value.sqlstate == "22023"
        assert refusal.value.hint


def test_the_widest_scale_is_still_given() -> None:
    assert laplace_for_epsilon(L1(2**55), Fraction(1)) == DiscreteLaplace(MAX_SCALE)
    assert gaussian_for_rho(L2(2**111), Fraction(1)) == DiscreteGaussian(MAX_SCALE)


def test_best_follows_accounting_and_preference() -> None:
    bound = ContributionBound(groups=12, rows=40)
    l1, l2, share = clip_l1(bound, 1024), clip_l2(bound, 1024), Fraction(1, 40)
    laplace, gaussian = laplace_for_rho(l1, share), gaussian_for_rho(l2, share)
    assert best(l1, l2, share, "zcdp") == Calibrated(gaussian, l2)
    assert best(l1, l2, share, "zcdp", "gaussian") == Calibrated(gaussian, l2)
    assert best(l1, l2, share, "zcdp", "laplace") == Calibrated(laplace, l1)
    assert best(l1, l2, share, "pure") == Calibrated(laplace_for_epsilon(l1, share), l1)
    assert best(l1, l2, share, "pure", "laplace") == best(l1, l2, share, "pure")
    with pytest.raises(Rejected):
        best(l1, l2, share, "pure", "gaussian")
    assert permitted(gaussian, "zcdp")
    assert permitted(laplace, "pure")
    assert not permitted(gaussian, "pure")


@pytest.mark.parametrize("groups", [1, 2, 12, 1000])
def test_at_equal_rho_the_gaussian_is_the_more_accurate(groups: int) -> None:
    bound = ContributionBound(groups=groups, rows=3)
    for share in (Fraction(1, 1000), Fraction(1, 40), Fraction(3, 2)):
        laplace = laplace_for_rho(clip_l1(bound, 1024), share)
        gaussian = gaussian_for_rho(clip_l2(bound, 1024), share)
        assert stddev(gaussian) < stddev(laplace)
        assert error95(gaussian) < error95(laplace)


# --- The laws themselves: what an adversary sees of a sum that moves by the sensitivity.

EPSILONS = ("0.1", "0.5", "1", "2", "5", "10", "20")
DELTA = Decimal("1e-6")


def gaussian_delta(sigma: float, epsilon: Decimal) -> Any:
    """The exact delta of the continuous Gaussian at sensitivity 1 (Balle, Wang, ICML 2018, theorem 8)."""
    with mp.workdps(40):
        s, e = mp.mpf(sigma), mp.mpf(str(epsilon))
        return mp.ncdf(1 / (2 * s) - e * s) - mp.exp(e) * mp.ncdf(-1 / (2 * s) - e * s)


def discrete_delta(mechanism: Mechanism, move: int, epsilon: Decimal) -> float:
    """sup over events of P(S) - e^epsilon Q(S), summed over the integers."""
    _, mass = lattice(mechanism)
    return float(np.maximum(0, mass[move:] - np.exp(np.longdouble(str(epsilon))) * mass[:-move]).sum())


def zcdp_sigma(epsilon: Decimal) -> float:
    return gaussian_for_rho(L2(1), rho_from_epsilon(epsilon, DELTA)).sigma


def classic_sigma(epsilon: Decimal) -> float:
    return math.sqrt(2 * math.log(1.25 / float(DELTA))) / float(epsilon)


@pytest.mark.parametrize("text", EPSILONS)
def test_gaussian_keeps_its_delta_at_every_epsilon(text: str) -> None:
    epsilon = Decimal(text)
    assert gaussian_delta(zcdp_sigma(epsilon), epsilon) <= DELTA
    for steps in (1, 64):
        mechanism = gaussian_for_rho(L2(steps**2), rho_from_epsilon(epsilon, DELTA))
        assert discrete_delta(mechanism, steps, epsilon) <= float(DELTA)


@pytest.mark.parametrize("text", ["10", "20"])
def test_mutant_classic_sigma_is_caught(text: str) -> None:
    assert gaussian_delta(classic_sigma(Decimal(text)), Decimal(text)) > DELTA


@pytest.mark.parametrize("text", EPSILONS)
def test_mutant_half_sigma_is_caught(text: str) -> None:
    assert gaussian_delta(zcdp_sigma(Decimal(text)) / 2, Decimal(text)) > DELTA


@pytest.mark.parametrize("text", EPSILONS)
@pytest.mark.parametrize("steps", [1, 64])
def test_laplace_never_exceeds_its_ratio(text: str, steps: int) -> None:
    mechanism = laplace_for_epsilon(L1(steps), Fraction(text))
    with mp.workdps(40):
        q = mp.exp(-1 / mp.mpf(mechanism.scale))
        assert q ** (-steps) <= mp.exp(mp.mpf(text)) * (1 + mp.mpf("1e-30"))
        assert q ** (-steps) > mp.exp(mp.mpf(text)) * (1 - mp.mpf("1e-14"))
