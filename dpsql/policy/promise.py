"""What a policy promises, in words that the people in the data, an analyst and an auditor understand alike.

Decides wording and warnings only; every number comes from the policy. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from dpsql.policy.model import Budget, ColumnPolicy, Policy, Role, Table, UnitPath
from dpsql.policy.schema import Schema, SchemaColumn
from dpsql.types import BOOL, Kind

HIGH_EPSILON = Decimal(10)


def promise(policy: Policy) -> Iterator[str]:
    """The lines of `dpsql check`, without what the backend adds."""
    yield f"dataset {policy.dataset}, epoch {policy.epoch}"
    yield ""
    yield "What is promised"
    yield from map(_indented, _protection(policy))
    yield ""
    yield "Who may ask what"
    for name, role in policy.roles.items():
        yield from map(_indented, _role(policy, name, role))
    if not policy.roles:
        yield _indented("nobody: there are no roles")
    yield ""
    yield "What is public"
    yield from map(_indented, _public(policy))
    yield ""
    yield "What is private"
    for name, table in policy.tables.items():
        if not table.public:
            yield from map(_indented, _private(policy, name, table))


def warnings(policy: Policy) -> Iterator[str]:
    """What the operator may do, but should mean."""
    privacy = policy.privacy
    if privacy.budget.epsilon > HIGH_EPSILON:
        yield _high("the dataset's budget", privacy.budget)
    for name, role in policy.roles.items():
        if role.budget is not None and role.budget.epsilon > HIGH_EPSILON:
            yield _high(f"the budget of role {name}", role.budget)
        if role.budget is not None and role.budget.epsilon > privacy.budget.epsilon:
            yield f"role {name} may spend more than the dataset's budget, which will run out first"
    if privacy.replay == "shared":
        yield (
            "replay: shared lets a user see for free what others paid for, so user budgets cap spending only;"
            " what one user learns is bounded by the dataset's budget alone"
        )
    if policy.server.tls is None and policy.server.host not in ("127.0.0.1", "::1", "localhost"):
        yield f"server.listen is {policy.server.host} without tls: clients on other machines are refused"
    for name, user in policy.users.items():
        if user.password is None:
            yield f"user {name} has no password and cannot log in"


def lost_nulls(schema: Schema) -> Iterator[str]:
    """Public keys that the backend lets be NULL while the policy has no NULL: such rows are in no group.

    By the schema alone: that a row has a NULL is private.
    """
    for name, table in schema.tables.items():
        keys = () if table.public else (column for column in table.columns if _public_key(column))
        there = schema.nullable.get(name, frozenset())
        lost = [c.name for c in keys if c.name in there and not c.nullable and c.name not in (table.key or ())]
        if lost:
            yield (
                f"{name}: {', '.join(lost)}: the backend allows NULL, and rows with NULL are in no group; add"
                " `nullable: true`, or NOT NULL in the backend"
            )


def _public_key(column: SchemaColumn) -> bool:
    """Whether NULL is missing among its groups; private keys have it without a declaration."""
    declared = column.values is not None or column.lower is not None or column.references is not None
    return column.randomized is None and (declared or column.type.kind is Kind.BOOL)


def _high(what: str, budget: Budget) -> str:
    return (
        f"{what} has epsilon {budget.epsilon}, above {HIGH_EPSILON}: that bounds what can be learned of one unit"
        f" by a factor of {ratio(budget.epsilon)} only"
    )


def _protection(policy: Policy) -> Iterator[str]:
    privacy = policy.privacy
    if privacy.is_row:
        yield f"The privacy unit is one row of a private table; there are about {privacy.units:,}."
        yield "Neighbouring databases differ in one row of one private table."
    else:
        yield f"The privacy unit is one {privacy.unit}; there are about {privacy.units:,}."
        yield f"Neighbouring databases differ in all rows of one {privacy.unit}, over all private tables."
    yield (f"All answers ever given to all users together are ({_pair(privacy.budget)})-differentially private:")
    yield (
        f"whatever anybody concludes is at most e^{privacy.budget.epsilon} = {ratio(privacy.budget.epsilon)} times as"
        f" likely with one unit's data as without it, but for a probability of {small(privacy.budget.delta)}."
    )
    yield f"Accounting: {privacy.accounting}; {float(privacy.key_delta_share):.0%} of delta is for private keys."
    yield (
        f"One unit counts in one release with at most what {privacy.max_groups:,} groups of"
        f" {privacy.max_rows_per_group:,} rows make."
    )
    yield f"A unit that touches more than {privacy.cap(privacy.max_groups):,} private keys of a release adds to none."


def _role(policy: Policy, name: str, role: Role) -> Iterator[str]:
    users = ", ".join(user for user, account in policy.users.items() if account.role == name) or "nobody yet"
    yield f"{name} ({users})" + (", owner: sees the whole ledger and grants budget" if role.owner else "")
    if role.budget is None:
        yield "  has no budget: asks nothing of private tables"
    else:
        whose = "all its users together" if role.shared else "each user"
        window = f" a {role.window}" if role.window else ", once for all"
        yield f"  {whose}: {_pair(role.budget)}{window}; e^{role.budget.epsilon} = {ratio(role.budget.epsilon)}"
        most = role.max_epsilon if role.max_epsilon is not None else role.budget.epsilon
        yield f"  a statement costs epsilon {role.epsilon} unless it names another, at most {most}"
    yield f"  tables: {'all' if role.tables is None else ', '.join(role.tables) or 'none'}"


def _public(policy: Policy) -> Iterator[str]:
    names = [name for name, table in policy.tables.items() if table.public]
    yield f"tables answered exactly and free: {', '.join(names) or 'none'}"
    yield "everything in this policy but passwords: names, types, bounds, values, budgets"
    yield "the price of every statement, and what was released before"


def _private(policy: Policy, name: str, table: Table) -> Iterator[str]:
    yield f"{name}: {_unit(policy, table)}{_bounds(policy, table)}"
    for column, declared in table.columns.items():
        yield f"  {column}{_column(declared)}"


def _unit(policy: Policy, table: Table) -> str:
    if isinstance(table.unit, UnitPath):
        pairs = ", ".join(f"{child} = {parent}" for child, parent in table.unit.on.items())
        return f"unit through {table.unit.through} ({pairs})"
    return "each row a unit" if table.unit is None else f"unit in {table.unit}"


def _bounds(policy: Policy, table: Table) -> str:
    words = ""
    if table.max_rows is not None:
        words += f", at most {_count(table.max_rows, 'row')} a unit"
    if table.max_groups is not None or table.max_rows_per_group is not None:
        groups = table.max_groups or policy.privacy.max_groups
        rows = table.max_rows_per_group or policy.privacy.max_rows_per_group
        words += f", {_count(groups, 'group')} of {_count(rows, 'row')}"
    return words + (f", key {', '.join(table.key)}" if table.key else "")


def _column(declared: ColumnPolicy) -> str:
    words = f" {declared.type}" if declared.type is not None else ""
    if declared.randomized is not None:
        return f"{words}, randomized when it was collected: epsilon {declared.randomized} for each row"
    if declared.lower is not None:
        words += f", from {declared.lower!s} to {declared.upper!s}"
    if declared.values is not None:
        words += f", one of {_count(len(declared.values), 'value')}"
    if declared.references is not None:
        words += f", a value of {'.'.join(declared.references)}"
    if not words.count(",") and declared.type == BOOL:
        words += ", true or false"
    elif not words.count(",") and declared.type is not None:
        words += ", no bounds: for filters, counts and private keys"
    return words + (", or NULL" if declared.nullable else "")


def ratio(epsilon: Decimal) -> str:
    """e^epsilon, exactly enough to read."""
    value = epsilon.exp()
    if value < 1000:
        return f"{value:.2f}"
    return f"{value:,.0f}" if value < 10**12 else f"{value:.1e}".replace("e+", "e")


def small(amount: Decimal) -> str:
    """A delta: `1e-7`, not `1E-7` or `0.0000001`."""
    return "0" if not amount else f"{amount.normalize():e}".replace("e+0", "")


def _pair(budget: Budget) -> str:
    return f"epsilon {budget.epsilon}, delta {small(budget.delta)}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _indented(line: str) -> str:
    return f"  {line}"
