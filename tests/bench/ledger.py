"""Durable debits a second beside the disk's own fsync rate, and checks against a ledger of a million entries.

    python -m tests.bench.ledger [--entries N]

Disk and ledger are measured in turns, for a shared disk changes by the minute. Each debit is decided, written, synced
and only then told; threads of one process share a sync, processes do not. Timed is from the first ask to the last
reservation, not how processes start and end. An answer is a debit and then its record.
The targets: 300 debits a second, or the disk's rate where that is lower; a check under 5 ms.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "ledger"))

from ledger_bench import debits_per_second, grown, seconds_of_checks, syncs_per_second
from ledger_cases import DATASET, answer, made

from dpsql.ledger import open_ledger, verify_ledger

DEBITS, CHECK = 300.0, 5.0
"""Targets: debits a second, milliseconds."""
ROUNDS = 5
PLACES = (
    ("1 process, 1 thread", 1, 1, 60),
    ("1 process, 16 threads", 1, 16, 15),
    ("8 processes, 1 thread each", 8, 1, 25),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.ledger")
    parser.add_argument("--entries", type=int, default=1_000_000, help="of the large ledger (default 1,000,000)")
    entries = parser.parse_args().entries
    with tempfile.TemporaryDirectory() as name:
        _debits(Path(name))
    with tempfile.TemporaryDirectory() as name:
        _large(Path(name), entries)


def _debits(folder: Path) -> None:
    print(f"{'medians':32}{'fsync/s':>9}{'debits/s':>10}{'ratio':>7}")
    url = made(folder)
    for name, processes, threads, asks in PLACES:
        pairs = [(syncs_per_second(folder), debits_per_second(url, processes, threads, asks)) for _ in range(ROUNDS)]
        disk, rate = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        target = min(DEBITS, disk)
        print(f"{name:32}{disk:9.0f}{rate:10.0f}{rate / disk:7.2f}  (target {target:.0f}): {_verdict(rate >= target)}")
    ledger = open_ledger(url, DATASET)
    start = time.perf_counter()
    for number in range(100):
        answer(ledger, "alice", f"answer {number}")
    print(f"{'1 thread, answers (two commits)':32}{'':9}{100 / (time.perf_counter() - start):10.0f}")
    ledger.close()


def _large(folder: Path, entries: int) -> None:
    url = grown(folder, entries)
    start = time.perf_counter()
    ledger = open_ledger(url, DATASET)
    print(f"\n{ledger.head().count:,} entries: open in {time.perf_counter() - start:.2f} s")
    checks = seconds_of_checks(ledger)
    ledger.close()
    middle = checks[len(checks) // 2] * 1e3
    print(f"a check: median {middle:.2f} ms, slowest {checks[-1] * 1e3:.2f} ms (target {CHECK:.0f}):", end=" ")
    print(_verdict(middle < CHECK))
    start = time.perf_counter()
    verify_ledger(url, DATASET)
    print(f"verified wholly in {time.perf_counter() - start:.1f} s")


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
