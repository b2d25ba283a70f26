"""Who pays what: debits, first views, free repeats, refusals, all or nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from ledger_cases import AMPLE, COST, DATASET, answer, debit, made, made_in_postgres, release
from ledger_paid import paid

from dpsql.dp.accounting import Limits, limits
from dpsql.errors import BUDGET_EXHAUSTED, Failed
from dpsql.ledger import BudgetExhausted, Kind, Ledger, Source, account_of, open_ledger
from dpsql.types import Cost, Release, Reservation

CHEAPER = Cost(COST.epsilon, COST.rho - 1, COST.delta)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new ledger in each store: what is promised is promised by both."""
    if request.param == "postgres":
        return made_in_postgres(request.getfixturevalue("postgres_uri"))
    return made(tmp_path)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    ledger = open_ledger(url, DATASET)
    yield ledger
    ledger.close()


def rho(times: int) -> Limits:
    return Limits(epsilon=None, rho=times * COST.rho, delta=10**12)


def test_a_repeat_is_free(ledger: Ledger) -> None:
    assert answer(ledger, "alice", "key") == release("key")
    head = ledger.head()
    assert ledger.reserve("alice", [paid("key", COST)], rho(1), rho(1), "again") == (release("key"),)
    assert ledger.reserve("alice", [paid("key", COST)], rho(0), rho(0), "budget shrunk") == (release("key"),)
    assert ledger.spent("alice") == ledger.dataset_spent() == COST
    assert ledger.head() == head


def test_a_first_view_debits_the_viewer_alone(ledger: Ledger) -> None:
    answer(ledger, "alice", "key")
    assert ledger.reserve("bob", [paid("key", COST)], rho(1), rho(1), "s") == (release("key"),)
    assert (ledger.spent("bob"), ledger.dataset_spent()) == (COST, COST)
    assert ledger.reserve("bob", [paid("key", COST)], rho(1), rho(1), "s") == (release("key"),)
    assert ledger.spent("bob") == COST
    with pytest.raises(BudgetExhausted) as caught:
        ledger.reserve("carol", [paid("key", COST)], rho(0), rho(9), "s")
    assert caught.value.whose == "user"


def test_a_first_view_costs_what_was_recorded(ledger: Ledger) -> None:
    answer(ledger, "alice", "key", CHEAPER)
    answer(ledger, "bob", "key", COST)
    assert ledger.spent("bob") == CHEAPER


@pytest.mark.parametrize(
    "cheaper",
    [Cost(COST.epsilon - 1, COST.rho, COST.delta), CHEAPER, Cost(COST.epsilon, COST.rho, COST.delta - 1)],
)
def test_never_dearer_than_asked(cheaper: Cost, ledger: Ledger) -> None:
    """A kept release that cost more than the ask, in any component, is not sold: it is made anew."""
    answer(ledger, "alice", "key", COST)
    answer(ledger, "bob", "key", cheaper)
    assert ledger.spent("bob") == cheaper
    assert ledger.dataset_spent() == COST + cheaper
    answer(ledger, "carol", "key", COST)  # the newest of two
    assert ledger.spent("carol") == cheaper
    answer(ledger, "alice", "key", cheaper)
    assert ledger.spent("alice") == COST


def test_shared_replay(ledger: Ledger) -> None:
    answer(ledger, "alice", "key", COST)
    assert ledger.reserve("bob", [paid("key", CHEAPER)], rho(0), rho(0), "s", shared=True) == (release("key"),)
    assert ledger.spent("bob") == Cost()


def test_one_debit_for_equal_keys(ledger: Ledger) -> None:
    first, second, other = ledger.reserve(
        "alice", [paid("key", COST), paid("key", COST), paid("other", COST)], rho(2), rho(2), "s"
    )
    assert first is second
    assert isinstance(first, Reservation)
    assert isinstance(other, Reservation)
    assert ledger.dataset_spent().rho == 2 * COST.rho
    ledger.record(first, release("key"))
    assert ledger.reserve("bob", [paid("key", COST)] * 3, rho(1), rho(9), "s") == (release("key"),) * 3
    assert ledger.spent("bob") == COST


def test_all_or_nothing(ledger: Ledger) -> None:
    answer(ledger, "alice", "kept")
    head = ledger.head()
    asks = [paid("kept", COST), paid("one", COST), paid("two", COST)]
    for user_limits, dataset_limits, whose in ((rho(2), rho(9), "user"), (rho(9), rho(2), "dataset")):
        with pytest.raises(BudgetExhausted) as caught:
            ledger.reserve("bob", asks, user_limits, dataset_limits, "s")
        assert caught.value.whose == whose
    assert ledger.head() == head
    kept, one, two = ledger.reserve("bob", asks, rho(3), rho(3), "s")
    assert (type(kept), type(one), type(two)) == (Release, Reservation, Reservation)


