"""Rechecking while serving: what opening from a checkpoint does not read is found, and ends the service."""

from __future__ import annotations

import logging
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ledger_cases import COST, DATASET, answer, debit, edit, made, made_in_postgres, until_failed

from dpsql.errors import Failed
from dpsql.ledger import Ledger, LedgerError, home_of, open_ledger
from dpsql.ledger.home import Home
from dpsql.ledger.model import LedgerUnavailable
from dpsql.ledger.recheck import recheck
from dpsql.ledger.rows import Rows

NAME = "flights.ledger"


def always(_: float) -> bool:
    return True


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 20)
    monkeypatch.setattr("dpsql.ledger.recheck.SLICE", 7)


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A closed ledger with checkpoints, releases and views."""
    url = made(tmp_path)
    ledger = open_ledger(url, DATASET)
    for number in range(30):
        answer(ledger, "alice", f"key {number}")
        if number % 5 == 0:
            answer(ledger, "bob", f"key {number // 2}")
    ledger.close()
    return url


def test_a_whole_ledger_passes_also_while_others_write(url: str) -> None:
    ledger = open_ledger(url, DATASET)
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            answer(ledger, "carol", f"new {number}")
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            recheck(home_of(url, DATASET), always)
    finally:
        done.set()
        writer.join()
        ledger.close()


def test_it_rests_and_may_be_ended(url: str) -> None:
    rests: list[float] = []

    def two(seconds: float) -> bool:
        rests.append(seconds)
        return len(rests) < 2

    recheck(home_of(url, DATASET), two)
    assert len(rests) == 2
    assert min(rests) > 0


CHANGES = [
    "UPDATE entry SET rho = '1' WHERE id = 2",
    "UPDATE entry SET user = 'mallory' WHERE id = 4",
    "DELETE FROM entry WHERE id = 5",
    "UPDATE release SET body = x'00' WHERE reservation = 2",
    "UPDATE release SET key = 'key 9' WHERE reservation = 2",
    "PRAGMA writable_schema = 1; DELETE FROM sqlite_master WHERE name = 'entry_user'",
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_opening_does_not_read(change: str, url: str) -> None:
    edit(url, change)
    open_ledger(url, DATASET).close()
    with pytest.raises(LedgerError):
        recheck(home_of(url, DATASET), always)


@contextmanager
def rechecked_soon(monkeypatch: pytest.MonkeyPatch, url: str) -> Iterator[Ledger]:
    monkeypatch.setattr("dpsql.ledger.recheck.FIRST", 0.05)
    ledger = open_ledger(url, DATASET)
    yield ledger
    ledger.close()


def test_it_ends_the_service(url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """The operator is told what is wrong and what to do, at once and with each statement."""
    edit(url, CHANGES[0])
    with rechecked_soon(monkeypatch, url) as ledger:
        _, told = until_failed(ledger)
        assert all(words in told for words in ("entry 2 has been altered", "ledger verify", "ledger restore", NAME))
        with pytest.raises(Failed):
            ledger.spent("alice")
    (record,) = [record for record in caplog.records if record.levelno == logging.CRITICAL]
    assert "entry 2 has been altered" in record.getMessage()
    assert "ledger restore" in record.getMessage()


def test_removed_while_nobody_asks(url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with rechecked_soon(monkeypatch, url):
        Path(url.removeprefix("sqlite:")).unlink()
        for _ in range(100):
            if "there is no ledger" in caplog.text:
                break
            time.sleep(0.05)
    assert "there is no ledger" in caplog.text


def test_a_passing_fault_is_no_damage(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(*_: object) -> None:
        raise LedgerUnavailable("another program keeps it locked")

    monkeypatch.setattr("dpsql.ledger.recheck.recheck", locked)
    with rechecked_soon(monkeypatch, url) as ledger:
        for _ in range(100):
            if "not read again yet" in caplog.text:
                break
            time.sleep(0.02)
        assert "not read again yet" in caplog.text
        debit(ledger, "alice", "goes on")


def test_locked_by_another_program(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.tables._OPENING_TIMEOUT", 0.1)
    other = sqlite3.connect(url.removeprefix("sqlite:"), isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="another program keeps it locked"):
        recheck(home_of(url, DATASET), always)
    other.close()
    recheck(home_of(url, DATASET), always)


def test_in_postgres(postgres_uri: str) -> None:
    url = made_in_postgres(postgres_uri)
    ledger = open_ledger(url, DATASET)
    for number in range(30):
        answer(ledger, "alice", f"key {number}")
    ledger.close()
    recheck(home_of(url, DATASET), always)
    home = home_of(url, DATASET)
    with home.snapshot(thorough=True) as rows:
        assert rows.count() > 60


def test_one_byte_changed_on_every_page(tmp_path: Path, url: str) -> None:
    """Of tables, indexes, header and schema alike: refused at the start, ended by the recheck, or without a meaning."""
    path = tmp_path / NAME
    whole, expected = path.read_bytes(), _state(url)
    home = home_of(url, DATASET)
    choose = random.Random(11)
    found = {"start": 0, "recheck": 0, "nothing": 0}
    for page in range(0, len(whole), 4096):
        for _ in range(6):
            position = page + choose.randrange(4096)
            path.write_bytes(
                whole[:position] + bytes([whole[position] ^ (1 << choose.randrange(8))]) + whole[position + 1 :]
            )
            for rest in ("-wal", "-shm"):
                path.with_name(NAME + rest).unlink(missing_ok=True)
            found[_found(url, home, expected, position)] += 1
    assert found["start"] > 2
    assert found["recheck"] > 20


def _found(url: str, home: Home, expected: str, position: int) -> str:
    try:
        state = _state(url)
    except (LedgerError, Failed):
        return "start"
    assert state == expected, position  # whatever else is wrong: never less spent
    try:
        recheck(home, always)
    except LedgerError:
        return "recheck"
    return "nothing"


def _state(url: str) -> str:
    ledger = open_ledger(url, DATASET)
    try:
        assert ledger.spent("alice").rho == 30 * COST.rho
        return f"{ledger.accounts()} {ledger.dataset_spent()} {ledger.head()}"
    finally:
        ledger.close()


def test_the_file_itself_is_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that has lost a row: no entry is altered, and yet it is found."""
    edit(
        url,
        "PRAGMA writable_schema = 1; UPDATE sqlite_master SET sql = replace(sql, 'user', 'key') "
        "WHERE name = 'entry_user'",
    )
    with pytest.raises(LedgerError, match="damaged"):
        recheck(home_of(url, DATASET), always)
    monkeypatch.setattr(Rows, "count_releases", lambda _: 0)
    with pytest.raises(LedgerError):
        recheck(home_of(url, DATASET), always)
