"""FROM: relations, CTEs, subqueries, VALUES and joins, and the columns they offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.compiler.public.coerce import cast, common_type, one_form, unify
from dpsql.compiler.public.conditions import boolean
from dpsql.compiler.public.expr import expression
from dpsql.compiler.public.operators import compare
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Field, Query, Scope, Source, name_of, position_of
from dpsql.compiler.public.storage import digits_of
from dpsql.compiler.public.term import Term, quote_name
from dpsql.errors import AMBIGUOUS_COLUMN, NOT_SUPPORTED, SYNTAX, UNDEFINED_COLUMN, UNDEFINED_TABLE, Rejected
from dpsql.types import TEXT, Kind


def renamed(fields: tuple[Field, ...], alias: exp.Expr | None, name: str) -> tuple[Field, ...]:
    """The fields under the names of an alias's column list."""
    columns = alias.args.get("columns") or [] if alias is not None else []
    if len(columns) > len(fields):
        text = f'table "{name}" has {len(fields)} columns available but {len(columns)} columns specified'
        raise Rejected(text, sqlstate="42P10", position=position_of(alias))
    new = [name_of(c) for c in columns]
    return tuple(replace(f, name=n) for f, n in zip(fields, new, strict=False)) + fields[len(new) :]


def values_rows(node: exp.Expr, outer: Scope) -> Query:
    """VALUES: columns column1, column2, ..."""
    scope = replace(outer, level=outer.level + 1, outer=outer, sources=(), merged=(), keys=None, clause="VALUES")
    rows = [[expression(e, scope) for e in _row(row)] for row in node.expressions]
    if len({len(row) for row in rows}) != 1:
        raise Rejected("VALUES lists must all be the same length", sqlstate=SYNTAX, position=position_of(node))
    columns = []
    for column in zip(*rows, strict=True):
        type_ = common_type(column, "VALUES", node)
        columns.append(one_form([cast(t, type_, scope.zone, node) for t in column]))
    lines = ", ".join("(" + ", ".join(t.sql for t in row) + ")" for row in zip(*columns, strict=True))
    names = ", ".join(f"c{i}" for i in range(1, len(columns) + 1))
    fields = tuple(Field(f"column{i}", f"c{i}", c[0].type, c[0].digits) for i, c in enumerate(columns, 1))
    return Query(f"SELECT * FROM (VALUES {lines}) AS u({names})", fields)


def _row(node: exp.Expr) -> Sequence[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node.unnest()]


def from_clause(node: exp.Expr, scope: Scope) -> tuple[Scope, str]:
    """The scope with FROM's sources in it, and ` FROM ...`."""
    first = node.args.get("from_")
    if first is None:
        return scope, ""
    only(first, "this")
    parts: list[_Part] = []
    for item, joins in _comma_items(first.this, node.args.get("joins") or []):
        seen = tuple(s for part in parts for s in part.sources)
        parts.append(_joined(item, joins, replace(scope, sources=seen)))
    sources = tuple(s for part in parts for s in part.sources)
    _check_names(sources, node)
    merged = tuple(f for part in parts for f in part.merged)
    return replace(scope, sources=sources, merged=merged), " FROM " + ", ".join(part.sql for part in parts)


@dataclass(frozen=True, slots=True)
class _Part:
    """An item of FROM with its joins; `merged` are the columns that USING made one."""

    sql: str
    sources: tuple[Source, ...]
    merged: tuple[Field, ...] = ()


def _comma_items(first: exp.Expr, joins: Sequence[exp.Expr]) -> list[tuple[exp.Expr, list[exp.Expr]]]:
    """FROM's items, each with the joins that follow it up to the next comma."""
    items: list[tuple[exp.Expr, list[exp.Expr]]] = [(first, [])]
    for join in joins:
        if any(join.args.get(a) for a in ("on", "using", "kind", "side", "method")):
            items[-1][1].append(join)
        else:
            only(join, "this")
            items.append((join.this, []))
    return items


