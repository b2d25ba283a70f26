"""Many processes and threads against one budget: exactly what fits is debited."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from ledger_cases import COST, DATASET, answer, made, start

from dpsql.errors import Failed
from dpsql.ledger import open_ledger, verify_ledger

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("whose", "processes", "threads", "asks", "fitting"),
    [
        ("dataset", 8, 6, 2, 40),
        pytest.param("user", 8, 6, 2, 40, marks=SLOW),
        pytest.param("dataset", 10, 100, 1, 10, marks=SLOW),
        pytest.param("user", 10, 100, 3, 2000, marks=SLOW),
    ],
)
def test_exactly_what_fits(whose: str, processes: int, threads: int, asks: int, fitting: int, tmp_path: Path) -> None:
    url = made(tmp_path)
    users = ["alice"] * processes if whose == "user" else [f"user {number}" for number in range(processes)]
    racers = [start("race", url, whose, user, str(threads), str(asks), str(fitting)) for user in users]
    counts = [int(racer.communicate(timeout=240)[0].split()[0]) for racer in racers]

    assert sum(counts) == fitting < processes * threads * asks
    assert verify_ledger(url, DATASET).debits == fitting
    ledger = open_ledger(url, DATASET)
    assert ledger.dataset_spent().rho == fitting * COST.rho
    assert sum(spent.rho for _, spent in ledger.accounts()) == fitting * COST.rho
    ledger.close()


@pytest.mark.parametrize("which", ["flights.ledger-head", "anchor"])
def test_a_place_that_another_program_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """A program that was stopped while it held a second place takes no answer for longer than others wait for it."""
    monkeypatch.setattr("dpsql.ledger.anchor.PATIENCE", 0.05)
    anchor = str(tmp_path / "anchor")
    ledger = open_ledger(made(tmp_path, anchor), DATASET, anchor)
    answer(ledger, "alice", "before")
    with (tmp_path / which).open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Failed, match="could not be completed"):
            answer(ledger, "alice", "meanwhile")
        assert answer(ledger, "alice", "before")
    count = ledger.head().count
    answer(ledger, "alice", "meanwhile")
    assert ledger.head().count == count + 2
    ledger.close()
