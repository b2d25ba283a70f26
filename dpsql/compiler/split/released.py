"""Queries inside a statement that are public or released: in the remainder, and beside private rows.

Decides that a subquery of an expression is released before it is read, and that what is joined with private rows, or
compared with them, is a public relation computed before the release that reads it.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.algebra import Col, Domain, Expr, Rows, Scalar
from dpsql.compiler.bind.parameters import with_clock, with_parameters
from dpsql.compiler.bind.scope import Field, Source
from dpsql.compiler.bind.units import scan
from dpsql.compiler.parse import name_of, refuse
from dpsql.compiler.public import translate
from dpsql.compiler.rewrite import NO_TEXT, inner_text
from dpsql.compiler.split.repeats import repeats_of
from dpsql.compiler.split.sources import SCHEMAS, renamed, within
from dpsql.compiler.split.state import Derived, Names, Split
from dpsql.errors import NOT_PERMITTED, UNDEFINED_COLUMN, UNDEFINED_TABLE, Rejected
from dpsql.types import Column, Kind


def subqueries(node: exp.Expr, names: Names, state: Split) -> exp.Expr:
    """Replaces every subquery of an expression by its processed form; each must be public or released."""
    if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
        inner = released_query(node, names, state)
        return exp.Subquery(this=inner) if isinstance(node, exp.Subquery) else inner
    for key, value in list(node.args.items()):
        if isinstance(value, list):
            node.set(key, [subqueries(v, names, state) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr):
            node.set(key, subqueries(value, names, state))
    return node


def released_query(node: exp.Expr, names: Names, state: Split) -> exp.Query:
    try:
        result = state.process(node, names, state)
    except Rejected as error:
        raise _correlated(node, error) or error from None
    if isinstance(result, Source):
        raise refuse(
            "A subquery over private rows must aggregate them here.",
            node,
            sqlstate=NOT_PERMITTED,
            hint=_counted(node),
        )
    return result


def _counted(node: exp.Expr) -> str:
    """What to ask instead of rows of a subquery."""
    if isinstance(node.parent, exp.Exists):
        return "Whether a row is there tells of one unit. Count, and compare with more than the noise: COUNT(*) > 20."
    return "Use an aggregate in the subquery, or join on the unit column instead of IN or EXISTS."


def _correlated(node: exp.Expr, error: Rejected) -> Rejected | None:
    """The refusal of an aggregate that is taken anew for each row outside, with the join that says the same."""
    select = node.this if isinstance(node, exp.Subquery) else node
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if error.sqlstate not in (UNDEFINED_COLUMN, UNDEFINED_TABLE) or where is None or not select.args.get("from_"):
        return None
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    equal = [p for p in parts if isinstance(p, exp.EQ)]
    ties = [p for p in equal if isinstance(p.this, exp.Column) and isinstance(p.expression, exp.Column)]
    if not ties:
        return None
    keys = ", ".join(t.this.sql("postgres") for t in ties)
    value = select.expressions[0].sql("postgres") if select.expressions else "..."
    source = select.args["from_"].this.sql("postgres")
    others = " AND ".join(p.sql("postgres") for p in parts if p not in ties)
    filtered = f" WHERE {others}" if others else ""
    once = f"SELECT {keys}, {value} AS v FROM {source}{filtered} GROUP BY {keys}"
    on = " AND ".join(f"released.{name_of(t.this.this)} = {t.expression.sql('postgres')}" for t in ties)
    return refuse(
        "This subquery is an aggregate of private rows for each row of the query around it, which is not supported.",
        node,
        hint=f"Release it once and join it: JOIN ({once}) AS released ON {on}",
    )


def as_source(result: exp.Expr | Source, item: exp.Expr, names: Names, state: Split) -> Source:
    """A public FROM item that is joined with private rows: a public table, or a relation computed before."""
    if isinstance(result, Source):
        return result
    if isinstance(result, exp.Table):
        qualifier = name_of(result.args["alias"].this)
        table = state.schema.tables[name_of(result.this)]
        schemas = result.meta.get(SCHEMAS, frozenset())
        source = within(schemas, scan(table, state.numbers.take(), qualifier, state.schema))
        return renamed(source, result.args["alias"], item)
    asked = _asked(item, names) if isinstance(result, exp.Subquery) else None
    tree = exp.select("*").from_(result.copy())
    columns = _derive(tree, result.this if isinstance(result, exp.Subquery) else tree, asked, state)
    number, index = state.numbers.take(), len(state.derived) - 1
    most = len(result.expressions) if isinstance(result, exp.Values) else _row_limit(result.this)
    cols = tuple(Col(f"t{number}_{i}", c.type, _released_domain(index, i, most)) for i, c in enumerate(columns))
    alias = result.args.get("alias")
    qualifier = name_of(alias.this) if alias is not None else ""
    fields = tuple(Field(qualifier, c.name, col) for c, col in zip(columns, cols, strict=True))
    return Source(Rows(index, cols, repeats_of(result, state, len(cols))), fields, private=False)


def _asked(item: exp.Expr, names: Names) -> exp.Query | None:
    """The query of a FROM item as it stands in the text."""
    if isinstance(item, exp.Table) and not item.args.get("db") and name_of(item.this) in names:
        return names[name_of(item.this)].query
    return item.this if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query) else None


def _row_limit(tree: exp.Expr) -> int | None:
    """How many rows a query can have, from its text alone."""
    limit = tree.args.get("limit")
    count = limit.args.get("expression") or limit.args.get("count") if limit is not None else None
    if isinstance(count, exp.Literal) and not count.is_string and str(count.this).isdigit():
        return int(count.this)
    return None


def _released_domain(index: int, column: int, most: int | None) -> Domain:
    """A released column can name group keys where the text bounds how many values it has."""
    return Domain(released=None if most is None else (index, column, most))


def _derive(tree: exp.Query, bare: exp.Query, asked: exp.Query | None, state: Split) -> tuple[Column, ...]:
    """Registers a public relation to be computed before the release that reads it.

    `bare`: the query without a name around it. `asked`: the same as it stands in the text.
    """
    text = NO_TEXT
    if state.text is not None:
        text = inner_text(state.text, asked, with_clock(bare.copy(), state.now), state.schema.policy.views)
    tree = with_clock(constants(tree, state), state.now)
    remainder = translate(tree, state.relations, state.schema.policy.timezone)
    for column in remainder.columns:
        if column.type.kind in (Kind.JSON, Kind.BYTEA, Kind.INTERVAL, Kind.TIME):
            raise Rejected(f"a column of type {column.type} cannot be joined with private rows")
    state.derived.append(Derived(remainder, text))
    return remainder.columns


def scalar(node: exp.Expr, names: Names, state: Split) -> Expr:
    """An uncorrelated scalar subquery beside private rows: released first, then one public value.

    Equal subqueries are one value, so that a group key with one in it is known again in the SELECT list.
    """
    tree = released_query(node.this, names, state)
    columns = _derive(tree.copy(), tree, node.this, state)
    if len(columns) != 1:
        raise refuse("subquery must return only one column", node, sqlstate="42601")
    index = state.derived.index(state.derived[-1])
    if index < len(state.derived) - 1:
        state.derived.pop()
    return Scalar(index, columns[0].type, Domain())


def constants(tree: exp.Query, state: Split) -> exp.Query:
    return with_parameters(tree, state.parameters, state.inferred, state.relations)