def _check_names(sources: Sequence[Source], node: exp.Expr) -> None:
    names = [s.name for s in sources if s.name is not None]
    for name in names:
        if names.count(name) > 1:
            text = f'table name "{name}" specified more than once'
            raise Rejected(text, sqlstate="42712", position=position_of(node.args.get("from_")))


def _joined(first: exp.Expr, joins: Sequence[exp.Expr], scope: Scope) -> _Part:
    part = _item(first, scope)
    for join in joins:
        part = _join(part, join, scope)
    return part


def _lateral(node: exp.Expr, scope: Scope) -> _Part:
    """LATERAL (query): it sees the items of FROM before it."""
    only(node, "this", "alias")
    if not isinstance(node.this, exp.Subquery):
        raise unsupported(node)
    made = scope.context.subquery(node.this.this, scope)
    part = _aliased(_settled(made), node, scope)
    return replace(part, sql=f"LATERAL {part.sql}")


_ITEM = ("this", "alias", "joins")


def _item(node: exp.Expr, scope: Scope) -> _Part:
    if isinstance(node, exp.Table):
        only(node, "db", "catalog", *_ITEM)
        part = _nested(node.this, scope) if isinstance(node.this, exp.Table | exp.Subquery) else _table(node, scope)
    elif isinstance(node, exp.Subquery):
        only(node, *_ITEM)
        nested = isinstance(node.this, exp.Table) or (isinstance(node.this, exp.Subquery) and node.args.get("joins"))
        part = _nested(node.this, scope) if nested else _subquery(node, scope)
    elif isinstance(node, exp.Values):
        only(node, "expressions", "alias")
        part = _aliased(values_rows(node, scope), node, scope)
    elif isinstance(node, exp.Lateral):
        part = _lateral(node, scope)
    else:
        raise unsupported(node)
    for join in node.args.get("joins") or ():
        part = _join(part, join, scope)
    return part


def _nested(node: exp.Expr, scope: Scope) -> _Part:
    """A parenthesised join."""
    part = _item(node, scope)
    return replace(part, sql=f"({part.sql})")


def _table(node: exp.Table, scope: Scope) -> _Part:
    name, qualified = name_of(node.this), node.args.get("db")
    internal = scope.context.fresh("t")
    if not qualified and name in scope.queries:
        query = scope.queries[name]
        return _part(f"{query.sql} AS {internal}", query.fields, node, name, internal)
    if not isinstance(node.this, exp.Identifier):
        raise Rejected("functions in FROM are not supported", sqlstate=NOT_SUPPORTED, position=position_of(node))
    columns = scope.context.relations.get(name)
    if columns is None:
        raise Rejected(f'relation "{name}" does not exist', sqlstate=UNDEFINED_TABLE, position=position_of(node))
    scope.context.used[name] = None
    fields = tuple(
        Field(c.name, quote_name(c.name), c.type, digits_of(c.type), hidden=c.name.startswith("_")) for c in columns
    )
    return _part(f"{quote_name(name)} AS {internal}", fields, node, name, internal)


def _subquery(node: exp.Subquery, scope: Scope) -> _Part:
    """A subquery in FROM sees what is around the query, not its neighbours."""
    around = replace(scope.outer or scope, queries=scope.queries)
    return _aliased(_settled(scope.context.subquery(node.this, around)), node, scope)


def _settled(query: Query) -> Query:
    """Columns of unknown type are text to whoever reads them."""
    fields = tuple(replace(f, type=TEXT) if f.type.kind is Kind.UNKNOWN else f for f in query.fields)
    return replace(query, fields=fields)


def _aliased(query: Query, node: exp.Expr, scope: Scope) -> _Part:
    internal = scope.context.fresh("t")
    return _part(f"({query.sql}) AS {internal}", query.fields, node, None, internal)


