"""Noise drawn through OpenDP follows the exact law, and wrong samplers are told apart by the same test."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from dp_oracles import p_value, width

from dpsql.dp.mechanisms import MAX_SCALE, DiscreteGaussian, DiscreteLaplace, Mechanism
from dpsql.dp.noise import draw
from dpsql.errors import Failed

ALPHA = 1e-6
DRAWS = 20_000
FEW = 5_000
SCALES = (1 / 3, 1.0, 10.0, 1e4)
LAWS = (DiscreteLaplace, DiscreteGaussian)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_noise_follows_the_exact_law(law: type[Any], scale: float) -> None:
    mechanism: Mechanism = law(scale)
    assert p_value(draw(mechanism, DRAWS), mechanism) > ALPHA


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_mutant_half_scale_is_caught(law: type[Any], scale: float) -> None:
    assert p_value(draw(law(scale / 2), FEW), law(scale)) < ALPHA


@pytest.mark.parametrize("scale", SCALES)
def test_mutant_laws_swapped_are_caught(scale: float) -> None:
    assert p_value(draw(DiscreteLaplace(scale), FEW), DiscreteGaussian(scale * math.sqrt(2))) < ALPHA


@pytest.mark.parametrize("scale", SCALES)
def test_mutant_textbook_laplace_is_caught_off_the_grid(scale: float) -> None:
    textbook = np.random.default_rng(1).laplace(scale=scale, size=DRAWS)
    assert p_value(textbook, DiscreteLaplace(scale)) == 0.0


@pytest.mark.parametrize(("scale", "draws"), [(1 / 3, DRAWS), (1.0, DRAWS), (10.0, 4_000_000)])
def test_mutant_textbook_laplace_rounded_is_caught(scale: float, draws: int) -> None:
    rounded = np.rint(np.random.default_rng(1).laplace(scale=scale, size=draws)).astype(np.int64)
    assert p_value(rounded, DiscreteLaplace(scale)) < ALPHA


@pytest.mark.parametrize("step", [2, 8])
def test_mutant_coarse_grid_is_caught(step: int) -> None:
    coarse = draw(DiscreteLaplace(1e4), FEW) // step * step
    assert p_value(coarse, DiscreteLaplace(1e4)) < ALPHA


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(3.0), DiscreteGaussian(np.float64(3.0))])
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_draws_are_int64_vectors_of_any_length(mechanism: Mechanism, n: int) -> None:
    noise = draw(mechanism, n)
    assert noise.dtype == np.int64
    assert noise.shape == (n,)


@pytest.mark.parametrize("law", LAWS)
def test_extreme_scales_neither_saturate_nor_vanish(law: type[Any]) -> None:
    widest = draw(law(MAX_SCALE), 2000)
    assert np.abs(widest).max() < 2**62
    assert np.abs(widest).max() > 2**55
    assert not draw(law(5e-324), 100).any()


def test_what_is_no_mechanism_is_refused() -> None:
    for bad in (None, 3.0, "laplace", object()):
        with pytest.raises(Failed, match="could not"):
            draw(cast(Mechanism, bad), 3)


def test_draws_are_fresh_per_call_place_and_thread() -> None:
    mechanism = DiscreteLaplace(2.0**50)
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda _: draw(mechanism, 200), range(32)))
    assert len(np.unique(np.concatenate(vectors))) == 32 * 200


def test_threads_draw_from_the_exact_law() -> None:
    mechanism = DiscreteGaussian(10.0)
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(lambda _: draw(mechanism, 250), range(80)))
    assert p_value(np.concatenate(vectors), mechanism) > ALPHA


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_workers_draw_fresh_noise() -> None:
    mechanism = DiscreteLaplace(2.0**50)
    draw(mechanism, 1)
    children = [_draw_in_child(mechanism) for _ in range(2)]
    assert len({*children, draw(mechanism, 4).tobytes()}) == 3


def _draw_in_child(mechanism: Mechanism) -> bytes:
    source, sink = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks among threads
        child = os.fork()
    if child == 0:
        try:
            os.write(sink, draw(mechanism, 4).tobytes())
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as pipe:
        noise = pipe.read()
    os.waitpid(child, 0)
    assert len(noise) == 32
    return noise


def test_a_single_draw_is_fast_once_loaded() -> None:
    draw(DiscreteLaplace(1.0), 0)
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        draw(DiscreteGaussian(100.0), 1)
        times.append(time.perf_counter() - begin)
    assert sorted(times)[25] < 0.01


def test_opendp_is_loaded_by_the_first_draw_only() -> None:
    code = "import sys, dpsql.dp.noise; assert not any(name.startswith('opendp') for name in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize("scale", [*SCALES, 0.1, 12345.678, MAX_SCALE])
def test_opendp_reads_the_scale_as_the_exact_fraction(scale: float) -> None:
    """Its own privacy map, rounded up, is within an ulp or two of our exact fraction: nothing was lost on the way."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance

    draw(DiscreteLaplace(1.0), 0)
    space = vector_domain(atom_domain(T="i64"))
    laplace: Any = make_laplace(space, l1_distance(T="i64"), scale=scale)
    gaussian: Any = make_gaussian(space, l2_distance(T="i64"), scale=scale)
    pure, zcdp = Fraction(laplace.map(7)), Fraction(gaussian.map(7))
    for theirs, ours in ((pure, 7 / Fraction(scale)), (zcdp, 49 / (2 * Fraction(scale) ** 2))):
        assert ours <= theirs <= ours * (1 + Fraction(1, 2**51))


def test_opendp_accepts_what_mechanisms_refuse() -> None:
    """Why `mechanisms` guards the scale: OpenDP takes 0 as no noise, and saturates in silence."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance

    draw(DiscreteLaplace(1.0), 0)
    space, norm = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    assert make_laplace(space, norm, scale=0.0)([7] * 5) == [7] * 5
    assert {abs(x) >= 2**63 - 1 for x in make_laplace(space, norm, scale=1e300)([0] * 5)} == {True}
    assert width(DiscreteLaplace(MAX_SCALE)) == 2.0**55
