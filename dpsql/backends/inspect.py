"""A policy and its backend -> the `Schema`: reads the catalog, verifies uniqueness, copies the public tables.

Decides what is asked of a backend at start. It runs before any statement is served and again at every refresh; if
anything does not fit, nothing is served.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dpsql.backends import Backend
from dpsql.policy.model import Policy
from dpsql.policy.resolve import resolve, unique_needed
from dpsql.policy.schema import Schema
from dpsql.types import TableFacts


def inspect(backend: Backend, policy: Policy) -> Schema:
    """The schema that statements are compiled against. Raises PolicyError with all that does not fit."""
    facts = dict(backend.facts(tuple(policy.tables)))
    if backend.immutable:
        facts = _verified(backend, policy, facts)
    public = [name for name, table in policy.tables.items() if table.public and name in facts]
    rows = {name: backend.public_rows(name) for name in public if not facts[name].problems}
    return resolve(policy, facts, rows)


def _verified(backend: Backend, policy: Policy, facts: Mapping[str, TableFacts]) -> dict[str, TableFacts]:
    """The facts with what a look at the data adds: sets that the policy needs and no constraint guarantees."""
    result = dict(facts)
    for name, columns in unique_needed(policy):
        found = result.get(name)
        if found is None or found.problems or any(known <= columns for known in found.unique):
            continue
        there = {column.name for column in found.columns}
        if columns <= there and backend.verify_unique(name, sorted(columns)):
            result[name] = replace(found, unique=(*found.unique, columns))
    return result
