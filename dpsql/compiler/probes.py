"""Probes: statements that clients send for their columns, not for rows.

LIMIT 0, WHERE 1 <> 1, and row-level queries with a literal LIMIT of at most 1 are answered with their columns, no rows
and no cost. What is a probe is decided from the text alone.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.types import Kind, SqlType


def is_probe(tree: exp.Expr) -> bool:
    """A literal LIMIT of at most 1, or a WHERE that is never true."""
    return literal_limit(tree) in (0, 1) or never_true(tree)


def asks_nothing(tree: exp.Expr) -> bool:
    """No row can come back, whatever the data: LIMIT 0, or a constant false WHERE of a query that is not one total."""
    one_total = not tree.args.get("group") and any(e.find(exp.AggFunc) for e in tree.args.get("expressions") or [])
    return literal_limit(tree) == 0 or (never_true(tree) and not one_total)


def existence_test(tree: exp.Expr) -> bool:
    """SELECT 1 FROM t WHERE ... LIMIT 1 asks whether there is such a row; without a condition, only for a column."""
    if not isinstance(tree, exp.Select) or literal_limit(tree) == 0 or never_true(tree):
        return False
    constant = not any(e.find(exp.Column, exp.Star) for e in tree.expressions)
    return constant and tree.find(exp.Where, exp.Join, exp.Having) is not None


def literal_limit(tree: exp.Expr) -> int | None:
    """The literal of LIMIT or FETCH FIRST, a whole number."""
    limit = tree.args.get("limit")
    if not isinstance(limit, exp.Limit | exp.Fetch):
        return None
    count = limit.args.get("expression") or limit.args.get("count")
    if not isinstance(count, exp.Literal) or count.is_string or not str(count.this).isdecimal():
        return None
    return int(count.this)


def never_true(tree: exp.Expr) -> bool:
    """WHERE FALSE, WHERE 1 = 0, WHERE 1 <> 1, alone or as one part of a conjunction."""
    where = tree.args.get("where")
    if where is None:
        return False
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    return any(_false(part) for part in parts)


def _false(part: exp.Expr) -> bool:
    while isinstance(part, exp.Paren):
        part = part.this
    if isinstance(part, exp.Boolean):
        return not part.this
    if not isinstance(part, exp.EQ | exp.NEQ):
        return False
    if not isinstance(part.this, exp.Literal) or not isinstance(part.expression, exp.Literal):
        return False
    same = str(part.this.this) == str(part.expression.this)
    return not same if isinstance(part, exp.EQ) else same


def empty_query(columns: list[tuple[str, SqlType]]) -> exp.Select:
    """A query with these columns and no rows."""
    nulls = [
        exp.Alias(this=exp.Cast(this=exp.Null(), to=_type(type_)), alias=exp.to_identifier(name, quoted=True))
        for name, type_ in columns
    ]
    return exp.Select(expressions=nulls, where=exp.Where(this=exp.Boolean(this=False)))


def _type(type_: SqlType) -> exp.DataType:
    return exp.DataType.build("text" if type_.kind is Kind.UNKNOWN else str(type_), dialect="postgres")
