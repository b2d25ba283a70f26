"""The noise of answers, measured: its law and scale are as announced, and one person stays hidden in it."""

from __future__ import annotations

from contextlib import closing
from math import log
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpsql.dp.mechanisms import DiscreteGaussian, DiscreteLaplace
from dpsql.dp.noise import draw
from dpsql.errors import Failed
from e2e.conftest import Databases, MakePolicy
from e2e.inside import QUIET, Measured, with_mechanism
from e2e.world import TABLES, Terms, policy_text

ALPHA = 1e-6
CELLS = "SELECT age, city, COUNT(*) FROM people GROUP BY age, city"
ANSWERS = 10_000
BINS = 50

Noise = npt.NDArray[np.int64]


def law(kind: str, scale: float) -> tuple[Noise, npt.NDArray[np.float64]]:
    """The integers that matter and their probabilities, from the formula alone."""
    reach = int(45 * scale) + 10
    support = np.arange(-reach, reach + 1, dtype=np.int64)
    exponent = np.abs(support) / scale if kind == "discrete_laplace" else (support / scale) ** 2 / 2
    weights = np.exp(-exponent)
    return support, weights / weights.sum()


def p_value(noise: Noise, kind: str, scale: float) -> float:
    """Chi-square over bins of about equal probability."""
    support, probabilities = law(kind, scale)
    edges = np.searchsorted(np.cumsum(probabilities), np.arange(1, BINS) / BINS)
    inside = np.searchsorted(support[edges], noise, side="left")
    places = np.searchsorted(edges, np.arange(len(support)), side="left")
    expected = np.bincount(places, probabilities, BINS) * len(noise)
    observed = np.bincount(inside, minlength=BINS)
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), BINS - 1))


@pytest.fixture(scope="module")
def exact(databases: Databases) -> dict[tuple[int, str], int]:
    path = databases("duckdb", "clean").removeprefix("duckdb:")
    with duckdb.connect(path, read_only=True) as connection:
        return {(age, city): n for age, city, n in connection.execute(CELLS).fetchall()}


def noise_of(measured: Measured, exact: dict[tuple[int, str], int], mechanism: str) -> Noise:
    """At least `ANSWERS` noises, all in grid steps of 1/1024."""
    keys = [(age, city) for age in range(121) for city in ("Lima", "Oslo", "Rome")]
    right = np.array([exact.get(key, 0) * 1024 for key in keys], dtype=np.int64)
    rounds = [
        np.array([cells[0] for cells in measured.answer(CELLS, with_mechanism(mechanism))], dtype=np.int64) - right
        for _ in range(ANSWERS // len(keys) + 1)
    ]
    return np.concatenate(rounds)


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_noise_has_the_announced_law(
    make_policy: MakePolicy, exact: dict[tuple[int, str], int], mechanism: str
) -> None:
    with Measured(make_policy("duckdb", "clean", Terms())) as measured:
        announced = measured.announced(CELLS, with_mechanism(mechanism))
        noise = noise_of(measured, exact, mechanism)
    kind, scale = announced["mechanism"], announced["scale"]
    assert kind == f"discrete_{mechanism}"
    assert len(noise) >= ANSWERS
    assert p_value(noise, kind, scale) > ALPHA
    assert p_value(noise, kind, scale * 1.25) < ALPHA
    assert p_value(noise, kind, scale / 1.25) < ALPHA
    assert len(np.unique(noise)) > len(noise) // 4


def test_noise_is_fresh_in_every_cell_and_answer(make_policy: MakePolicy) -> None:
    with Measured(make_policy("duckdb", "clean", Terms())) as measured:
        answers = {measured.answer("SELECT COUNT(*), SUM(age) FROM people") for _ in range(50)}
        ((first, second),) = measured.answer("SELECT COUNT(*), COUNT(age) FROM people")
    assert len(answers) == 50
    assert first != second


def test_bad_scales_cannot_be_built() -> None:
    for scale in (0.0, -1.0, float("nan"), float("inf"), 2.0**56):
        for law_ in (DiscreteLaplace, DiscreteGaussian):
            with pytest.raises(Failed):
                law_(scale)


# One person with everything that the bounds allow, and the same without them ------------------------------------------

VISITS = "SELECT shop, COUNT(*) FROM visits WHERE shop IN ('cafe', 'books', 'zoo') GROUP BY shop"
RUNS = 6_000
WHOLE = 10 * 1024
"""What the person adds to each of the three shops, in grid steps."""


def neighbour(folder: Path, name: str, accounting: str, whole: bool) -> Path:
    """A policy over a database of 30 rows of one person, or of none; one row of another."""
    path = folder / f"{name}.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(f"CREATE TABLE people ({', '.join(f'{n} {of}' for n, of in TABLES['people'].items())})")
        connection.execute("CREATE TABLE visits (uid BIGINT, shop TEXT, amount DOUBLE)")
        connection.execute("CREATE TABLE shops (shop TEXT PRIMARY KEY, region TEXT)")
        connection.execute("INSERT INTO shops VALUES ('cafe', 'a'), ('books', 'a'), ('zoo', 'b')")
        connection.execute("INSERT INTO visits VALUES (2, 'zoo', 1)")
        if whole:
            connection.execute("INSERT INTO visits SELECT 1, shop, 1 FROM shops, range(10)")
    policy = folder / f"{name}.yaml"
    policy.write_text(policy_text(name, f"duckdb:{path}", Terms(accounting=accounting)))
    return policy


def hits(policy: Path) -> int:
    """How often all three counts are at least what they truly are with the person."""
    right = (WHOLE, WHOLE, WHOLE + 1024)
    with Measured(policy) as measured:
        answers = (measured.answer(VISITS) for _ in range(RUNS))
        return sum(all(cell[0] >= r for cell, r in zip(answer, right, strict=True)) for answer in answers)


def epsilon_at_least(with_them: int, without: int, delta: float) -> float:
    """A lower bound that holds with probability 1 - ALPHA (Clopper-Pearson on both sides)."""
    low = float(stats.beta.ppf(ALPHA / 2, with_them, RUNS - with_them + 1))
    high = float(stats.beta.isf(ALPHA / 2, without + 1, RUNS - without))
    return log((low - delta) / high)


@pytest.mark.slow
@pytest.mark.parametrize(("accounting", "delta"), [("pure", 0.0), ("zcdp", 1e-5)])
def test_epsilon_end_to_end(tmp_path: Path, accounting: str, delta: float) -> None:
    """At epsilon 1 a person with 30 visits shows no more than that, and no less noise than needed is added."""
    whole, less = (neighbour(tmp_path, f"n{i}", accounting, whole=i == 1) for i in (1, 0))
    with Measured(whole) as measured:
        assert all(abs(cell[0]) < 2**40 for cell in measured.answer(VISITS, QUIET))
    bound = epsilon_at_least(hits(whole), hits(less), delta)
    assert bound <= 1
    if accounting == "pure":
        assert bound > 0.3


@pytest.mark.slow
def test_half_the_noise_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(mechanism: DiscreteLaplace, n: int) -> Noise:
        return draw(DiscreteLaplace(mechanism.scale / 2), n)

    monkeypatch.setattr("dpsql.release.draw", half)
    whole, less = (neighbour(tmp_path, f"n{i}", "pure", whole=i == 1) for i in (1, 0))
    assert epsilon_at_least(hits(whole), hits(less), 0.0) > 1
