"""Many processes and threads against one budget: exactly what fits is debited."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_cases import COST, DATASET, made, start

from dpsql.ledger import open_ledger, verify_ledger

PROCESSES, THREADS, ASKS, FITTING = 8, 6, 2, 40


@pytest.mark.parametrize("whose", ["dataset", pytest.param("user", marks=pytest.mark.slow)])
def test_exactly_what_fits(whose: str, tmp_path: Path) -> None:
    url = made(tmp_path)
    users = ["alice"] * PROCESSES if whose == "user" else [f"user {number}" for number in range(PROCESSES)]
    racers = [start("race", url, whose, user, str(THREADS), str(ASKS), str(FITTING)) for user in users]
    counts = [int(racer.communicate(timeout=60)[0].split()[0]) for racer in racers]

    assert sum(counts) == FITTING < PROCESSES * THREADS * ASKS
    assert verify_ledger(url, DATASET).debits == FITTING
    ledger = open_ledger(url, DATASET)
    assert ledger.dataset_spent().rho == FITTING * COST.rho
    assert sum(spent.rho for _, spent in ledger.accounts()) == FITTING * COST.rho
    ledger.close()
