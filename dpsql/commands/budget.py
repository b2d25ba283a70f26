"""`dpsql budget`: what each user and the dataset may spend, have spent and have left; grants and revocations.

Decides the wording only; a grant is an entry of the ledger. The dataset's budget is the policy's alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import click

from dpsql.dp.accounting import parse_amount
from dpsql.dp.comparison import figures
from dpsql.errors import BAD_PARAMETER, UNDEFINED_OBJECT, Rejected
from dpsql.ledger import Ledger, account_of, open_ledger
from dpsql.ledger.balance import Balance, calendar_of, dataset_balance, fitting, read, user_balance
from dpsql.ledger.clock import SECOND
from dpsql.ledger.words import plain, rounded_up
from dpsql.policy.load import load
from dpsql.policy.model import Budget, Policy, User
from dpsql.types import Cost


@click.group()
def budget() -> None:
    """Show what may be spent, and what has been; grant more, or revoke."""


@budget.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--user", help="Only this user's budget.")
def show(policy: Path, user: str | None) -> None:
    """Print spent and left, of the dataset and of each user."""
    loaded = load(policy)
    if user is not None:
        _known(loaded, policy, user)
    with closing(open_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)) as ledger:
        click.echo("\n".join((*_lines(loaded, ledger, user), *_behind(ledger))))


@budget.command(short_help="Raise a user's budget.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--user", required=True, help="Whose budget is raised; its role's, if the role shares one.")
@click.option("--epsilon", required=True, help="By how much.")
def grant(policy: Path, user: str, epsilon: str) -> None:
    """Raise a user's budget: in the window of now, or for ever if it has none. The dataset's budget stays."""
    _change(policy, user, parse_amount(epsilon))


@budget.command(short_help="Lower a user's budget.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--user", required=True, help="Whose budget is lowered; its role's, if the role shares one.")
@click.option("--epsilon", required=True, help="By how much.")
def revoke(policy: Path, user: str, epsilon: str) -> None:
    """Lower a user's budget: in the window of now, or for ever if it has none. What was spent stays spent."""
    _change(policy, user, -parse_amount(epsilon))


def _change(path: Path, user: str, epsilon: Decimal) -> None:
    policy = load(path)
    role_name = _known(policy, path, user).role
    role = policy.roles[role_name]
    if role.budget is None:
        raise Rejected(f"role {role_name} has no budget that could be changed", hint="Give it one in the policy.")
    with closing(open_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)) as ledger:
        _check_revoked(policy, ledger, user, epsilon)
        entry = ledger.grant(user, epsilon, account=account_of(user, role_name, role.shared))
        verb = "granted to" if epsilon > 0 else "revoked from"
        click.echo(f"epsilon {plain(abs(epsilon))} {verb} {entry.account}, entry {entry.id}")
        click.echo("\n".join(_user(policy, ledger, user)))
        most = policy.privacy.budget.epsilon
        if epsilon > 0 and _budget(policy, ledger, user, role.budget) > most:
            click.echo(f"This is more than the dataset's epsilon {plain(most)}, which will run out first.", err=True)


def _budget(policy: Policy, ledger: Ledger, user: str, given: Budget) -> Decimal:
    """The epsilon of a user's budget as it is now, what was granted included."""
    role_name = policy.users[user].role
    role = policy.roles[role_name]
    spending = ledger.spending(account_of(user, role_name, role.shared), calendar_of(policy, role))
    return user_balance(policy, given, spending).budget.epsilon


def _check_revoked(policy: Policy, ledger: Ledger, user: str, epsilon: Decimal) -> None:
    """No more can be revoked than the budget is: what is below 0 would swallow later grants without a word."""
    given = policy.roles[policy.users[user].role].budget
    if given is None or epsilon > 0:
        return
    there = _budget(policy, ledger, user, given)
    if -epsilon > there:
        raise Rejected(
            f"the budget of {user} is epsilon {plain(there)}: {plain(-epsilon)} cannot be revoked from it",
            sqlstate=BAD_PARAMETER,
            hint=f"Revoke {plain(there)} or less." if there else "There is nothing to revoke.",
        )


