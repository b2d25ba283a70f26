"""Which relations a query names, and where: what a session routes statements by.

Decides from the parsed query, with names as Postgres reads them. A name of a WITH query is none of a relation.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.parse import name_of, parse


@dataclass(frozen=True, slots=True)
class Named:
    """A relation by name. `schema` is empty where none is written. `start`, `end`: of the name in the text."""

    name: str
    schema: str
    start: int
    end: int
    has_alias: bool


def named(text: str) -> tuple[Named, ...]:
    """In the order of the text. Raises Rejected for a query that cannot be read."""
    tables = [table for table in parse(text).find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    found = [_named(table) for table in tables if table.args.get("db") is not None or not _is_common(table)]
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.start))


def _named(table: exp.Table) -> Named | None:
    parts = [p for p in (table.args.get("catalog"), table.args.get("db"), table.this) if isinstance(p, exp.Identifier)]
    placed = [part.meta for part in parts if "start" in part.meta]
    if not placed:
        return None
    start, end = min(meta["start"] for meta in placed), max(meta["end"] for meta in placed) + 1
    has_alias = table.args.get("alias") is not None
    return Named(name_of(table.this), name_of(table.args.get("db")), start, end, has_alias)


def _is_common(table: exp.Table) -> bool:
    """Whether a query around it names a WITH query so."""
    name, above = name_of(table.this), table.parent
    while above is not None:
        clause = above.args.get("with_")
        if clause is not None and any(name_of(cte.args["alias"].this) == name for cte in clause.expressions):
            return True
        above = above.parent
    return False
