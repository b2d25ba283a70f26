"""What in a policy costs accuracy, and what would help, in words an operator can act on.

Decides which declarations look looser than their subject; it knows the policy and the backend's catalog, never data, so
each piece of advice is a question to somebody who knows the subject. Gains follow from the noise: it is in proportion
to the bound on a value, to max_rows_per_group, and to the square root of max_groups (to max_groups under `pure`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, sqrt

from dpsql.dp.accounting import limits, share_of_statement
from dpsql.dp.mechanisms import error95
from dpsql.dp.privacy import best, units_up
from dpsql.dp.sensitivity import ContributionBound, clip_l1, clip_l2
from dpsql.policy.draft_names import is_category, likely_bounds, thing
from dpsql.policy.model import Budget, Privacy, Role
from dpsql.policy.problems import Path
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import Kind, Value

SMALL_GROUP = 100
"""Rows of the group that errors are compared with."""

_ONE = 1024
"""Grid steps of one row; errors of counts are measured in them."""
_TYPE_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PolicyAdvice:
    """`path`: the key it is about. `gain`: errors would be so many times smaller; None where no one number says it."""

    path: Path
    text: str
    gain: float | None = None


def policy_advice(schema: Schema) -> tuple[PolicyAdvice, ...]:
    """All that is worth asking, in the policy's order."""
    found = [advice for name, role in schema.policy.roles.items() for advice in _role(name, role, schema)]
    for name, table in schema.tables.items():
        if not table.public:
            found += _table(name, table, schema.policy.privacy)
            found += [a for column in table.columns for a in _column(name, column, table, schema.policy.privacy)]
    return tuple(found)


def _role(name: str, role: Role, schema: Schema) -> Iterator[PolicyAdvice]:
    """Prices at which small groups drown."""
    if role.budget is None:
        return
    private = [t for t in schema.tables.values() if not t.public and (role.tables is None or t.name in role.tables)]
    worst = max(private, key=lambda t: count_error(t, role, role.epsilon, schema), default=None)
    if worst is None or count_error(worst, role, role.epsilon, schema) <= SMALL_GROUP / 10:
        return
    error = count_error(worst, role, role.epsilon, schema)
    budgets = (role.budget.epsilon, schema.policy.privacy.budget.epsilon)
    most = min(budgets if role.max_epsilon is None else (role.max_epsilon, *budgets))
    text = (
        f"at epsilon {role.epsilon}, counts over {worst.name} are off by up to {ceil(error):,} (95 %): groups of"
        f" {SMALL_GROUP} rows drown, those above {ceil(10 * error):,} are known within 10 %."
        f" The budget holds {_count(statements(role, role.epsilon, schema.policy.privacy))} of this price"
    )
    if most > role.epsilon:
        least = count_error(worst, role, most, schema)
        number = _count(statements(role, most, schema.policy.privacy))
        text += f"; at {most}, the most one may cost, the error is {ceil(least):,}, and it holds {number}"
        yield PolicyAdvice(("roles", name, "epsilon"), text, error / least)
    else:
        yield PolicyAdvice(("roles", name, "epsilon"), text)


def count_error(table: SchemaTable, role: Role, epsilon: Decimal, schema: Schema) -> float:
    """The 95 % error of one COUNT by enough groups, in rows."""
    privacy = schema.policy.privacy
    assert role.budget is not None
    delta = min(role.budget.delta, privacy.budget.delta)
    one = table.one_row_per_unit or privacy.is_row
    cut = table.max_rows if isinstance(table.unit, str) else None
    bound = ContributionBound(1, 1) if one else ContributionBound(table.max_groups, table.max_rows_per_group, cut)
    share = share_of_statement(privacy.accounting, epsilon, delta, privacy.key_delta_share)
    chosen = best(clip_l1(bound, _ONE), clip_l2(bound, _ONE), share, privacy.accounting)
    return error95(chosen.mechanism) / _ONE


