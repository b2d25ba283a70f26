"""Equal first asks at the same time are measured once; a failed or dead first one holds nobody up for long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from replay_cases import Shop, opened, write

from dpsql.certify import Certificate
from dpsql.dp.accounting import Limits
from dpsql.errors import Failed, Rejected
from dpsql.ledger import Ask, InFlight, Kind, Ledger, init_ledger, open_ledger
from dpsql.session.ports import CancelToken
from dpsql.types import Cost, Release, Reservation, Settings

COST = Cost(epsilon=10**15, rho=10**14)
AMPLE = Limits(epsilon=None, rho=10**20, delta=10**12)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(write(tmp_path)) as shop:
        yield shop


def slow(shop: Shop, monkeypatch: pytest.MonkeyPatch, seconds: float, then: Callable[[], None] = lambda: None) -> None:
    """A backend that takes its time."""
    fetch = shop.engine.backend.fetch

    def slowly(*arguments: Any, **named: Any) -> object:
        time.sleep(seconds)
        then()
        return fetch(*arguments, **named)

    monkeypatch.setattr(shop.engine.backend, "fetch", slowly)


def test_asked_by_all_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(shop, monkeypatch, 0.5)
    users = ("alice", "bob", "carol", "alice", "bob")
    with ThreadPoolExecutor(len(users)) as pool:
        values = list(pool.map(lambda user: shop.value("SELECT COUNT(*) FROM visits", user), users))
    assert len(set(values)) == 1
    assert len(shop.entries(Kind.DEBIT)) == 1
    assert len(shop.entries(Kind.VIEW)) == 2
    ledger = shop.engine.ledger
    assert ledger.spent("alice") == ledger.spent("bob") == ledger.spent("carol") == ledger.dataset_spent()


def test_the_first_fails(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second measures for a debit of its own as soon as the first one has failed."""
    failing = iter([True])

    def then() -> None:
        if next(failing, False):
            raise RuntimeError("lost")

    slow(shop, monkeypatch, 0.5, then)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shop.value, "SELECT COUNT(*) FROM visits", "alice")
        time.sleep(0.2)
        start = time.monotonic()
        second = pool.submit(shop.value, "SELECT COUNT(*) FROM visits", "bob")
        with pytest.raises((Failed, RuntimeError)):
            first.result()
        assert isinstance(second.result(), int)
    assert time.monotonic() - start < 5
    assert [entry.user for entry in shop.entries(Kind.DEBIT)] == ["alice", "bob"]
    assert not shop.entries(Kind.VIEW)


def test_no_longer_than_the_deadline(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    slow(shop, monkeypatch, 2.0)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(shop.value, "SELECT COUNT(*) FROM visits", "alice")
        time.sleep(0.4)
        with pytest.raises(Rejected, match="still being made") as caught:
            shop.ask("SELECT COUNT(*) FROM visits", "bob", statement_timeout=0.5)
        assert caught.value.sqlstate == "57014"
        first.result()
    assert shop.engine.ledger.spent("bob") == Cost()


class CancelledAtOnce(CancelToken):
    """A client that has given up by the time its debit is durable."""

    def check(self) -> None:
        raise Rejected("canceling statement due to user request", sqlstate="57014")


def test_cancelled_between_debit_and_measurement(shop: Shop) -> None:
    """Its debit stays, and nobody waits for what will never be made."""
    text = "SELECT COUNT(*) FROM visits"
    with pytest.raises(Rejected, match="canceling"):
        shop.engine.answer("alice", text, 0, Settings(), (), CancelledAtOnce())
    assert len(shop.entries(Kind.DEBIT)) == 1
    assert isinstance(shop.value(text, "bob", statement_timeout=5), int)
    assert [entry.user for entry in shop.entries(Kind.DEBIT)] == ["alice", "bob"]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Ledger, Ledger]]:
    """One ledger as two processes have it open."""
    url = f"sqlite:{tmp_path / 'shop.ledger'}"
    init_ledger(url, "shop")
    ledgers = open_ledger(url, "shop"), open_ledger(url, "shop")
    yield ledgers
    for ledger in ledgers:
        ledger.close()


def reserve(ledger: Ledger, user: str, *, patient: bool = True) -> Reservation | Release:
    (grant,) = ledger.reserve(user, [Ask("key", Certificate("r0", COST))], AMPLE, AMPLE, "text", patient=patient)
    assert isinstance(grant, Reservation | Release)
    return grant


def test_across_processes(pair: tuple[Ledger, Ledger]) -> None:
    first, second = pair
    reservation = reserve(first, "alice")
    assert isinstance(reservation, Reservation)
    with pytest.raises(InFlight):
        reserve(second, "bob")
    assert isinstance(reserve(second, "carol", patient=False), Reservation)
    first.record(reservation, Release("key", ((),), ((1,),)))
    assert isinstance(reserve(second, "bob"), Release)
    assert second.spent("bob") == COST


def test_a_dead_process_is_waited_for_only_while_its_debit_is_young(
    pair: tuple[Ledger, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    reserve(first, "alice")
    with pytest.raises(InFlight):
        reserve(second, "bob")
    monkeypatch.setattr("dpsql.ledger.flights.YOUNG", 0)
    assert isinstance(reserve(second, "bob"), Reservation)


def test_waiters_are_woken(pair: tuple[Ledger, Ledger]) -> None:
    ledger, _ = pair
    reservation = reserve(ledger, "alice")
    assert isinstance(reservation, Reservation)
    threading.Timer(0.2, ledger.give_up, (reservation,)).start()
    start = time.monotonic()
    ledger.wait("key", 10)
    assert 0.1 < time.monotonic() - start < 5
    assert isinstance(reserve(ledger, "bob"), Reservation)


@pytest.mark.parametrize(
    "pair",
    [
        "(SELECT VAR_POP(age) FROM people), (SELECT STDDEV_POP(age) FROM people)",
        "(SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM people), "
        "(SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) FROM people)",
    ],
)
def test_one_measurement_read_twice(shop: Shop, pair: str) -> None:
    """Two releases of one statement that measure the same are one debit and one draw of noise."""
    first, second = shop.ask(f"SELECT {pair}").relation.rows[0]
    assert len(shop.entries(Kind.DEBIT)) == len(shop.entries(Kind.RECORD)) == 1
    assert shop.ask(f"SELECT {pair}").relation.rows[0] == (first, second)
    assert len(shop.entries(Kind.DEBIT)) == 1
