"""The ledger as public relations: `dpsql.budget`, `dpsql.ledger`, `dpsql.releases`, for charts and audits.

Decides which rows a user sees: their own; the owner role sees all. Nothing here comes from private data: prices are
decided from statements and policy, and times and keys are those of the user's own statements. What others spend shows
only in the dataset's totals, which go to the owner; everybody's `dpsql.budget` has the dataset's row, as SHOW has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from dpsql.ledger import account_of
from dpsql.ledger.balance import Balance, Reading, calendar_of, dataset_balance, reading_of, user_balance
from dpsql.ledger.model import Entry, Kind, Ledger
from dpsql.policy.model import Policy
from dpsql.types import COST_UNIT, INT8, NUMERIC, TEXT, TIMESTAMPTZ, Column, Cost, Relation, SqlType, Value

MAX_ROWS: Final = 1_000
"""The newest; an export has all."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _columns(*pairs: tuple[str, SqlType]) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in pairs)


BUDGET: Final = _columns(
    ("whose", TEXT),
    ("account", TEXT),
    ("window", TEXT),
    ("epsilon", NUMERIC),
    ("granted", NUMERIC),
    ("epsilon_spent", NUMERIC),
    ("epsilon_left", NUMERIC),
    ("rho", NUMERIC),
    ("rho_spent", NUMERIC),
    ("delta_for_keys", NUMERIC),
    ("delta_spent", NUMERIC),
)
LEDGER: Final = _columns(
    ("id", INT8),
    ("at", TIMESTAMPTZ),
    ("kind", TEXT),
    ("user", TEXT),
    ("account", TEXT),
    ("window", TEXT),
    ("statement", TEXT),
    ("key", TEXT),
    ("epsilon", NUMERIC),
    ("rho", NUMERIC),
    ("delta", NUMERIC),
    ("account_rho", NUMERIC),
    ("account_epsilon", NUMERIC),
    ("account_delta", NUMERIC),
    ("dataset_rho", NUMERIC),
    ("dataset_epsilon", NUMERIC),
    ("dataset_delta", NUMERIC),
)
RELEASES: Final = _columns(
    ("key", TEXT),
    ("at", TIMESTAMPTZ),
    ("user", TEXT),
    ("account", TEXT),
    ("statement", TEXT),
    ("first", TEXT),
    ("epsilon", NUMERIC),
    ("rho", NUMERIC),
    ("delta", NUMERIC),
)
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "dpsql.budget": BUDGET,
    "dpsql.ledger": LEDGER,
    "dpsql.releases": RELEASES,
}
"""The relations' names and columns, which do not depend on who asks or on what is in them."""


def system_relations(policy: Policy, ledger: Ledger, user: str) -> Mapping[str, Callable[[], Relation]]:
    """What the user may read of the ledger, by name; each relation is made when it is asked for."""
    return {
        "dpsql.budget": lambda: Relation(BUDGET, tuple(_budgets(policy, ledger, user))),
        "dpsql.ledger": lambda: Relation(LEDGER, tuple(_entries(policy, ledger, user))),
        "dpsql.releases": lambda: Relation(RELEASES, tuple(_releases(policy, ledger, user))),
    }


def is_owner(policy: Policy, user: str) -> bool:
    known = policy.users.get(user)
    return known is not None and policy.roles[known.role].owner


def _budgets(policy: Policy, ledger: Ledger, user: str) -> Iterator[tuple[Value, ...]]:
    for name, known in policy.users.items():
        role = policy.roles[known.role]
        if role.budget is None or not (name == user or is_owner(policy, user)):
            continue
        account = account_of(name, known.role, role.shared)
        spending = ledger.spending(account, calendar_of(policy, role))
        yield _budget(name, account, user_balance(policy, role.budget, spending))
    yield _budget("dataset", "", dataset_balance(policy, ledger.dataset_spent()))


def _budget(whose: str, account: str, balance: Balance) -> tuple[Value, ...]:
    rho = None if balance.limits.rho is None else _decimal(balance.limits.rho)
    return (
        whose,
        account,
        balance.window or None,
        balance.budget.epsilon,
        balance.granted,
        balance.epsilon_spent,
        balance.epsilon_left,
        rho,
        _decimal(balance.spent.rho),
        _short(balance.delta_limit),
        _short(balance.delta_spent),
    )


def _entries(policy: Policy, ledger: Ledger, user: str) -> Iterator[tuple[Value, ...]]:
    owner, reading = is_owner(policy, user), reading_of(policy)
    for entry in ledger.newest(None if owner else user, MAX_ROWS):
        if entry.kind is Kind.CHECKPOINT:
            continue
        account, dataset = entry.account_total, entry.dataset_total
        yield (
            entry.id,
            _time(entry.at),
            entry.kind.value,
            entry.user,
            entry.account,
            entry.window,
            entry.statement,
            entry.key,
            *_amounts(entry.cost, reading(entry.account, entry.cost)),
            *_total(account, reading(entry.account, account)),
            *(_total(dataset, reading(None, dataset)) if owner else (None, None, None)),
        )


def _releases(policy: Policy, ledger: Ledger, user: str) -> Iterator[tuple[Value, ...]]:
    """What the user has seen: made for them, or viewed; what was debited and never recorded is no release."""
    reading = reading_of(policy)
    seen = ledger.newest(None if is_owner(policy, user) else user, MAX_ROWS)
    made = {entry.reservation for entry in seen if entry.kind is Kind.RECORD}
    for entry in seen:
        if entry.kind is Kind.VIEW or (entry.kind is Kind.DEBIT and entry.id in made):
            yield _release(entry, reading)


def _release(entry: Entry, reading: Reading) -> tuple[Value, ...]:
    first = "made" if entry.kind is Kind.DEBIT else "viewed"
    amounts = _amounts(entry.cost, reading(entry.account, entry.cost))
    return entry.key, _time(entry.at), entry.user, entry.account, entry.statement, first, *amounts


def _amounts(cost: Cost, epsilon: Decimal) -> tuple[Value, ...]:
    return _short(epsilon), _decimal(cost.rho), _decimal(cost.delta)


def _total(cost: Cost, epsilon: Decimal) -> tuple[Value, ...]:
    return _decimal(cost.rho), _short(epsilon), _decimal(cost.delta)


def _time(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def _decimal(units: int) -> Decimal:
    return _short(units * COST_UNIT)


def _short(value: Decimal) -> Decimal:
    return value.normalize() if value else Decimal(0)
