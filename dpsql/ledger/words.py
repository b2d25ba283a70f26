"""Amounts of privacy loss in words. Decides how they read, never what they are: all arithmetic is exact before.

Rounds so that nobody is promised more than there is: what is asked or spent up, what is left down.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dpsql.dp.accounting import Limits
from dpsql.types import COST_UNIT, Cost

_UP = Context(prec=6, rounding=ROUND_CEILING)
_DOWN = Context(prec=6, rounding=ROUND_FLOOR)
_EXACT = Context(prec=60)


@dataclass(frozen=True, slots=True)
class Amount:
    """One gating amount of a budget, as text."""

    name: str
    spent: str
    asked: str
    left: str
    limit: str


def amounts(spent: Cost, asked: Cost, limits: Limits) -> tuple[Amount, ...]:
    """The amounts that gate: spent, asked, left and limit of each."""
    parts = (
        ("epsilon", spent.epsilon, asked.epsilon, limits.epsilon),
        ("rho", spent.rho, asked.rho, limits.rho),
        ("delta", spent.delta, asked.delta, limits.delta),
    )
    return tuple(
        Amount(name, rounded_up(before), rounded_up(price), rounded_down(max(0, limit - before)), rounded_down(limit))
        for name, before, price, limit in parts
        if limit is not None
    )


def rounded_up(units: int) -> str:
    """An amount in units of 10^-15 as a decimal number of six digits, rounded up."""
    return plain(_UP.plus(_EXACT.multiply(units, COST_UNIT)))


def rounded_down(units: int) -> str:
    """An amount in units of 10^-15 as a decimal number of six digits, rounded down."""
    return plain(_DOWN.plus(_EXACT.multiply(units, COST_UNIT)))


def plain(number: Decimal) -> str:
    """A number without trailing zeros, and without an exponent unless it is tiny."""
    short = number.normalize(_EXACT)
    return f"{short:f}" if short.is_zero() or short.adjusted() >= -5 else f"{short:e}"
