"""A translated expression: DuckDB text with its Postgres type.

The text is built from fixed words, internal names, and literals quoted here, nothing else: a client's identifier never
gets into it, and a client's string only through `quote_text`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dpsql.compiler.public.storage import Digits, duckdb_type
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.types import Kind, SqlType

LONGEST = 1_000_000
"""Characters of DuckDB text: some constructs repeat an operand, and nesting them must not explode."""


def check_size(sql: str) -> None:
    if len(sql) > LONGEST:
        raise Rejected("the statement is too complex", sqlstate=TOO_COMPLEX)


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
    position: int | None = None
    """Of a literal."""

    def __post_init__(self) -> None:
        check_size(self.sql)

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
