"""Budget windows: what is spent in one, and that no clock opens one early or twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ledger_cases import AMPLE, COST, DATASET, answer, debit, made, release
from ledger_paid import paid

from dpsql.dp.accounting import Limits
from dpsql.errors import Rejected
from dpsql.ledger import BudgetExhausted, Calendar, Kind, Ledger, open_ledger, verify_ledger
from dpsql.ledger import clock as clocks
from dpsql.ledger.clock import GRACE, SECOND, Reading
from dpsql.policy.model import Window
from dpsql.types import Cost

DAY = 86_400 * SECOND
MONTH = Calendar("month", "UTC")
DAILY = Calendar("day", "UTC")
START = int(datetime(2026, 1, 15, 12, tzinfo=UTC).timestamp()) * SECOND
ONE = Limits(None, COST.rho, 10**12)


@dataclass
class FakeClock:
    """The wall clock and the boot clock, moved by hand."""

    now: Reading

    def pass_(self, micros: int) -> None:
        """Time that really passes."""
        self.now = replace(self.now, wall=self.now.wall + micros, up=self.now.up + micros)

    def set_(self, micros: int) -> None:
        """Somebody moves the clock."""
        self.now = replace(self.now, wall=self.now.wall + micros)

    def reboot(self, boot: str) -> None:
        self.now = Reading(self.now.wall, boot, 60 * SECOND)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock(Reading(START, "boot", 100 * DAY))
    monkeypatch.setattr("dpsql.ledger.clock.Clock.__init__.__defaults__", (lambda: fake.now,))
    monkeypatch.setattr("dpsql.ledger.opening.reading", lambda: fake.now)
    return fake


@pytest.fixture
def url(clock: FakeClock, tmp_path: Path) -> str:
    return made(tmp_path)


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    ledger = open_ledger(url, DATASET)
    yield ledger
    ledger.close()


def asked(ledger: Ledger, key: str, calendar: Calendar | None = MONTH, limit: Limits = ONE) -> bool:
    """Whether one more statement fits alice's window."""
    try:
        ledger.reserve("alice", [paid(key, COST)], limit, AMPLE, "s", calendar=calendar)
    except BudgetExhausted:
        return False
    return True


@pytest.mark.parametrize(
    ("window", "zone", "time", "expected"),
    [
        ("day", "UTC", "2026-01-15T12:00+00:00", "2026-01-15 2026-01-15T00:00 2026-01-16T00:00"),
        ("day", "Europe/Rome", "2026-01-15T23:30+00:00", "2026-01-16 2026-01-15T23:00 2026-01-16T23:00"),
        ("day", "Europe/Rome", "2026-03-29T12:00+00:00", "2026-03-29 2026-03-28T23:00 2026-03-29T22:00"),
        ("week", "UTC", "2027-01-01T00:00+00:00", "2026-W53 2026-12-28T00:00 2027-01-04T00:00"),
        ("month", "UTC", "2026-12-31T23:59+00:00", "2026-12 2026-12-01T00:00 2027-01-01T00:00"),
        ("month", "Asia/Tokyo", "2026-12-31T15:00+00:00", "2027-01 2026-12-31T15:00 2027-01-31T15:00"),
        ("quarter", "UTC", "2026-11-05T00:00+00:00", "2026-Q4 2026-10-01T00:00 2027-01-01T00:00"),
        ("quarter", "UTC", "2026-03-31T00:00+00:00", "2026-Q1 2026-01-01T00:00 2026-04-01T00:00"),
        ("year", "UTC", "2028-02-29T00:00+00:00", "2028 2028-01-01T00:00 2029-01-01T00:00"),
    ],
)
def test_periods(window: Window, zone: str, time: str, expected: str) -> None:
    period = Calendar(window, zone).period(int(datetime.fromisoformat(time).timestamp()) * SECOND)
    start, end = (f"{datetime.fromtimestamp(at / SECOND, UTC):%Y-%m-%dT%H:%M}" for at in (period.start, period.end))
    assert f"{period.id} {start} {end}" == expected


def test_a_window_begins_again(ledger: Ledger, clock: FakeClock) -> None:
    assert asked(ledger, "january")
    assert not asked(ledger, "too much")
    clock.pass_(20 * DAY)
    assert ledger.spending("alice", MONTH).spent == Cost()
    assert asked(ledger, "february")
    assert not asked(ledger, "too much")
    assert [entry.window for entry in ledger.entries("alice")] == ["2026-01", "2026-02"]
    spending = ledger.spending("alice", MONTH)
    assert (spending.spent, spending.window) == (COST, "2026-02")
    assert datetime.fromtimestamp(spending.ends / SECOND, UTC) == datetime(2026, 3, 1, tzinfo=UTC)
    assert ledger.spent("alice").rho == ledger.dataset_spent().rho == 2 * COST.rho


def test_what_was_seen_stays_seen(ledger: Ledger, clock: FakeClock) -> None:
    answer(ledger, "alice", "key")
    clock.pass_(40 * DAY)
    none = Limits(None, 0, 0)
    assert ledger.reserve("alice", [paid("key", COST)], none, none, "s", calendar=MONTH) == (release("key"),)


