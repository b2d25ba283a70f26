"""Which privacy unit a draft proposes, and how every table reaches it.

Decides a ranking with its reasons, from names and relations alone. The choice itself stays a person's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.policy.draft_names import holds_devices, holds_people, holds_staff, names_a_key, thing
from dpsql.policy.draft_relations import Reference, Relations
from dpsql.policy.model import UnitPath
from dpsql.policy.outline import Outline
from dpsql.policy.values import family


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that might be protected: the values of `table.column`. `reaches`: the tables with such a unit."""

    table: str
    column: str
    name: str
    units: Mapping[str, str | UnitPath]
    guessed: frozenset[str]
    people: bool
    score: int
    why: str

    @property
    def place(self) -> str:
        return f"{self.table}.{self.column}"


def candidates(outline: Outline, known: Relations) -> tuple[Candidate, ...]:
    """All candidates, the best first."""
    found: dict[tuple[str, str], Candidate] = {}
    for table, column in _places(outline, known):
        found.setdefault((table, column), candidate(outline, known, table, column))
    kept = (c for c in found.values() if c.score > 0)
    return tuple(sorted(kept, key=lambda c: (-c.score, list(outline.tables).index(c.table))))


def _places(outline: Outline, known: Relations) -> Iterator[tuple[str, str]]:
    """Keys of one column; and columns named like a key of something that has no table."""
    referring = {(r.table, r.columns) for r in known.references}
    for table, key in known.keys.items():
        if len(key.columns) == 1 and (table, key.columns) not in referring:
            yield table, key.columns[0]
    seen: set[str] = set()
    for table, facts in outline.tables.items():
        for column in facts.columns if not facts.problems else ():
            plain = column.name.lower()
            own = known.keys.get(table)
            if names_a_key(column.name) and (table, (column.name,)) not in referring and plain not in seen:
                if own is None or own.columns != (column.name,):
                    yield table, column.name
                seen.add(plain)


def candidate(outline: Outline, known: Relations, table: str, column: str) -> Candidate:
    """What it would mean to protect the values of this column."""
    key = known.keys.get(table)
    is_key = key is not None and key.columns == (column,)
    name = thing(table) if is_key else _without_end(column)
    units, guessed = _reach(outline, known, table, column, is_key)
    type_ = next(c.type for c in outline.tables[table].columns if c.name == column)
    people = holds_people(column) or (is_key and holds_people(table))
    devices = holds_devices(column) or (is_key and holds_devices(table))
    at_work = holds_staff(column) or (is_key and holds_staff(table))
    score = (60 if at_work else 100) * people + 30 * devices + 3 * len(units)
    if people and any(holds_people(r.parent) for r in known.of(table)):
        score -= 50
    if family(type_) not in ("integer", "text", "uuid", "date"):
        score = 0
    reason = "the name speaks of people; " if people else ""
    count = f"{len(units)} of {len(outline.tables)} tables {'leads' if len(units) == 1 else 'lead'} to it"
    return Candidate(table, column, name, units, guessed, people, score, reason + count)


def _without_end(column: str) -> str:
    name = thing(column)
    for end in ("_id", "_key", "_uuid", "_no", "_number", "id", "key"):
        if name.endswith(end) and len(name) > len(end) + 1:
            return name.removesuffix(end)
    return name


def _reach(
    outline: Outline, known: Relations, table: str, column: str, is_key: bool
) -> tuple[dict[str, str | UnitPath], frozenset[str]]:
    """The unit of every table that has one: a column by value first, then the shortest path. And those by guess."""
    units: dict[str, str | UnitPath] = {table: column}
    guessed: set[str] = set()
    if is_key:
        for reference in known.references:
            if reference.parent == table and reference.parent_columns == (column,) and reference.table not in units:
                units[reference.table] = reference.columns[0]
                if reference.guessed:
                    guessed.add(reference.table)
    else:
        for other, facts in outline.tables.items():
            same = next((c.name for c in facts.columns if c.name.lower() == column.lower()), None)
            if same is not None and not facts.problems and other not in units:
                units[other] = same
                guessed.add(other)
    while found := _next(known, units):
        units[found.table] = UnitPath(found.parent, dict(zip(found.columns, found.parent_columns, strict=True)))
        if found.guessed or known.keys[found.parent].guessed:
            guessed.add(found.table)
    return units, frozenset(guessed)


def _next(known: Relations, units: Mapping[str, str | UnitPath]) -> Reference | None:
    """A reference from a table without a unit to one that has one, by that one's key."""
    for reference in known.references:
        key = known.keys.get(reference.parent)
        fits = key is not None and set(key.columns) <= set(reference.parent_columns)
        if fits and reference.parent in units and reference.table not in units:
            return reference
    return None
