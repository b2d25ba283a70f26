"""The two noise laws and the choice, and what follows from a law alone: probabilities, spread, tails, error bars.

- `DiscreteLaplace(scale)`: P(x) = (1 - q) / (1 + q) * q^|x| with q = exp(-1/scale), on all integers x. Added to an
  integer vector of L1 sensitivity D it is (D/scale)-DP (Ghosh, Roughgarden, Sundararajan, "Universally Utility-
  Maximizing Privacy Mechanisms", STOC 2009; vectors by the triangle inequality).
- `DiscreteGaussian(sigma)`: P(x) = exp(-x^2 / 2 sigma^2) / Z on all integers x. Added to an integer vector of squared
  L2 sensitivity R it is (R / 2 sigma^2)-zCDP (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential
  Privacy", NeurIPS 2020, theorems 4 and 14). By Poisson summation Z >= sigma * sqrt(2 pi), and the two are equal to
  within a double's precision once sigma >= 4.

- `NoisyMax(scale)`: chooses one of some candidates with integer scores: adds to each score independent exponential
  noise of that mean and takes the candidate with the largest sum. That is permute-and-flip (McKenna, Sheldon,
  "Permute-and-Flip: A New Mechanism for Differentially Private Selection", NeurIPS 2020; Ding, Kifer et al., "The
  Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential Noise", 2021). If no score moves by more
  than D, no candidate's probability moves by more than the factor exp(2D/scale) (their theorem 1); a candidate whose
  score is d below the best is chosen with probability at most exp(-d/scale). Only the index is released.

The noises act on integers and only integers are released, so no float ever carries a released low-order bit (Mironov,
CCS 2012). Scales outside (0, 2^55] are refused: with 0 there would be no noise, above it 64-bit results would saturate.

Never: a draw (dp.noise) or a price (dp.privacy). `tail` may err upwards only; thresholds rest on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache

from dpsql.errors import Failed

MAX_SCALE = 2.0**55

# From these sigmas on, integrals replace sums over the integers; each function says how well they agree.
_FINE_FOR_MOMENTS = 4.0
_FINE_FOR_TAILS = 8.0
_FINE_FOR_QUANTILES = 1000.0

_EXACT = Context(prec=60)
_NORMAL_975 = Decimal("1.959963984540054235524594430520551527955550359985")
"""The 97.5 % point of the standard normal law."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Two-sided geometric noise; `scale` in grid steps."""

    scale: float

    def __post_init__(self) -> None:
        _require_scale(self.scale)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Gaussian noise on the integers; `sigma` in grid steps."""

    sigma: float

    def __post_init__(self) -> None:
        _require_scale(self.sigma)


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Report-noisy-max with exponential noise, which is permute-and-flip; `scale` in steps of the scores."""

    scale: float

    def __post_init__(self) -> None:
        _require_scale(self.scale)


Mechanism = DiscreteLaplace | DiscreteGaussian
"""What adds noise to numbers. `NoisyMax` is none of them: it releases an index."""


def pmf(mechanism: Mechanism, x: int) -> float:
    """P(X = x), to about 1e-12 relative."""
    match mechanism:
        case DiscreteLaplace(scale):
            return math.tanh(0.5 / scale) * math.exp(-abs(x) / scale)
        case DiscreteGaussian(sigma):
            return _bell(x / sigma) / _gaussian_total(sigma)


def stddev(mechanism: Mechanism) -> float:
    """The standard deviation of the discrete law, in grid steps.

    Laplace: sqrt(2 q) / (1 - q). Gaussian: sigma, which by Poisson summation is exact to a double once sigma >= 4;
    summed below.
    """
    match mechanism:
        case DiscreteLaplace(scale):
            return math.sqrt(2) * math.exp(-0.5 / scale) / -math.expm1(-1 / scale)
        case DiscreteGaussian(sigma):
            if sigma >= _FINE_FOR_MOMENTS:
                return sigma
            return math.sqrt(2 * math.fsum(x * x * pmf(mechanism, x) for x in range(1, 200)))