def _part(sql: str, fields: tuple[Field, ...], node: exp.Expr, name: str | None, internal: str) -> _Part:
    alias = node.args.get("alias")
    if alias is not None and alias.this is not None:
        name = name_of(alias.this)
    named = renamed(fields, alias, name or "")
    seen = tuple(replace(f, sql=f"{internal}.{f.sql}") for f in named)
    return _Part(sql, (Source(name, seen),))


def _join(left: _Part, node: exp.Expr, scope: Scope) -> _Part:
    only(node, "this", "on", "using", "kind", "side", "method")
    kind, side, method = (str(node.args.get(a) or "").upper() for a in ("kind", "side", "method"))
    if (
        kind not in ("", "INNER", "OUTER", "CROSS")
        or side not in ("", "LEFT", "RIGHT", "FULL")
        or method not in ("", "NATURAL")
    ):
        raise unsupported(node)
    right = _item(node.this, replace(scope, sources=scope.sources + left.sources))
    word = f"{side or 'INNER'} JOIN" if kind != "CROSS" else "CROSS JOIN"
    if node.args.get("using") or method:
        return _merge(left, right, word, side, _using(left, right, node), node, scope)
    both = left.sources + right.sources
    _check_names(both, node)
    seen = replace(scope, sources=both, merged=left.merged + right.merged, clause="JOIN/ON")
    on = boolean(node.args.get("on"), seen)
    if not on and kind != "CROSS":
        raise Rejected("a JOIN needs ON or USING", sqlstate=SYNTAX, position=position_of(node))
    text = "".join(f" ON {term.sql}" for term in on)
    return _Part(f"{left.sql} {word} {right.sql}{text}", both, left.merged + right.merged)


def _using(left: _Part, right: _Part, node: exp.Expr) -> list[str]:
    if node.args.get("using"):
        return [name_of(each if isinstance(each, exp.Identifier) else each.this) for each in node.args["using"]]
    theirs = {f.name for f in _visible(right)}
    return [f.name for f in _visible(left) if f.name in theirs and not f.hidden]


def _visible(part: _Part) -> tuple[Field, ...]:
    names = {f.name for f in part.merged}
    return part.merged + tuple(f for s in part.sources for f in s.fields if f.name not in names)


def _merge(left: _Part, right: _Part, word: str, side: str, names: list[str], node: exp.Expr, scope: Scope) -> _Part:
    """JOIN ... USING: equality on the named columns, each of which becomes one."""
    conditions, merged = [], []
    for name in names:
        ours, theirs = _one(left, name, "left", node), _one(right, name, "right", node)
        pair = unify((_term(ours), _term(theirs)), scope.zone, "JOIN/USING", node)
        conditions.append(compare("=", pair[0], pair[1], scope.zone, node).sql)
        text = {"RIGHT": pair[1].sql, "FULL": f"COALESCE({pair[0].sql}, {pair[1].sql})"}.get(side, pair[0].sql)
        merged.append(Field(name, text, pair[0].type, pair[0].digits))
    on = " AND ".join(conditions) or "TRUE"
    kept = tuple(f for f in left.merged + right.merged if f.name not in names)
    return _Part(f"{left.sql} {word} {right.sql} ON {on}", left.sources + right.sources, (*merged, *kept))


def _term(field: Field) -> Term:
    return Term(field.sql, field.type, field.digits)


def _one(part: _Part, name: str, which: str, node: exp.Expr) -> Field:
    found = [f for f in _visible(part) if f.name == name]
    if not found:
        text = f'column "{name}" specified in USING clause does not exist in {which} table'
        raise Rejected(text, sqlstate=UNDEFINED_COLUMN, position=position_of(node))
    if len(found) > 1:
        text = f'common column name "{name}" appears more than once in {which} table'
        raise Rejected(text, sqlstate=AMBIGUOUS_COLUMN, position=position_of(node))
    return found[0]
