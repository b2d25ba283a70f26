"""What one user may see of a policy: tables, their keys and references, and views with the columns they give.

Decides visibility: only relations of the user's role appear.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from dpsql.compiler import Terms, compile_statement
from dpsql.errors import Rejected
from dpsql.policy.model import Role, UnitPath
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.types import Column


@dataclass(frozen=True, slots=True)
class Key:
    """A verified key as a primary key constraint with its index."""

    table: SchemaTable
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.table.name}_pkey"


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared reference as a foreign key."""

    table: SchemaTable
    columns: tuple[str, ...]
    parent: SchemaTable
    parent_columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.table.name}_{'_'.join(self.columns)}_fkey"


@dataclass(frozen=True, slots=True)
class View:
    """A view of the policy. `definition` is None for those who may not see all that it reads."""

    name: str
    columns: tuple[Column, ...]
    definition: str | None


def visible(schema: Schema, user: str) -> tuple[SchemaTable, ...]:
    """The tables of the user's role, by name. A user without a role sees none."""
    role = _role(schema, user)
    return tuple(schema.tables[name] for name in _names(schema.tables, role))


def _role(schema: Schema, user: str) -> Role | None:
    found = schema.policy.users.get(user)
    return schema.policy.roles.get(found.role) if found is not None else None


def _names(known: Mapping[str, object], role: Role | None) -> list[str]:
    if role is None:
        return []
    return sorted(known) if role.tables is None else sorted(set(role.tables) & set(known))


def views(schema: Schema, user: str) -> tuple[View, ...]:
    """The views of the user's role, by name. One that cannot be read is left out."""
    role = _role(schema, user)
    found = (_view(schema, name, role) for name in _names(schema.policy.views, role))
    return tuple(view for view in found if view is not None)


_ANY_TIME = datetime(2000, 1, 1)
"""The columns of a view that reads the clock are the same at any."""


def _view(schema: Schema, name: str, role: Role | None) -> View | None:
    tables = None if role is None or role.tables is None else frozenset(role.tables)
    quoted = name.replace('"', '""')
    terms = Terms(Decimal(1), schema.policy.privacy.budget.delta)
    try:
        columns = compile_statement(f'SELECT * FROM "{quoted}" LIMIT 0', schema, terms, tables, now=_ANY_TIME).columns
    except Rejected:
        return None
    return View(name, columns, schema.policy.views[name] if tables is None else None)


def keys(tables: tuple[SchemaTable, ...]) -> tuple[Key, ...]:
    return tuple(Key(table, table.key) for table in tables if table.key)


def references(tables: tuple[SchemaTable, ...]) -> tuple[Reference, ...]:
    """Foreign keys whose parent the user sees too."""
    seen = {table.name: table for table in tables}
    found: list[Reference] = []
    for table in tables:
        if isinstance(table.unit, UnitPath) and table.unit.through in seen:
            on = table.unit.on
            found.append(Reference(table, tuple(on), seen[table.unit.through], tuple(on.values())))
        for column in table.columns:
            if column.references is not None and column.references[0] in seen:
                parent, key = column.references
                found.append(Reference(table, (column.name,), seen[parent], (key,)))
    return tuple(found)
