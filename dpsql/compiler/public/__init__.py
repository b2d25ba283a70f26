"""The public remainder of a statement, translated for DuckDB with Postgres's meaning.

After the private aggregations have been replaced by released relations, what is left is ordinary SQL over public rows.
`translate` checks it against an allow-list (node classes, functions, casts), resolves names, types everything as
Postgres does, and writes DuckDB text made of fixed words, internal names and quoted literals only. It must never let
through a node it does not know, and never needs to look at data.

Where the answer is not Postgres's: text sorts by bytes (collation C); regular expressions are RE2's; double precision
that overflows gives Infinity instead of 22003; after INTERSECT, EXCEPT and grouping sets, a numeric without a declared
scale is shown without trailing zeros; dates end with the year 9999; there are no arrays, no
recursion, and no volatile functions but now() and current_date; ORDER BY over a set operation takes output columns
only. Where sqlglot reads date_part as EXTRACT, it is EXTRACT: a numeric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from dpsql.compiler.public.expr import expression
from dpsql.compiler.public.query import resolved, translate_query
from dpsql.compiler.public.scope import Context, Scope
from dpsql.compiler.public.storage import Digits
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.types import Column

__all__ = ["Remainder", "reads_time", "translate"]


@dataclass(frozen=True, slots=True)
class Remainder:
    """DuckDB text and what it gives. `relations` are the names it reads, each loaded under that name."""

    sql: str
    columns: tuple[Column, ...]
    digits: tuple[Digits | None, ...]
    relations: tuple[str, ...]
    timezone: str


def reads_time(made: Remainder) -> bool:
    """Whether what it gives may hang on when it is run."""
    return "pg_now" in made.sql


def translate(tree: exp.Expr, relations: Mapping[str, tuple[Column, ...]], timezone: str = "UTC") -> Remainder:
    """`tree` over `relations` as DuckDB text. Raises Rejected, with a position where the tree has them."""
    context = Context(relations, timezone, translate_query, expression)
    try:
        made = resolved(translate_query(tree, Scope(context, 0)))
    except RecursionError:
        raise Rejected("the statement is nested too deeply", sqlstate=TOO_COMPLEX) from None
    columns = tuple(Column(f.name, f.type) for f in made.fields)
    return Remainder(made.sql, columns, tuple(f.digits for f in made.fields), tuple(context.used), timezone)
