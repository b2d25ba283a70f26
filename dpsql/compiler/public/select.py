"""SELECT itself: its clauses in the order in which Postgres gives them meaning, and the rules of grouping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from dpsql.compiler.problems import Problems
from dpsql.compiler.public.aggregates import holds_aggregate
from dpsql.compiler.public.coerce import distinct_form, distinct_word
from dpsql.compiler.public.conditions import boolean
from dpsql.compiler.public.expr import expression
from dpsql.compiler.public.grouping import Entry, group_clause
from dpsql.compiler.public.names import output_name
from dpsql.compiler.public.order import ambiguous, limit_clause, order_clause, output_key, selected
from dpsql.compiler.public.refuse import only
from dpsql.compiler.public.scope import Field, Query, Scope, keyed, name_of, position_of, read, star
from dpsql.compiler.public.source import from_clause, values_rows
from dpsql.compiler.public.term import Term
from dpsql.errors import GROUPING, NOT_SUPPORTED, Rejected
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
    if not node.expressions:
        raise Rejected("a SELECT needs at least one column", sqlstate=NOT_SUPPORTED, position=position_of(node))
    inner = replace(outer, level=outer.level + 1, outer=outer, sources=(), merged=(), keys=None, in_aggregate=False)
    inner = replace(inner, correlated=set(), windows={})
    if _is_values(node):
        return _values(node, inner)
    scope, source = from_clause(node, inner)
    scope = replace(scope, windows={name_of(w.this): w for w in node.args.get("windows") or ()}, clause="SELECT")
    problems = Problems()

    def condition(clause: str) -> tuple[Term, ...]:
        made = problems.catch(partial(boolean, node.args.get(clause), replace(scope, clause=clause.upper())))
        return tuple(made or ())

    where = condition("where")
    listed = _listed(node, scope)
    grouping = problems.catch(partial(group_clause, node.args.get("group"), scope, listed))
    if grouping is not None or _aggregated(node):
        scope = replace(scope, keys={} if grouping is None else grouping.keys)
    done = {} if grouping is None else grouping.items
    made = [problems.catch(partial(_item, e, done.get(i), scope)) for i, e in enumerate(listed)]
    items = tuple(item for item in made if item is not None)
    having, qualify = condition("having"), condition("qualify")
    problems.check()
    for term in (*(item.term for item in items), *having, *qualify):
        _refuse_loose(term, scope)
    clauses = (
        source,
        *(f" WHERE {term.sql}" for term in where),
        f" GROUP BY {grouping.sql}" if grouping is not None else "",
        *(f" HAVING {term.sql}" for term in having),
        *(f" QUALIFY {term.sql}" for term in qualify),
    )
    query = _finish(node, scope, items, "".join(clauses))
    return replace(query, loose=frozenset(inner.correlated))


def _item(entry: Entry, key: Term | None, scope: Scope) -> _Item:
    return _Item(entry.name, entry.make(scope) if key is None else keyed(key, scope))


def _is_values(node: exp.Expr) -> bool:
    """sqlglot wraps a bare VALUES of a CTE as `SELECT * FROM (VALUES ...) AS _values`."""
    source = node.args.get("from_")
    return source is not None and isinstance(source.this, exp.Values) and source.this.alias == "_values"


def _values(node: exp.Expr, scope: Scope) -> Query:
    only(node, "kind", "expressions", "from_")
    return values_rows(node.args["from_"].this, scope)


def _listed(node: exp.Expr, scope: Scope) -> tuple[Entry, ...]:
    """The select list, stars expanded, not yet translated: grouping decides what a column means in it."""
    made: list[Entry] = []
    for each in node.expressions:
        inner = each.unalias()
        starred = isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
        if isinstance(inner, exp.Star) or starred:
            only(inner.this if starred else inner)
            made += [Entry(f.name, _reader(f)) for f in star(scope, name_of(inner.args.get("table")), inner)]
        else:
            made.append(Entry(output_name(each), _maker(inner)))
    return tuple(made)


def _reader(field: Field) -> Callable[[Scope], Term]:
    return lambda scope: read(field, scope)


def _maker(node: exp.Expr) -> Callable[[Scope], Term]:
    return lambda scope: expression(node, scope)


def _aggregated(node: exp.Expr) -> bool:
    """Whether the query is grouped without GROUP BY: it has HAVING or an aggregate of its own."""
    order = node.args.get("order")
    parts = (*node.expressions, *(order.expressions if order is not None else ()))
    return node.args.get("having") is not None or any(map(holds_aggregate, parts))


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
        if isinstance(node.unnest(), exp.Column) and len({i.term.sql for i in items if i.name == names[index]}) > 1:
            raise ambiguous(node, "ORDER BY")
        return _by_ordinal(items[index].term, index)

    return key


def _by_ordinal(term: Term, index: int) -> Term:
    """An output column as a sort key: by its ordinal, unless it must be computed on."""
    as_is = term.kind is not Kind.NUMERIC or term.digits is not None
    return replace(term, sql=str(index + 1)) if as_is else term


def _distinct_on(node: exp.Expr, scope: Scope, items: Sequence[_Item], body: str, on: exp.Expr) -> Query:
    """DISTINCT ON (keys): the first row of each, in the order of ORDER BY, which must begin with the keys."""
    listed = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
    key = _sort_key(scope, items)
    order = node.args.get("order")
    keys = [distinct_form(key(each)).sql for each in listed]
    first = [distinct_form(key(each.this)).sql for each in (order.expressions if order is not None else [])][
        : len(keys)
    ]
    if set(first) - set(keys):
        text = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
        raise Rejected(text, sqlstate="42P10", position=position_of(order))
    listing = ", ".join(items[int(k) - 1].term.sql if k.isdigit() else k for k in keys)
    head = f"SELECT DISTINCT ON ({listing}) {_list(items)}{body}"
    return Query(f"{head}{order_clause(order, key)}{limit_clause(node)}", _fields(items))


def _distinct(node: exp.Expr, scope: Scope, items: Sequence[_Item], body: str) -> Query:
    """SELECT DISTINCT: sorted from the outside, by output columns only."""
    only(node.args["distinct"], "on")
    if node.args["distinct"].args.get("on") is not None:
        return _distinct_on(node, scope, items, body, node.args["distinct"].args["on"])
    inner = f"SELECT {distinct_word([item.term for item in items])} {_list(items)}{body}"
    fields = _fields(items)
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
