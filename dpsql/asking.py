"""Who asks, on which terms, and whose budget it counts against: from the policy and the session's settings alone.

Decides what a user may set and what a statement of theirs may cost. Nothing here looks at a statement or at data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, TypedDict

from dpsql.compiler import Terms
from dpsql.dp.accounting import Limits, least_price
from dpsql.errors import BAD_PARAMETER, NOT_PERMITTED, Rejected
from dpsql.ledger import Calendar, LimitsOf, account_of
from dpsql.ledger.balance import calendar_of, limits_of
from dpsql.ledger.words import plain
from dpsql.policy.model import Budget, Policy, Role
from dpsql.policy.schema import Schema
from dpsql.types import Settings

REUSE_ERROR: Final = Decimal(3)
"""A derived answer is as good as a fresh one at a third of the epsilon, and free."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A user with what their role allows."""

    name: str
    role: Role
    role_name: str
    budget: Budget

    @property
    def account(self) -> str:
        return account_of(self.name, self.role_name, self.role.shared)


class Account(TypedDict):
    """Whose budget a statement counts against."""

    shared: bool
    calendar: Calendar | None
    account: str


def asker_of(policy: Policy, user: str, *, public_only: bool = False) -> Asker:
    """`public_only`: a user without a budget may ask what is free, planned as if with the dataset's."""
    known = policy.users.get(user)
    role = policy.roles[known.role] if known is not None else None
    budget = policy.privacy.budget if public_only and role is not None else None
    if role is not None and role.budget is not None:
        budget = role.budget
    if known is None or role is None or budget is None:
        raise Rejected(
            "This user has no budget, so no private table can be asked.",
            sqlstate=NOT_PERMITTED,
            hint="Connect as a user whose role has a budget in the policy.",
        )
    return Asker(user, role, known.role, budget)


def terms_of(schema: Schema, asker: Asker, settings: Settings) -> Terms:
    """The terms of a statement. Raises Rejected 22023 for settings beyond what the policy allows this user."""
    epsilon = settings.epsilon or asker.role.epsilon
    most = asker.role.max_epsilon
    if most is not None and epsilon > most:
        raise Rejected(
            f"epsilon {plain(epsilon)} is above the {plain(most)} that a statement of yours may cost",
            sqlstate=BAD_PARAMETER,
            hint=f"SET dpsql.epsilon = {plain(most)} or less.",
        )
    least = least_of(schema.policy, asker)
    if epsilon < least:
        raise Rejected(
            f"epsilon {plain(epsilon)} is below {plain(least)}, the least that a statement of yours may cost",
            sqlstate=BAD_PARAMETER,
            hint=f"SET dpsql.epsilon = {plain(least)} or more: a budget holds a million statements at most.",
        )
    reuse_error_of(asker, settings)
    private = [table for table in schema.tables.values() if not table.public]
    _check_tighter("max_groups", settings.max_groups, [table.max_groups for table in private])
    _check_tighter("max_rows_per_group", settings.max_rows_per_group, [table.max_rows_per_group for table in private])
    delta = min(asker.budget.delta, schema.policy.privacy.budget.delta)
    for name, value in settings.stated:
        _check_delta(value, delta) if name == "delta" else _check_unit(value, schema.policy)
    budgets = (asker.budget.epsilon, schema.policy.privacy.budget.epsilon)
    largest_epsilon = min(budgets if most is None else (most, *budgets))
    return Terms(
        epsilon,
        delta,
        settings.mechanism,
        max_groups=settings.max_groups,
        max_rows_per_group=settings.max_rows_per_group,
        max_error=settings.max_error,
        max_epsilon=largest_epsilon,
        min_epsilon=least,
        error_bars=settings.error_bars,
    )


def least_of(policy: Policy, asker: Asker) -> Decimal:
    """The least that a statement may cost: of the smaller of the two budgets that it is debited from."""
    privacy = policy.privacy
    epsilon = min(asker.budget.epsilon, privacy.budget.epsilon)
    delta = min(asker.budget.delta, privacy.budget.delta)
    return least_price(privacy.accounting, epsilon, delta, privacy.key_delta_share)


def reuse_error_of(asker: Asker, settings: Settings) -> Decimal:
    """The most error of a derived answer, in fresh ones'. Raises Rejected 22023 where the role allows no such error."""
    most, asked = asker.role.reuse_error, settings.reuse_error
    if most is not None and asked is not None and asked > most:
        allowed = plain(most) if most else "off"
        raise Rejected(
            f"dpsql.reuse_error {plain(asked)} is above what the policy allows you: {allowed}",
            sqlstate=BAD_PARAMETER,
            hint=f"SET dpsql.reuse_error = {allowed}{' or less' if most else ''}.",
        )
    return next((value for value in (asked, most) if value is not None), REUSE_ERROR)


def null_noise_of(asker: Asker, settings: Settings) -> bool:
    """Whether NULL stands for averages and extremes that are no more than noise."""
    return asker.role.null_noise if settings.null_noise is None else settings.null_noise


def _check_tighter(name: str, asked: int | None, allowed: Sequence[int]) -> None:
    largest = max(allowed, default=1)
    if asked is not None and asked > largest:
        raise Rejected(
            f"dpsql.{name} may only be tightened: the policy allows {largest}",
            sqlstate=BAD_PARAMETER,
            hint=f"SET dpsql.{name} = {largest} or less.",
        )


def _check_delta(value: str, used: Decimal) -> None:
    """A statement's own delta may say less than the policy's, never more."""
    try:
        asked = Decimal(value)
    except InvalidOperation:
        asked = Decimal(-1)
    if not asked.is_finite() or not 0 <= asked < 1:
        raise Rejected(f"delta must be a number from 0 to 1, not {value}", sqlstate=BAD_PARAMETER)
    if asked < used:
        raise Rejected(
            f"delta {value} is below {used:.2g}, at which epsilon is read here",
            sqlstate=BAD_PARAMETER,
            hint="Leave delta out: the policy fixes it. A smaller epsilon makes a statement more private.",
        )


def _check_unit(value: str, policy: Policy) -> None:
    columns = sorted({t.unit for t in policy.tables.values() if isinstance(t.unit, str)})
    if value.lower().rsplit(".", 1)[-1] not in columns:
        shown = f"the policy protects each {policy.privacy.unit}" + (f" ({', '.join(columns)})" if columns else "")
        raise Rejected(
            f'"{value}" is not the privacy unit: {shown}',
            sqlstate=BAD_PARAMETER,
            hint="Leave privacy_unit_column out: the policy fixes the unit for every statement.",
        )


def limits_for(policy: Policy, asker: Asker) -> tuple[LimitsOf, Limits]:
    """What the user and the dataset may spend in all."""
    dataset = limits_of(policy, policy.privacy.budget)(0)
    return limits_of(policy, asker.budget), dataset


def account_for(policy: Policy, asker: Asker) -> Account:
    """Where the ledger debits what this user asks."""
    shared = policy.privacy.replay == "shared"
    return Account(shared=shared, calendar=calendar_of(policy, asker.role), account=asker.account)
