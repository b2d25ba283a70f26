"""What a budget allows, what is spent and what is left, as numbers that a person reads: epsilon and delta.

Under zcdp the gate is rho; it is read as an epsilon at the share of delta that is not kept for key selection. Decides
how amounts are read, never whether a statement fits: that is `dpsql.dp.accounting.fits` on exact integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from dpsql.dp.accounting import Limits, epsilon_from_rho, limits, near_epsilon, rho_from_epsilon
from dpsql.dp.privacy import UNITS
from dpsql.ledger import account_of
from dpsql.ledger.clock import SECOND
from dpsql.ledger.model import BudgetExhausted, LimitsOf, Spending
from dpsql.ledger.window import Calendar
from dpsql.ledger.words import plain
from dpsql.policy.model import Budget, Policy, Role
from dpsql.types import COST_UNIT, Cost

_NOTHING: Final = Decimal(0)
_FINE: Final = Decimal("1e-6")
_LEAST_SURE, _UNSURE = 0.01, 1e-8
"""From the first on, epsilons that differ by the second have rhos that differ by far more than a unit."""


@dataclass(frozen=True, slots=True)
class Balance:
    """A budget and its state. `epsilon_left` is the largest epsilon that one more statement may name; a user has no
    more left than the dataset, and `by_dataset` tells where that is less than their own budget holds.

    `budget` includes what was `granted`. `reading_delta`: where rho is read as epsilon, None under pure. `delta_*`:
    what key selection may spend. `window`: its name and when it ends; "" for a budget that never begins again.
    """

    budget: Budget
    limits: Limits
    spent: Cost
    reading_delta: Decimal | None
    epsilon_left: Decimal
    delta_limit: Decimal
    delta_spent: Decimal
    delta_left: Decimal
    granted: Decimal = _NOTHING
    window: str = ""
    by_dataset: bool = False

    @property
    def epsilon_spent(self) -> Decimal:
        """What was spent, as one epsilon. Worked out when it is asked for: most answers tell only what is left."""
        return read(self.spent, self.reading_delta)


def calendar_of(policy: Policy, role: Role) -> Calendar | None:
    """The windows of a role's budget, in the policy's time zone; None for a budget that never begins again."""
    return None if role.window is None else Calendar(role.window, policy.timezone)


def limits_of(policy: Policy, budget: Budget) -> LimitsOf:
    """A budget's limits, raised by what was granted."""
    return lambda granted: _limits(policy, _raised(budget, granted))


def _raised(budget: Budget, granted: int) -> Budget:
    return Budget(max(_NOTHING, budget.epsilon + granted * COST_UNIT), budget.delta) if granted else budget


def _limits(policy: Policy, budget: Budget) -> Limits:
    privacy = policy.privacy
    if budget.epsilon == 0:  # all of it was revoked
        return Limits(0, None, 0) if privacy.accounting == "pure" else Limits(None, 0, 0)
    return limits(privacy.accounting, budget.epsilon, budget.delta, privacy.key_delta_share)


def dataset_balance(policy: Policy, spent: Cost) -> Balance:
    """The dataset's budget, which bounds what all users learn together."""
    budget = policy.privacy.budget
    return _balance(policy, budget, spent, _left(_limits(policy, budget), spent, statement_delta(policy, budget)))


def user_balance(policy: Policy, budget: Budget, spending: Spending) -> Balance:
    """A user's, or a shared role's, budget.

    Its statements are read at the smaller of its delta and the dataset's. What is left is the smaller of both, too,
    each at its own delta: at a user's smaller one the dataset's rho would read as more epsilon than it promises.
    """
    raised, of_all = _raised(budget, spending.granted), dataset_balance(policy, spending.of_all)
    own = _left(_limits(policy, raised), spending.spent, statement_delta(policy, budget))
    balance = _balance(policy, raised, spending.spent, min(own, of_all.epsilon_left))
    return replace(
        balance,
        delta_left=min(balance.delta_left, of_all.delta_left),
        granted=spending.granted * COST_UNIT,
        window=_window(policy, spending),
        by_dataset=of_all.epsilon_left < own,
    )


def statement_delta(policy: Policy, budget: Budget) -> Decimal:
    """Where the rho of one statement is read as its epsilon: its delta for noise."""
    return min(budget.delta, policy.privacy.budget.delta) * (1 - policy.privacy.key_delta_share)


Reading = Callable[[str | None, Cost], Decimal]
"""An account's cost, or the dataset's (None), as one epsilon."""


