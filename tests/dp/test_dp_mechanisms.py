"""Figures of the two laws against exact sums, and the scales that are refused."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from dp_oracles import exact_pmf, exact_tails, lattice, mp

from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, error95, pmf, stddev, tail
from dpsql.errors import DpsqlError

SCALES = (0.1, 1 / 3, 0.7, 1.0, 2.5, 3.999, 4.0, 7.99, 8.0, 10.0, 33.3, 999.0, 1000.5, 2000.0)
MECHANISMS: tuple[Mechanism, ...] = (*map(DiscreteLaplace, SCALES), *map(DiscreteGaussian, SCALES))


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize(
    "scale", [None, 0, 0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, math.nextafter(2.0**55, math.inf), "1", True, 10]
)
def test_impossible_scales_are_refused(law: type[Any], scale: Any) -> None:
    with pytest.raises(DpsqlError):
        law(scale)


@pytest.mark.parametrize("law", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1.0, np.float64(3.0), 2.0**55])
def test_every_other_scale_has_finite_figures(law: type[Any], scale: float) -> None:
    mechanism: Mechanism = law(scale)
    assert 0 <= pmf(mechanism, 5) <= pmf(mechanism, 0) <= 1
    assert 0 <= stddev(mechanism) < math.inf
    assert error95(mechanism) >= 0
    assert 0 < tail(mechanism, 10) <= 1


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_pmf_is_the_exact_one(mechanism: Mechanism) -> None:
    for x in (0, 1, -1, 2, 7, -30, 400):
        assert pmf(mechanism, x) == pytest.approx(float(exact_pmf(mechanism, x)), rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_stddev_is_that_of_the_discrete_law(mechanism: Mechanism) -> None:
    xs, mass = lattice(mechanism)
    assert stddev(mechanism) == pytest.approx(math.sqrt(float(np.sum(mass * xs.astype(float) ** 2))), rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_error95_is_the_smallest_sufficient(mechanism: Mechanism) -> None:
    low, tails = exact_tails(mechanism)
    t = error95(mechanism)
    assert 2 * tails[t + 1 - low] <= 0.05
    assert t == 0 or 2 * tails[t - low] > 0.05


@pytest.mark.parametrize(
    "sigma", [1000.0, 1e4 / 3, 123_456.789, 1960.50004 / 1.959963984540054, 1960.501 / 1.959963984540054]
)
def test_error95_of_wide_gaussians_is_exact(sigma: float) -> None:
    """In 40 digits, t suffices and t - 1 does not; at the last two sigmas the correction to the normal law decides."""
    t = error95(DiscreteGaussian(sigma))
    with mp.workdps(40):
        s = mp.mpf(sigma)
        y = mp.mpf(t) + mp.mpf(1) / 2
        # Euler-Maclaurin for the sum from t + 1, two terms; the next is below 1e-15 of a step.
        bell = mp.exp(-(y**2) / (2 * s**2))
        beyond = mp.erfc(y / (s * mp.sqrt(2))) - 2 * y / (24 * s**2) * bell / (s * mp.sqrt(2 * mp.pi))
        step = 2 * exact_pmf(DiscreteGaussian(sigma), t)
        assert beyond <= mp.mpf("0.05") < beyond + step


@pytest.mark.parametrize("scale", [2.0**55, 1e15 / 7, 2.0**40])
def test_error95_of_wide_laplaces_is_exact(scale: float) -> None:
    t = error95(DiscreteLaplace(scale))
    with mp.workdps(60):
        q = mp.exp(-1 / mp.mpf(scale))
        assert 2 * q ** (t + 1) / (1 + q) <= mp.mpf("0.05") < 2 * q**t / (1 + q)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_tail_is_an_upper_bound_and_a_close_one(mechanism: Mechanism) -> None:
    low, tails = exact_tails(mechanism)
    for t in sorted({1, 2, 3, *(int(stddev(mechanism) * z) for z in (0.5, 1, 2, 3.3, 5, 6, 8))}):
        exact = float(tails[max(t, 1) - low])
        bound = tail(mechanism, max(t, 1))
        assert bound >= exact * (1 - 1e-13)
        if t > stddev(mechanism) + 1:
            assert bound <= exact * 1.05 + 1e-299
    assert tail(mechanism, 0) == tail(mechanism, -5) == 1.0


def test_mechanisms_are_values() -> None:
    assert DiscreteLaplace(1.0) == DiscreteLaplace(1.0) != cast(object, DiscreteGaussian(1.0))
    assert len({DiscreteGaussian(1.0), DiscreteGaussian(1.0)}) == 1
