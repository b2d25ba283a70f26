"""Group commit and the line of processes: nobody is told before it is durable, and nobody waits for ever."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from ledger_cases import AMPLE, COST, DATASET, answer, connection_of, debit, made, release
from ledger_paid import paid

from dpsql.dp.accounting import Limits
from dpsql.errors import Failed, Rejected
from dpsql.ledger import BudgetExhausted, LedgerError, open_ledger, verify_ledger
from dpsql.ledger.books import Books
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.group import Group, Waiting
from dpsql.ledger.line import Line
from dpsql.ledger.places import Places
from dpsql.ledger.rows import Rows
from dpsql.types import Reservation

ROWS, BOOKS = Rows(lambda *_: None), Books()  # type: ignore[arg-type]


def threads(count: int, work: Callable[[int], object]) -> list[object]:
    """What the work returns or raises in each of so many threads at once."""
    results: list[object] = [None] * count
    ready = threading.Barrier(count)

    def run(number: int) -> None:
        ready.wait()
        try:
            results[number] = work(number)
        except Exception as error:
            results[number] = error

    workers = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    return results


class Commits:
    """A transaction that takes its time, and may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        self.sizes: list[int] = []
        self.durable = 0
        self._fails = fails

    def __call__(self, waiting: Waiting) -> None:
        turns = waiting()
        for turn in turns:
            turn.take(ROWS, BOOKS)
        time.sleep(0.05)
        if self._fails:
            raise OSError("no room")
        self.sizes.append(len(turns))
        self.durable += len(turns)


def test_many_writes_are_few_transactions() -> None:
    commits = Commits()
    group = Group(commits)
    assert threads(20, lambda number: group.write(lambda _rows, _books: number)) == list(range(20))
    assert sum(commits.sizes) == 20
    assert len(commits.sizes) <= 4


def test_told_only_when_durable() -> None:
    commits = Commits()
    group = Group(commits)

    def write(_: int) -> bool:
        before = commits.durable
        group.write(lambda _rows, _books: None)
        return commits.durable > before

    assert threads(10, write) == [True] * 10


def test_a_refusal_ends_alone() -> None:
    group = Group(Commits())

    def work(number: int) -> int:
        if number % 2:
            raise Rejected(f"no {number}")
        return number

    results = threads(10, lambda number: group.write(lambda _rows, _books: work(number)))
    assert results[::2] == [0, 2, 4, 6, 8]
    assert [str(error) for error in results[1::2]] == [f"no {number}" for number in (1, 3, 5, 7, 9)]


@pytest.mark.parametrize("doubt", [False, True])
def test_a_transaction_that_fails_fails_for_all(doubt: bool) -> None:
    """Also for those that were refused: what they were refused for may be gone."""
    group = Group(Commits(fails=not doubt))

    def work(number: int) -> int:
        if number == 3:
            raise LedgerError("altered") if doubt else Rejected("no")
        return number

    results = threads(8, lambda number: group.write(lambda _rows, _books: work(number)))
    failed = [result for result in results if isinstance(result, OSError | LedgerError | Failed)]
    assert len(failed) == 8 if not doubt else failed
    assert len({error.incident for error in failed if isinstance(error, Failed)}) == sum(
        isinstance(error, Failed) for error in failed
    )


def test_the_next_group_goes_on_after_a_failure() -> None:
    group = Group(Commits(fails=True))
    with pytest.raises(OSError, match="no room"):
        group.write(lambda _rows, _books: 1)
    group._commit = Commits()
    assert group.write(lambda _rows, _books: 1) == 1


