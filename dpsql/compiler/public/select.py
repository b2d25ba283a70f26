"""SELECT itself: its clauses in the order in which Postgres gives them meaning, and the rules of grouping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.compiler.public.coerce import distinct_form
from dpsql.compiler.public.expr import boolean, expression
from dpsql.compiler.public.names import output_name
from dpsql.compiler.public.order import ambiguous, limit_clause, order_clause, output_key, selected
from dpsql.compiler.public.refuse import only
from dpsql.compiler.public.scope import Field, Query, Scope, name_of, position_of, read, star
from dpsql.compiler.public.source import from_clause, values_rows
from dpsql.compiler.public.term import Term
from dpsql.errors import GROUPING, Rejected
from dpsql.types import Kind

_CLAUSES = ("kind", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "distinct")
_MODIFIERS = ("with_", "order", "limit", "offset")


@dataclass(frozen=True, slots=True)
class _Item:
    """One output column."""

    name: str
    term: Term


def select(node: exp.Expr, outer: Scope) -> Query:
    """One SELECT over the columns around it."""
    only(node, *_CLAUSES, *_MODIFIERS)
    inner = replace(outer, level=outer.level + 1, outer=outer, sources=(), merged=(), keys=None, in_aggregate=False)
    if _is_values(node):
        return _values(node, inner)
    scope, source = from_clause(node, inner)
    scope = replace(scope, windows={name_of(w.this): w for w in node.args.get("windows") or ()}, clause="SELECT")
    where = boolean(node.args.get("where"), replace(scope, clause="WHERE"))
    items = _items(node, scope)
    keys = _group_keys(node.args.get("group"), scope, items)
    if keys is not None or _aggregates(node, scope, items):
        scope = replace(scope, keys={key.sql: _key_text(key) for key in keys or ()})
        items = _items(node, scope)
    having = boolean(node.args.get("having"), replace(scope, clause="HAVING"))
    qualify = boolean(node.args.get("qualify"), replace(scope, clause="QUALIFY"))
    for term in (*(item.term for item in items), *having, *qualify):
        _refuse_loose(term, scope)
    clauses = (
        source,
        *(f" WHERE {term.sql}" for term in where),
        f" GROUP BY {', '.join(scope.keys.values())}" if scope.keys else "",
        *(f" HAVING {term.sql}" for term in having),
        *(f" QUALIFY {term.sql}" for term in qualify),
    )
    return _finish(node, scope, items, "".join(clauses))


def _is_values(node: exp.Expr) -> bool:
    """sqlglot wraps a bare VALUES of a CTE as `SELECT * FROM (VALUES ...) AS _values`."""
    source = node.args.get("from_")
    return source is not None and isinstance(source.this, exp.Values) and source.this.alias == "_values"


def _values(node: exp.Expr, scope: Scope) -> Query:
    only(node, "kind", "expressions", "from_")
    return values_rows(node.args["from_"].this, scope)


def _items(node: exp.Expr, scope: Scope) -> tuple[_Item, ...]:
    """The select list, stars expanded."""
    made: list[_Item] = []
    for each in node.expressions:
        inner = each.unalias()
        starred = isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
        if isinstance(inner, exp.Star) or starred:
            only(inner.this if starred else inner)
            made += [_Item(f.name, read(f, scope)) for f in star(scope, name_of(inner.args.get("table")), inner)]
        else:
            made.append(_Item(output_name(each), expression(inner, scope)))
    return tuple(made)


def _group_keys(group: exp.Expr | None, scope: Scope, items: Sequence[_Item]) -> tuple[Term, ...] | None:
    """The group keys; None without GROUP BY."""
    if group is None:
        return None
    only(group, "expressions")
    keys = tuple(_group_key(each, replace(scope, clause="GROUP BY"), items) for each in group.expressions)
    for key, node in zip(keys, group.expressions, strict=True):
        if scope.level in key.aggregate or key.window:
            what = "window" if key.window else "aggregate"
            state = "42P20" if key.window else GROUPING
            raise Rejected(f"{what} functions are not allowed in GROUP BY", sqlstate=state, position=position_of(node))
    return keys


def _group_key(node: exp.Expr, scope: Scope, items: Sequence[_Item]) -> Term:
    """An input column first, then an output name or ordinal, then an expression."""
    inner = node.unnest()
    bare = isinstance(inner, exp.Column) and not inner.args.get("table")
    if bare and any(f.name == name_of(inner.this) for s in (*scope.sources,) for f in s.fields):
        return expression(inner, scope)
    names = [item.name for item in items]
    index = selected(inner, names, "GROUP BY")
    if index is None:
        return expression(inner, scope)
    if bare and len({i.term.sql for i in items if i.name == names[index]}) > 1:
        raise ambiguous(inner, "GROUP BY")
    return items[index].term


def _key_text(key: Term) -> str:
    """The text to group by: never a bare constant, which DuckDB would take for an ordinal."""
    plain = distinct_form(key).sql
    return plain if key.loose else f"CAST({plain} AS {key.storage})"


def _aggregates(node: exp.Expr, scope: Scope, items: Sequence[_Item]) -> bool:
    """Whether the query is grouped without GROUP BY: it has HAVING or an aggregate of its own."""
    order = node.args.get("order")
    nodes = [e.this for e in order.expressions] if order is not None else []
    terms = [expression(n, scope) for n in nodes if selected(n, [i.name for i in items], "ORDER BY") is None]
    found = any(scope.level in t.aggregate for t in (*(i.term for i in items), *terms))
    return found or node.args.get("having") is not None


def _refuse_loose(term: Term, scope: Scope) -> None:
    if scope.keys is None:
        return
    loose = sorted((x for x in term.loose if x.level == scope.level), key=lambda x: (x.position or 0, x.label))
    if loose:
        text = f'column "{loose[0].label}" must appear in the GROUP BY clause or be used in an aggregate function'
        raise Rejected(text, sqlstate=GROUPING, position=loose[0].position)


def _finish(node: exp.Expr, scope: Scope, items: Sequence[_Item], body: str) -> Query:
    """The select list, DISTINCT, ORDER BY and LIMIT around the rest."""
    distinct = node.args.get("distinct")
    if distinct is not None:
        return _distinct(node, scope, items, body)
    order = order_clause(node.args.get("order"), _sort_key(scope, items))
    return Query(f"SELECT {_list(items)}{body}{order}{limit_clause(node)}", _fields(items))


def _list(items: Sequence[_Item]) -> str:
    return ", ".join(f"{item.term.sql} AS c{i}" for i, item in enumerate(items, 1))


def _fields(items: Sequence[_Item]) -> tuple[Field, ...]:
    return tuple(Field(item.name, f"c{i}", item.term.type, item.term.digits) for i, item in enumerate(items, 1))


def _sort_key(scope: Scope, items: Sequence[_Item]) -> Callable[[exp.Expr], Term]:
    def key(node: exp.Expr) -> Term:
        names = [item.name for item in items]
        index = selected(node, names, "ORDER BY")
        if index is None:
            term = expression(node, replace(scope, clause="ORDER BY"))
            _refuse_loose(term, scope)
            return term
        if isinstance(node, exp.Column) and len({i.term.sql for i in items if i.name == names[index]}) > 1:
            raise ambiguous(node, "ORDER BY")
        return _by_ordinal(items[index].term, index)

    return key


def _by_ordinal(term: Term, index: int) -> Term:
    """An output column as a sort key: by its ordinal, unless it must be computed on."""
    as_is = term.kind is not Kind.NUMERIC or term.digits is not None
    return replace(term, sql=str(index + 1)) if as_is else term


def _distinct(node: exp.Expr, scope: Scope, items: Sequence[_Item], body: str) -> Query:
    """SELECT DISTINCT: sorted from the outside, by output columns only."""
    only(node.args["distinct"])
    plain = [replace(item, term=distinct_form(item.term)) for item in items]
    inner = f"SELECT DISTINCT {_list(plain)}{body}"
    fields = _fields(plain)
    if node.args.get("order") is None:
        return Query(inner + limit_clause(node), fields)
    outside = output_key(fields)

    def key(each: exp.Expr) -> Term:
        if selected(each, [f.name for f in fields], "ORDER BY") is not None:
            return outside(each)
        term = expression(each, scope)
        for index, item in enumerate(items):
            if item.term.sql == term.sql:
                return replace(term, sql=f"u.c{index + 1}")
        text = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
        raise Rejected(text, sqlstate="42P10", position=position_of(each))

    order = order_clause(node.args["order"], key)
    return Query(f"SELECT * FROM ({inner}) AS u{order}{limit_clause(node)}", fields)
