"""Faults that pass: each is waited out, or refuses one statement after the other until it has passed. None is final.

Run as a program: `few_files URL ANCHOR` asks while the process may open no file; `crowd URL` asks with several threads
until the disk is full.
"""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from ledger_cases import AMPLE, COST, DATASET, answer, debit, edit, filled, made, made_in_postgres, release
from ledger_paid import paid

from dpsql.errors import Failed
from dpsql.ledger import (
    InFlight,
    Ledger,
    LedgerError,
    anchor_of,
    copies,
    home_of,
    init_ledger,
    open_ledger,
    verify_ledger,
)
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.guard import Unavailable
from dpsql.ledger.model import LedgerUnavailable
from dpsql.ledger.postgres import _SETTINGS, PostgresStore
from dpsql.ledger.rows import Rows
from dpsql.types import Release

NAME = "flights.ledger"
LARGE = 2000
"""Keys of a release of some 60 KB."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return made(tmp_path) if request.param == "sqlite" else made_in_postgres(request.getfixturevalue("postgres_uri"))


def run(*arguments: str) -> str:
    """This file as a program."""
    return subprocess.run(
        [sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=120, check=True
    ).stdout


def refused(work: Callable[[], object]) -> str:
    """The operator's reason for a fault that passes."""
    with pytest.raises(Unavailable) as caught:
        work()
    return caught.value.cause


# No file can be opened -----------------------------------------------------------------------------------------------


@contextmanager
def no_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def few_files(url: str, anchor: str) -> None:
    """Refused while there are none, one by one; a release that was debited before waits for one."""
    ledger = open_ledger(url, DATASET, anchor)
    answer(ledger, "alice", "before")
    reservation = debit(ledger, "alice", "debited")
    with no_files():
        for number in range(3):
            print(refused(lambda number=number: debit(ledger, "alice", f"none {number}")))  # type: ignore[misc]
        thread = threading.Thread(target=ledger.record, args=(reservation, release("debited")))
        thread.start()
        time.sleep(0.3)
        assert thread.is_alive()
    thread.join()
    assert answer(ledger, "alice", "debited") == release("debited")
    assert answer(ledger, "alice", "after") == release("after")
    assert ledger.spent("alice").rho == 3 * COST.rho


def test_too_many_open_files(url: str, tmp_path: Path) -> None:
    anchor = str(tmp_path / "anchor")
    init_ledger(url, DATASET, anchor)
    told = run("few_files", url, anchor)
    assert told.count("Too many open files") == 3
    report = verify_ledger(url, DATASET, anchor)
    assert (report.debits, report.releases) == (3, 3)


