"""Keys and references between a source's tables: from constraints, and by names where there are none.

Decides what a draft takes for a relation. A guess comes from names and types of columns alone and is marked as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dpsql.policy.draft_names import names_a_key, thing, words
from dpsql.policy.outline import Outline
from dpsql.policy.values import family
from dpsql.types import SqlType, TableFacts

_GENERIC = frozenset({"id", "key", "uuid", "guid", "code", "number", "num", "no", "nr"})


@dataclass(frozen=True, slots=True)
class Key:
    """Columns of a table that are unique; `guessed`: by their name only."""

    columns: tuple[str, ...]
    guessed: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """`columns` of `table` name a row of `parent` by `parent_columns`; `guessed`: by their names only."""

    table: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    guessed: bool


@dataclass(frozen=True, slots=True)
class Relations:
    """What is known or guessed of a source. A table without a key has no entry in `keys`."""

    keys: Mapping[str, Key]
    references: tuple[Reference, ...]

    def of(self, table: str) -> tuple[Reference, ...]:
        return tuple(r for r in self.references if r.table == table)


def relations(outline: Outline) -> Relations:
    """All keys and references; what a constraint says is never guessed again."""
    tables = {name: facts for name, facts in outline.tables.items() if not facts.problems}
    keys = {name: key for name, facts in tables.items() if (key := _key(facts)) is not None}
    declared = tuple(
        Reference(f.table, f.columns, f.parent, f.parent_columns, guessed=False)
        for f in outline.foreign_keys
        if f.table in tables and f.parent in tables and f.table != f.parent
    )
    said = {(r.table, column) for r in declared for column in r.columns}
    guesses = tuple(g for g in _guesses(tables, keys) if (g.table, g.columns[0]) not in said)
    return Relations(keys, (*declared, *guesses))


def _key(facts: TableFacts) -> Key | None:
    """The smallest verified key, else a column that is named like one of this table."""
    if facts.unique:
        names = [column.name for column in facts.columns]
        smallest = min(facts.unique, key=lambda columns: (len(columns), min(map(names.index, columns))))
        return Key(tuple(sorted(smallest, key=names.index)), guessed=False)
    own = {_plain(facts, c.name): c.name for c in reversed(facts.columns) if _comparable(c.type)}
    table = thing(facts.name)
    for wanted in ("id", f"{table}_id", f"{table}id", f"{table}_key", f"{table}key", table, "key", "uuid"):
        if wanted in own:
            return Key((own[wanted],), guessed=True)
    first = facts.columns[0] if facts.columns else None
    if first is None or not names_a_key(first.name) or not _comparable(first.type):
        return None
    return Key((first.name,), guessed=True) if _shortened(_plain(facts, first.name), table) else None


def _shortened(column: str, table: str) -> bool:
    """`custkey` of `customer`."""
    stems = (column.removesuffix(end).rstrip("_") for end in _GENERIC if column.endswith(end))
    return any(len(stem) >= 3 and table.startswith(stem) for stem in stems)


def _plain(facts: TableFacts, column: str) -> str:
    """The column's words, without a short prefix that all columns of the table share (`c_custkey` -> `custkey`)."""
    name = "_".join(words(column))
    prefix, underscore, rest = name.partition("_")
    shared = underscore and len(prefix) <= 2 and len(facts.columns) > 1
    return rest if shared and all("_".join(words(c.name)).startswith(prefix + "_") for c in facts.columns) else name


def _guesses(tables: Mapping[str, TableFacts], keys: Mapping[str, Key]) -> Iterator[Reference]:
    for name, facts in tables.items():
        for column in facts.columns:
            parent = _parent(facts, column.name, column.type, tables, keys)
            if parent is not None:
                yield Reference(name, (column.name,), parent, keys[parent].columns, guessed=True)


def _parent(
    facts: TableFacts, column: str, of: SqlType, tables: Mapping[str, TableFacts], keys: Mapping[str, Key]
) -> str | None:
    """The table whose key this column seems to name; the one that fits best comes first."""
    if not _comparable(of):
        return None
    found = []
    for parent, key in keys.items():
        if parent == facts.name or len(key.columns) != 1:
            continue
        theirs = next(c for c in tables[parent].columns if c.name == key.columns[0])
        if family(theirs.type) == family(of) and _names(facts, column, tables[parent], theirs.name):
            found.append((key.guessed, parent))
    return min(found)[1] if found else None


def _names(facts: TableFacts, column: str, parent: TableFacts, key: str) -> bool:
    mine, theirs, table = _plain(facts, column), _plain(parent, key), thing(parent.name)
    if theirs in _GENERIC:
        return mine in (f"{table}_{theirs}", f"{table}{theirs}", table)
    return mine in (theirs, f"{table}_id", f"{table}id")


def _comparable(of: SqlType) -> bool:
    return family(of) in ("integer", "text", "uuid")
