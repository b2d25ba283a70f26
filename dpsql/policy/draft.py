"""A source's outline -> the text of a commented policy for a person to finish.

Decides what a draft fills in (types, keys, paths), what it proposes in comments (the privacy unit, public tables), and
what it leaves open (bounds, values, how much one unit may add, the budget): the word DECIDE, which the loader refuses.
Private is the default: a table without a way to the unit is left out, and so are columns that seem to name a person.
It knows names, types and constraints, and takes over what those say; data values only as far as a profile released
them under differential privacy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dpsql.policy.draft_columns import Measured, columns
from dpsql.policy.draft_names import holds_people, identifies, quoted, words
from dpsql.policy.draft_relations import Relations, relations
from dpsql.policy.draft_text import (
    access,
    advice_to_decide,
    budget,
    contribution,
    header,
    listed,
    noted,
    source_line,
    source_word,
)
from dpsql.policy.draft_units import Candidate, candidate, candidates
from dpsql.policy.model import ROW, UnitPath
from dpsql.policy.outline import Outline
from dpsql.policy.undecided import DECIDE
from dpsql.types import TableFacts

_OTHERS = 5
_CONFIDENT = 100
_AHEAD = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What a draft says of whom: the tables' units, by the chosen candidate (None: each row stands for itself)."""

    outline: Outline
    known: Relations
    chosen: Candidate | None
    others: tuple[Candidate, ...]
    decided: bool

    @property
    def units(self) -> Mapping[str, str | UnitPath]:
        return self.chosen.units if self.chosen is not None else {}

    @property
    def private(self) -> tuple[str, ...]:
        """The tables that are drafted: those that reach the unit; by row, all that do not look public."""
        usable = [name for name, facts in self.outline.tables.items() if not facts.problems]
        if self.chosen is not None:
            return tuple(name for name in usable if name in self.units)
        return tuple(name for name in usable if not looks_public(self, name)) or tuple(usable)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the draft's data are. `given` is what the operator wrote, `backend` the URL for the policy."""

    given: str
    backend: str
    dataset: str
    file: str = "policy.yaml"
    notes: tuple[str, ...] = field(default=())


def plan(outline: Outline, unit: str | None = None) -> Plan:
    """The draft's plan; `unit`: TABLE.COLUMN or `row` as the operator decided. Raises KeyError for no such column."""
    known = relations(outline)
    ranked = candidates(outline, known)
    if unit == ROW:
        return Plan(outline, known, None, ranked, decided=True)
    if unit is not None:
        table, _, column = unit.rpartition(".")
        if table not in outline.tables or column not in {c.name for c in outline.tables[table].columns}:
            raise KeyError(unit)
        mine = candidate(outline, known, table, column)
        return Plan(outline, known, mine, tuple(c for c in ranked if c.place != unit), decided=True)
    if not ranked:
        return Plan(outline, known, None, (), decided=False)
    rival = ranked[1].score if len(ranked) > 1 else 0
    return Plan(outline, known, ranked[0], ranked[1:], decided=ranked[0].score >= max(_CONFIDENT, rival + _AHEAD))


def looks_public(made: Plan, table: str) -> bool:
    """Whether others refer to the table, while it refers to no private one and does not seem to hold people."""
    referred = any(r.parent == table for r in made.known.references)
    inward = any(r.parent in made.units for r in made.known.of(table))
    return referred and not inward and not holds_people(table)


def dataset_name(stem: str) -> str:
    """A name for the dataset that the policy accepts."""
    name = re.sub(r"[^a-z0-9_.-]+", "-", stem.lower()).strip("-_.")[:63]
    return name or "dataset"


def draft(made: Plan, source: Source, measured: Measured | None = None) -> str:
    """The text of the policy."""
    parts = (_head(source, measured), _privacy(made, source, measured), _tables(made, measured), access())
    return "".join(f"{line}\n" for part in parts for line in part)


