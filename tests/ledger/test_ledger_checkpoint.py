"""Checkpoints: a shortcut for opening that proves as much, or is not taken."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_bench import grown, seconds_of_checks
from ledger_cases import COST, DATASET, answer, debit, edit, made

from dpsql.ledger import Entry, Kind, LedgerError, audit, open_ledger, verify_ledger
from dpsql.ledger.books import Books
from dpsql.ledger.rows import Rows

NAME = "flights.ledger"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger with a checkpoint every ten entries: 60 entries of answers, some viewed by another."""
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 10)
    url = made(tmp_path)
    ledger = open_ledger(url, DATASET)
    for number in range(25):
        answer(ledger, "alice", f"key {number}")
        if number % 5 == 0:
            answer(ledger, "bob", f"key {number // 2}")
    ledger.close()
    return url


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How the ledger was read, when it was opened."""
    done: list[str] = []
    whole = audit.reading

    def spy(rows: Rows, books: Books) -> Iterator[Entry]:
        done.append("all")
        return whole(rows, books)

    monkeypatch.setattr(audit, "reading", spy)
    return done


def test_opened_from_the_last_checkpoint(url: str, read: list[str]) -> None:
    ledger = open_ledger(url, DATASET)
    assert read == []
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds.count(Kind.CHECKPOINT) == 5
    assert ledger.spent("alice").rho == 25 * COST.rho
    assert ledger.spent("bob").rho == 5 * COST.rho
    assert ledger.dataset_spent().rho == 25 * COST.rho
    answer(ledger, "bob", "key 0")
    answer(ledger, "carol", "key 3")  # kept from before the checkpoint
    answer(ledger, "carol", "new")
    ledger.close()
    report = verify_ledger(url, DATASET)
    assert read == ["all"]
    assert (report.debits, report.releases) == (26, 26)
    open_ledger(url, DATASET).close()
    assert read == ["all"]


def test_books_from_a_checkpoint_are_those_of_all_entries(url: str) -> None:
    connection = sqlite3.connect(url.removeprefix("sqlite:"))
    rows = Rows(connection.execute)
    short, whole = Books(), Books()
    audit.read_on(rows, short)
    for _ in audit.reading(rows, whole):
        pass
    assert short == whole
    connection.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE checkpoint SET body = CAST(replace(CAST(body AS TEXT), '25', '26') AS BLOB)",
        "UPDATE checkpoint SET body = x'00'",
        "UPDATE checkpoint SET entry = entry + 1",
        "UPDATE checkpoint SET entry = 4",
        "UPDATE checkpoint SET entry = 1000",
        "DELETE FROM checkpoint",
    ],
)
def test_a_lost_or_altered_copy_is_not_used(change: str, url: str, read: list[str]) -> None:
    edit(url, change)
    ledger = open_ledger(url, DATASET)
    assert read == ["all"]
    assert ledger.dataset_spent().rho == 25 * COST.rho
    ledger.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET rho = '1' WHERE id = (SELECT max(id) - 1 FROM entry)",
        "UPDATE entry SET dataset_rho = '1' WHERE kind = 'checkpoint'",
        "UPDATE entry SET content = 'x' WHERE kind = 'checkpoint'",
        "DELETE FROM entry WHERE id = (SELECT max(id) FROM entry)",
        "DELETE FROM entry WHERE id = 1",
        "DELETE FROM release WHERE reservation = 2",
        "UPDATE release SET body = x'00' WHERE reservation = (SELECT max(reservation) FROM release)",
        "INSERT INTO release VALUES (999, 'key 0', x'00')",
    ],
)
def test_what_opening_still_finds(change: str, url: str) -> None:
    edit(url, change)
    with pytest.raises(LedgerError):
        open_ledger(url, DATASET)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entry SET rho = '1' WHERE id = 2",
        "UPDATE entry SET user = 'mallory' WHERE id = 4",
        "DELETE FROM entry WHERE id = 5",
        "UPDATE release SET body = x'00' WHERE reservation = 2",
    ],
)
def test_what_verification_finds(change: str, url: str) -> None:
    """An old entry altered: not in the totals, which the checkpoint proves; found by `ledger verify`."""
    edit(url, change)
    ledger = open_ledger(url, DATASET)
    assert ledger.dataset_spent().rho == 25 * COST.rho
    ledger.close()
    with pytest.raises(LedgerError):
        verify_ledger(url, DATASET)


def test_a_wrong_checkpoint_cannot_enter_the_chain(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that says what is not so is refused, at once and for ever."""
    careful, careless = open_ledger(url, DATASET), open_ledger(url, DATASET)
    monkeypatch.setattr("dpsql.ledger.books.to_bytes", lambda _: b"{}")
    for number in range(10):
        debit(careless, "alice", f"more {number}")
    careless.close()
    monkeypatch.undo()
    with pytest.raises(Exception, match="incident"):
        careful.dataset_spent()
    careful.close()
    with pytest.raises(LedgerError, match="wrong checkpoint"):
        verify_ledger(url, DATASET)


def test_catching_up_is_checked_across_batches(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.rows.BATCH", 3)
    verify_ledger(url, DATASET)
    edit(url, "DELETE FROM entry WHERE id = 7")
    with pytest.raises(LedgerError):
        verify_ledger(url, DATASET)


@pytest.mark.slow
def test_a_million_entries(tmp_path: Path) -> None:
    url = grown(tmp_path, 1_000_000)
    start = time.perf_counter()
    ledger = open_ledger(url, DATASET)
    opened = time.perf_counter() - start
    checks = seconds_of_checks(ledger)
    ledger.close()
    assert opened < 3  # about a second on a machine that does nothing else
    assert checks[len(checks) // 2] < 0.005
