"""Grants and revocations: entries that change what a user may spend, and never what was spent."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from ledger_cases import AMPLE, COST, DATASET, connection_of, made
from ledger_paid import paid
from test_ledger_commands import told, written

from dpsql.commands.budget import budget
from dpsql.commands.ledger import ledger as ledger_command
from dpsql.dp.accounting import Limits
from dpsql.errors import Failed, Rejected
from dpsql.ledger import BudgetExhausted, Calendar, Kind, Ledger, open_ledger, verify_ledger
from dpsql.ledger.balance import limits_of, user_balance
from dpsql.policy.load import load

ONE = Decimal(1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(made(tmp_path), DATASET)
    yield ledger
    ledger.close()


def fitting(ledger: Ledger, user: str, calendar: Calendar | None = None) -> int:
    """How many statements fit, where a budget of one statement is raised by one for each epsilon granted."""

    def limits(granted: int) -> Limits:
        return Limits(None, COST.rho * (1 + granted // 10**15), 10**12)

    for number in range(20):
        key = f"{user} {ledger.head().count}"
        try:
            ledger.reserve(user, [paid(key, COST)], limits, AMPLE, "s", calendar=calendar)
        except BudgetExhausted:
            return number
    raise AssertionError("no end")


def test_a_grant_is_an_entry_and_counts_at_once(ledger: Ledger) -> None:
    assert fitting(ledger, "alice") == 1
    entry = ledger.grant("alice", 2 * ONE)
    assert (entry.kind, entry.account, entry.content) == (Kind.GRANT, "alice", '{"epsilon":2000000000000000}')
    assert fitting(ledger, "alice") == 2
    assert fitting(ledger, "bob") == 1


def test_a_revocation_gives_nothing_back(ledger: Ledger) -> None:
    ledger.grant("alice", 2 * ONE)
    assert fitting(ledger, "alice") == 3
    assert ledger.grant("alice", -ONE).kind is Kind.REVOKE
    assert ledger.spent("alice").rho == 3 * COST.rho
    ledger.grant("alice", ONE)
    assert fitting(ledger, "alice") == 0
    ledger.grant("alice", ONE)
    assert fitting(ledger, "alice") == 1


def test_another_process_sees_it(ledger: Ledger, tmp_path: Path) -> None:
    other = open_ledger(f"sqlite:{tmp_path / 'flights.ledger'}", DATASET)
    other.grant("alice", ONE)
    assert fitting(ledger, "alice") == 2
    other.grant("alice", -2 * ONE)
    assert ledger.spending("alice").granted == -(10**15)
    other.close()


def test_kept_over_a_restart_and_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.durable.CHECKPOINT_EVERY", 5)
    url = made(tmp_path)
    for number in range(12):
        ledger = open_ledger(url, DATASET)
        assert ledger.spending("alice").granted == number * 10**15
        ledger.grant("alice", ONE)
        ledger.close()
    verify_ledger(url, DATASET)


def test_of_one_window(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    month = Calendar("month", "UTC")
    ledger.grant("alice", ONE)
    assert ledger.spending("alice", month).granted == 10**15
    end = ledger.spending("alice", month).ends
    monkeypatch.setattr("dpsql.ledger.clock.Clock.now", lambda *_: (end, "later 1"))
    assert ledger.spending("alice", month).granted == 0
    assert ledger.spending("alice").granted == 10**15


@pytest.mark.parametrize("content", ["", "{}", '{"epsilon":-1}', '{"epsilon":"1"}', '{"epsilon":1.5}', "[]"])
def test_no_other_grant_is_believed(content: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.books.granting", lambda _: content)
    with pytest.raises(Failed):
        ledger.grant("alice", ONE)
    assert connection_of(ledger).execute("SELECT count(*) FROM entry").fetchone() == (1,)


@pytest.mark.parametrize(("user", "epsilon"), [("", ONE), ("alice", Decimal(0))])
def test_of_nothing_or_to_nobody(user: str, epsilon: Decimal, ledger: Ledger) -> None:
    with pytest.raises(Failed):
        ledger.grant(user, epsilon)


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_limits_follow(accounting: str, tmp_path: Path, ledger: Ledger) -> None:
    policy = load(written(tmp_path, accounting))
    role = policy.roles["analyst"]
    assert role.budget is not None
    limits = limits_of(policy, role.budget)
    gates = [limits(granted * 10**14).rho or limits(granted * 10**14).epsilon or 0 for granted in range(-12, 12)]
    assert gates == sorted(gates)
    assert gates[:3] == [0, 0, 0]
    ledger.grant("alice", Decimal("0.5"))
    balance = user_balance(policy, role.budget, ledger.spending("alice"))
    assert balance.budget.epsilon == Decimal("1.5")
    assert abs(balance.epsilon_left - Decimal("1.5")) < Decimal("1e-5")


def test_commands(tmp_path: Path) -> None:
    path = str(written(tmp_path))
    told(ledger_command, "init", path)
    shown = told(budget, "grant", path, "--user", "alice", "--epsilon", "0.5")
    assert "epsilon 0.5 granted to alice, entry 2" in shown
    assert "budget  epsilon 1.5, delta 1e-6, 0.5 of it by grants" in shown
    assert "run out first" not in shown
    shown = told(budget, "grant", path, "--user", "alice", "--epsilon", "1")
    assert "This is more than the dataset's epsilon 2, which will run out first." in shown
    told(budget, "revoke", path, "--user", "alice", "--epsilon", "1")
    assert "epsilon 0.25 granted to role team" in told(budget, "grant", path, "--user", "bob", "--epsilon", "0.25")
    assert "budget  epsilon 0, " in told(budget, "revoke", path, "--user", "alice", "--epsilon", "1.5")
    for user, epsilon in (("olga", "1"), ("mallory", "1"), ("alice", "nan"), ("alice", "-1"), ("alice", "0")):
        with pytest.raises(Rejected):
            told(budget, "grant", path, "--user", user, "--epsilon", epsilon)