def _head(source: Source, measured: Measured | None) -> Iterator[str]:
    yield "# A draft of a policy, made by `dpsql init` from names, types and constraints in the database's catalog."
    if measured is None:
        yield "# No data value was read."
    else:
        yield f"# What is marked `measured` was released with differential privacy, epsilon {measured.epsilon} in all;"
        yield "# the ledger holds it. Nearly all units lie within measured bounds. No data value was read otherwise."
    yield "#"
    yield from advice_to_decide(source.file)
    yield from (f"# {note}" for note in source.notes)
    yield from header(source.dataset, source.backend)


def _privacy(made: Plan, source: Source, measured: Measured | None) -> Iterator[str]:
    yield "privacy:"
    yield from (f"  # {line}" for line in _unit_words(made, source))
    name = made.chosen.name if made.chosen is not None else ROW
    yield f"  unit: {quoted(name) if made.decided else DECIDE}"
    if measured is not None and measured.units is not None:
        yield noted(f"  units: {measured.units}", f"measured with epsilon {measured.share}, rounded")
    else:
        yield noted(f"  units: {DECIDE}", "roughly how many there are")
    if not (made.decided and made.chosen is None):
        yield from contribution()
        yield f"  max_groups: {DECIDE}"
        yield f"  max_rows_per_group: {DECIDE}" if measured is None or not measured.rows else _rows(measured)
    yield from budget()


def _rows(measured: Measured) -> str:
    most = max(measured.rows.values())
    return noted(f"  max_rows_per_group: {most}", "the largest of the measured rows of a unit below")


def _unit_words(made: Plan, source: Source) -> Iterator[str]:
    """The first decision: whom to protect."""
    if made.chosen is None and not made.decided:
        yield "Whom to protect? Nothing in names or constraints says so. Say it: dpsql init ... --unit TABLE.COLUMN,"
        yield "or --unit row, only if nobody has two rows in any table."
        return
    if made.chosen is None:
        yield "Each row stands for itself, as you decided: right only if nobody has two rows in any table."
    else:
        start = "As you decided" if made.decided and made.chosen.score < _CONFIDENT else "Proposed"
        yield f"{start}: protects one {made.chosen.name} with all its rows, found by {_place(made.chosen)}"
        yield f"({made.chosen.why}). Is this who must not be recognised? A guess: decide it."
    if made.others:
        yield f"Others, by dpsql init {_plain(source.given)} --unit TABLE.COLUMN:"
    for other in [c for c in made.others if c.people or len(c.units) > 1][:_OTHERS]:
        yield f"  {_place(other)} ({other.why})"
    if made.chosen is not None:
        yield "  row (only if nobody has two rows in any table)"


def _plain(text: str) -> str:
    return text if text.isprintable() else "SOURCE"


def _place(found: Candidate) -> str:
    return f"{quoted(found.table)}.{quoted(found.column)}"


def _tables(made: Plan, measured: Measured | None) -> Iterator[str]:
    yield "tables:"
    for name in made.private:
        yield from _table(made, name, measured)
    for name, facts in made.outline.tables.items():
        if name not in made.private:
            yield from _left_out(made, facts)


def _table(made: Plan, name: str, measured: Measured | None) -> Iterator[str]:
    facts = made.outline.tables[name]
    yield f"  {quoted(name)}:"
    yield from source_line(made.outline, name)
    yield from _unit(made, name)
    rows = measured.rows.get(name) if measured is not None else None
    if rows is not None and measured is not None and rows < max(measured.rows.values()):
        note = f"measured with epsilon {measured.share}: nearly all units have no more rows"
        yield noted(f"    max_rows_per_group: {rows}", note)
    lines = list(columns(facts, _key_columns(made, name), _references(made, name), measured))
    if any(not line.lstrip().startswith("#") for line in lines):
        yield "    columns:"
    yield from (f"      {line}" for line in lines)
    yield ""


