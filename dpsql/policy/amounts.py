"""Budgets and prices: which epsilons and deltas may be promised.

Decides the limits on amounts. A delta above 1/units would allow publishing one unit outright, so nothing permits it;
a delta above 1e-5 has to be meant. It must never round an amount.
"""

from __future__ import annotations

from decimal import Decimal

from dpsql.dp import accounting
from dpsql.policy.document import BudgetSection, PrivacySection
from dpsql.policy.model import Budget
from dpsql.policy.problems import Path, Problems

MAX_EPSILON = Decimal(10_000)
LARGE_DELTA = Decimal("1e-5")
_EPSILON_DECIMALS = 12
_DELTA_DECIMALS = 15


def budget(section: BudgetSection, path: Path, privacy: PrivacySection, problems: Problems) -> Budget:
    """A total, checked against the dataset's declarations."""
    epsilon(section.epsilon, (*path, "epsilon"), problems)
    _delta(section.delta, (*path, "delta"), privacy, problems)
    return Budget(section.epsilon, section.delta)


def least_price(total: Budget, privacy: PrivacySection) -> Decimal | None:
    """The least epsilon of a statement of a role with this budget; None where an amount is refused anyway."""
    amounts = min(total.epsilon, privacy.budget.epsilon), min(total.delta, privacy.budget.delta)
    if not 0 < amounts[0] <= MAX_EPSILON or not 0 <= amounts[1] < 1 or not 0 <= privacy.key_delta_share < 1:
        return None
    if privacy.accounting == "zcdp" and not amounts[1]:
        return None
    return accounting.least_price(privacy.accounting, *amounts, privacy.key_delta_share)


def epsilon(value: Decimal, path: Path, problems: Problems) -> None:
    if not 0 < value <= MAX_EPSILON:
        problems.add(path, f"is {value}", f"write a number above 0 and at most {MAX_EPSILON}")
    elif _decimals(value) > _EPSILON_DECIMALS:
        problems.add(path, f"is {value}", f"write at most {_EPSILON_DECIMALS} decimals")


def _delta(value: Decimal, path: Path, privacy: PrivacySection, problems: Problems) -> None:
    limit = 1 / Decimal(max(privacy.units, 1))
    if value < 0 or (value == 0 and privacy.accounting == "zcdp"):
        what = f"is {value}" if value else "is missing or 0, and `accounting: zcdp` needs one"
        problems.add(path, what, f"write a number well below 1/units, for example {_suggested(privacy.units)}")
    elif value > limit:
        fix = f"write a number well below 1/{privacy.units}, for example {_suggested(privacy.units)}"
        problems.add(path, f"is {value}, above 1/units", fix)
    elif value > LARGE_DELTA and not privacy.allow_large_delta:
        fix = f"write for example {_suggested(privacy.units)}, or `allow_large_delta: true` on purpose"
        problems.add(path, f"is {value}, above {LARGE_DELTA}", fix)
    elif _decimals(value) > _DELTA_DECIMALS:
        problems.add(path, f"is {value}", f"write at most {_DELTA_DECIMALS} decimals")


def _suggested(units: int) -> str:
    """A power of ten at least a hundred times below 1/units."""
    return f"1e-{min(max(len(str(max(units, 1))) + 2, 6), 12)}"


def _decimals(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return -exponent if isinstance(exponent, int) else _DELTA_DECIMALS + 1
