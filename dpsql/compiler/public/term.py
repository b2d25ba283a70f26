"""A translated expression: DuckDB text with its Postgres type.

The text is built from fixed words, internal names, and literals quoted here, nothing else: a client's identifier never
gets into it, and a client's string only through `quote_text`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dpsql.compiler.public.storage import Digits, duckdb_type
from dpsql.types import Kind, SqlType


@dataclass(frozen=True, slots=True)
class Loose:
    """A column used outside an aggregate: legal in a grouped query only as a part of a group key."""

    level: int
    label: str
    position: int | None


@dataclass(frozen=True, slots=True)
class Term:
    """`literal` is the content of a string literal whose type is still open. `digits` as in `storage`."""

    sql: str
    type: SqlType
    digits: Digits | None = None
    literal: str | None = None
    loose: frozenset[Loose] = frozenset()
    aggregate: frozenset[int] = frozenset()
    """Levels of the queries whose aggregates this holds."""
    window: bool = False

    @property
    def kind(self) -> Kind:
        return self.type.kind

    @property
    def storage(self) -> str:
        return duckdb_type(self.type, self.digits)

    def becomes(self, sql: str, type_: SqlType, digits: Digits | None = None) -> Term:
        """Another expression over the same columns and aggregates."""
        return replace(self, sql=sql, type=type_, digits=digits, literal=None)


def join_terms(sql: str, type_: SqlType, parts: Iterable[Term], digits: Digits | None = None) -> Term:
    """An expression made of `parts`."""
    held = tuple(parts)
    return Term(
        sql,
        type_,
        digits,
        loose=frozenset().union(*(p.loose for p in held)),
        aggregate=frozenset().union(*(p.aggregate for p in held)),
        window=any(p.window for p in held),
    )


def quote_text(text: str) -> str:
    """A DuckDB string literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """A DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def call(function: str, *arguments: str) -> str:
    return f"{function}({', '.join(arguments)})"
