"""Randomness: the only place where noise is drawn and choices are made, and the only importer of OpenDP.

OpenDP samples both laws exactly, on big integers and fractions, from the operating system's secure generator (Canonne,
Kamath, Steinke 2020, section 5); it reads the float scale as the exact fraction it is. It adds noise to a vector of
zeros here, and the caller adds that to the data in exact integers, so OpenDP's clamping of its input and its privacy
map are never relied upon: dp.privacy prices, this file only draws.

A choice is OpenDP's report-noisy-max with exponential noise, compared exactly, digit by digit as far as is needed: the
law of permute-and-flip (see dp.mechanisms). It reads the scores themselves, as choosing is all it does with them.

OpenDP accepts scale 0 (no noise at all) and saturates silently at 64 bits. `mechanisms` refuses the first, and with
scales up to 2^55 the second has probability below exp(-256) a draw, far below any delta that can be written down.

Never: a seed, a generator of Python's or numpy's, or a reused draw. Nothing of the library is shared between threads.
It is loaded once, at the first call, in 0.3 s; drawing 0 samples at a server's start gets that over with.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism, NoisyMax
from dpsql.errors import Failed

if TYPE_CHECKING:
    from opendp.mod import Domain, Metric

_THREAD = threading.local()

MAX_SCORE = 2**62


@dataclass(frozen=True, slots=True)
class _Spaces:
    """OpenDP's descriptions of integer vectors and their norms, which cost as much to make as a draw."""

    integers: Domain
    l1: Metric
    l2: Metric
    linf: Metric


def draw(mechanism: Mechanism, n: int) -> npt.NDArray[np.int64]:
    """`n` independent draws. One call for all keys of a column is far faster than a call for each."""
    return np.array(_sample(mechanism, [0] * n), dtype=np.int64)


def choose(mechanism: NoisyMax, scores: Sequence[int]) -> int:
    """The index of a candidate with (nearly) the highest score. Scores within +-2^62; at least one."""
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence

    if not isinstance(mechanism, NoisyMax) or not scores or any(abs(score) > MAX_SCORE for score in scores):
        raise Failed("no choice can be made of these scores")
    spaces = _spaces()
    measurement = make_noisy_max(spaces.integers, spaces.linf, max_divergence(), scale=mechanism.scale)
    return int(measurement(list(scores)))


def _sample(mechanism: Mechanism, zeros: list[int]) -> list[int]:
    from opendp.measurements import make_gaussian, make_laplace

    spaces = _spaces()
    match mechanism:
        case DiscreteLaplace(scale):
            measurement = make_laplace(spaces.integers, spaces.l1, scale=scale)
        case DiscreteGaussian(sigma):
            measurement = make_gaussian(spaces.integers, spaces.l2, scale=sigma)
        case _:
            raise Failed(f"not a mechanism: {mechanism!r}")
    noisy: list[int] = measurement(zeros)
    return noisy


def _spaces() -> _Spaces:
    """This thread's spaces, made at its first draw."""
    if not hasattr(_THREAD, "spaces"):
        _THREAD.spaces = _make_spaces()
    made: _Spaces = _THREAD.spaces
    return made


def _make_spaces() -> _Spaces:
    from opendp.domains import atom_domain, vector_domain
    from opendp.metrics import l1_distance, l2_distance, linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    integers = vector_domain(atom_domain(T="i64"))
    return _Spaces(integers, l1_distance(T="i64"), l2_distance(T="i64"), linf_distance(T="i64"))
