"""What is derived from releases of hostile data is what a measurement gives: simulated for thousands of pairs.

Without noise it is the very same integers. With the noise of the stored release, what a measurement would give without
any lies within the interval announced as often as is announced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hostile_cases import Known, World, derived, pairs, statements, worlds
from scipy.stats import binom

from dpsql.compiler.cells import linear
from dpsql.estimates import released_relation
from dpsql.replay.recipe import Derived

PAIRS = 150
RATE, ALPHA = 0.05, 1e-6


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.release.draw", lambda mechanism, count: [0] * count)


def followed(random: Random, world: World, episodes: int) -> Iterator[tuple[Known, Known, Derived]]:
    """(asked, the stored one that is read, what follows) of random statements."""
    for _ in range(episodes):
        known = [each for each in map(world.known, statements(random, 40)) if each is not None]
        for asked, stored in pairs(random, known, PAIRS):
            made = derived(asked, stored)
            if made is not None:
                yield asked, stored[made.recipe.source], made


SEEDS = [
    (1, 5, "zcdp"),
    *(pytest.param(seed, 40, accounting, marks=pytest.mark.slow) for seed, accounting in ((2, "zcdp"), (3, "pure"))),
]


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(("seed", "episodes", "accounting"), SEEDS)
def test_derived_is_measured(tmp_path: Path, seed: int, episodes: int, accounting: str) -> None:
    random = Random(seed)
    counted: Counter[str] = Counter()
    with worlds(tmp_path, seed, accounting) as opened:
        for name, world in opened.items():
            for asked, stored, made in followed(random, world, episodes):
                assert made.cells() == asked.release.cells, (name, asked.text, stored.text)
                if len(asked.release.cells) != len(stored.release.cells):
                    counted[name] += 1
    print(counted)
    assert counted.total() > 20 * episodes
    assert min(counted[name] for name in ("tight", "cut", "ones")) > 0


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize(("seed", "episodes", "accounting"), SEEDS)
def test_errors_are_those_announced(tmp_path: Path, seed: int, episodes: int, accounting: str) -> None:
    """Of each derived answer one count or sum, so that misses are independent."""
    random = Random(seed + 10)
    tried = missed = 0
    with worlds(tmp_path, seed, accounting) as opened:
        for world in opened.values():
            for asked, stored, made in followed(random, world, episodes):
                if any(map(linear, asked.planned.outputs)):
                    tried, missed = tried + 1, missed + (not _is_inside(random, asked, stored, made))
    print(f"{missed} of {tried} beyond the 95 % interval")
    assert tried > 50 * episodes
    assert missed <= binom.ppf(1 - ALPHA, tried, RATE)


AVERAGES = (
    ("SELECT COUNT(n), SUM(n) FROM facts", "SELECT AVG(n) FROM facts"),
    ("SELECT COUNT(p), SUM(p) FROM facts", "SELECT AVG(p), SUM(p) FROM facts"),
    ("SELECT c, AVG(w) FROM facts GROUP BY c", "SELECT AVG(w), COUNT(w) FROM facts"),
    ("SELECT c, VAR_POP(w) FROM facts GROUP BY c", "SELECT SUM(w), AVG(w) FROM facts"),
)


@pytest.mark.usefixtures("no_noise")
def test_errors_of_averages_are_those_announced(tmp_path: Path) -> None:
    """An average's error depends on data, so its interval is one of the released cells."""
    random = Random(4)
    with worlds(tmp_path, 4) as opened:
        for texts in AVERAGES:
            stored, asked = (opened["ones"].known(text) for text in texts)
            assert stored is not None
            assert asked is not None
            made = derived(asked, [stored])
            assert made is not None
            missed = sum(not _is_inside(random, asked, stored, made, of_all=True) for _ in range(400))
            assert missed <= binom.ppf(1 - ALPHA, 400, RATE), (texts, missed)


def _is_inside(random: Random, asked: Known, stored: Known, made: Derived, *, of_all: bool = False) -> bool:
    """Whether a noisy derived interval holds what is measured without noise: of one count or sum, or `of_all`."""
    told = released_relation(asked.planned, replace(made, release=stored.noisy)).rows
    right = released_relation(asked.planned, asked.release).rows
    outputs = asked.planned.outputs
    place = random.choice([number for number, output in enumerate(outputs) if of_all or linear(output)])
    row, low = random.randrange(len(right)), len(asked.planned.keys) + len(outputs) + 3 * place + 1
    ends = [end for ends in (told[row][low : low + 2], right[row][low : low + 2]) for end in ends]
    least, most, a, b = (end for end in ends if isinstance(end, float))
    return least - 1e-6 <= (a + b) / 2 <= most + 1e-6
