"""What statements cost and what is left, asked of the proxy before it is asked for anything else. Free.

Decides when a statement is expensive enough to ask first: when it takes more than a tenth of what is left to the user
or to the dataset, or costs more epsilon than the user has said or the role's default gives (`dpsql.max_error` sets
prices that nobody has named). A statement whose releases the user has all seen is free, and never asked about.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import floor
from typing import Any

from dpsql.errors import Rejected
from dpsql.pgwire.values import WireValue
from dpsql.shell.connection import Connection, Lost

LARGE_SHARE = 0.1
PREFIX = "EXPLAIN (FORMAT JSON) "


@dataclass(frozen=True, slots=True)
class Price:
    """What a statement costs: `rho` gates under zCDP, else `epsilon` does."""

    epsilon: float
    rho: float

    @property
    def free(self) -> bool:
        return self.epsilon == 0


@dataclass(frozen=True, slots=True)
class Account:
    """A budget with what is spent of it. `limit` and `spent` are rho under zCDP, epsilon under pure accounting."""

    whose: str
    window: str
    epsilon: float
    epsilon_spent: float
    epsilon_left: float
    limit: float
    spent: float
    zcdp: bool

    @property
    def left(self) -> float:
        return max(self.limit - self.spent, 0.0)

    @property
    def share_spent(self) -> float:
        return min(self.spent / self.limit, 1.0) if self.limit > 0 else 1.0

    def share(self, price: Price) -> float:
        """The part of what is left that the price takes."""
        cost = price.rho if self.zcdp else price.epsilon
        return cost / self.left if self.left > 0 else float("inf")

    def statements(self, price: Price) -> int:
        """How many statements of that price still fit."""
        cost = price.rho if self.zcdp else price.epsilon
        return floor(self.left / cost * (1 + 1e-9)) if cost > 0 else 0


def price_of(connection: Connection, statement: str) -> Price:
    """The price of a statement, zero where it is known to be a replay. Raises what explaining it raises."""
    plan = _plan(connection, statement)
    if not plan:
        return Price(0.0, 0.0)
    price = Price(float(plan["price"]["epsilon"]), float(plan["price"]["rho"]))
    foreseen = plan.get("replay", [])
    if foreseen and all(each["source"] == "free" for each in foreseen):
        return Price(0.0, 0.0)
    return price


def _plan(connection: Connection, statement: str) -> dict[str, Any]:
    (row,) = connection.run(PREFIX + statement).rows
    made = json.loads(str(row[0]))
    if isinstance(made, list):  # of public tables alone: the plan is Postgres's own
        return {}
    if not isinstance(made, dict) or "price" not in made:
        raise Rejected("EXPLAIN told no price.")
    return made


def standard_price(connection: Connection, tables: Sequence[str]) -> Price | None:
    """What a statement costs under the settings as they are: the price of counting one of these private tables."""
    for name in tables:
        try:
            return price_of_count(connection, name)
        except Lost:
            raise
        except Rejected:
            continue
    return None


def price_of_count(connection: Connection, table: str) -> Price:
    """The price of counting a table, replay or not. Raises what explaining it raises, without a position."""
    name = table.replace('"', '""')
    try:
        plan = _plan(connection, f'SELECT count(*) FROM "{name}"')
    except Rejected as error:
        error.position = None
        raise
    return Price(float(plan["price"]["epsilon"]), float(plan["price"]["rho"]))


def accounts(connection: Connection) -> tuple[Account, ...]:
    """The user's own budget, if there is one, then the dataset's."""
    query = """SELECT whose, "window", epsilon, epsilon_spent, epsilon_left, rho, rho_spent FROM dpsql.budget"""
    return tuple(_account(row) for row in connection.run(query).rows if row[0] in (connection.user, "dataset"))


def _account(row: Sequence[WireValue]) -> Account:
    epsilon, spent, left, rho, rho_spent = (_float(value) for value in row[2:7])
    zcdp = row[5] is not None
    return Account(
        whose=str(row[0]),
        window=str(row[1] or ""),
        epsilon=epsilon,
        epsilon_spent=spent,
        epsilon_left=left,
        limit=rho if zcdp else epsilon,
        spent=rho_spent if zcdp else spent,
        zcdp=zcdp,
    )


def _float(value: WireValue) -> float:
    return float(value) if isinstance(value, Decimal | int | float) else 0.0


def expensive(price: Price, usual: float, budgets: Sequence[Account]) -> str | None:
    """Why to ask before a statement, in words; None where there is no reason to."""
    if price.free:
        return None
    for account in budgets:
        share = account.share(price)
        if share > 1:
            return None  # it will be refused, free of charge and in better words
        if share > LARGE_SHARE:
            whose = "the dataset's budget" if account.whose == "dataset" else "your budget"
            return f"This takes epsilon {price.epsilon:g}, {share:.0%} of what is left of {whose}."
    if price.epsilon > usual * (1 + 1e-9):
        return f"This takes epsilon {price.epsilon:g}; a statement of yours usually takes {usual:g}."
    return None
