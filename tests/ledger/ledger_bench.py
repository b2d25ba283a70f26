"""How fast the ledger is: `python tests/ledger/ledger_bench.py [ENTRIES]` prints opening, checks and durable debits.

Debits stand beside what the disk itself can sync, since neither can be faster than that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

from ledger_cases import AMPLE, COST, DATASET, debit, made, release

from dpsql.dp.accounting import Limits
from dpsql.ledger import Ask, BudgetExhausted, Calendar, Ledger, open_ledger, verify_ledger
from dpsql.ledger.books import Books, chained, digest, to_bytes
from dpsql.ledger.chain import draft, from_row, to_row
from dpsql.ledger.durable import CHECKPOINT_EVERY
from dpsql.ledger.model import Entry, Kind
from dpsql.ledger.places import beside
from dpsql.ledger.tables import connect, rows_of
from dpsql.replay.store import to_bytes as release_bytes

USERS = 50
MONTH = Calendar("month", "UTC")
NONE_LEFT = Limits(None, 1, 0)


def grown(directory: Path, entries: int) -> str:
    """The URL of a ledger with so many entries, half of them debits, half releases, with checkpoints as in service."""
    url = made(directory)
    path = directory / "flights.ledger"
    with closing(connect(path)) as connection:
        rows = rows_of(connection)
        books = Books()
        books.post(from_row(rows.between(1, 1)[0]))
        while books.head.count < entries:
            connection.execute("BEGIN IMMEDIATE")
            body = to_bytes(books)
            rows.keep_checkpoint(books.head.count + 1, body)
            drafts = [draft(Kind.CHECKPOINT, content=digest(body)), *_pairs(books.head.count + 2)]
            added = chained(books, drafts)
            rows.add(to_row(entry) for entry in added)
            for entry in added:
                books.post(entry)
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
            ledger.reserve(f"user {(3 + 2 * number) % USERS}", [Ask(key, COST)], NONE_LEFT, AMPLE, "s", calendar=MONTH)
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


def side_by_side(directory: Path, url: str, rounds: int = 6, count: int = 100) -> tuple[float, float]:
    """(fsyncs, debits) a second of one thread, measured in turns, for a shared disk changes by the minute."""
    ledger = open_ledger(url, DATASET)
    syncs, spent = 0.0, 0.0
    for turn in range(rounds):
        syncs += count / syncs_per_second(directory, count)
        start = time.perf_counter()
        for number in range(count):
            debit(ledger, "alice", f"{turn} {number}")
        spent += time.perf_counter() - start
    ledger.close()
    return rounds * count / syncs, rounds * count / spent


def debits_per_second(url: str, processes: int, threads: int, asks: int) -> float:
    """Durable debits by several processes at once, as each of them counts its own time from a common start."""
    command = [sys.executable, str(Path(__file__).with_name("ledger_cases.py")), "race", url, "user"]
    start = time.perf_counter()
    racers = [
        subprocess.Popen([*command, f"user {n}", str(threads), str(asks), "1000000"], stdout=subprocess.PIPE, text=True)
        for n in range(processes)
    ]
    results = [racer.communicate()[0].split() for racer in racers]
    assert all(int(result[0]) == threads * asks for result in results), results
    spent = max(float(result[2]) for result in results) - min(float(result[1]) for result in results)
    return processes * threads * asks / (spent or time.perf_counter() - start)


def main(entries: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        url = made(directory)
        syncs, debits = side_by_side(directory, url)
        print(f"disk: {syncs:.0f} fsync/s; debits: {debits:.0f}/s, 1 process of 1 thread")
        for processes, threads, asks in ((1, 8, 40), (8, 1, 40)):
            rate = debits_per_second(url, processes, threads, asks)
            print(f"debits: {rate:.0f}/s, processes: {processes}, threads: {threads}")
    with tempfile.TemporaryDirectory() as name:
        url = grown(Path(name), entries)
        start = time.perf_counter()
        ledger = open_ledger(url, DATASET)
        print(f"{ledger.head().count:,} entries open in {time.perf_counter() - start:.2f} s")
        checks = seconds_of_checks(ledger)
        print(f"a check: median {checks[len(checks) // 2] * 1e3:.2f} ms, slowest {checks[-1] * 1e3:.2f} ms")
        ledger.close()
        start = time.perf_counter()
        verify_ledger(url, DATASET)
        print(f"verified wholly in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