def _known(policy: Policy, path: Path, user: str) -> User:
    if user not in policy.users:
        raise Rejected(f"there is no user {user!r} in {path}", sqlstate=UNDEFINED_OBJECT)
    return policy.users[user]


def _lines(policy: Policy, ledger: Ledger, user: str | None) -> Iterator[str]:
    if user is None:
        yield f"dataset {policy.dataset}"
        of_all = dataset_balance(policy, ledger.dataset_spent())
        yield from _balance(of_all)
        yield from _comparison(of_all, ledger.events())
    for name in policy.users if user is None else (user,):
        yield from _user(policy, ledger, name)
    if user is None:
        yield from _others(policy, ledger)


def _user(policy: Policy, ledger: Ledger, name: str) -> Iterator[str]:
    role_name = policy.users[name].role
    role = policy.roles[role_name]
    yield f"user {name} ({'shares the budget of role' if role.shared else 'role'} {role_name})"
    if role.budget is None:
        yield "  no budget: may ask nothing of private tables"
        return
    account = account_of(name, role_name, role.shared)
    calendar = calendar_of(policy, role)
    balance = user_balance(policy, role.budget, ledger.spending(account, calendar))
    yield from _balance(balance)
    yield from _fitting(balance, dataset_balance(policy, ledger.dataset_spent()), ledger.last_statement(account))
    yield from _comparison(balance, ledger.events(account, calendar))


def _balance(balance: Balance) -> Iterator[str]:
    budget, spent = balance.budget, balance.spent
    gate = "" if balance.limits.rho is None else f" (rho {rounded_up(spent.rho)} of {rounded_up(balance.limits.rho)})"
    granted = f", {plain(balance.granted)} of it by grants" if balance.granted else ""
    of_dataset = " (all that the dataset has left)" if balance.by_dataset else ""
    yield f"  budget  epsilon {plain(budget.epsilon)}, delta {plain(budget.delta)}{granted}"
    if balance.window:
        yield f"  window  {balance.window}"
    yield f"  spent   epsilon {plain(balance.epsilon_spent)}{gate}, delta for keys {plain(balance.delta_spent)}"
    yield (
        f"  left    a statement of at most epsilon {plain(balance.epsilon_left)}{of_dataset}, "
        f"delta for keys {plain(balance.delta_left)} of {plain(balance.delta_limit)}"
    )


def _fitting(balance: Balance, of_all: Balance, last: Cost) -> Iterator[str]:
    count = fitting((balance, of_all), last)
    if count is not None:
        epsilon = plain(read(last, balance.reading_delta))
        yield f"  fits    {count:,} more like the last statement (epsilon {epsilon} by itself)"


def _comparison(balance: Balance, events: Counter[tuple[str, int]]) -> Iterator[str]:
    """The same events by other accountants, at the same delta. They may tell, never gate."""
    delta = balance.reading_delta or balance.budget.delta
    made: dict[str, dict[int, int]] = {"gaussian": {}, "laplace": {}, "choice": {}}
    for (name, amount), count in events.items():
        if name in made:
            made[name][amount] = count
    if not delta or not any(made.values()):
        return
    found = figures(made["gaussian"], made["laplace"], made["choice"], delta)
    what = "1 privacy event" if found.events == 1 else f"{found.events:,} privacy events"
    yield (
        f"  compare {what} at delta {plain(delta)}: epsilon {found.basic:.4g} by adding, "
        f"{found.advanced:.4g} by advanced composition, {found.pld:.4g} by PLD"
    )


def _others(policy: Policy, ledger: Ledger) -> Iterator[str]:
    """Accounts that spent once and are in the policy no more: what they learned stays known."""
    known = {account_of(name, user.role, policy.roles[user.role].shared) for name, user in policy.users.items()}
    for account, spent in ledger.accounts():
        if account not in known:
            yield f"{account}, no longer in the policy: spent rho {rounded_up(spent.rho)}"


def _behind(ledger: Ledger) -> Iterator[str]:
    """Told only when it matters: by as much do windows open late."""
    hours = ledger.behind() / (3600 * SECOND)
    if hours >= 1:
        yield (
            f"warning: the clock is {hours:.0f} h ahead of what the ledger believes, so windows open late; if the "
            "clock is right, run `dpsql ledger clock --accept`"
        )
