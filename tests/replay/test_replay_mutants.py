"""Deliberately broken derivations, keys and prices: each is caught.

The derivations by what the simulation checks, on a few statements over hostile rows: what follows, without noise, is
the very integers that a measurement gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import test_replay_inner as inner
import test_replay_prices as prices
import test_replay_surroundings as surroundings
from hostile_cases import World, derived, worlds
from replay_cases import opened, write

from dpsql.ledger import init_ledger, open_ledger
from dpsql.replay import derive, ready, shape
from dpsql.replay.recipe import Measured
from dpsql.types import Cost

JOINED = "facts JOIN people USING (uid)"
STATEMENTS = (
    *(
        f"SELECT {each} FROM facts"
        for each in ("COUNT(*)", "COUNT(DISTINCT uid)", "SUM(w)", "AVG(w)", "COUNT(w), SUM(w)")
    ),
    *(f"SELECT {each} FROM facts WHERE s = 'a'" for each in ("COUNT(*)", "COUNT(w)", "COUNT(DISTINCT uid)", "SUM(w)")),
    *(
        f"SELECT s, {each} FROM facts GROUP BY s"
        for each in ("COUNT(*)", "COUNT(w)", "AVG(w)", "COUNT(DISTINCT uid)", "COUNT(*), SUM(w)", "SUM(f)", "AVG(f)")
    ),
    *(f"SELECT {each} FROM {JOINED}" for each in ("COUNT(DISTINCT w)", "COUNT(w)", "SUM(w)")),
    *(f"SELECT g, {each} FROM {JOINED} GROUP BY g" for each in ("COUNT(DISTINCT w)", "COUNT(w)", "AVG(w)")),
    f"SELECT g, s, COUNT(w) FROM {JOINED} GROUP BY g, s",
)


@pytest.fixture(scope="module")
def opened_worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, World]]:
    with worlds(tmp_path_factory.mktemp("mutants"), 5) as found:
        yield found


def check_derived(found: dict[str, World]) -> None:
    for world in found.values():
        engine = world.engine
        engine.preparer = type(engine.preparer)(engine.schema, engine._dialect, 0, engine.pool)
        known = [each for each in map(world.known, STATEMENTS) if each is not None]
        for asked in known:
            for stored in known:
                made = derived(asked, [stored]) if stored.shape.family == asked.shape.family else None
                assert made is None or made.cells() == asked.release.cells, (asked.text, stored.text)


def told_otherwise(**changes: Any) -> Callable[[Measured], Measured]:
    """Shapes that say something else of a vector."""
    return lambda m: replace(m, **changes)


MEASURED = shape._measured
WRONG_SHAPES = {
    "nothing is clipped": told_otherwise(clip=""),
    "all is clipped alike": told_otherwise(clip="single"),
    "all is alone": told_otherwise(alone=True),
    "all cells are added": told_otherwise(summable=True),
}


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.release.draw", lambda mechanism, count: [0] * count)


@pytest.mark.usefixtures("no_noise")
def test_as_it_is(opened_worlds: dict[str, World]) -> None:
    check_derived(opened_worlds)


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("name", WRONG_SHAPES)
def test_wrong_shapes(opened_worlds: dict[str, World], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(shape, "_measured", lambda *told: WRONG_SHAPES[name](MEASURED(*told)))
    with pytest.raises(AssertionError):
        check_derived(opened_worlds)


@pytest.mark.usefixtures("no_noise")
def test_which_rows_are_kept_is_forgotten(opened_worlds: dict[str, World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape, "cut_by", lambda aggregation: ())
    with pytest.raises(AssertionError):
        check_derived(opened_worlds)


@pytest.mark.usefixtures("no_noise")
def test_units_are_never_clipped(opened_worlds: dict[str, World], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where they may be in fewer groups than there are."""
    clip = shape._clip
    monkeypatch.setattr(shape, "_clip", lambda cell, *rest: "" if cell.kind == "units" else clip(cell, *rest))
    with pytest.raises(AssertionError):
        check_derived(opened_worlds)


@pytest.mark.usefixtures("no_noise")
def test_sets_that_are_not_covered(opened_worlds: dict[str, World], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive, "size", lambda cell: 0)
    with pytest.raises(AssertionError):
        check_derived(opened_worlds)


# Keys -----------------------------------------------------------------------------------------------------------------


def _none(*arguments: object) -> tuple[()]:
    return ()


def test_public_tables_of_remainders_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(self: ready.Surroundings, index: int, compiled: Any) -> tuple[object, ...]:
        return index, compiled.derived[index].sql

    monkeypatch.setattr(ready.Surroundings, "_remainder", told)
    with pytest.raises(AssertionError):
        surroundings.test_what_is_read_of_public_tables_is_part_of_the_key(folder)


def test_public_scans_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "nodes", _none)
    with pytest.raises(AssertionError):
        surroundings.test_what_is_read_of_public_tables_is_part_of_the_key(folder)


def test_keys_forget_which_rows_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "cut_by", _none)
    with pytest.raises(AssertionError):
        surroundings.test_which_rows_are_kept_is_part_of_the_key(folder)


folder = surroundings.folder


def test_keys_forget_which_inner_they_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.kin.key_after", lambda key, made: key)
    url = f"sqlite:{tmp_path / 'shop.ledger'}"
    init_ledger(url, "shop")
    ledger = open_ledger(url, "shop")
    with pytest.raises(AssertionError):
        inner.test_an_outer_of_another_inner_is_made_anew(ledger)
    ledger.close()


# Prices ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("_paid", lambda grant: getattr(grant, "cost", Cost())),
        ("priced", lambda cost, asked, delta: asked.compiled.epsilon),
    ],
)
def test_prices_that_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, wrong: object) -> None:
    monkeypatch.setattr(f"dpsql.notices.{place}", wrong)
    with opened(write(tmp_path)) as shop, pytest.raises(AssertionError):
        prices.test_what_is_paid_of_a_statement_of_several_releases(shop)