def test_an_anchor_that_cannot_be_written_to(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before anything is debited; only after the commit, what is durable is told."""
    anchor = str(tmp_path / "anchor")
    init_ledger(url, DATASET, anchor)
    ledger, write, failing = open_ledger(url, DATASET, anchor), os.pwrite, [True]
    monkeypatch.setattr("dpsql.ledger.anchor.os.pwrite", lambda *given: broken() if failing.pop(0) else write(*given))

    def broken() -> int:
        raise OSError(5, "Input/output error")

    for _ in range(2):
        assert "Input/output error" in refused(lambda: debit(ledger, "alice", "one"))
        failing.append(True)
    assert ledger.dataset_spent().rho == 0
    places = len(ledger._places.paths)  # type: ignore[attr-defined]
    failing[:] = [False] * places + [True] * places + [False] * 4 * places
    debit(ledger, "alice", "one")
    debit(ledger, "alice", "two")
    monkeypatch.undo()
    ledger.close()
    assert verify_ledger(url, DATASET, anchor).debits == 2


# Limits of a server --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout", "statement_timeout"])
def test_a_server_that_ends_what_takes_long(setting: str, postgres_uri: str) -> None:
    url = made_in_postgres(postgres_uri)
    ledger = open_ledger(url, DATASET)
    answer(ledger, "alice", "before")
    assert isinstance(ledger, DurableLedger)
    store = ledger._store
    assert isinstance(store, PostgresStore)
    with suppress(psycopg.errors.UndefinedObject):
        store._connection.execute(f"SET {setting} = '100ms'")

        def slow(_: str) -> None:
            time.sleep(0.4)
            if setting == "statement_timeout":
                store._connection.execute("SELECT pg_sleep(1)")

        def ask() -> object:
            return ledger.reserve("alice", [paid("slow", COST)], AMPLE, AMPLE, "s", terms=slow)

        assert refused(ask)
    assert answer(ledger, "alice", "after") == release("after")
    ledger.close()
    assert verify_ledger(url, DATASET).debits == 2


def test_a_commit_of_which_nobody_heard(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record was committed, and its process was told otherwise: it finds it, and does not write it twice."""
    ledger = open_ledger(url, DATASET)
    reservation = debit(ledger, "alice", "key")
    commit, lost = Rows.commit, [True]

    def deaf(rows: Rows) -> None:
        commit(rows)
        if lost.pop() if lost else False:
            raise LedgerUnavailable("the connection was lost")

    monkeypatch.setattr(Rows, "commit", deaf)
    ledger.record(reservation, release("key"))
    assert answer(ledger, "alice", "key") == release("key")
    ledger.close()
    report = verify_ledger(url, DATASET)
    assert (report.debits, report.releases) == (1, 1)


# A full disk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no disk can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> Path:
    """A file that leaves no byte."""
    file = disk / "filler"
    with file.open("ab", buffering=0) as out, suppress(OSError):
        while True:
            out.write(bytes(4096))
    return file


def large(key: str) -> Release:
    return Release(key, tuple((n, "AA") for n in range(LARGE)), tuple((n * 10**9, 7) for n in range(LARGE)))


def ask_large(ledger: Ledger, user: str, key: str) -> None:
    (made,) = ledger.reserve(user, [paid(key, COST, room=LARGE * 60 + 2**16)], AMPLE, AMPLE, "statement")
    ledger.record(made, large(key))  # type: ignore[arg-type]


@pytest.mark.parametrize("made_of", [release, large])
def test_a_disk_that_is_full_between_debit_and_record(made_of: Callable[[str], Release], disk: Path) -> None:
    """The answer is recorded in the room that was kept for it; nothing more is debited until there is room."""
    url = made(disk)
    ledger = open_ledger(url, DATASET)
    grants = ledger.reserve(
        "alice", [paid(f"key {n}", COST, room=LARGE * 60 + 2**16) for n in range(4)], AMPLE, AMPLE, "statement"
    )
    filler = fill(disk)
    for grant in grants:
        ledger.record(grant, made_of(grant.key))  # type: ignore[arg-type, union-attr]
    fill(disk)
    for number in range(3):
        cause = refused(lambda number=number: debit(ledger, "alice", f"{number}"))  # type: ignore[misc]
        assert re.search("No space left|disk is full", cause)
    assert answer(ledger, "alice", "key 1") == made_of("key 1")
    filler.unlink()
    assert answer(ledger, "alice", "later") == release("later")
    ledger.close()
    report = verify_ledger(url, DATASET)
    assert (report.debits, report.releases) == (5, 5)


def crowd(url: str) -> None:
    """Several threads and releases, until nothing is answered any more."""
    ledger = open_ledger(url, DATASET)

    def work(thread: int) -> None:
        for number in range(1000):
            try:
                ask_large(ledger, f"user {thread}", f"{thread} {number}")
            except Unavailable:
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_disk_that_fills_up(disk: Path) -> None:
    """Two processes, several statements at once: each that was debited was recorded."""
    url = made(disk)
    started = [subprocess.Popen([sys.executable, __file__, "crowd", url]) for _ in range(2)]
    assert [process.wait(120) for process in started] == [0, 0]
    (disk / f"{NAME}-lock").unlink()  # a few bytes for a reader's own files
    report = verify_ledger(url, DATASET)
    assert report.debits == report.releases > 5


# Clocks --------------------------------------------------------------------------------------------------------------


class Clocks:
    """A wall clock and a boot clock that can be moved, of this boot or another."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wall = self.up = 0
        wall, boot = time.time_ns, time.clock_gettime_ns
        patch.setattr("dpsql.ledger.clock.time.time_ns", lambda: wall() + self.wall * 10**9)
        patch.setattr("dpsql.ledger.clock.time.clock_gettime_ns", lambda which: boot(which) + self.up * 10**9)
        self._patch = patch

    def restart(self) -> None:
        self._patch.setattr("dpsql.ledger.clock._boot", lambda: "another")
        self.up = 0


def waits(ledger: Ledger) -> bool:
    try:
        ledger.reserve("bob", [paid("key", COST)], AMPLE, AMPLE, "s", patient=True)
    except InFlight:
        return True
    return False


@pytest.mark.parametrize("restarted", [False, True])
def test_after_a_crash_and_a_clock_set_back(restarted: bool, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A debit whose process is gone is waited for as long as a measurement takes, whatever the wall clock says."""
    clocks = Clocks(monkeypatch)
    crashed = open_ledger(url, DATASET)
    debit(crashed, "alice", "key")
    crashed.close()
    clocks.wall = -3600
    if restarted:
        clocks.restart()
    ledger = open_ledger(url, DATASET)
    assert waits(ledger)
    clocks.up += 9
    assert waits(ledger)
    clocks.up += 2
    assert not waits(ledger)
    ledger.close()


# Restoring -----------------------------------------------------------------------------------------------------------


@contextmanager
def locked(url: str) -> Iterator[None]:
    if url.startswith("sqlite:"):
        connection = sqlite3.connect(url.removeprefix("sqlite:"), isolation_level=None)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        connection.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            connection.close()
    else:
        with psycopg.connect(url) as server:
            server.execute('LOCK TABLE "dpsql flights".entry IN ACCESS EXCLUSIVE MODE')
            yield


def test_a_locked_ledger_is_not_replaced(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no broken one: whoever keeps it locked would go on with what was moved aside."""
    monkeypatch.setattr("dpsql.ledger.tables._OPENING_TIMEOUT", 0.2)
    monkeypatch.setitem(_SETTINGS, "lock_timeout", "200ms")
    ledger = open_ledger(url, DATASET)
    answer(ledger, "alice", "key")
    ledger.close()
    home, copy = home_of(url, DATASET), tmp_path / "copy"
    copies.backup(home, DATASET, None, copy)
    before = verify_ledger(url, DATASET)
    with locked(url), pytest.raises(LedgerUnavailable, match="locked"):
        copies.restore(home, DATASET, None, copy, accept_loss=True)
    assert verify_ledger(url, DATASET) == before


@pytest.mark.parametrize("problem", ["layout", "dataset", "directory"])
def test_what_is_not_broken_is_not_replaced(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older layout, another dataset's ledger, no descriptor: none of these may put a backup in its place."""
    url, copy, dataset = filled(tmp_path), tmp_path / "copy", DATASET
    home = home_of(url, DATASET)
    copies.backup(home, DATASET, None, copy)
    before = (tmp_path / NAME).read_bytes()
    if problem == "layout":
        sqlite3.connect(tmp_path / NAME).execute("PRAGMA user_version = 1")
        before = (tmp_path / NAME).read_bytes()
    elif problem == "dataset":
        dataset = "others"
    else:
        monkeypatch.setattr("dpsql.ledger.anchor.os.open", lambda *_: (_ for _ in ()).throw(OSError(24, "Too many")))
    with pytest.raises(LedgerError):
        copies.restore(home, dataset, anchor_of(None), copy, accept_loss=True)
    monkeypatch.undo()
    assert (tmp_path / NAME).read_bytes() == before


def test_a_doubt_is_still_final(tmp_path: Path) -> None:
    url = filled(tmp_path)
    ledger = open_ledger(url, DATASET)
    edit(url, "UPDATE entry SET hash = 'x' WHERE id = (SELECT max(id) FROM entry)")
    for _ in range(2):
        with pytest.raises(Failed, match="incident") as caught:
            answer(ledger, "alice", "new")
        assert "is gone or has been altered" in caught.value.cause
        assert not isinstance(caught.value, Unavailable)
    ledger.close()


if __name__ == "__main__":
    {"few_files": few_files, "crowd": crowd}[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