def test_one_budget_and_many_threads(tmp_path: Path) -> None:
    """Each is decided on what those before it in the same transaction have debited."""
    url = made(tmp_path)
    ledger = open_ledger(url, DATASET)
    tight = Limits(None, 7 * COST.rho, 10**12)

    def ask(number: int) -> object:
        return ledger.reserve("alice", [paid(f"{number}", COST)], tight, AMPLE, "s")[0]

    results = threads(24, ask)
    reservations = [result for result in results if isinstance(result, Reservation)]
    assert len(reservations) == len({reservation.id for reservation in reservations}) == 7
    assert sum(isinstance(result, BudgetExhausted) for result in results) == 17
    assert ledger.spent("alice").rho == 7 * COST.rho

    def keep(number: int) -> None:
        ledger.record(reservations[number], release(reservations[number].key))

    threads(7, keep)
    ledger.close()
    report = verify_ledger(url, DATASET)
    assert (report.debits, report.releases) == (7, 7)


def test_no_grant_where_the_commit_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fails at the commit: all are told that it failed, and nothing counts."""
    ledger = open_ledger(made(tmp_path), DATASET)
    debit(ledger, "alice", "before")

    def failing(_: Rows) -> None:
        raise sqlite3.OperationalError("no room")

    monkeypatch.setattr(Rows, "commit", failing)
    results = threads(6, lambda number: debit(ledger, "alice", f"{number}"))
    assert all(isinstance(result, Failed) for result in results)
    monkeypatch.undo()
    ledger.close()
    assert verify_ledger(f"sqlite:{tmp_path}/flights.ledger", DATASET).debits == 1


def test_debited_but_not_told_where_the_second_place_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the commit: the debits stand, and nobody gets a reservation for them."""
    ledger = open_ledger(made(tmp_path), DATASET)

    def failing(*_: object) -> None:
        raise LedgerError("the anchor is gone")

    monkeypatch.setattr(Places, "advance", failing)
    results = threads(6, lambda number: debit(ledger, "alice", f"{number}"))
    assert all(isinstance(result, Failed) for result in results)
    monkeypatch.undo()
    ledger.close()
    assert verify_ledger(f"sqlite:{tmp_path}/flights.ledger", DATASET).debits >= 1


