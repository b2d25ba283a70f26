"""The columns of a drafted table: what their types settle, and what a person must decide.

Decides, by type, constraint and name: booleans need nothing; what a CHECK or an ENUM type says is taken over; keys
serve as filters; what may be summed or is a date needs bounds; what looks like a category needs its values; what seems
to name somebody is left out, and so is free text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dpsql.policy.draft_checks import Constant, Limits, limits, words_of
from dpsql.policy.draft_names import identifies, is_category, likely_bounds, names_a_key, quoted
from dpsql.policy.draft_text import noted
from dpsql.policy.undecided import DECIDE
from dpsql.types import Column, Kind, SqlType, TableFacts

Place = tuple[str, str]
"""A table and one of its columns."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a profile released, as words for the policy. `share`: the epsilon of each measurement."""

    epsilon: str
    share: str
    units: int | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    bounds: Mapping[Place, tuple[str, str]] = field(default_factory=dict)
    values: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Form:
    """How a column is declared, without a comment. `nullable`: its backend lets it be NULL."""

    column: Column
    nullable: bool

    def line(self, body: str = "") -> str:
        parts = (f"type: {type_word(self.column.type)}", body, "nullable: true" if self.nullable else "")
        return f"{quoted(self.column.name)}: {{{', '.join(part for part in parts if part)}}}"

    def bounded(self, lower: str, upper: str) -> str:
        return self.line(f"lower: {lower}, upper: {upper}")


def columns(
    facts: TableFacts, keys: frozenset[str], references: Mapping[str, tuple[str, bool]], measured: Measured | None
) -> Iterator[str]:
    """One line a column, some of them comments. `references`: what a column names, and if it may be public."""
    said = limits(facts)
    for column in facts.columns:
        named = references.get(column.name)
        if column.name not in keys or (named is not None and named[1]):
            yield _line(facts, column, named, said.get(column.name, Limits()), measured)


def _line(
    facts: TableFacts, column: Column, reference: tuple[str, bool] | None, said: Limits, measured: Measured | None
) -> str:
    name, table, form = quoted(column.name), facts.name, _Form(column, column.name in facts.nullable)
    plain = form.line()
    if column.type.kind is Kind.UNKNOWN:
        return f"# {name} is left out: its type, collation or generation rule is not supported"
    if reference is not None:
        named, public = reference
        return _remark(plain, f"if public, add: references: {named}" if public else f"names a row of {named}")
    lower, upper, values = words_of(said, column.type)
    if values is not None:
        listed = ", ".join(map(_value, values))
        return _remark(form.line(f"values: [{listed}]"), f"by {said.origin}: the schema, not the data")
    if lower is not None and upper is not None:
        return _remark(form.bounded(lower, upper), f"by {said.origin}: the schema, not the data")
    if identifies(column.name) and not column.type.is_number and not column.type.is_time:
        return f"# {plain}  left out: it seems to tell who somebody is, or to be free text"
    if measured is not None and (table, column.name) in measured.values:
        listed = ", ".join(measured.values[table, column.name])
        return _remark(form.line(f"values: [{listed}]"), f"measured with epsilon {measured.share}")
    if measured is not None and (table, column.name) in measured.bounds:
        lower, upper = measured.bounds[table, column.name]
        return _remark(form.bounded(lower, upper), f"measured with epsilon {measured.share}")
    if needs_bounds(column) and (lower is not None or upper is not None):
        note = f"{'upper' if lower is None else 'lower'} by {said.origin}: the schema, not the data"
        return _remark(form.bounded(lower or DECIDE, upper or DECIDE), note)
    return _undecided(form)


def settled(column: Column, said: Limits | None) -> bool:
    """Whether the schema says all that a draft needs of the column."""
    lower, upper, values = words_of(said or Limits(), column.type)
    return values is not None or (lower is not None and upper is not None)


def _value(value: Constant) -> str:
    return quoted(value) if isinstance(value, str) else f"{value:f}"


def _undecided(form: _Form) -> str:
    column, plain = form.column, form.line()
    if needs_bounds(column):
        likely = likely_bounds(column.name)
        return _remark(form.bounded(DECIDE, DECIDE), f"{likely[0]} and {likely[1]}?" if likely else "")
    if needs_values(column):
        return form.line(f"values: {DECIDE}")
    if column.type.is_number:
        return _remark(plain, "looks like a key: without bounds, for filters and counts")
    return _remark(plain, "for filters and groups: only frequent ones show") if column.type.kind is Kind.TEXT else plain


def _remark(line: str, note: str) -> str:
    return noted(line, note, 60)


def needs_bounds(column: Column) -> bool:
    """Numbers that are no keys, and dates: nothing is summed, and no period is a public group, without bounds."""
    return column.type.is_time or (column.type.is_number and not names_a_key(column.name))


def needs_values(column: Column) -> bool:
    return column.type.kind is Kind.TEXT and is_category(column.name) and not identifies(column.name)


def type_word(of: SqlType) -> str:
    """The type's name without what the policy does not need."""
    if of.is_integer:
        return "integer"
    return {Kind.NUMERIC: "numeric", Kind.FLOAT4: "double", Kind.FLOAT8: "double"}.get(of.kind, of.kind.value)