def tail(mechanism: Mechanism, t: int) -> float:
    """An upper bound of P(X >= t), never below it; for t <= 0 simply 1.

    Laplace: q^t / (1 + q), the exact value. Gaussian with sigma < 8: the exact sum. Gaussian above: exp(-x^2/2s^2) is
    convex where x >= s, so each term is at most its integral over [x - 1/2, x + 1/2], and with Z >= s sqrt(2 pi) the
    tail is at most that of the continuous law from t - 1/2; nearer to 0, where the terms still decrease, from t - 1.
    The excess is a fraction of about (t/s)^2 / 24 s^2.
    """
    if t <= 0:
        return 1.0
    match mechanism:
        case DiscreteLaplace(scale):
            return _up(math.exp(-t / scale) / (1 + math.exp(-1 / scale)))
        case DiscreteGaussian(sigma):
            if sigma < _FINE_FOR_TAILS:
                return _up(math.fsum(pmf(mechanism, x) for x in range(t, t + 400)))
            edge = t - 0.5 if t - 0.5 >= sigma else t - 1.0
            return _up(0.5 * math.erfc(edge / sigma / math.sqrt(2)))


def reach95(*, gaussian: bool) -> float:
    """Standard deviations to the end of a 95 % interval of a sum of independent noises, all Gaussian or some Laplace.

    Exact for Gaussians. With Laplace noise it is what a single one needs (ln 20 / sqrt 2), and sums of several do not
    exceed: at most 2.056 for two equal ones, 1.96 in the limit.
    """
    return 1.96 if gaussian else 2.12


@lru_cache(maxsize=4096)
def error95(mechanism: Mechanism) -> int:
    """The smallest t with P(|X| <= t) >= 0.95, in grid steps."""
    match mechanism:
        case DiscreteLaplace(scale):
            return _laplace_error95(scale)
        case DiscreteGaussian(sigma):
            if sigma >= _FINE_FOR_QUANTILES:
                return _wide_gaussian_error95(sigma)
            return _narrow_gaussian_error95(mechanism)


def _laplace_error95(scale: float) -> int:
    """P(|X| > t) = 2 q^(t+1) / (1 + q) <= 1/20. No tie can occur: q is transcendental (Lindemann)."""
    exact_scale = Decimal(scale)
    q = _EXACT.exp(_EXACT.divide(Decimal(-1), exact_scale))
    log = _EXACT.ln(_EXACT.divide(Decimal(40), _EXACT.add(Decimal(1), q)))
    return max(0, _ceil(_EXACT.multiply(exact_scale, log)) - 1)


def _narrow_gaussian_error95(mechanism: DiscreteGaussian) -> int:
    inside, t = pmf(mechanism, 0), 0
    while inside < 0.95:
        t += 1
        inside += 2 * pmf(mechanism, t)
    return t


def _wide_gaussian_error95(sigma: float) -> int:
    """Euler-Maclaurin: P(|X| <= t) is the normal law's within y (1 + 1/24 sigma^2), y = t + 1/2, up to 1e-12 steps."""
    exact_sigma = Decimal(sigma)
    square = _EXACT.multiply(exact_sigma, exact_sigma)
    stretch = _EXACT.add(Decimal(1), _EXACT.divide(Decimal(1), _EXACT.multiply(Decimal(24), square)))
    y = _EXACT.divide(_EXACT.multiply(_NORMAL_975, exact_sigma), stretch)
    return _ceil(_EXACT.subtract(y, Decimal("0.5")))


@lru_cache(maxsize=4096)
def _gaussian_total(sigma: float) -> float:
    """Z, the sum of exp(-x^2 / 2 sigma^2) over the integers."""
    if sigma >= _FINE_FOR_MOMENTS:
        return sigma * math.sqrt(2 * math.pi)
    return 1 + 2 * math.fsum(_bell(x / sigma) for x in range(1, 200))


def _bell(z: float) -> float:
    return math.exp(-0.5 * z * z)


def _ceil(value: Decimal) -> int:
    return int(value.to_integral_value(ROUND_CEILING))


def _up(probability: float) -> float:
    """Past underflow and the rounding of any libm, where exp and erfc multiply their argument's error by up to 1400."""
    return probability * (1 + 1e-11) + 1e-300


def _require_scale(scale: float) -> None:
    if not isinstance(scale, float) or not 0 < scale <= MAX_SCALE:
        raise Failed(f"a noise scale must be a float in (0, 2^55], not {scale!r}")
