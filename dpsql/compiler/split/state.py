"""One statement while it is taken apart: what is known of it so far, and the limit of its queries.

Decides nothing about queries. `process` takes a query inside the statement apart; `query.split` sets it, so that the
modules of this package, which each take apart one kind of query, need not know each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Protocol

from sqlglot import exp

from dpsql.compiler.algebra import Aggregation, Lit
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.bind.measured import Room
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.cautions import Doubts
from dpsql.compiler.parse import refuse
from dpsql.compiler.public import Remainder
from dpsql.compiler.rewrite import PublicText
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema
from dpsql.types import Column, SqlType

Result = exp.Query | Source
"""A processed query: a tree over public and released relations, or private rows."""

Names = Mapping[str, "CommonTable"]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A WITH query: its text as a tree, and the names visible to it."""

    query: exp.Query
    names: Names
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Derived:
    """A public relation that must be computed before a release can be: a remainder over earlier releases."""

    remainder: Remainder
    text: PublicText


class Process(Protocol):
    """Takes a query apart. `top`: the statement itself. `outer`: the rows outside that EXISTS or IN may refer to."""

    def __call__(
        self, tree: exp.Expr, names: Names, state: Split, *, top: bool = False, outer: Source | None = None
    ) -> Result: ...


@dataclass(slots=True)
class Split:
    """One statement while it is taken apart."""

    schema: Schema
    tables: frozenset[str] | None
    parameters: tuple[Lit, ...]
    max_groups: int | None
    max_rows_per_group: int | None
    numbers: Numbers
    zone: tzinfo = UTC
    now: datetime | None = None
    inferred: dict[int, SqlType] = field(default_factory=dict)
    aggregations: list[Aggregation] = field(default_factory=list)
    doubts: dict[int, Doubts] = field(default_factory=dict)
    single_units: dict[int, exp.Select] = field(default_factory=dict)
    relations: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    derived: list[Derived] = field(default_factory=list)
    shared: dict[int, exp.Query] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    probe: bool = False
    columns_only: bool = False
    queries: int = 0
    listed: int = 0
    room: Room = field(default_factory=Room)
    text: str | None = None
    made: exp.Query | None = None
    process: Process = field(init=False)


MAX_QUERIES = 300
"""Each use of a WITH name counts: names that use others twice would double with every step."""


MAX_TABLES = 64
"""In one FROM: each is looked at with each other."""


def few(joined: list[exp.Expr]) -> None:
    """Refuses to join more tables than are looked at."""
    if len(joined) >= MAX_TABLES:
        hint = "Join fewer, or combine them with UNION ALL."
        raise refuse(f"FROM has more than {MAX_TABLES} tables", joined[-1], sqlstate=TOO_COMPLEX, hint=hint)


def count(queries: int, state: Split) -> None:
    state.queries += queries
    if state.queries > MAX_QUERIES:
        raise Rejected(f"The statement has more than {MAX_QUERIES} queries, WITH written out.", sqlstate=TOO_COMPLEX)
