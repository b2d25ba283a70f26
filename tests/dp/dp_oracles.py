"""Exact laws and checks, written again from the definitions, so that the tests share no formula with dpsql.dp."""

from __future__ import annotations

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from dpsql.dp.mechanisms import DiscreteLaplace, Mechanism

Floats = npt.NDArray[np.longdouble]
Ints = npt.NDArray[np.int64]

mp: Any = mpmath


def width(mechanism: Mechanism) -> float:
    return mechanism.scale if isinstance(mechanism, DiscreteLaplace) else mechanism.sigma


def lattice(mechanism: Mechanism) -> tuple[Ints, Floats]:
    """All integers of which the law gives any weight to speak of, and their probabilities."""
    reach = int(50 * width(mechanism)) + 60
    xs = np.arange(-reach, reach + 1, dtype=np.int64)
    z = np.abs(xs).astype(np.longdouble) / np.longdouble(width(mechanism))
    mass = np.exp(-z) if isinstance(mechanism, DiscreteLaplace) else np.exp(-z * z / 2)
    return xs, mass / mass.sum()


def exact_pmf(mechanism: Mechanism, x: int) -> Any:
    """P(X = x) to 40 digits."""
    with mp.workdps(40):
        if isinstance(mechanism, DiscreteLaplace):
            q = mp.exp(-1 / mp.mpf(mechanism.scale))
            return (1 - q) / (1 + q) * q ** abs(x)
        sigma = mp.mpf(mechanism.sigma)
        # By Poisson summation: the total converges fast on one side or the other.
        dual = sigma > 1
        rate = 2 * mp.pi**2 * sigma**2 if dual else 1 / (2 * sigma**2)
        total = (sigma * mp.sqrt(2 * mp.pi) if dual else 1) * (1 + 2 * sum(mp.exp(-rate * k * k) for k in range(1, 20)))
        return mp.exp(-(mp.mpf(x) ** 2) / (2 * sigma**2)) / total


def exact_tails(mechanism: Mechanism) -> tuple[int, Floats]:
    """(low, tails) with tails[k - low] = P(X >= k); summed from the small end."""
    xs, mass = lattice(mechanism)
    return int(xs[0]), np.cumsum(mass[::-1])[::-1]


def p_value(samples: npt.NDArray[Any], mechanism: Mechanism) -> float:
    """Chi-square of the samples against the exact law, over some fifty intervals and over residues modulo 8.

    0 for samples that are no integers, or that the law can hardly reach.
    """
    if samples.dtype != np.int64:
        return 0.0
    xs, mass = lattice(mechanism)
    places = samples - xs[0]
    if places.min() < 0 or places.max() >= len(xs):
        return 0.0
    intervals = np.floor((np.cumsum(mass) - mass / 2) * 50).astype(np.int64)
    residues = xs % 8
    return min(1.0, 2 * min(_chi_square(labels, mass, places) for labels in (intervals, residues)))


def _chi_square(labels: Ints, mass: Floats, places: Ints) -> float:
    expected = np.bincount(labels, weights=mass.astype(float)) * len(places)
    observed = np.bincount(labels[places], minlength=len(expected)).astype(float)
    rare = expected < 10
    cells = [(observed[rare].sum(), expected[rare].sum()), *zip(observed[~rare], expected[~rare], strict=True)]
    if cells[0][1] < 10:  # too little to stand alone: pool it with the smallest of the others
        cells.sort(key=lambda cell: cell[1])
        cells[:2] = [(cells[0][0] + cells[1][0], cells[0][1] + cells[1][1])]
    return float(chdtrc(len(cells) - 1, sum((o - e) ** 2 / e for o, e in cells))) if len(cells) > 1 else 1.0