def reading_of(policy: Policy) -> Reading:
    """How costs read under this policy, the same wherever they are told.

    Under zcdp a cost's own epsilon is that of its pure events alone, so it is no reading of the whole.
    """
    deltas: dict[str | None, Decimal] = {None: policy.privacy.budget.delta}
    for name, user in policy.users.items():
        role = policy.roles[user.role]
        if role.budget is not None:
            deltas[account_of(name, user.role, role.shared)] = role.budget.delta
    share = 1 - policy.privacy.key_delta_share

    def reading(account: str | None, cost: Cost) -> Decimal:
        if policy.privacy.accounting == "pure":
            return read(cost, None)
        return read(cost, deltas.get(account, deltas[None]) * share)

    return reading


def _window(policy: Policy, spending: Spending) -> str:
    if not spending.window:
        return ""
    ends = datetime.fromtimestamp(spending.ends // SECOND, ZoneInfo(policy.timezone))
    return f"{spending.window}, until {ends:%Y-%m-%d %H:%M} {policy.timezone}"


def _balance(policy: Policy, budget: Budget, spent: Cost, left: Decimal) -> Balance:
    most = _limits(policy, budget)
    reading = None if most.rho is None else budget.delta * (1 - policy.privacy.key_delta_share)
    return Balance(
        budget=budget,
        limits=most,
        spent=spent,
        reading_delta=reading,
        epsilon_left=left,
        delta_limit=(most.delta or 0) * COST_UNIT,
        delta_spent=spent.delta * COST_UNIT,
        delta_left=max(0, (most.delta or 0) - spent.delta) * COST_UNIT,
    )


def fitting(balances: Iterable[Balance], cost: Cost) -> int | None:
    """How many more statements of this cost fit all of these budgets; None for one that costs nothing."""
    counts = []
    for balance in balances:
        most, spent = balance.limits, balance.spent
        parts = (
            (most.epsilon, spent.epsilon, cost.epsilon),
            (most.rho, spent.rho, cost.rho),
            (most.delta, spent.delta, cost.delta),
        )
        counts += [max(0, limit - used) // price for limit, used, price in parts if limit is not None and price]
    return min(counts, default=None)


@lru_cache(maxsize=65_536)
def read(cost: Cost, reading_delta: Decimal | None) -> Decimal:
    """A cost as an epsilon, to six decimals: its rho at `reading_delta`, or the epsilon itself where that is None."""
    if reading_delta is None:
        return cost.epsilon * COST_UNIT
    if cost.rho == 0:
        return _NOTHING
    return epsilon_from_rho(Fraction(cost.rho, UNITS), reading_delta).quantize(_FINE, ROUND_HALF_EVEN)


@lru_cache(maxsize=256)
def _left(most: Limits, spent: Cost, delta: Decimal) -> Decimal:
    """The largest epsilon, to six decimals, whose statement still fits."""
    if most.rho is None:
        return max(0, (most.epsilon or 0) - spent.epsilon) * COST_UNIT
    left = Fraction(most.rho - spent.rho, UNITS)
    if left <= 0:
        return _NOTHING
    rough = near_epsilon(left, delta)
    near = Decimal(rough).quantize(_FINE, ROUND_HALF_EVEN)
    if rough > _LEAST_SURE and abs(float(near) - rough) > _UNSURE:
        fits = near < rough
    else:
        fits = near > 0 and rho_from_epsilon(near, delta) <= left
    return near if fits else max(_NOTHING, near - _FINE)


def in_epsilon(error: BudgetExhausted, balance: Balance) -> BudgetExhausted:
    """The same refusal in words of epsilon, rho in its detail; `balance` is that of the budget that refused."""
    message, detail = error.message, error.detail
    asked = read(error.asked, balance.reading_delta)
    if balance.reading_delta is not None:
        head, _, amounts = error.message.partition(": ")
        message = (
            f"{head}: epsilon {plain(asked)} asked, {plain(balance.epsilon_spent)} of "
            f"{plain(balance.budget.epsilon)} spent, at most {plain(balance.epsilon_left)} left"
        )
        detail = f"As the ledger adds it up: {amounts}" if amounts else None
    made = BudgetExhausted(message, whose=error.whose, spent=error.spent, asked=error.asked, limits=error.limits)
    made.detail, made.hint = detail, _what_fits(error, asked, balance)
    return made


def _what_fits(error: BudgetExhausted, asked: Decimal, balance: Balance) -> str:
    """What to do about a refusal: never to ask for less where nothing is left."""
    free = "What was answered before is free to ask again."
    if 0 < balance.epsilon_left < asked:
        return f"SET dpsql.epsilon = {plain(balance.epsilon_left)} or less fits. {free}"
    if error.asked.delta > 0 and balance.epsilon_left > 0:
        return f"It is delta that is used up: group by columns whose values are declared, which spends none. {free}"
    if error.whose == "dataset":
        return f"Nothing is left of it, for anybody and for ever. {free}"
    if balance.window:
        return f"Nothing is left of it in this window ({balance.window}). {free}"
    return f"Nothing is left of it, unless the dataset's owner grants more. {free}"
