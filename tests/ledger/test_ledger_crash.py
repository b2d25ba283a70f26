"""A process that dies at any step leaves no release without its debit, and no debit is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_cases import COST, DATASET, STEPS, answer, made, release, run

from dpsql.ledger import LedgerError, open_ledger, verify_ledger
from dpsql.types import Cost

DEBITS = dict(zip(STEPS, (0, 0, 1, 1, 1, 1, 1, 1), strict=True))
RELEASES = dict(zip(STEPS, (0, 0, 0, 0, 0, 0, 1, 1), strict=True))


@pytest.mark.parametrize("step", STEPS)
def test_killed_at(step: str, tmp_path: Path) -> None:
    url = made(tmp_path)
    process = run(step, url)
    assert (process.returncode, process.stdout) == (-9, "answered\n" if step == "answered" else "")

    report = verify_ledger(url, DATASET)
    assert (report.debits, report.releases) == (DEBITS[step], RELEASES[step])
    ledger = open_ledger(url, DATASET)
    assert ledger.spent("alice") == ledger.dataset_spent() == (COST if DEBITS[step] else Cost())

    assert answer(ledger, "alice", "key") == release("key")
    paid = DEBITS[step] + 1 - RELEASES[step]  # a reservation without a release is never used again
    assert ledger.spent("alice").rho == paid * COST.rho
    ledger.close()


def test_an_unharmed_process_answers(tmp_path: Path) -> None:
    assert run("none", made(tmp_path)).stdout == "answered\n"


def test_log_lost_after_a_crash(tmp_path: Path) -> None:
    """The commits that a crash left in the write-ahead log cannot be thrown away with it."""
    url = made(tmp_path)
    run("answered", url)
    (tmp_path / "flights.ledger-wal").unlink()
    with pytest.raises(LedgerError, match=r"older copy: it holds 1 entries, but .*-head remembers 3"):
        open_ledger(url, DATASET)


def test_log_damaged_after_a_crash(tmp_path: Path) -> None:
    """One byte of the log changed: refused, or nothing that was committed is missing."""
    url = made(tmp_path)
    run("answered", url)
    names = ("flights.ledger", "flights.ledger-wal", "flights.ledger-head")
    whole = {name: (tmp_path / name).read_bytes() for name in names}
    expected = _state(url)
    refused = 0
    log = whole["flights.ledger-wal"]
    for position in range(0, len(log), max(1, len(log) // 60)):
        for name, data in whole.items():
            (tmp_path / name).write_bytes(data)
        (tmp_path / "flights.ledger-shm").unlink(missing_ok=True)
        (tmp_path / "flights.ledger-wal").write_bytes(log[:position] + bytes([log[position] ^ 1]) + log[position + 1 :])
        state = _state(url)
        refused += state == "refused"
        assert state in ("refused", expected), position
    assert refused > 30


def _state(url: str) -> str:
    try:
        return str(verify_ledger(url, DATASET))
    except LedgerError:
        return "refused"
