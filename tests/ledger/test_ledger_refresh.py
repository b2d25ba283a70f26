"""New data: what was kept is not given again, what was spent stays spent, and old ledgers prove themselves as ever."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from ledger_cases import DATASET, answer, made
from test_ledger_reload import connected, serving, waited, written

from dpsql.commands.refresh import refresh
from dpsql.ledger import Kind, open_ledger, verify_ledger
from dpsql.ledger.books import Books, to_bytes
from dpsql.policy.load import load

ASK = "SELECT COUNT(*) FROM people WHERE age > 30"


def test_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 5)
    url = made(tmp_path)
    assert b"refresh" not in to_bytes(Books())  # so that older checkpoints hold
    ledger = open_ledger(url, DATASET)
    assert ledger.refreshes() == 0
    spent = ledger.dataset_spent()
    assert ledger.refresh().kind is Kind.REFRESH
    ledger.refresh()
    for number in range(10):
        answer(ledger, "alice", f"{number}")
    ledger.close()
    again = open_ledger(url, DATASET)  # from a checkpoint
    assert again.refreshes() == 2
    assert again.dataset_spent() != spent
    again.close()
    verify_ledger(url, DATASET)


def test_served(tmp_path: Path) -> None:
    """The same statement is free until the data change, then asked anew and debited."""
    path = written(tmp_path)
    with serving(path) as (process, port, log), connected(port, "alice") as alice:
        first = alice.execute(ASK).fetchall()
        assert alice.execute(ASK).fetchall() == first
        done = CliRunner().invoke(refresh, [str(path)], catch_exceptions=False)
        assert "SIGHUP" in done.output
        assert done.exit_code == 0
        os.kill(process.pid, signal.SIGHUP)
        waited(log, "is in force")
        alice.execute(ASK).fetchall()
        alice.execute(ASK).fetchall()
    policy = load(path)
    ledger = open_ledger(policy.ledger, policy.dataset)
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds.count(Kind.DEBIT) == 2
    assert kinds.index(Kind.REFRESH) > kinds.index(Kind.DEBIT)
    ledger.close()
