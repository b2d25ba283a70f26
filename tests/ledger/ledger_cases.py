"""What the ledger's tests share: small ledgers, and a program of one statement that can be killed at any step.

Run as a program: `ledger_cases.py STEP URL` makes one release on the ledger and kills itself at that step;
`ledger_cases.py race URL LIMIT_WHOSE USER THREADS ASKS LIMIT` prints how many of its asks were debited, and from when
to when; `pace URL USER THREADS ASKS` does so after a line on stdin, and against no limit.
"""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

import psycopg
from ledger_paid import paid

from dpsql.dp.accounting import Limits
from dpsql.errors import Failed
from dpsql.ledger import BudgetExhausted, Ledger, LedgerError, init_ledger, open_ledger
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.places import Places
from dpsql.ledger.sqlite import SqliteStore
from dpsql.types import Cost, Release, Reservation

DATASET: Final = "flights"
COST: Final = Cost(epsilon=10**15, rho=10**14, delta=5)
AMPLE: Final = Limits(epsilon=None, rho=10**20, delta=10**12)
STEPS: Final = (
    "before_debit",
    "before_commit",
    "committed",
    "reserved",
    "recording",
    "before_record",
    "recorded",
    "answered",
)


def made(directory: Path, anchor: str | None = None) -> str:
    """The URL of a new ledger."""
    url = f"sqlite:{directory / 'flights.ledger'}"
    init_ledger(url, DATASET, anchor)
    return url


def edit(url: str, sql: str) -> None:
    """Changes a ledger behind its back."""
    connection = sqlite3.connect(url.removeprefix("sqlite:"))
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.executescript(sql)
    connection.close()


def made_in_postgres(server: str) -> str:
    """The URL of a new ledger in an empty schema of a database; what an earlier test left is gone."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute('DROP SCHEMA IF EXISTS "dpsql flights" CASCADE')
    init_ledger(server, DATASET)
    return server


def release(key: str) -> Release:
    return Release(key, ((1, "AA"), (2, None)), ((17, -4), (2**70, 0)))


def debit(ledger: Ledger, user: str, key: str, cost: Cost = COST) -> Reservation:
    (reservation,) = ledger.reserve(user, [paid(key, cost)], AMPLE, AMPLE, f"statement {key}")
    assert isinstance(reservation, Reservation)
    return reservation


def answer(ledger: Ledger, user: str, key: str, cost: Cost = COST) -> Release:
    """A release made or replayed, as the engine does it."""
    (result,) = ledger.reserve(user, [paid(key, cost)], AMPLE, AMPLE, f"statement {key}")
    if isinstance(result, Reservation):
        ledger.record(result, release(key))
        return release(key)
    assert isinstance(result, Release)
    return result


def until_failed(ledger: Ledger) -> tuple[int, str]:
    """New answers until one fails: how many there were, and the cause for the operator."""
    for number in range(1000):
        try:
            answer(ledger, "alice", f"new {number}")
        except Failed as error:
            return number, error.cause
    raise AssertionError("nothing failed")


def filled(directory: Path, anchor: str | None = None) -> str:
    """The URL of a closed ledger with debits, views and releases of several users."""
    url = made(directory, anchor)
    ledger = open_ledger(url, DATASET, anchor)
    for number in range(8):
        answer(ledger, "alice", f"key {number}")
    for number in range(0, 8, 2):
        answer(ledger, "bob", f"key {number}")
    debit(ledger, "carol", "never recorded")
    ledger.close()
    return url


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """This file as a program, in a process of its own."""
    return subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, timeout=60)


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)


def connection_of(ledger: Ledger) -> sqlite3.Connection:
    """The connection inside, for faults to be put in."""
    assert isinstance(ledger, DurableLedger)
    assert isinstance(ledger._store, SqliteStore)
    return ledger._store._connection


def _killed_at(step: str, url: str) -> None:
    """One statement, answered on stdout, in a process that kills itself at the step."""
    ledger = open_ledger(url, DATASET)
    debit_steps, record_steps = STEPS[:3], STEPS[4:7]
    if step in debit_steps:
        _die_in_transaction(ledger, debit_steps.index(step))
    reservation = debit(ledger, "alice", "key")
    if step == "reserved":
        _die()
    if step in record_steps:
        _die_in_transaction(ledger, record_steps.index(step))
    ledger.record(reservation, release("key"))
    print("answered", flush=True)
    if step == "answered":
        _die()


def _die_in_transaction(ledger: Ledger, when: int) -> None:
    """Before the first row is written, before the commit, or right after it."""
    if when == 2:
        Places.advance = _die  # type: ignore[method-assign]
        return
    fatal = ("INSERT", "COMMIT")[when]
    connection_of(ledger).set_trace_callback(lambda sql: _die() if sql.startswith(fatal) else None)


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _race(url: str, whose: str, user: str, threads: str, asks: str, limit: str) -> None:
    """Count the debits that fit one tight limit, from many threads; the other limit is ample."""
    _compete(open_ledger(url, DATASET), whose, user, threads, asks, limit)


def _compete(ledger: Ledger, whose: str, user: str, threads: str, asks: str, limit: str) -> None:
    tight = Limits(epsilon=None, rho=int(limit) * COST.rho, delta=10**12)
    user_limits, dataset_limits = (tight, AMPLE) if whose == "user" else (AMPLE, tight)
    done: list[int] = []

    def work(number: int) -> None:
        for index in range(int(asks)):
            key = f"{os.getpid()} {number} {index}"
            try:
                ledger.reserve(user, [paid(key, COST)], user_limits, dataset_limits, "race")
                done.append(1)
            except BudgetExhausted:
                pass

    workers = [threading.Thread(target=work, args=(number,)) for number in range(int(threads))]
    start = time.time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(len(done), start, time.time())


def _pace(url: str, user: str, threads: str, asks: str) -> None:
    ledger = open_ledger(url, DATASET)
    print("ready", flush=True)
    sys.stdin.readline()
    _compete(ledger, "user", user, threads, asks, str(10**6))


def _unprivileged(url: str) -> None:
    """Open and ask as a user to whom file permissions apply."""
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    _try(url)


def _small_disk(url: str) -> None:
    """Ask until no file can grow any more."""
    ledger = open_ledger(url, DATASET)
    size = Path(f"{url.removeprefix('sqlite:')}-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40_000, size + 40_000))
    print(*until_failed(ledger))


def _fork(url: str) -> None:
    """A child that inherits an open ledger may not use it, and does not harm its parent's."""
    ledger = open_ledger(url, DATASET)
    child = os.fork()
    if child == 0:
        try:
            debit(ledger, "alice", "the child's")
        except Failed as error:
            os._exit(7 if "after the fork" in error.cause else 1)
        os._exit(0)
    refused = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    debit(ledger, "alice", "the parent's")
    print(f"child {'refused' if refused else 'answered'}, parent answered")


def _try(url: str) -> None:
    try:
        debit(open_ledger(url, DATASET), "alice", "key")
        print("answered")
    except LedgerError as error:
        print(error.message)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["race", *rest]:
            _race(*rest)
        case ["pace", *rest]:
            _pace(*rest)
        case ["unprivileged", url]:
            _unprivileged(url)
        case ["fork", url]:
            _fork(url)
        case ["small_disk", url]:
            _small_disk(url)
        case [step, url]:
            _killed_at(step, url)
