"""A policy and its backend -> the `Schema`: reads the catalog, verifies uniqueness, copies the public tables.

Decides what is asked of a backend at start. It runs before any statement is served and again at every refresh; if
anything does not fit, nothing is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpsql.backends import Backend
from dpsql.compiler.emit import DIALECTS
from dpsql.compiler.emit.common import Emitter, quote
from dpsql.compiler.emit.relation import stored
from dpsql.compiler.local_model import given
from dpsql.policy.model import Policy
from dpsql.policy.resolve import resolve, unique_needed
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.types import TableFacts, TableName

COUNTING_SECONDS = 600.0


def inspect(backend: Backend, policy: Policy) -> Schema:
    """The schema that statements are compiled against. Raises PolicyError with all that does not fit."""
    there = backend.facts([table.at(name) for name, table in policy.tables.items()])
    facts = {name: there[table.at(name)] for name, table in policy.tables.items() if table.at(name) in there}
    if backend.immutable:
        facts = _verified(backend, policy, facts)
    public = [name for name, table in policy.tables.items() if table.public and name in facts]
    rows = {n: backend.public_rows(policy.tables[n].at(n)) for n in public if not facts[n].problems}
    schema = resolve(policy, facts, rows)
    return replace(schema, responses=_responses(backend, schema))


def _responses(backend: Backend, schema: Schema) -> dict[str, SchemaTable]:
    """How often each value of each randomized column was given: public, as the people who answered agreed."""
    dialect = DIALECTS[backend.dialect]
    render = Emitter(dialect, {})
    found = {}
    for table in schema.tables.values():
        for column in (c for c in table.columns if c.randomized is not None):
            read = dialect.read(quote(column.name), column.type)
            places = " ".join(
                f"WHEN {read} = {render.literal(value, column.type)} THEN {place}"
                for place, value in enumerate(column.values or ())
            )
            sql = (
                f"SELECT place, COUNT(*) FROM (SELECT CASE {places} END AS place "
                f"FROM {stored(table.source or TableName(table.name), dialect)}) AS given "
                "WHERE place IS NOT NULL GROUP BY place"
            )
            cells = backend.fetch(sql, 1, COUNTING_SECONDS)
            counts = {key: count for (key,), (count,) in zip(cells.keys, cells.cells, strict=True)}
            name, values = f"{table.name}.{column.name}", column.values or ()
            found[name] = given(name, column, [counts.get(place, 0) for place in range(len(values))])
    return found


def _verified(backend: Backend, policy: Policy, facts: Mapping[str, TableFacts]) -> dict[str, TableFacts]:
    """The facts with what a look at the data adds: sets that the policy needs and no constraint guarantees."""
    result = dict(facts)
    for name, columns in unique_needed(policy):
        found = result.get(name)
        if found is None or found.problems or any(known <= columns for known in found.unique):
            continue
        there = {column.name for column in found.columns}
        if columns <= there and backend.verify_unique(policy.tables[name].at(name), sorted(columns)):
            result[name] = replace(found, unique=(*found.unique, columns))
    return result