def statements(role: Role, epsilon: Decimal, privacy: Privacy) -> int:
    """How many statements of one price fit into the role's budget."""
    budget = role.budget or Budget(Decimal(0), Decimal(0))
    delta = min(budget.delta, privacy.budget.delta)
    share = units_up(share_of_statement(privacy.accounting, epsilon, delta, privacy.key_delta_share))
    whole = limits(privacy.accounting, budget.epsilon, budget.delta, privacy.key_delta_share)
    total = whole.epsilon if privacy.accounting == "pure" else whole.rho
    return (total or 0) // share


def _table(name: str, table: SchemaTable, privacy: Privacy) -> Iterator[PolicyAdvice]:
    """A table of the units themselves, where each has one row."""
    if table.one_row_per_unit or table.max_rows is not None or privacy.is_row or not isinstance(table.unit, str):
        return
    gain = _contribution(table, privacy)
    if gain > 1 and thing(name) == thing(privacy.unit):
        text = f"has {name} one row for each {privacy.unit}? Then add `max_rows: 1`: errors {gain:.3g} times smaller"
        yield PolicyAdvice(("tables", name), text, gain)


def _contribution(table: SchemaTable, privacy: Privacy) -> float:
    groups = table.max_groups if privacy.accounting == "pure" else sqrt(table.max_groups)
    return groups * table.max_rows_per_group


def _column(name: str, column: SchemaColumn, table: SchemaTable, privacy: Privacy) -> Iterator[PolicyAdvice]:
    path: Path = ("tables", name, "columns", column.name)
    open_ended = column.type.kind is Kind.TEXT and column.values is None and column.references is None
    if open_ended and is_category(column.name) and column.name not in (*(table.key or ()), table.unit):
        gain = 2.0 if privacy.accounting == "pure" else sqrt(2)
        text = (
            f"does everybody know the values of {column.name}? Then list them as `values`, or name a public table by"
            f" `references`: all groups are shown, and a count by it has errors {gain:.2f} times smaller"
        )
        yield PolicyAdvice(path, text, gain)
    if column.type.is_number:
        yield from _numbers(path, column)
    if column.type.is_time:
        yield from _days(path, column, privacy)


def _numbers(path: Path, column: SchemaColumn) -> Iterator[PolicyAdvice]:
    """Bounds wider than the word itself has, or that look like the limits of a type."""
    reach = _reach(column.lower, column.upper)
    if reach is None or reach == 0:
        return
    likely = likely_bounds(column.name)
    known = None if likely is None else _reach(Decimal(likely[0]), Decimal(likely[1]))
    if likely is not None and known and reach >= 2 * known:
        gain = float(reach / known)
        text = (
            f"bounds of {column.lower!s} and {column.upper!s}: would {likely[0]} and {likely[1]} do? Sums and averages"
        )
        yield PolicyAdvice(path, f"{text} then have errors about {gain:.3g} times smaller", gain)
    elif reach >= _TYPE_LIMIT or (reach >= 999 and set(str(int(reach))) == {"9"}):
        text = (
            f"bounds of {column.lower!s} and {column.upper!s} look like a placeholder. Errors of sums are in proportion"
            " to the larger one: one that is 10 times smaller gives errors 10 times smaller, and clips what is beyond"
        )
        yield PolicyAdvice(path, text, 10.0)


def _reach(lower: Value, upper: Value) -> Fraction | None:
    ends = [Fraction(v) for v in (lower, upper) if isinstance(v, int | float | Decimal) and not isinstance(v, bool)]
    return max(map(abs, ends)) if len(ends) == 2 else None


def _days(path: Path, column: SchemaColumn, privacy: Privacy) -> Iterator[PolicyAdvice]:
    """Dates whose days are more than can be public groups."""
    if not isinstance(column.lower, date) or not isinstance(column.upper, date):
        return
    days = (_day(column.upper) - _day(column.lower)).days + 1
    if days > privacy.max_keys:
        text = (
            f"{column.lower:%Y-%m-%d} to {column.upper:%Y-%m-%d} are {days:,} days, above max_keys"
            f" ({privacy.max_keys:,}): groups by day are shown only where enough units are in them. Narrower bounds, or"
            " a larger max_keys, show all"
        )
        yield PolicyAdvice(path, text)


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _count(number: int) -> str:
    return "1 statement" if number == 1 else f"{number:,} statements"
