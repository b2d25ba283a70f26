"""Conditions: connectives, IS, BETWEEN, IN, EXISTS, ANY and ALL, LIKE and regular expressions, row comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.compiler.public.coerce import cast, name_of, sort_form, unify
from dpsql.compiler.public.operators import alike, comparable, compare, undefined
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Scope, position_of
from dpsql.compiler.public.term import Term, join_terms
from dpsql.errors import GROUPING, NOT_SUPPORTED, SYNTAX, TYPE_MISMATCH, Rejected
from dpsql.types import BOOL, TEXT, Kind

Maker = Callable[[exp.Expr, Scope], Term]


def boolean(clause: exp.Expr | None, scope: Scope) -> tuple[Term, ...]:
    """The condition of a clause (WHERE, ON, ...), which must be boolean; nothing where there is none."""
    if clause is None:
        return ()
    node = clause.this if isinstance(clause, exp.Where | exp.Having | exp.Qualify) else clause
    term = condition(node, scope, f"argument of {scope.clause}")
    place = scope.clause.replace("/ON", " conditions")
    if scope.clause in ("WHERE", "JOIN/ON") and scope.level in term.aggregate:
        text = f"aggregate functions are not allowed in {place}"
        raise Rejected(text, sqlstate=GROUPING, position=position_of(node))
    if term.window and scope.clause != "QUALIFY":
        text = f"window functions are not allowed in {place}"
        raise Rejected(text, sqlstate="42P20", position=position_of(node))
    return (term,)


def condition(node: exp.Expr, scope: Scope, what: str) -> Term:
    term = scope.context.expression(node, scope)
    if term.kind is Kind.UNKNOWN:
        return cast(term, BOOL, scope.zone, node)
    if term.kind is not Kind.BOOL:
        text = f"{what} must be type boolean, not type {name_of(term.type)}"
        raise Rejected(text, sqlstate=TYPE_MISMATCH, position=position_of(node))
    return term


def _comparison(operator: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression")
        if isinstance(node.this, exp.Tuple) or isinstance(node.expression, exp.Tuple):
            return _rows(operator, node.this, node.expression, scope)
        left = scope.context.expression(node.this, scope)
        if isinstance(node.expression, exp.Any | exp.All):
            return _quantified(operator, left, node.expression, scope)
        right = scope.context.expression(node.expression, scope)
        return compare(operator, left, right, scope.zone, node)

    return make


def _rows(operator: str, left: exp.Expr, right: exp.Expr, scope: Scope) -> Term:
    """(a, b) = (c, d), and <>."""
    if operator not in ("=", "<>") or not isinstance(left, exp.Tuple) or not isinstance(right, exp.Tuple):
        raise unsupported(left if isinstance(left, exp.Tuple) else right)
    sides = [[scope.context.expression(each, scope) for each in side.expressions] for side in (left, right)]
    if len(sides[0]) != len(sides[1]):
        raise Rejected("unequal number of entries in row expressions", sqlstate=SYNTAX, position=position_of(left))
    parts = [compare(operator, a, b, scope.zone, left) for a, b in zip(*sides, strict=True)]
    word = " AND " if operator == "=" else " OR "
    return join_terms(f"({word.join(p.sql for p in parts)})", BOOL, parts)


def _quantified(operator: str, left: Term, node: exp.Expr, scope: Scope) -> Term:
    """x = ANY (...), x > ALL (...): over a subquery or ARRAY[...]."""
    inner = node.this.unnest() if isinstance(node.this, exp.Paren | exp.Subquery) else node.this
    word = "ANY" if isinstance(node, exp.Any) else "ALL"
    if isinstance(inner, exp.Array) and not any(isinstance(e, exp.Query) for e in inner.expressions):
        listed = [scope.context.expression(e, scope) for e in inner.expressions]
        if operator == "=" and word == "ANY" and listed:
            return _any_of(left, listed, scope, node)
        parts = [compare(operator, left, each, scope.zone, node) for each in listed]
        text = (" OR " if word == "ANY" else " AND ").join(p.sql for p in parts)
        return join_terms(f"({text})" if parts else ("FALSE" if word == "ANY" else "TRUE"), BOOL, (left, *parts))
    if not isinstance(inner, exp.Query):
        raise unsupported(node)
    return _against_query(left, operator, word, inner, node, scope)


def _against_query(left: Term, operator: str, word: str, query: exp.Expr, node: exp.Expr, scope: Scope) -> Term:
    made = scope.context.subquery(query, scope)
    if len(made.fields) != 1:
        raise Rejected("subquery has too many columns", sqlstate=SYNTAX, position=position_of(node))
    field = made.fields[0]
    pair = comparable(left, Term("u.c1", field.type, field.digits), scope.zone, operator, node)
    if pair[0].digits != pair[1].digits:
        made_pair = unify(pair, scope.zone, "IN", node)
        pair = (made_pair[0], made_pair[1])
    rows = f"(SELECT {sort_form(pair[1])} FROM ({made.sql}) AS u)"
    return left.becomes(f"({sort_form(pair[0])} {operator} {word} {rows})", BOOL)


def _connective(word: str, kind: type[exp.Expr]) -> Maker:
    """AND, OR: a chain of any length is one list, not a deep tree."""

    def make(node: exp.Expr, scope: Scope) -> Term:
        operands, rest = [], [node]
        while rest:
            each = rest.pop()
            if isinstance(each, kind):
                only(each, "this", "expression")
                rest += [each.args["expression"], each.this]
            else:
                operands.append(each)
        parts = [condition(each, scope, f"argument of {word}") for each in operands]
        return join_terms(_guarded(word, [part.sql for part in parts]), BOOL, parts)

    return make


_MAY_RAISE = re.compile(r" // | % |pg_|round_even|AS (INTEGER|SMALLINT)\)")


def _guarded(word: str, parts: Sequence[str]) -> str:
    """A chain whose later operands are not computed where an earlier one decides: DuckDB would compute all of them."""
    chain = "(" + f" {word} ".join(parts) + ")"
    if not any(map(_MAY_RAISE.search, parts[1:])):
        return chain
    decided = "FALSE" if word == "AND" else "TRUE"
    guards = " ".join(f"WHEN {part} IS NOT DISTINCT FROM {decided} THEN {decided}" for part in parts[:-1])
    return f"CASE {guards} ELSE {chain} END"


def _not(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this")
    term = condition(node.this, scope, "argument of NOT")
    return term.becomes(f"(NOT {term.sql})", BOOL)


def _is(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression", "negate")
    word = "IS NOT" if node.args.get("negate") else "IS"
    if isinstance(node.expression, exp.Null):
        term = scope.context.expression(node.this, scope)
        return term.becomes(f"({term.sql} {word} NULL)", BOOL)
    if not isinstance(node.expression, exp.Boolean):
        raise unsupported(node.expression)
    value = "TRUE" if node.expression.this else "FALSE"
    term = condition(node.this, scope, f"argument of {word} {value}")
    same = "IS NOT DISTINCT FROM" if word == "IS" else "IS DISTINCT FROM"
    return term.becomes(f"({term.sql} {same} {value})", BOOL)


def _between(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "low", "high", "symmetric")
    terms = [scope.context.expression(node.args[a], scope) for a in ("this", "low", "high")]
    value, low, high = (sort_form(term) for term in alike(terms, ">=", scope.zone, node))
    between = f"({value} BETWEEN {low} AND {high})"
    if node.args.get("symmetric"):
        between = f"({between} OR ({value} BETWEEN {high} AND {low}))"
    return join_terms(between, BOOL, terms)


def _in(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expressions", "query")
    if isinstance(node.this, exp.Tuple):
        return _row_in(node, scope)
    value = scope.context.expression(node.this, scope)
    if node.args.get("query") is not None:
        return _against_query(value, "=", "ANY", node.args["query"].unnest(), node, scope)
    return _any_of(value, [scope.context.expression(each, scope) for each in node.expressions], scope, node)


def _any_of(value: Term, listed: Sequence[Term], scope: Scope, node: exp.Expr) -> Term:
    first, *others = alike([value, *listed], "=", scope.zone, node)
    rest = ", ".join(sort_form(other) for other in others)
    return join_terms(f"({sort_form(first)} IN ({rest}))", BOOL, (value, *listed))


def _row_in(node: exp.Expr, scope: Scope) -> Term:
    if node.args.get("query") is not None or not all(isinstance(e, exp.Tuple) for e in node.expressions):
        raise unsupported(node.this)
    parts = [_rows("=", node.this, each, scope) for each in node.expressions]
    return join_terms("(" + " OR ".join(p.sql for p in parts) + ")", BOOL, parts)


def _exists(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this")
    query = scope.context.subquery(node.this.unnest(), scope)
    return Term(f"EXISTS ({query.sql})", BOOL, loose=query.loose)


def _like(function: str, operator: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression", "negate")
        return _pattern(function, operator, node, "\\", scope)

    return make


def _pattern(function: str, operator: str, node: exp.Expr, escape: str, scope: Scope) -> Term:
    """LIKE and ILIKE, whose escape character in Postgres is the backslash unless said otherwise."""
    negate = bool(node.args.get("negate"))
    sides = [scope.context.expression(node.this, scope), scope.context.expression(node.expression, scope)]
    pair = _texts(sides, ("!" if negate else "") + operator, scope, node)
    sql = f"{function}({pair[0].sql}, {pair[1].sql}, '{escape}')"
    return join_terms(f"(NOT {sql})" if negate else sql, BOOL, pair)


def _texts(sides: Sequence[Term], operator: str, scope: Scope, node: exp.Expr) -> tuple[Term, Term]:
    if any(t.kind not in (Kind.TEXT, Kind.NAME, Kind.UNKNOWN) for t in sides):
        raise undefined(operator, sides[0], sides[1], node)
    left, right = (cast(t, TEXT, scope.zone, node) for t in sides)
    return left, right


def _escape(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression")
    found = {exp.Like: ("like_escape", "~~"), exp.ILike: ("ilike_escape", "~~*")}.get(type(node.this))
    character = node.expression.name if isinstance(node.expression, exp.Literal) else None
    if found is None or character is None or len(character) != 1 or character == "'":
        raise Rejected("ESCAPE takes one character here", sqlstate=NOT_SUPPORTED, position=position_of(node))
    only(node.this, "this", "expression", "negate")
    return _pattern(*found, node.this, character, scope)


def _regexp(operator: str, flags: str) -> Maker:
    """~ and ~*: by DuckDB's RE2, which never backtracks."""

    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression")
        sides = [scope.context.expression(node.this, scope), scope.context.expression(node.expression, scope)]
        pair = _texts(sides, operator, scope, node)
        return join_terms(f"regexp_matches({pair[0].sql}, {pair[1].sql}, '{flags}')", BOOL, pair)

    return make


MAKERS: dict[type[exp.Expr], Maker] = {
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.NullSafeEQ: _comparison("IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: _comparison("IS DISTINCT FROM"),
    exp.And: _connective("AND", exp.And),
    exp.Or: _connective("OR", exp.Or),
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Exists: _exists,
    exp.Like: _like("like_escape", "~~"),
    exp.ILike: _like("ilike_escape", "~~*"),
    exp.Escape: _escape,
    exp.RegexpLike: _regexp("~", "s"),
    exp.RegexpILike: _regexp("~*", "si"),
}
