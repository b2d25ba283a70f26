"""SELECT, set operations, VALUES and WITH: the shape of a query. Expressions are `expr`'s, names `scope`'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.compiler.public.coerce import cast, common_type, distinct_form, distinct_word, one_form
from dpsql.compiler.public.order import limit_clause, order_clause, output_key
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Field, Query, Scope, name_of, position_of
from dpsql.compiler.public.select import select
from dpsql.compiler.public.source import renamed, values_rows
from dpsql.compiler.public.term import Term
from dpsql.errors import SYNTAX, Rejected
from dpsql.types import TEXT, Kind

_MODIFIERS = ("with_", "order", "limit", "offset")


def translate_query(node: exp.Expr, outer: Scope) -> Query:
    """Any query. `outer` gives the columns around it (for correlation) and the CTEs."""
    maker = _QUERIES.get(type(node))
    if maker is None:
        raise unsupported(node)
    scope, definitions = _with_clause(node.args.get("with_"), outer)
    made = maker(node, scope)
    return replace(made, sql=f"WITH {', '.join(definitions)} {made.sql}") if definitions else made


def resolved(query: Query) -> Query:
    """The query with columns of unknown type made text, as Postgres does at the outside and in FROM."""
    fields = tuple(replace(f, type=TEXT) if f.type.kind is Kind.UNKNOWN else f for f in query.fields)
    return replace(query, fields=fields)


def _with_clause(node: exp.Expr | None, outer: Scope) -> tuple[Scope, tuple[str, ...]]:
    """The scope with the CTEs of WITH in it, each seeing the earlier ones, and their definitions."""
    if node is None:
        return outer, ()
    only(node, "expressions")
    queries, definitions = dict(outer.queries), []
    for each in node.expressions:
        only(each, "this", "alias", "materialized")
        name, internal = name_of(each.args["alias"].this), outer.context.fresh("q")
        body = resolved(translate_query(each.this, replace(outer, queries=queries)))
        fields = renamed(body.fields, each.args["alias"], name)
        queries = {**queries, name: Query(internal, fields)}
        definitions.append(f"{internal} AS ({body.sql})")
    if len({name_of(each.args["alias"].this) for each in node.expressions}) < len(definitions):
        raise Rejected("WITH query name specified more than once", sqlstate="42712", position=position_of(node))
    return replace(outer, queries=queries), tuple(definitions)


def _paren(node: exp.Expr, outer: Scope) -> Query:
    """`(query) ORDER BY ...`: the inner query as a table."""
    only(node, "this", *_MODIFIERS)
    inner = translate_query(node.this, outer)
    return inner if not any(node.args.get(m) for m in _MODIFIERS[1:]) else _outer_modifiers(inner, node, outer)


def _outer_modifiers(query: Query, node: exp.Expr, outer: Scope) -> Query:
    """ORDER BY over output names or ordinals only, LIMIT and OFFSET."""
    keys = order_clause(node.args.get("order"), output_key(query.fields))
    sql = f"SELECT * FROM ({query.sql}) AS u{keys}{limit_clause(node)}"
    return Query(sql, query.fields, query.loose)


def _set_operation(node: exp.Expr, outer: Scope) -> Query:
    only(node, "this", "expression", "distinct", *_MODIFIERS)
    word = node.key.upper()
    left, right = translate_query(node.this, outer), translate_query(node.expression, outer)
    if len(left.fields) != len(right.fields):
        text = f"each {word} query must have the same number of columns"
        raise Rejected(text, sqlstate=SYNTAX, position=position_of(node.expression))
    distinct = bool(node.args.get("distinct"))
    sides, fields = _aligned((left, right), word, distinct and word != "UNION", outer, node)
    made = Query(_combined(word, distinct, sides, fields), fields, left.loose | right.loose)
    return made if not any(node.args.get(m) for m in _MODIFIERS[1:]) else _outer_modifiers(made, node, outer)


def _combined(word: str, distinct: bool, sides: Sequence[str], fields: Sequence[Field]) -> str:
    terms = [Term(f"u.{field.sql}", field.type, field.digits) for field in fields]
    kept = distinct_word(terms)
    if word != "UNION" or not distinct or kept == "DISTINCT":
        return f"{sides[0]} {word}{'' if distinct else ' ALL'} {sides[1]}"
    return f"SELECT {kept} * FROM ({sides[0]} UNION ALL {sides[1]}) AS u"


def _aligned(
    queries: Sequence[Query], context: str, distinct: bool, outer: Scope, node: exp.Expr
) -> tuple[list[str], tuple[Field, ...]]:
    """The queries with equal column types, and the fields of their union."""
    columns: list[tuple[Term, ...]] = []
    for pair in zip(*(q.fields for q in queries), strict=True):
        terms = [Term(f"u.c{len(columns) + 1}", f.type, f.digits) for f in pair]
        type_ = common_type(terms, context, node)
        made = one_form([cast(t, type_, outer.zone, node) for t in terms])
        columns.append(tuple(distinct_form(t) for t in made) if distinct else made)
    sides = [_projection(q, [c[i] for c in columns]) for i, q in enumerate(queries)]
    names = queries[0].fields
    fields = tuple(
        Field(n.name, f"c{i}", c[0].type, c[0].digits) for i, (n, c) in enumerate(zip(names, columns, strict=True), 1)
    )
    return sides, fields


def _projection(query: Query, terms: Sequence[Term]) -> str:
    items = ", ".join(f"{t.sql} AS c{i}" for i, t in enumerate(terms, 1))
    return f"(SELECT {items} FROM ({query.sql}) AS u)"


def _values(node: exp.Expr, outer: Scope) -> Query:
    """VALUES as a query of its own."""
    only(node, "expressions", "alias", *_MODIFIERS)
    made = values_rows(node, outer)
    return made if not any(node.args.get(m) for m in _MODIFIERS[1:]) else _outer_modifiers(made, node, outer)


_QUERIES: dict[type[exp.Expr], Callable[[exp.Expr, Scope], Query]] = {
    exp.Select: select,
    exp.Union: _set_operation,
    exp.Intersect: _set_operation,
    exp.Except: _set_operation,
    exp.Subquery: _paren,
    exp.Values: _values,
}
