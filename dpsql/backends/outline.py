"""A source -> its `Outline`: names of tables, columns, keys and foreign keys, from the catalog alone.

Decides what a draft may know, and what tables of several schemas are called. It never reads a row of any table.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from dpsql.backends import Backend, open_backend
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.policy.outline import ForeignKey, Outline
from dpsql.types import TableName


def read_outline(url: str, schemas: Sequence[str] = ()) -> Outline:
    """The outline of the database at `url`: of all its schemas, or those named.

    Raises Rejected if it cannot be opened, has no tables, or lacks a named schema.
    """
    with closing(open_backend(url, "UTC")) as backend:
        return outline_of(backend, schemas)


def outline_of(backend: Backend, schemas: Sequence[str] = ()) -> Outline:
    """The outline of an open backend."""
    listing, own = backend.listing(), "main" if backend.dialect == "duckdb" else "public"
    there = {table.schema or own for table in listing.tables}
    if missing := [schema for schema in schemas if schema not in there]:
        known = f"Schemas with tables: {', '.join(sorted(there)) or 'none'}."
        raise Rejected(f"There are no tables in a schema {missing[0]}.", sqlstate=BAD_PARAMETER, hint=known)
    facts = backend.facts([table for table in listing.tables if not schemas or (table.schema or own) in schemas])
    if not facts:
        raise Rejected("There are no tables in the source.", sqlstate=BAD_PARAMETER)
    names = called(tuple(facts))
    keys = (
        ForeignKey(names[child], columns, names[parent], parents)
        for child, columns, parent, parents in listing.foreign_keys
        if child in names and parent in names
    )
    return Outline(
        {names[table]: replace(found, name=names[table]) for table, found in facts.items()},
        tuple(keys),
        {name: table for table, name in names.items() if table != TableName(name)},
    )


def called(tables: Sequence[TableName]) -> dict[TableName, str]:
    """A name for each table: its own; where two would have the same, the schema in front of those elsewhere."""
    names: dict[TableName, str] = {}
    taken: set[str] = set()
    for table in sorted(tables, key=lambda t: t.schema is not None):
        twins = [other for other in tables if other.name.casefold() == table.name.casefold()]
        alone = table.schema is None or len(twins) == 1
        wanted = table.name if alone else f"{table.schema}_{table.name}"[:60]
        name, number = wanted, 1
        while name.casefold() in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name.casefold())
        names[table] = name
    return {table: names[table] for table in tables}
