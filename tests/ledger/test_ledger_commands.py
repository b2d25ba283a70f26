"""What the operator reads: `ledger init`, `ledger verify`, `budget show`, and balances in words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import cast

import psycopg
import pytest
from click import Group
from click.testing import CliRunner
from ledger_cases import AMPLE, answer, debit, made_in_postgres
from ledger_paid import paid

from dpsql.commands.budget import budget
from dpsql.commands.ledger import ledger
from dpsql.dp.accounting import Limits, fits, rho_from_epsilon
from dpsql.dp.privacy import UNITS
from dpsql.errors import Rejected
from dpsql.ledger import BudgetExhausted, LedgerError, Spending, open_ledger
from dpsql.ledger.balance import dataset_balance, in_epsilon, user_balance
from dpsql.ledger.views import system_relations
from dpsql.ledger.words import plain, rounded_down, rounded_up
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.types import Cost

POLICY = """
dpsql: 1
dataset: flights
backend: duckdb:flights.duckdb
ledger: sqlite:flights.ledger
privacy:
  unit: uid
  units: 4000
  max_groups: 12
  max_rows_per_group: 40
  accounting: {accounting}
  budget: {{epsilon: 2, delta: 1e-6}}
tables:
  people: {{unit: uid, columns: {{age: {{type: integer, lower: 0, upper: 120}}}}}}
roles:
  analyst: {{budget: {{epsilon: 1, delta: 1e-6}}}}
  team: {{budget: {{epsilon: 1, delta: 1e-7}}, shared: true}}
  owner: {{owner: true}}
users:
  alice: {{role: analyst}}
  bob: {{role: team}}
  olga: {{role: owner}}
