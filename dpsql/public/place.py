"""Where a user's sessions live in the public server, and which names it cannot answer. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.policy.places import place_of
from dpsql.policy.schema import Schema

FILLED = frozenset(("budget", "ledger", "releases"))
"""The relations of schema dpsql that the ledger fills."""


@dataclass(frozen=True, slots=True)
class Place:
    """A Unix socket, a database, and the role that is the user there."""

    socket: str
    database: str
    role: str


@dataclass(frozen=True, slots=True)
class Names:
    """`private`: tables and views that only the engine answers, in lower case. `filled`: relations of schema dpsql."""

    private: frozenset[str]
    filled: frozenset[str] = FILLED


def names_of(schema: Schema) -> Names:
    """Private tables, all views, for one may read private rows, and tables with randomized columns.

    By their names in the policy and where they are: which of several is meant, the compiler says.
    """
    tables = [t for name, t in schema.tables.items() if not t.public or _is_randomized(schema, name)]
    names = (*(t.name for t in tables), *(place_of(t).name for t in tables), *schema.policy.views)
    return Names(frozenset(name.lower() for name in names))


def _is_randomized(schema: Schema, table: str) -> bool:
    return any(name.startswith(f"{table}.") for name in schema.responses)