def test_the_refusal_tells_the_amounts(ledger: Ledger) -> None:
    debit(ledger, "alice", "key")
    with pytest.raises(BudgetExhausted) as caught:
        ledger.reserve("alice", [paid("other", COST)], Limits(None, 150 * 10**12, 20), AMPLE, "s")
    assert caught.value.sqlstate == BUDGET_EXHAUSTED
    assert caught.value.message == (
        "Your budget does not allow this statement: rho 0.1 asked, 0.1 of 0.15 spent, 0.05 left; "
        "delta 5e-15 asked, 5e-15 of 2e-14 spent, 1.5e-14 left"
    )


def test_ten_times_a_tenth_fit_in_one(ledger: Ledger) -> None:
    most = limits("pure", Decimal(1), Decimal("1e-6"), Decimal("0.5"))
    tenth, least = Cost(10**14, 1, 0), Cost(10**6, 1, 0)
    for number in range(10):
        ledger.reserve("alice", [paid(str(number), tenth)], most, most, "s")
    with pytest.raises(BudgetExhausted):
        ledger.reserve("alice", [paid("least", least)], most, most, "s")


def test_delta_is_a_limit_of_its_own(ledger: Ledger) -> None:
    tight = Limits(None, 10**20, COST.delta)
    ledger.reserve("alice", [paid("one", COST)], tight, tight, "s")
    with pytest.raises(BudgetExhausted, match="delta"):
        ledger.reserve("alice", [paid("two", COST)], tight, tight, "s")


def test_the_dataset_binds_colluders(ledger: Ledger) -> None:
    for user in ("alice", "bob", "carol"):
        ledger.reserve(user, [paid(user, COST)], rho(1), rho(3), "s")
    with pytest.raises(BudgetExhausted, match="dataset"):
        ledger.reserve("dave", [paid("dave", COST)], rho(1), rho(3), "s")


def test_a_role_may_share_a_budget(ledger: Ledger) -> None:
    analysts = account_of("bob", "analyst", shared=True)
    (reservation,) = ledger.reserve("bob", [paid("bob's", COST)], rho(1), rho(9), "s", account=analysts)
    assert isinstance(reservation, Reservation)
    ledger.record(reservation, release("bob's"))
    assert ledger.reserve("dan", [paid("bob's", COST)], rho(1), rho(9), "s", account=analysts) == (release("bob's"),)
    with pytest.raises(BudgetExhausted):
        ledger.reserve("carol", [paid("carol's", COST)], rho(1), rho(9), "s", account=analysts)
    assert ledger.spent("bob") == Cost()
    assert account_of("bob", "analyst", shared=False) == "bob"


def test_amounts_beyond_64_bits(ledger: Ledger) -> None:
    huge = Cost(10**25, 10**25 + 1, 0)
    for key in ("a", "b"):
        ledger.reserve("alice", [paid(key, huge)], Limits(None, 10**26, None), Limits(None, 10**26, None), "s")
    assert ledger.spent("alice") == Cost(2 * 10**25, 2 * 10**25 + 2, 0)


@pytest.mark.parametrize(
    "cost",
    [Cost(), Cost(epsilon=1), Cost(delta=1), Cost(1, -1, 0), Cost(1, 1, -1), Cost(1, 1.0, 0)],  # type: ignore[arg-type]
)
def test_no_cost_no_reservation(cost: Cost, ledger: Ledger) -> None:
    with pytest.raises(Failed):
        ledger.reserve("alice", [paid("key", cost)], AMPLE, AMPLE, "s")
    assert ledger.head().count == 1


@pytest.mark.parametrize(
    ("user", "dataset"),
    [(Limits(1, None, 1), AMPLE), (AMPLE, Limits(None, None, 1)), (Limits(None, None, None), Limits(None, None, None))],
)
def test_no_gate_no_reservation(user: Limits, dataset: Limits, ledger: Ledger) -> None:
    with pytest.raises(Failed):
        ledger.reserve("alice", [paid("key", COST)], user, dataset, "s")


def test_one_key_with_two_costs_is_a_fault(ledger: Ledger) -> None:
    with pytest.raises(Failed):
        ledger.reserve("alice", [paid("key", COST), paid("key", CHEAPER)], AMPLE, AMPLE, "s")