"""


def written(directory: Path, accounting: str = "zcdp") -> Path:
    path = directory / "flights.yaml"
    path.write_text(POLICY.format(accounting=accounting))
    return path


def told(group: Group, *arguments: str) -> str:
    result = CliRunner().invoke(group, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_init_verify_show(tmp_path: Path) -> None:
    path = str(written(tmp_path))
    assert "made at" in told(ledger, "init", path)
    with pytest.raises(LedgerError, match="already"):
        told(ledger, "init", path)

    opened = open_ledger(load(path).ledger, "flights")
    answer(opened, "alice", "key", Cost(0, 10**13, 7))
    debit(opened, "gone", "other", Cost(0, 10**12, 0))
    head = opened.head()
    opened.close()

    report = told(ledger, "verify", path)
    assert f"entries   4 (2 debits, 1 releases)\nhead      {head.hash}\n" in report
    assert "dataset   epsilon 0.676315 (rho 0.011), delta for keys 7e-15" in report
    assert "account   alice: epsilon 0.642938 (rho 0.01), delta for keys 7e-15" in report

    shown = told(budget, "show", path)
    assert "dataset flights\n  budget  epsilon 2, delta 1e-6\n" in shown
    assert "user bob (shares the budget of role team)\n" in shown
    assert "user olga (role owner)\n  no budget: may ask nothing of private tables\n" in shown
    assert "gone, no longer in the policy: spent rho 0.001" in shown


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_one_epsilon_wherever_it_is_told(accounting: str, tmp_path: Path) -> None:
    """Noise of both kinds: what is spent reads as one epsilon, in every command alike, whoever spent it."""
    path = str(written(tmp_path, accounting))
    told(ledger, "init", path)
    policy = load(path)
    opened = open_ledger(policy.ledger, "flights")
    costs = [Cost(165 * 10**12, 3 * 10**13, 7), Cost(0 if accounting == "zcdp" else 10**13, 2 * 10**13, 0)]
    for user in ("alice", "role team"):
        for number, cost in enumerate(costs):
            limits = {"zcdp": AMPLE, "pure": Limits(10**20, None, 10**12)}[accounting]
            opened.reserve(user, [paid(f"{user} {number}", cost)], limits, limits, "statement")
    spent = {row[0]: cast(Decimal, row[5]) for row in system_relations(policy, opened, "olga")["dpsql.budget"]().rows}
    last = system_relations(policy, opened, "olga")["dpsql.ledger"]().rows[-1]
    opened.close()

    shown, verified = told(budget, "show", path), told(ledger, "verify", path)
    exported = json.loads(told(ledger, "export", path).splitlines()[-1])
    for whose, name, total in (
        ("dataset", "dataset  ", "dataset_total"),
        ("bob", "account   role team:", "account_total"),
    ):
        epsilon = re.search(rf"{whose}.*?spent   epsilon (\S+?),? ", shown, re.DOTALL)
        again = re.search(rf"{name} epsilon (\S+?),? ", verified)
        assert epsilon is not None
        assert again is not None
        assert epsilon[1] == again[1] == exported[total]["epsilon"] == plain(spent[whose])
        assert (float(epsilon[1]) > 0.7) == (accounting == "zcdp")
    assert float(exported["dataset_total"]["epsilon"]) == pytest.approx(float(cast(Decimal, last[15])))
    assert exported["dataset_total"]["pure_epsilon"] == ("0.33" if accounting == "zcdp" else "0.35")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://carol:hunter2@127.0.0.1:1/db",
        "postgresql://carol:hunter2@secret@127.0.0.1:1/db",
        "postgresql://carol:x/hunter2@127.0.0.1:1/db",
        "postgresql://carol:hunter%zz2@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=carol&password=hunter2",
        "postgresql://127.0.0.1:1/db?sslmode=hunter2",
    ],
)
def test_no_password_is_told(url: str, tmp_path: Path) -> None:
    """Whatever the ledger's URL is, and however it is misread: no command's words hold any of its secret."""
    path = written(tmp_path)
    path.write_text(path.read_text().replace("sqlite:flights.ledger", url))
    for command in (["init"], ["verify"], ["clock"], ["export"], ["migrate"], ["backup", str(tmp_path / "copy")]):
        result = CliRunner().invoke(ledger, [command[0], str(path), *command[1:]])
        assert isinstance(result.exception, LedgerError), (command, result.exception)
        said = f"{result.output}{result.exception.message}{result.exception.hint}{result.exception.detail}"
        assert not re.search("hunter|secret", said), said
        assert result.exception.__suppress_context__


def test_init_tells_no_password(postgres_uri: str, tmp_path: Path) -> None:
    with psycopg.connect(made_in_postgres(postgres_uri), autocommit=True) as connection:
        connection.execute('DROP SCHEMA "dpsql flights" CASCADE')
    path = written(tmp_path)
    path.write_text(path.read_text().replace("sqlite:flights.ledger", f"{postgres_uri}&password=hunter2"))
    said = told(ledger, "init", str(path))
    assert "made at postgresql://" in said
    assert "hunter2" not in said


def test_no_ledger_no_balance(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        told(budget, "show", str(written(tmp_path)))


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_an_untouched_budget_allows_itself(accounting: str, tmp_path: Path) -> None:
    policy = load(written(tmp_path, accounting))
    balance = dataset_balance(policy, Cost())
    assert balance.epsilon_spent == 0
    assert balance.epsilon_left == 2
    assert balance.delta_left == balance.delta_limit == Decimal("1e-6") / (1 if accounting == "pure" else 2)


@pytest.mark.parametrize("spent", ["0.1", "0.35", "0.9", "0.999999", "1"])
def test_what_is_left_still_fits(spent: str, tmp_path: Path) -> None:
    """The epsilon shown as left can be asked for, and a little more cannot."""
    policy = load(written(tmp_path))
    budget_of_team = policy.roles["team"].budget
    assert budget_of_team is not None
    delta = budget_of_team.delta / 2
    before = priced(spent, delta)
    balance = user_balance(policy, budget_of_team, Spending(before))
    if balance.epsilon_left:
        assert fits(before, priced(str(balance.epsilon_left), delta), balance.limits)
    assert not fits(before, priced(str(balance.epsilon_left + Decimal("2e-6")), delta), balance.limits)
    assert abs(balance.epsilon_spent - Decimal(spent)) < Decimal("1e-6")


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
@pytest.mark.parametrize("others", ["0.2", "0.7", "1.999999"])
def test_a_user_has_no_more_left_than_the_dataset(accounting: str, others: str, tmp_path: Path) -> None:
    """What fits both, whoever spent it, and no larger number than the dataset's; the budget itself stays what it is."""
    policy = load(written(tmp_path, accounting))
    budget = policy.roles["team"].budget
    assert budget is not None
    spent = Cost(int(Decimal(others) * UNITS), 0, 0) if accounting == "pure" else priced(others, Decimal("5e-7"))
    granted = Spending(Cost(), granted=3 * UNITS, of_all=spent)
    balance, of_all = user_balance(policy, budget, granted), dataset_balance(policy, spent)
    assert balance.budget.epsilon == 4
    assert balance.by_dataset
    assert balance.epsilon_spent == 0
    left = balance.epsilon_left
    assert left == of_all.epsilon_left
    asked = Cost(int(left * UNITS), 0, 0) if accounting == "pure" else priced(str(left), Decimal("5e-8"))
    assert fits(spent, asked, of_all.limits)
    assert not user_balance(policy, budget, Spending(Cost())).by_dataset


