"""A served proxy that is killed under load, again and again: no answer without its debit, few debits without answer."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from test_ledger_reload import connected, serving, written

from dpsql.ledger import Kind, open_ledger, verify_ledger
from dpsql.ledger.balance import limits_of
from dpsql.policy.load import load

CLIENTS, BEFORE_KILL = 4, 12


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_under_load(rounds: int, tmp_path: Path) -> None:
    path = written(tmp_path, ("epsilon: 2, delta: 1e-6}, window: month, shared: true, max_epsilon: 1", PLENTY))
    answered: list[tuple[int, int, int]] = []
    for turn in range(rounds):
        with serving(path) as (process, port, _):
            enough = threading.Event()
            clients = [
                threading.Thread(target=_ask, args=(port, turn, client, answered, enough)) for client in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            enough.wait(60)
            process.kill()
            for client in clients:
                client.join()
    policy = load(path)
    report = verify_ledger(policy.ledger, "flights")
    ledger = open_ledger(policy.ledger, "flights")
    debits = [entry for entry in ledger.entries() if entry.kind is Kind.DEBIT]
    ledger.close()
    assert len(answered) >= rounds * BEFORE_KILL
    assert len(answered) <= report.releases <= report.debits <= len(answered) + rounds * CLIENTS
    spent = report.dataset_spent.rho
    assert spent == sum(entry.cost.rho for entry in debits)
    limit = limits_of(policy, policy.privacy.budget)(0).rho
    assert limit is not None
    assert len(answered) * min(entry.cost.rho for entry in debits) <= spent <= limit


PLENTY = "epsilon: 4, delta: 1e-6}, epsilon: 0.01"


def _ask(port: int, turn: int, client: int, answered: list[tuple[int, int, int]], enough: threading.Event) -> None:
    """Different questions until the proxy dies; what was answered is noted."""
    with suppress(psycopg.Error), connected(port, "alice") as connection:
        for number in range(10_000):
            bound = 100_000 * turn + 10_000 * client + number
            if connection.execute(f"SELECT SUM(age) FROM people WHERE uid <> {bound}").fetchall():
                answered.append((turn, client, number))
            if len(answered) >= (turn + 1) * BEFORE_KILL:
                enough.set()
