"""What becomes of the asks of a statement, and whether it fits: pure functions of what the ledger holds.

Decides from keys and costs only. Must never look at a released value, nor let a statement pass that no gate counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dpsql.dp.accounting import Limits, fits
from dpsql.errors import Failed
from dpsql.ledger.model import Ask, BudgetExhausted, Decision, LimitsOf, Source, Spending, Stored
from dpsql.ledger.window import Calendar
from dpsql.ledger.words import amounts
from dpsql.types import Cost

Gate = Literal["epsilon", "rho"]

_FREE: Final = Cost()


def gate_of(user: Limits, dataset: Limits) -> Gate:
    """The amount that both filters gate by. Raises Failed where they do not agree or nothing would gate."""
    if user.rho is not None and dataset.rho is not None:
        return "rho"
    if user.epsilon is not None and dataset.epsilon is not None:
        return "epsilon"
    raise Failed("the limits of user and dataset do not gate by the same amount")


def distinct(asks: Sequence[Ask], gate: Gate) -> tuple[Ask, ...]:
    """The asks without repetition. Raises Failed for a cost that is no cost: the plan that made it is wrong."""
    by_key: dict[str, Ask] = {}
    for ask in asks:
        if not _is_cost(ask.cost, gate) or not ask.key:
            raise Failed(f"an ask that the gate, {gate}, would not count")
        if not set(ask.after) <= by_key.keys():
            raise Failed("an ask before those whose releases it reads")
        if by_key.setdefault(ask.key, ask) != ask:
            raise Failed("two asks of one statement have the same key and different costs")
    return tuple(by_key.values())


def _is_cost(cost: Cost, gate: Gate) -> bool:
    parts = (cost.epsilon, cost.rho, cost.delta)
    gated = cost.rho if gate == "rho" else cost.epsilon
    return all(type(part) is int and part >= 0 for part in parts) and gated > 0


def decide(ask: Ask, kept: Iterable[Stored], shared: bool) -> Decision:
    """The ask against what is kept under its key, newest first.

    Free if the account has seen it, or else if all share; else a first view at the recorded cost, if that is no more
    than the ask's own in any component; else made anew.
    """
    newest_first = tuple(kept)
    free = next(
        (stored for stored in newest_first if stored.seen), newest_first[0] if shared and newest_first else None
    )
    if free is not None:
        return Decision(ask, Source.FREE, _FREE, free)
    for stored in newest_first:
        if within(stored.cost, ask.cost):
            return Decision(ask, Source.VIEW, stored.cost, stored)
    return Decision(ask, Source.FRESH, ask.cost, None)


def within(cost: Cost, bound: Cost) -> bool:
    """Whether no component is above the bound's."""
    return cost.epsilon <= bound.epsilon and cost.rho <= bound.rho and cost.delta <= bound.delta


def account_price(decisions: Iterable[Decision]) -> Cost:
    """What the account pays: the fresh releases and the first views."""
    return sum((decision.cost for decision in decisions), _FREE)


def dataset_price(decisions: Iterable[Decision]) -> Cost:
    """What the dataset pays: the fresh releases alone."""
    return account_price(decision for decision in decisions if decision.source is Source.FRESH)


@dataclass(frozen=True, slots=True)
class Request:
    """A statement's asks (each key once), whose budgets they need, and what those allow."""

    user: str
    account: str
    calendar: Calendar | None
    asks: tuple[Ask, ...]
    user_limits: LimitsOf
    dataset_limits: Limits
    shared: bool
    gate: Gate


def request(
    user: str,
    asks: Sequence[Ask],
    user_limits: Limits | LimitsOf,
    dataset_limits: Limits,
    *,
    shared: bool,
    calendar: Calendar | None,
    account: str | None,
) -> Request:
    """The request, checked. Raises Failed for a user without a name, or asks or limits that would not gate."""
    if not user or account == "":
        raise Failed("a reservation needs a user")
    limits_of = _fixed(user_limits) if isinstance(user_limits, Limits) else user_limits
    gate = gate_of(limits_of(0), dataset_limits)
    once = distinct(asks, gate)
    return Request(user, account or user, calendar, once, limits_of, dataset_limits, shared, gate)


def _fixed(limits: Limits) -> LimitsOf:
    return lambda _: limits


def refusal(request: Request, decisions: Sequence[Decision], user: Spending, dataset: Cost) -> BudgetExhausted | None:
    """Why the statement does not fit what user and dataset have spent, or None.

    What costs nothing always fits, even where a budget has shrunk below what was spent.
    """
    price = account_price(decisions)
    limits = request.user_limits(user.granted)
    if price != _FREE and not fits(user.spent, price, limits):
        return _exhausted("user", user.spent, price, limits)
    price = dataset_price(decisions)
    if price != _FREE and not fits(dataset, price, request.dataset_limits):
        return _exhausted("dataset", dataset, price, request.dataset_limits)
    return None


def _exhausted(whose: str, spent: Cost, asked: Cost, limits: Limits) -> BudgetExhausted:
    name = "Your budget" if whose == "user" else "The dataset's budget"
    parts = [
        f"{part.name} {part.asked} asked, {part.spent} of {part.limit} spent, {part.left} left"
        for part in amounts(spent, asked, limits)
    ]
    message = f"{name} does not allow this statement: {'; '.join(parts)}"
    return BudgetExhausted(message, whose=whose, spent=spent, asked=asked, limits=limits)