def priced(epsilon: str, delta: Decimal) -> Cost:
    return Cost(0, int(rho_from_epsilon(Decimal(epsilon), delta) * UNITS), 0)


def test_a_refusal_read_as_epsilon(tmp_path: Path) -> None:
    policy: Policy = load(written(tmp_path))
    spent = priced("1.9", policy.privacy.budget.delta / 2)
    balance = dataset_balance(policy, spent)
    asked = priced("1", policy.privacy.budget.delta / 2)
    error = BudgetExhausted("No: rho 0.1.", whose="dataset", spent=spent, asked=asked, limits=balance.limits)
    told_so = in_epsilon(error, balance)
    assert told_so.message.startswith("No: epsilon 1 asked, 1.9 of 2 spent, at most 0.")
    assert told_so.detail == "As the ledger adds it up: rho 0.1."
    assert told_so.hint is not None
    assert told_so.hint.startswith(f"SET dpsql.epsilon = {balance.epsilon_left} or less fits. ")
    assert (told_so.whose, told_so.spent, told_so.asked) == ("dataset", spent, asked)


def test_a_refusal_never_says_to_ask_for_less_where_nothing_is_left(tmp_path: Path) -> None:
    policy: Policy = load(written(tmp_path))
    delta = policy.privacy.budget.delta / 2
    balance = dataset_balance(policy, priced("2", delta))
    error = BudgetExhausted(
        "No.", whose="dataset", spent=balance.spent, asked=priced("1", delta), limits=balance.limits
    )
    hint = in_epsilon(error, balance).hint
    assert hint is not None
    assert hint.startswith("Nothing is left of it, for anybody and for ever.")
    user = BudgetExhausted("No.", whose="user", spent=error.spent, asked=error.asked, limits=error.limits)
    assert str(in_epsilon(user, balance).hint).startswith("Nothing is left of it, unless")
    monthly = replace(balance, window="month, until 2026-02-01 00:00 UTC")
    assert str(in_epsilon(user, monthly).hint).startswith(
        "Nothing is left of it in this window (month, until 2026-02-01"
    )


def test_amounts_are_rounded_to_the_safe_side() -> None:
    assert (rounded_up(1234567890123456), rounded_down(1234567890123456)) == ("1.23457", "1.23456")
    assert (rounded_up(1), rounded_up(0), rounded_up(10**25)) == ("1e-15", "0", "10000000000")


def test_no_more_is_revoked_than_there_is(tmp_path: Path) -> None:
    """What is below 0 would swallow later grants."""
    path = str(written(tmp_path))
    told(ledger, "init", path)
    with pytest.raises(Rejected, match=r"is epsilon 1: 1\.5 cannot be revoked"):
        told(budget, "revoke", path, "--user", "alice", "--epsilon", "1.5")
    assert "budget  epsilon 0" in told(budget, "revoke", path, "--user", "alice", "--epsilon", "1")
    with pytest.raises(Rejected, match="cannot be revoked"):
        told(budget, "revoke", path, "--user", "alice", "--epsilon", "0.1")
