"""The log is folded back only while nobody can begin it anew, and by nobody but the one who writes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ledger_cases import AMPLE, COST, DATASET, connection_of, debit, made
from ledger_paid import paid

from dpsql.ledger import BudgetExhausted, home_of, open_ledger, verify_ledger
from dpsql.ledger import folding as folds
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.folding import has_fault
from dpsql.ledger.sqlite import SqliteStore

NAME = "flights.ledger"


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 9), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
        ((4, 0, 0), False),
    ],
)
def test_versions(version: tuple[int, int, int], fault: bool) -> None:
    assert has_fault(version) == fault


def test_no_connection_folds_by_itself(tmp_path: Path) -> None:
    """Neither the one that writes, nor those that read or migrate: SQLite's own folding is off in all."""
    url = made(tmp_path)
    ledger = open_ledger(url, DATASET)
    assert isinstance(ledger, DurableLedger)
    store = ledger._store
    assert isinstance(store, SqliteStore)
    with home_of(url, DATASET).snapshot(thorough=False) as rows:
        found = rows._execute("PRAGMA wal_autocheckpoint").fetchone()
    for connection in (store._connection, store._folding._connection):
        assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == found == (0,)
    ledger.close()


def test_each_fold_has_the_write_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it runs, another connection can neither write nor, so, begin the log anew."""
    monkeypatch.setattr(folds, "WRITES", 3)
    ledger = open_ledger(made(tmp_path), DATASET)
    assert isinstance(ledger, DurableLedger)
    store, held = ledger._store, []
    assert isinstance(store, SqliteStore)
    other = sqlite3.connect(tmp_path / NAME, isolation_level=None, timeout=0, check_same_thread=False)

    def looked(sql: str) -> None:
        if "wal_checkpoint" in sql:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            held.append(connection_of(ledger).in_transaction)

    store._folding._connection.set_trace_callback(looked)
    for number in range(9):
        debit(ledger, "alice", f"{number}")
    assert held == [True] * 3
    other.close()
    ledger.close()


def test_the_log_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folded by what is written, it is begun anew; by its size, where little is written often."""
    for writes, grown in ((8, 1 << 30), (1 << 30, 1 << 17)):
        monkeypatch.setattr(folds, "WRITES", writes)
        monkeypatch.setattr(folds, "GROWN", grown)
        folder = tmp_path / str(writes)
        folder.mkdir()
        ledger = open_ledger(made(folder), DATASET)
        for number in range(120):
            debit(ledger, "alice", f"{number}")
        assert (folder / f"{NAME}-wal").stat().st_size < 1_500_000
        assert (folder / NAME).stat().st_size > 40_000
        ledger.close()


def crowd(url: str, user: str) -> None:
    """Writes and folds as often as can be, from several threads."""
    folds.WRITES = 1  # type: ignore[misc]
    ledger = open_ledger(url, DATASET)

    def work(thread: int) -> None:
        for number in range(60):
            try:
                ledger.reserve(user, [paid(f"{user} {thread} {number}", COST)], AMPLE, AMPLE, "s")
            except BudgetExhausted:
                raise AssertionError from None

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()


def test_processes_that_write_and_fold_at_once(tmp_path: Path) -> None:
    """Nothing is lost, and the file is whole, its indexes too."""
    url = made(tmp_path)
    started = [subprocess.Popen([sys.executable, __file__, url, f"user {number}"]) for number in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert verify_ledger(url, DATASET).debits == 3 * 3 * 60


if __name__ == "__main__":
    crowd(*sys.argv[1:])