def test_a_ledger_gated_by_rho_cannot_go_on_with_epsilons(ledger: Ledger) -> None:
    """A Gaussian has no epsilon, so the sum of epsilons would be too small."""
    debit(ledger, "alice", "gaussian", Cost(0, 10**14, 0))
    pure = Limits(10**18, None, 10**9)
    with pytest.raises(Failed) as caught:
        ledger.reserve("alice", [paid("key", COST)], pure, pure, "s")
    assert "accounting: pure cannot continue" in caught.value.cause


def test_pure_may_become_zcdp(ledger: Ledger) -> None:
    pure = Limits(10**18, None, 10**9)
    ledger.reserve("alice", [paid("key", COST)], pure, pure, "s")
    debit(ledger, "alice", "other")
    assert ledger.spent("alice").rho == 2 * COST.rho


def test_a_reservation_is_recorded_once(ledger: Ledger) -> None:
    reservation, other = debit(ledger, "alice", "key"), debit(ledger, "alice", "other")
    forged = Reservation(reservation.id, "alice", "other", COST)
    with pytest.raises(Failed):
        ledger.record(forged, release("other"))
    with pytest.raises(Failed):
        ledger.record(reservation, release("key"))  # lost with the attempt
    with pytest.raises(Failed):
        ledger.record(other, release("key"))
    third = debit(ledger, "alice", "third")
    ledger.record(third, release("third"))
    with pytest.raises(Failed):
        ledger.record(third, release("third"))
    assert [entry.kind for entry in ledger.entries()] == [Kind.OPEN, Kind.DEBIT, Kind.DEBIT, Kind.DEBIT, Kind.RECORD]


def test_not_recorded_by_another_ledger(ledger: Ledger, url: str) -> None:
    """A reservation ends with the process that got it."""
    reservation = debit(ledger, "alice", "key")
    again = open_ledger(url, DATASET)
    with pytest.raises(Failed):
        again.record(reservation, release("key"))
    again.close()


def test_a_release_that_cannot_be_stored_exactly(ledger: Ledger) -> None:
    with pytest.raises(TypeError):
        ledger.record(debit(ledger, "alice", "key"), Release("key", ((1,),), ((True,),)))


def test_preview_writes_nothing_and_foresees(ledger: Ledger) -> None:
    answer(ledger, "alice", "seen")
    answer(ledger, "bob", "unseen", CHEAPER)
    head = ledger.head()
    asks = [paid("seen", COST), paid("unseen", COST), paid("fresh", COST), paid("fresh", COST)]
    preview = ledger.preview("alice", asks, rho(9), rho(9))
    assert preview.sources == (Source.FREE, Source.VIEW, Source.FRESH, Source.FRESH)
    assert (preview.user, preview.dataset, preview.refusal) == (CHEAPER + COST, COST, None)
    refused = ledger.preview("alice", asks, rho(2), rho(9)).refusal
    assert refused is not None
    assert refused.whose == "user"
    assert ledger.head() == head

    before = ledger.spent("alice"), ledger.dataset_spent()
    ledger.reserve("alice", asks, rho(9), rho(9), "s")
    assert (ledger.spent("alice"), ledger.dataset_spent()) == (before[0] + preview.user, before[1] + preview.dataset)


def test_another_process_is_seen_at_once(ledger: Ledger, url: str) -> None:
    other = open_ledger(url, DATASET)
    answer(other, "alice", "key")
    assert ledger.reserve("alice", [paid("key", COST)], rho(1), rho(1), "s") == (release("key"),)
    with pytest.raises(BudgetExhausted):
        ledger.reserve("alice", [paid("other", COST)], rho(1), rho(9), "s")
    other.close()
    assert ledger.dataset_spent() == COST


def test_entries(ledger: Ledger) -> None:
    for user in ("alice", "bob", "alice"):
        answer(ledger, user, f"key of {user}")
    assert [entry.kind for entry in ledger.entries("bob")] == [Kind.DEBIT, Kind.RECORD]
    assert [entry.id for entry in ledger.entries(after=2, limit=2)] == [3, 4]
    assert ledger.entries()[1].statement == "statement key of alice"


def test_closed(ledger: Ledger) -> None:
    ledger.close()
    with pytest.raises(Failed):
        ledger.reserve("alice", [paid("key", COST)], AMPLE, AMPLE, "s")
    ledger.close()


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    """Half of the threads make releases, half read them: every answer is the one that was recorded."""
    wrong: list[object] = []

    def work(user: str) -> None:
        for number in range(10):
            if answer(ledger, user, f"key {number}") != release(f"key {number}"):
                wrong.append(user)

    threads = [threading.Thread(target=work, args=(f"user {number}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert {spent.rho for _, spent in ledger.accounts()} == {10 * COST.rho}
