"""Randomness: the only place where noise is drawn, and the only importer of OpenDP.

OpenDP samples both laws exactly, on big integers and fractions, from the operating system's secure generator (Canonne,
Kamath, Steinke 2020, section 5); it reads the float scale as the exact fraction it is. It adds noise to a vector of
zeros here, and the caller adds that to the data in exact integers, so OpenDP's clamping of its input and its privacy
map are never relied upon: dp.privacy prices, this file only draws.

OpenDP accepts scale 0 (no noise at all) and saturates silently at 64 bits. `mechanisms` refuses the first, and with
scales up to 2^55 the second has probability below exp(-256) a draw, far below any delta that can be written down.

Never: a seed, a generator of Python's or numpy's, or a reused draw. Nothing of the library is shared between threads.
It is loaded once, at the first call, in 0.3 s; drawing 0 samples at a server's start gets that over with.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from dpsql.errors import Failed

if TYPE_CHECKING:
    from opendp.mod import Domain, Metric

_THREAD = threading.local()


@dataclass(frozen=True, slots=True)
class _Spaces:
    """OpenDP's descriptions of integer vectors and their norms, which cost as much to make as a draw."""

    integers: Domain
    l1: Metric
    l2: Metric


def draw(mechanism: Mechanism, n: int) -> npt.NDArray[np.int64]:
    """`n` independent draws. One call for all keys of a column is far faster than a call for each."""
    return np.array(_sample(mechanism, [0] * n), dtype=np.int64)


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
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return _Spaces(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), l2_distance(T="i64"))