def test_replays_go_on_while_another_process_writes(tmp_path: Path) -> None:
    """What was paid for is read while a writer waits for the file's lock."""
    ledger = open_ledger(made(tmp_path), DATASET)
    answer(ledger, "alice", "key")
    other = sqlite3.connect(tmp_path / "flights.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer = threading.Thread(target=debit, args=(ledger, "alice", "waits"))
    writer.start()
    time.sleep(0.1)
    assert answer(ledger, "alice", "key") == release("key")
    assert writer.is_alive()
    other.execute("ROLLBACK")
    writer.join(10)
    assert ledger.spent("alice").rho == 2 * COST.rho
    other.close()
    ledger.close()


def test_kept_locked_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a program, or by a process that stands first in line and does nothing: a clear word, and on it goes later."""
    monkeypatch.setattr("dpsql.ledger.sqlite.PATIENCE", 0.2)
    ledger = open_ledger(made(tmp_path), DATASET)
    other = sqlite3.connect(tmp_path / "flights.ledger", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Failed) as caught:
        debit(ledger, "alice", "one")
    assert "another program keeps it locked" in caught.value.cause
    other.close()
    line = Line(tmp_path / "flights.ledger-lock")
    with first_in(line):
        for _ in range(2):
            with pytest.raises(Failed) as caught:
                debit(ledger, "alice", "two")
            assert "other programs kept it locked for" in caught.value.cause
    debit(ledger, "alice", "three")
    assert ledger.spent("alice") == COST
    assert isinstance(ledger, DurableLedger)
    ledger.close()
    line.close()


@contextmanager
def first_in(line: Line) -> Iterator[None]:
    """First in line while the block runs."""
    there, done = threading.Event(), threading.Event()

    def stay() -> None:
        there.set()
        done.wait(30)

    thread = threading.Thread(target=line.run, args=(stay, 5))
    thread.start()
    assert there.wait(5)
    yield
    done.set()
    thread.join(10)


def test_first_come_first_served(tmp_path: Path) -> None:
    """Three in line, each with a file of its own as three processes would have."""
    first, second, third = (Line(tmp_path / "lock") for _ in range(3))
    order: list[str] = []

    def stand(line: Line, name: str) -> None:
        line.run(lambda: order.append(name), 10)

    with first_in(first):
        waiting = [
            threading.Thread(target=stand, args=(second, "second")),
            threading.Thread(target=stand, args=(third, "third")),
        ]
        for thread in waiting:
            thread.start()
            time.sleep(0.1)
        assert order == []
    for thread in waiting:
        thread.join(10)
    assert sorted(order) == ["second", "third"]
    for line in (first, second, third):
        line.close()


def test_one_at_a_time(tmp_path: Path) -> None:
    """Whoever is in line, in whatever thread: the work of one ends before that of another begins."""
    lines = [Line(tmp_path / "lock") for _ in range(4)]
    inside: list[int] = []
    overlaps: list[int] = []

    def work() -> None:
        inside.append(1)
        time.sleep(0.001)
        overlaps.append(len(inside))
        inside.pop()

    def stand(number: int) -> None:
        for _ in range(25):
            lines[number].run(work, 10)

    threads(4, stand)
    assert overlaps == [1] * 100
    for line in lines:
        line.close()


@pytest.mark.parametrize("waits", [False, True])
def test_what_the_work_raises(waits: bool, tmp_path: Path) -> None:
    """In whichever thread it was done; the next ones have their turn."""
    first, second = (Line(tmp_path / "lock") for _ in range(2))

    def fail() -> None:
        raise Rejected("no")

    with ExitStack() as stack:
        if waits:
            other = stack.enter_context(first_in(first))
            assert other is None
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(raised(second, fail)))
        thread.start()
        time.sleep(0.1)
        assert bool(found) != waits
    thread.join(10)
    assert [str(error) for error in found] == ["no"]
    done: list[int] = []
    for line in (second, first, second):
        line.run(lambda: done.append(1), 2)
    assert done == [1, 1, 1]
    for line in (first, second):
        line.close()


def raised(line: Line, work: Callable[[], None]) -> Exception | None:
    try:
        line.run(work, 10)
    except Exception as error:
        return error
    return None


def test_whoever_gives_up_holds_nobody_up(tmp_path: Path) -> None:
    """A place in line that comes too late is given on at once, though its process writes nothing more."""
    first, idle, third = (Line(tmp_path / "lock") for _ in range(3))
    done: list[str] = []
    with first_in(first), pytest.raises(TimeoutError):
        idle.run(lambda: done.append("too late"), 0.05)
    time.sleep(0.3)  # the idle one's turn has come meanwhile
    for line in (third, first, third):
        line.run(lambda: done.append("next"), 2)
    with first_in(idle), pytest.raises(TimeoutError):
        third.run(lambda: done.append("too late"), 0.05)
    assert done == ["next"] * 3
    for line in (first, idle, third):
        line.close()


def test_whoever_comes_back_takes_the_place_that_was_given_up(tmp_path: Path) -> None:
    """The thread is in line already; it does what is asked by then, and only that."""
    first, second = (Line(tmp_path / "lock") for _ in range(2))
    done: list[int] = []
    with first_in(first):
        for number in range(2):
            with pytest.raises(TimeoutError):
                second.run(lambda number=number: done.append(number), 0.05)  # type: ignore[misc]
        thread = threading.Thread(target=second.run, args=(lambda: done.append(2), 10))
        thread.start()
        time.sleep(0.05)
    thread.join(10)
    assert done == [2]
    first.run(lambda: done.append(3), 2)
    assert done == [2, 3]
    for line in (first, second):
        line.close()


def test_without_a_line(tmp_path: Path) -> None:
    """Where the file for the line cannot be made, the store's own lock still does."""
    url = made(tmp_path)
    (tmp_path / "flights.ledger-lock").mkdir()
    ledger = open_ledger(url, DATASET)
    debit(ledger, "alice", "key")
    ledger.close()
    assert os.path.isdir(tmp_path / "flights.ledger-lock")


def test_settings_of_an_open_ledger(tmp_path: Path) -> None:
    """One sync a commit, and never none."""
    ledger = open_ledger(made(tmp_path), DATASET)
    connection = connection_of(ledger)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    ledger.close()
