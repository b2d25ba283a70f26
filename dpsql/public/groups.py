"""Who sees what: users whose roles name the same tables share a database, which holds these and nothing else.

Decides names of databases and roles. A catalog of Postgres's shows the names of all relations of its database to
everybody in it, so what a role may not know of is not in its database at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dpsql.compiler import Terms, compile_statement
from dpsql.errors import Rejected
from dpsql.policy.model import Policy, Role
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.public.shadow import View

OWNER = "dpsql"
_MAX_NAME = 63
_ANY_TIME = datetime(2000, 1, 1)
"""The columns of a view that reads the clock are the same at any."""

Seen = frozenset[str] | None
"""Names of tables and views; None: all."""


@dataclass(frozen=True, slots=True)
class Group:
    """A database, its users, and what is in it. `database` is the dataset's name for all but a few: see `groups`.

    `entrance`: the role whose members may connect to it.
    """

    database: str
    entrance: str
    users: tuple[str, ...]
    tables: tuple[SchemaTable, ...]
    views: tuple[View, ...]


def groups(schema: Schema) -> tuple[Group, ...]:
    """One for each set of tables that users see, those who see all first; that one has the dataset's name."""
    policy = schema.policy
    by_seen: dict[Seen, list[str]] = {None: []}
    for name, user in policy.users.items():
        by_seen.setdefault(_seen(policy.roles.get(user.role)), []).append(name)
    return tuple(
        Group(
            policy.dataset if number == 0 else f"{policy.dataset[: _MAX_NAME - 6]}~{number}",
            f"{owner(policy)} {policy.dataset}"[: _MAX_NAME - 6] + f"~{number}",
            tuple(users),
            tuple(table for name, table in sorted(schema.tables.items()) if seen is None or name in seen),
            _views(schema, seen),
        )
        for number, (seen, users) in enumerate(by_seen.items())
    )


def _seen(role: Role | None) -> Seen:
    if role is None:
        return frozenset()
    return None if role.tables is None else frozenset(role.tables)


def _views(schema: Schema, seen: Seen) -> tuple[View, ...]:
    found = (_view(schema, name, seen) for name in schema.policy.views if seen is None or name in seen)
    return tuple(view for view in found if view is not None)


def _view(schema: Schema, name: str, seen: Seen) -> View | None:
    """None where it cannot be read at all."""
    quoted = name.replace('"', '""')
    terms = Terms(Decimal(1), schema.policy.privacy.budget.delta)
    try:
        columns = compile_statement(f'SELECT * FROM "{quoted}" LIMIT 0', schema, terms, seen, now=_ANY_TIME).columns
    except Rejected:
        return None
    return View(name, columns, schema.policy.views[name] if seen is None else None)


def owner(policy: Policy) -> str:
    """The superuser's name, with which no user's begins."""
    name = OWNER
    while any(user.startswith(name) for user in policy.users):
        name += "_"
    return name


def role_of(user: str) -> str:
    """The user's role: of the same name, unless Postgres keeps that for itself or cannot hold it."""
    reserved = user.startswith("pg_") or user in ("public", "none") or not user
    return f"_{user}"[:_MAX_NAME] if reserved else user
