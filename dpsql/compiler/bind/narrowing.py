"""What a condition says of values that are read only where it is true: those of an aggregate with FILTER, of a CASE.

Decides that they have the bounds that WHERE would give them, so that `SUM(x) FILTER (WHERE x < 10)` and
`SUM(CASE WHEN x < 10 THEN x END)` are clamped to the narrower interval and get the smaller noise. Privacy does not hang
on it: the clamp is in the emitted SQL, whatever the condition lets pass. What is certain of every row (`reach`) stays.
"""

from __future__ import annotations

from dataclasses import replace

from dpsql.compiler.algebra import Expr
from dpsql.compiler.bind.context import Context
from dpsql.compiler.facts import Narrowed, narrow, narrowed


def where_true(condition: Expr | None, context: Context) -> tuple[Context, Narrowed]:
    """The context where the condition is true, and what it says of single expressions."""
    known = {} if condition is None else narrow((condition,))
    if not known:
        return context, known
    fields = tuple(replace(field, expr=narrowed(field.expr, known)) for field in context.fields)
    return replace(context, fields=fields), known
