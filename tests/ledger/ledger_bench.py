"""Measuring the ledger: ledgers of many entries, checks on them, debits a second by threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import ledger_cases
from ledger_cases import AMPLE, COST, made, release
from ledger_paid import paid

from dpsql.dp.accounting import Limits
from dpsql.ledger import BudgetExhausted, Calendar, Ledger
from dpsql.ledger.books import Books, digest, extend, to_bytes
from dpsql.ledger.chain import draft, to_row
from dpsql.ledger.durable import CHECKPOINT_EVERY
from dpsql.ledger.model import Entry, Kind
from dpsql.ledger.places import beside
from dpsql.ledger.tables import connect, rows_of
from dpsql.replay.store import to_bytes as release_bytes

USERS = 50
MONTH = Calendar("month", "UTC")
NONE_LEFT = Limits(None, 1, 0)
CASES = Path(ledger_cases.__file__)


def grown(directory: Path, entries: int) -> str:
    """The URL of a ledger with so many entries, half of them debits, half releases, with checkpoints as in service."""
    url = made(directory)
    path = directory / "flights.ledger"
    with closing(connect(path)) as connection:
        rows = rows_of(connection)
        books = Books()
        books.follow(rows.between(1, 1))
        while books.head.count < entries:
            connection.execute("BEGIN IMMEDIATE")
            body = to_bytes(books)
            rows.keep_checkpoint(books.head.count + 1, body)
            drafts = [draft(Kind.CHECKPOINT, content=digest(body)), *_pairs(books.head.count + 2)]
            added = extend(books, drafts)
            rows.add(to_row(entry) for entry in added)
            for entry in added:
                if entry.kind is Kind.RECORD:
                    rows.add_release(entry.reservation, entry.key, release_bytes(release(entry.key)))
            rows.commit()
    beside(path).unlink()
    return url


def _pairs(start: int) -> list[Entry]:
    """Debits and records for the ids from `start` on."""
    done: list[Entry] = []
    for number in range(start, start + CHECKPOINT_EVERY - 2, 2):
        user, key = f"user {number % USERS}", f"{number:064x}"
        content = _content(key)
        done.append(draft(Kind.DEBIT, user=user, account=user, key=key, statement=key, gate="rho", cost=COST))
        done.append(
            draft(Kind.RECORD, user=user, account=user, key=key, statement=key, reservation=number, content=content)
        )
    return done


def _content(key: str) -> str:
    return digest(release_bytes(release(key)))


def seconds_of_checks(ledger: Ledger, times: int = 200) -> list[float]:
    """How long single checks take that debit nothing: half are refused, half find a release and are free."""
    found = []
    for number in range(times):
        key = f"{3 + 2 * number:064x}" if number % 2 else f"new {number}"
        start = time.perf_counter()
        with suppress(BudgetExhausted):
            ledger.reserve(f"user {(3 + 2 * number) % USERS}", [paid(key, COST)], NONE_LEFT, AMPLE, "s", calendar=MONTH)
        found.append(time.perf_counter() - start)
    return sorted(found)


def syncs_per_second(directory: Path, count: int = 100) -> float:
    """What the disk does: append 4 KiB, fsync, again."""
    with (directory / "fsync").open("wb", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(count):
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
        return count / (time.perf_counter() - start)


def debits_per_second(url: str, processes: int, threads: int, asks: int) -> float:
    """Durable debits by several processes at once, from the first ask until the last is answered."""
    racers = [
        subprocess.Popen(
            [sys.executable, str(CASES), "pace", url, f"user {number}", str(threads), str(asks)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    results = [racer.communicate()[0].split() for racer in racers]
    assert [result[0] for result in results] == [str(threads * asks)] * processes, results
    spent = max(float(result[2]) for result in results) - min(float(result[1]) for result in results)
    return processes * threads * asks / spent
