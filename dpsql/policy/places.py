"""Where the tables of a policy are for those who ask: the one meaning of schemas in a catalog and in a statement.

Decides names only; where the backend has a table is the policy's `source`.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.policy.schema import SchemaTable
from dpsql.types import TableName

DEFAULT = "public"
OWN = "dpsql"
_RESERVED = frozenset({"pg_catalog", "information_schema", OWN, "pg_toast"})


def place_of(table: SchemaTable) -> TableName:
    """Where the table is for analysts: in the backend's schema, under its policy's name.

    Two tables of one name in two schemas have policy names such as `sales.orders`: this is then where they are.
    """
    schema, real = DEFAULT, table.name
    if table.source is not None:
        schema, real = table.source.schema or DEFAULT, table.source.name
    if schema in _RESERVED or schema.startswith("pg_"):
        schema = DEFAULT
    return TableName(real if table.name == f"{schema}.{real}" else table.name, schema)


def search_path(tables: Sequence[SchemaTable]) -> tuple[str, ...]:
    """Every schema of the tables, Postgres's own default first, those last that need their name before a table's."""
    flat = {place.schema or DEFAULT for table in tables if (place := place_of(table)).name == table.name}
    named = {place_of(table).schema or DEFAULT for table in tables}
    return tuple(dict.fromkeys((DEFAULT, *sorted(flat), *sorted(named))))