def test_another_window_resets_nothing(ledger: Ledger, clock: FakeClock) -> None:
    """Whatever the policy makes of the window, what was spent in its time counts."""
    assert asked(ledger, "in January", None)
    clock.pass_(20 * DAY)
    assert asked(ledger, "in February", MONTH)
    for calendar, count in (("day", 1), ("week", 1), ("month", 1), ("quarter", 2), ("year", 2)):
        assert ledger.spending("alice", Calendar(calendar, "UTC")).spent.rho == count * COST.rho  # type: ignore[arg-type]
    assert ledger.spending("alice").spent.rho == 2 * COST.rho


@pytest.mark.parametrize("reopened", [False, True])
def test_the_clock_may_go_back(reopened: bool, ledger: Ledger, url: str, clock: FakeClock) -> None:
    assert asked(ledger, "one")
    for back in (DAY, 40 * DAY, 20_000 * DAY):
        clock.set_(-back)
        used = open_ledger(url, DATASET) if reopened else ledger
        assert not asked(used, f"back {back}")
        if reopened:
            used.close()
    times = [entry.at for entry in ledger.entries()]
    assert times == sorted(times)
    assert times[-1] >= START


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize("ahead", [17 * DAY, 3650 * DAY])
def test_the_clock_may_jump_ahead(ahead: int, reopened: bool, ledger: Ledger, url: str, clock: FakeClock) -> None:
    """While the machine runs, its boot clock knows better."""
    assert asked(ledger, "one")
    clock.set_(ahead)
    used = open_ledger(url, DATASET) if reopened else ledger
    assert not asked(used, "two")
    assert not asked(used, "three", DAILY)
    assert used.behind() == pytest.approx(ahead, rel=1e-3)
    clock.pass_(17 * DAY)
    assert asked(used, "february")
    if reopened:
        used.close()


def test_a_jump_is_not_believed_later_either(ledger: Ledger, clock: FakeClock) -> None:
    """Many small jumps, each with an entry: the ledger's time stays with the boot clock."""
    for number in range(200):
        debit(ledger, "bob", str(number))
        clock.set_(DAY)
        clock.pass_(60 * SECOND)
    assert ledger.entries()[-1].at - START <= 200 * 60 * SECOND * 1.002


def test_restarts_of_the_machine_borrow_days(url: str, clock: FakeClock) -> None:
    """Nobody knows how long it was off: a week is believed, and waited for when the clock is right again."""
    ledger = open_ledger(url, DATASET)
    assert asked(ledger, "one", DAILY)
    ledger.close()
    clock.set_(3650 * DAY)
    clock.reboot("another boot")
    ledger = open_ledger(url, DATASET)
    assert asked(ledger, "borrowed", DAILY)
    assert not asked(ledger, "more", DAILY)
    assert ledger.entries()[-1].at - START == GRACE
    clock.set_(-3650 * DAY)
    for _ in range(7):
        assert not asked(ledger, "not yet", DAILY)
        clock.pass_(DAY)
    clock.pass_(DAY)
    assert asked(ledger, "again", DAILY)
    ledger.close()


def test_a_short_outage_needs_no_word(url: str, clock: FakeClock) -> None:
    ledger = open_ledger(url, DATASET)
    assert asked(ledger, "one", DAILY)
    ledger.close()
    clock.set_(2 * DAY)
    clock.reboot("another boot")
    ledger = open_ledger(url, DATASET)
    assert ledger.behind() == 0
    assert asked(ledger, "two", DAILY)
    ledger.close()


def test_the_operators_word(url: str, clock: FakeClock) -> None:
    """After a long outage, the clock is believed when the operator says so; every process sees it."""
    ledger, other = open_ledger(url, DATASET), open_ledger(url, DATASET)
    assert asked(ledger, "one")
    with pytest.raises(Rejected, match="nothing to accept"):
        ledger.accept_clock()
    clock.set_(400 * DAY)
    assert not asked(other, "two")
    entry = ledger.accept_clock()
    assert (entry.kind, entry.at) == (Kind.CLOCK, clock.now.wall)
    assert ledger.behind() == other.behind() == 0
    assert asked(other, "three")
    ledger.close()
    other.close()
    verify_ledger(url, DATASET)


def test_a_boot_without_a_name(url: str, clock: FakeClock) -> None:
    """Where the system does not tell its boots apart, every opening is like a restart of the machine."""
    clock.reboot("")
    for number in range(3):
        ledger = open_ledger(url, DATASET)
        assert asked(ledger, str(number), DAILY)
        ledger.close()
        clock.pass_(DAY)


def test_time_really_passes() -> None:
    first, second = clocks.reading(), clocks.reading()
    assert first.boot == second.boot
    assert first.up <= second.up


def test_spending_is_what_was_spent_since(ledger: Ledger, clock: FakeClock) -> None:
    """Against a plain sum over the entries, with every window, over two months of random asks."""
    choose = random.Random(5)
    calendars = [Calendar(window, zone) for window in ("day", "week", "month") for zone in ("UTC", "Asia/Tokyo")]
    for number in range(60):
        debit(ledger, choose.choice(("alice", "bob")), str(number))
        clock.pass_(choose.randrange(2 * DAY))
        for calendar in calendars:
            start = calendar.period(clock.now.wall).start
            spent = sum(entry.cost.rho for entry in ledger.entries("alice") if entry.at >= start)
            assert ledger.spending("alice", calendar).spent.rho == spent
