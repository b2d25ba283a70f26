"""A release that reads others is given again only beside the very releases that it has read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from replay_cases import Shop, opened, write

from dpsql.certify import Certificate
from dpsql.dp.accounting import Limits
from dpsql.errors import Failed
from dpsql.ledger import Ask, Kind, Ledger, Source, init_ledger, open_ledger
from dpsql.ledger.kin import key_after
from dpsql.types import Cost, Release, Reservation

COST = Cost(epsilon=10**15, rho=10**14)
AMPLE = Limits(epsilon=None, rho=10**20, delta=10**12)
INNER, OUTER = Ask("inner", Certificate("r0", COST)), Ask("outer", Certificate("r0", COST), after=("inner",))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    url = f"sqlite:{tmp_path / 'shop.ledger'}"
    init_ledger(url, "shop")
    ledger = open_ledger(url, "shop")
    yield ledger
    ledger.close()


def reserve(ledger: Ledger, user: str, *asks: Ask, shared: bool = False) -> list[Reservation | Release]:
    found = ledger.reserve(user, asks, AMPLE, AMPLE, "text", shared=shared)
    return [each for each in found if isinstance(each, Reservation | Release)]


def keep(ledger: Ledger, grants: list[Reservation | Release]) -> list[Release]:
    """Each a release of its own, told by its only cell."""
    kept = [Release(each.key, ((),), ((each.id,),)) for each in grants if isinstance(each, Reservation)]
    for each, release in zip([g for g in grants if isinstance(g, Reservation)], kept, strict=True):
        ledger.record(each, release)
    return kept


def twice(ledger: Ledger) -> tuple[list[Release], list[Release]]:
    """Two users who have measured the inner release at the same time, each with an outer one of their own."""
    alice, bob = (reserve(ledger, user, INNER, OUTER) for user in ("alice", "bob"))
    return keep(ledger, alice), keep(ledger, bob)


def test_who_has_seen_which_inner_gets_the_outer_of_that_one(ledger: Ledger) -> None:
    alice, bob = twice(ledger)
    assert reserve(ledger, "alice", INNER, OUTER) == alice
    assert reserve(ledger, "bob", INNER, OUTER) == bob
    assert reserve(ledger, "carol", INNER, OUTER) in (alice, bob)
    assert ledger.spent("carol") == COST + COST


def test_with_shared_answers_too(ledger: Ledger) -> None:
    """Who has seen one is given that one; who has seen none, the newest."""
    alice, bob = twice(ledger)
    for user, expected in (("alice", alice), ("bob", bob), ("carol", bob)):
        assert reserve(ledger, user, INNER, OUTER, shared=True) == expected
    assert ledger.spent("carol") == Cost()


def test_an_outer_of_another_inner_is_made_anew(ledger: Ledger) -> None:
    alice = reserve(ledger, "alice", INNER, OUTER)
    (bob,) = reserve(ledger, "bob", INNER)
    keep(ledger, [*alice, bob])
    inner, outer = reserve(ledger, "bob", INNER, OUTER)
    assert isinstance(inner, Release)
    assert isinstance(outer, Reservation)
    assert outer.key not in {each.key for each in alice}


def test_an_outer_alone_is_no_answer(ledger: Ledger) -> None:
    """Who pays for it pays for what it has read too."""
    keep(ledger, reserve(ledger, "alice", INNER, OUTER))
    sources = ledger.preview("bob", [INNER, OUTER], AMPLE, AMPLE)
    assert (sources.sources, sources.user) == ((Source.VIEW, Source.VIEW), COST + COST)
    with pytest.raises(Failed):
        ledger.reserve("bob", [OUTER], AMPLE, AMPLE, "text")


@pytest.mark.parametrize("before", range(4))
def test_the_key_says_which_entry_the_inner_is(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    """Whether a checkpoint comes between or not."""
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 3)
    for number in range(before):
        reserve(ledger, "alice", Ask(f"other {number}", Certificate("r0", COST)))
    inner, outer = reserve(ledger, "alice", INNER, OUTER)
    assert isinstance(inner, Reservation)
    assert outer.key == key_after("outer", [inner.id])
    kept = keep(ledger, [inner, outer])
    assert reserve(ledger, "alice", INNER, OUTER) == kept
    assert any(entry.kind is Kind.CHECKPOINT for entry in ledger.entries())


def test_three_levels(ledger: Ledger) -> None:
    top = Ask("top", Certificate("r0", COST), after=("outer",))
    first = keep(ledger, reserve(ledger, "alice", INNER, OUTER, top))
    assert reserve(ledger, "alice", INNER, OUTER, top) == first
    ledger.reserve("bob", [INNER], AMPLE, AMPLE, "text")
    assert reserve(ledger, "bob", INNER, OUTER, top) == first


NESTED = "SELECT COUNT(*) FROM busy WHERE hour > (SELECT AVG(hour) FROM busy)"


def test_end_to_end(tmp_path: Path) -> None:
    with opened(write(tmp_path)) as shop:
        value = shop.value(NESTED)
        assert shop.value(NESTED) == value
        assert (len(shop.entries(Kind.DEBIT)), len(shop.entries(Kind.VIEW))) == (2, 0)
        assert shop.value(NESTED, "bob") == value
        assert len(shop.entries(Kind.VIEW)) == 2
    with opened(write(tmp_path)) as shop:
        assert shop.value(NESTED) == value


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(write(tmp_path)) as shop:
        yield shop


def test_an_inner_that_was_measured_alone(shop: Shop) -> None:
    shop.ask("SELECT AVG(hour) FROM busy", epsilon=None)
    shop.ask(NESTED)
    debits = len(shop.entries(Kind.DEBIT))
    assert shop.ask(NESTED).notices[-1].startswith("Replay")
    assert len(shop.entries(Kind.DEBIT)) == debits