def _unit(made: Plan, name: str) -> Iterator[str]:
    if made.chosen is None:
        if not made.decided:
            yield f"    unit: {DECIDE}"
        return
    unit, key = made.units[name], made.known.keys.get(name)
    guess = "a guess from the names" if name in made.chosen.guessed else ""
    if isinstance(unit, UnitPath):
        pairs = ", ".join(f"{quoted(child)}: {quoted(parent)}" for child, parent in unit.on.items())
        path = f"    unit: {{through: {quoted(unit.through)}, on: {{{pairs}}}}}"
        parent = made.known.keys[unit.through]
        must = f"; {', '.join(parent.columns)} must be unique in {quoted(unit.through)}" if parent.guessed else ""
        yield noted(path, guess + must if guess else "by a foreign key")
    else:
        yield noted(f"    unit: {quoted(unit)}", guess)
        if frozenset({unit}) in made.outline.tables[name].unique:
            yield noted("    max_rows: 1", "it is unique here")
        elif name == made.chosen.table and holds_people(name):
            note = f"if no {_plain(made.chosen.name)} has two rows here; joins with other tables need that"
            yield noted("    # max_rows: 1", note)
    if key is not None and not key.guessed and isinstance(unit, str) and key.columns != (unit,):
        yield f"    key: {listed(key.columns)}"
    rivals = {r.columns for r in made.known.of(name) if holds_people(r.parent) and r.columns != (unit,)}
    if rivals:
        others = ", ".join(quoted(column) for columns in sorted(rivals) for column in columns)
        yield f"    # Who else does a row tell of? {others}: they are not protected by this unit."


def _key_columns(made: Plan, name: str) -> frozenset[str]:
    """Columns that exist for analysts without being listed, or name rows: no bounds, no sums."""
    key = made.known.keys.get(name)
    unit = made.units.get(name)
    found = set(key.columns if key is not None else ())
    found |= {unit} if isinstance(unit, str) else set(unit.on if isinstance(unit, UnitPath) else ())
    return frozenset(found)


def _references(made: Plan, name: str) -> Mapping[str, tuple[str, bool]]:
    """Columns that name rows of other tables, `airlines.carrier`, and whether those might be public."""
    return {
        r.columns[0]: (f"{quoted(r.parent)}.{quoted(r.parent_columns[0])}", looks_public(made, r.parent))
        for r in made.known.of(name)
        if len(r.columns) == 1
    }


def _left_out(made: Plan, facts: TableFacts) -> Iterator[str]:
    """A table that the draft leaves private and unseen, with the question behind it."""
    name = quoted(facts.name)
    key = made.known.keys.get(facts.name)
    if facts.problems:
        yield f"  # {name} is left out: it {' and '.join(facts.problems)}."
    elif holds_people(facts.name):
        yield f"  # {name} is left out: it seems to hold people, and no key leads from it to the unit. Are they whom to"
        yield "  # protect? Then draft again, with --unit."
    elif looks_public(made, facts.name) and key is not None and not _personal(facts):
        yield f"  # Is {name} public: nobody's data, known to everybody? It looks like a list that others refer to."
        yield "  # Then it is answered exactly and free; remove the # in front:"
        yield f"  # {name}: {{public: true{_at(made, facts)}, key: {listed(key.columns)}}}"
    else:
        yield f"  # {name} is left out: no key leads from it to the unit. If it holds data of units, it needs `unit:`;"
        yield f"  # if it is nobody's data, add the line: {name}: {{public: true{_at(made, facts)}}}"
    yield ""


def _at(made: Plan, facts: TableFacts) -> str:
    source = made.outline.sources.get(facts.name)
    return "" if source is None else f", source: {source_word(source)}"


def _personal(facts: TableFacts) -> bool:
    """Beyond a plain name or title, which every list has."""
    return any(identifies(c.name) and not {"name", "title", "description"} & set(words(c.name)) for c in facts.columns)
