"""What is derived from releases of hostile data is what a measurement gives, without noise, for thousands of pairs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hostile_cases import Known, derived, pairs, sources, statements, worlds

from dpsql.replay.recipe import Measured

PAIRS = 150
Cells = tuple[tuple[int, ...], ...]


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.release.draw", lambda mechanism, count: [0] * count)


@pytest.mark.parametrize(
    ("seed", "episodes", "accounting"),
    [
        (1, 4, "zcdp"),
        *(
            pytest.param(seed, 40, accounting, marks=pytest.mark.slow)
            for seed, accounting in ((2, "zcdp"), (3, "pure"))
        ),
    ],
)
def test_derived_is_measured(tmp_path: Path, seed: int, episodes: int, accounting: str) -> None:
    random = Random(seed)
    counted: Counter[str] = Counter()
    with worlds(tmp_path, seed, accounting) as (loose, tight):
        for _ in range(episodes):
            texts = statements(random, 40)
            unclipped = {known.text: known for known in map(loose.known, texts) if known is not None}
            clipped = [known for known in map(tight.known, texts) if known is not None]
            for target, stored in pairs(random, list(unclipped.values()), PAIRS):
                made = derived(target, stored)
                if made is not None:
                    counted["loose"] += 1
                    assert _equal(made, target.release.cells), (target.text, sources(target, stored))
            for target, stored in pairs(random, clipped, PAIRS):
                made = derived(target, stored)
                if made is not None and target.text in unclipped:
                    counted[_clipping(target, stored, made, unclipped[target.text])] += 1
    assert counted["loose"] > 20 * episodes
    assert counted["between"]


def _equal(a: Cells, b: Cells) -> bool:
    """Up to the rounding of one step."""
    return all(abs(x - y) <= 1 for left, right in zip(a, b, strict=True) for x, y in zip(left, right, strict=True))


def _is_told(target: Measured, whole: Measured) -> bool:
    """Whether rows can only add to it, in the same steps."""
    return target.role in ("count", "n") or (target.role == "sum" and target.grows and target.step == whole.step)


def _clipping(target: Known, stored: list[Known], made: Cells, whole: Known) -> str:
    """No unit counts for more than its rows; where all is of one group, for no less than in a measurement either."""
    if not all(map(_is_told, target.shape.measured, whole.shape.measured)):
        return "other"
    single = target.single and all(known.single for known in stored)
    cells = zip(target.release.cells, made, whole.release.cells, strict=True)
    for fresh, cell, raw in ((f, c, r) for row in cells for f, c, r in zip(*row, strict=True)):
        assert abs(cell) <= abs(raw), (target.text, sources(target, stored))
        assert cell * raw >= 0, (target.text, sources(target, stored))
        assert not single or abs(fresh) <= abs(cell), (target.text, sources(target, stored))
    return "between" if single else "below"
