"""Expressions: each sqlglot node on the allow-list to a typed DuckDB term. Anything else is refused with 0A000."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from dpsql.compiler.public.aggregates import aggregate_call, aggregate_name
from dpsql.compiler.public.coerce import cast, interval_constant, name_of, numeric_constant, sort_form, unify
from dpsql.compiler.public.functions import apply
from dpsql.compiler.public.literals import parse_interval
from dpsql.compiler.public.nodes import function_of
from dpsql.compiler.public.operators import arithmetic, comparable, compare, concatenate, negative
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Scope, keyed, position_of, resolve
from dpsql.compiler.public.term import Term, call, join_terms, quote_text
from dpsql.compiler.public.type_names import declared_type
from dpsql.compiler.public.windows import window_call
from dpsql.errors import GROUPING, SYNTAX, TYPE_MISMATCH, Rejected
from dpsql.types import BOOL, INT4, INT8, INTERVAL, NUMERIC, TEXT, UNKNOWN, Kind

Maker = Callable[[exp.Expr, Scope], Term]


def expression(node: exp.Expr, scope: Scope) -> Term:
    """The term of any expression."""
    maker = _MAKERS.get(type(node), _call)
    return keyed(maker(node, scope), scope)


def boolean(clause: exp.Expr | None, scope: Scope) -> tuple[Term, ...]:
    """The condition of a clause (WHERE, ON, ...), which must be boolean; nothing where there is none."""
    if clause is None:
        return ()
    node = clause.this if isinstance(clause, exp.Where | exp.Having | exp.Qualify) else clause
    term = _condition(node, scope, f"argument of {scope.clause}")
    if scope.clause in ("WHERE", "JOIN/ON") and scope.level in term.aggregate:
        what = f"aggregate functions are not allowed in {scope.clause.replace('/ON', ' conditions')}"
        raise Rejected(what, sqlstate=GROUPING, position=position_of(node))
    if term.window and scope.clause != "QUALIFY":
        what = f"window functions are not allowed in {scope.clause.replace('/ON', ' conditions')}"
        raise Rejected(what, sqlstate="42P20", position=position_of(node))
    return (term,)


def _condition(node: exp.Expr, scope: Scope, what: str) -> Term:
    term = expression(node, scope)
    if term.kind is Kind.UNKNOWN:
        return cast(term, BOOL, scope.zone, position_of(node))
    if term.kind is not Kind.BOOL:
        text = f"{what} must be type boolean, not type {name_of(term.type)}"
        raise Rejected(text, sqlstate=TYPE_MISMATCH, position=position_of(node))
    return term


def _call(node: exp.Expr, scope: Scope) -> Term:
    """A function of the table, or an aggregate."""
    if aggregate_name(node) is not None:
        return aggregate_call(node, scope, None)
    found = function_of(node)
    if found is None:
        raise unsupported(node)
    name, arguments = found
    return apply(name, [expression(a, scope) for a in arguments], scope.zone, position_of(node))


def _column(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star) or not isinstance(node, exp.Column):
        raise unsupported(node.this)
    return resolve(node, scope)


def _literal(node: exp.Expr, scope: Scope) -> Term:
    text = str(node.this)
    if node.args.get("is_string"):
        return Term(quote_text(text), UNKNOWN, literal=text)
    if text.isdigit() and int(text) < 2**63:
        return Term(str(int(text)), INT4 if int(text) < 2**31 else INT8)
    return _numeric(text, node)


def _numeric(text: str, node: exp.Expr) -> Term:
    value = Decimal(text)
    if abs(value.adjusted()) > 1000:
        raise Rejected("value overflows numeric format", sqlstate="22003", position=position_of(node))
    exponent = int(value.as_tuple().exponent)
    sql, digits = numeric_constant(value if exponent <= 0 else Decimal(f"{value:f}"))
    return Term(sql, NUMERIC, digits)


def _null(_node: exp.Expr, _scope: Scope) -> Term:
    return Term("NULL", UNKNOWN)


def _boolean(node: exp.Expr, _scope: Scope) -> Term:
    return Term("TRUE" if node.this else "FALSE", BOOL)


def _paren(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this")
    return expression(node.this, scope)


def _negative(node: exp.Expr, scope: Scope) -> Term:
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        text = "-" + str(inner.this)
        if text[1:].isdigit() and int(text) >= -(2**63):
            return Term(f"({text})", INT4 if int(text) >= -(2**31) else INT8)
    return negative(expression(inner, scope), scope.zone, position_of(node))


def _arithmetic(operator: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression", "typed", "safe")
        left, right = expression(node.this, scope), expression(node.expression, scope)
        return arithmetic(operator, left, right, scope.zone, position_of(node.expression))

    return make


def _mod(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression")
    if node.meta.get("start") is None:
        return _arithmetic("%")(node, scope)
    left, right = expression(node.this, scope), expression(node.expression, scope)
    return arithmetic("%", left, right, scope.zone, position_of(node))


def _compare(operator: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression")
        left, right = expression(node.this, scope), expression(node.expression, scope)
        return compare(operator, left, right, scope.zone, position_of(node.expression))

    return make


def _connective(word: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression")
        parts = [_condition(n, scope, f"argument of {word}") for n in (node.this, node.expression)]
        return join_terms(f"({parts[0].sql} {word} {parts[1].sql})", BOOL, parts)

    return make


def _not(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this")
    term = _condition(node.this, scope, "argument of NOT")
    return term.becomes(f"(NOT {term.sql})", BOOL)


def _is(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression", "negate")
    word = "IS NOT" if node.args.get("negate") else "IS"
    if isinstance(node.expression, exp.Null):
        term = expression(node.this, scope)
        return term.becomes(f"({term.sql} {word} NULL)", BOOL)
    if not isinstance(node.expression, exp.Boolean):
        raise unsupported(node.expression)
    value = "TRUE" if node.expression.this else "FALSE"
    term = _condition(node.this, scope, f"argument of {word} {value}")
    return term.becomes(f"({term.sql} {word} {value})", BOOL)


def _between(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "low", "high", "symmetric")
    if node.args.get("symmetric"):
        raise unsupported(node)
    value, low, high = (expression(node.args[a], scope) for a in ("this", "low", "high"))
    parts = (
        compare(">=", value, low, scope.zone, position_of(node.args["low"])),
        compare("<=", value, high, scope.zone, position_of(node.args["high"])),
    )
    return join_terms(f"({parts[0].sql} AND {parts[1].sql})", BOOL, parts)


def _in(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expressions", "query")
    value = expression(node.this, scope)
    if node.args.get("query") is not None:
        return _in_query(value, node, scope)
    listed = [expression(each, scope) for each in node.expressions]
    parts = [compare("=", value, each, scope.zone, position_of(node)) for each in listed]
    return join_terms("(" + " OR ".join(p.sql for p in parts) + ")", BOOL, parts)


def _in_query(value: Term, node: exp.Expr, scope: Scope) -> Term:
    query = scope.context.subquery(node.args["query"].unnest(), scope)
    if len(query.fields) != 1:
        raise Rejected("subquery has too many columns", sqlstate=SYNTAX, position=position_of(node.args["query"]))
    field = query.fields[0]
    left, right = comparable(value, Term("u.c1", field.type, field.digits), scope.zone, "=", position_of(node))
    if left.digits != right.digits:
        left, right = unify((left, right), scope.zone, "IN", position_of(node))
    sql = f"({sort_form(left)} IN (SELECT {sort_form(right)} FROM ({query.sql}) AS u))"
    return left.becomes(sql, BOOL)


def _exists(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this")
    query = scope.context.subquery(node.this.unnest(), scope)
    return Term(f"EXISTS ({query.sql})", BOOL)


def _scalar(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "with_")
    query = scope.context.subquery(node, scope)
    if len(query.fields) != 1:
        raise Rejected("subquery must return only one column", sqlstate=SYNTAX, position=position_of(node))
    field = query.fields[0]
    type_ = TEXT if field.type.kind is Kind.UNKNOWN else field.type
    return Term(f"({query.sql})", type_, field.digits)


def _case(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "ifs", "default")
    subject = expression(node.this, scope) if node.args.get("this") is not None else None
    conditions = [_when(subject, each.this, scope) for each in node.args["ifs"]]
    default = node.args.get("default")
    results = [expression(each.args["true"], scope) for each in node.args["ifs"]]
    last = Term("NULL", UNKNOWN) if default is None else expression(default, scope)
    # Postgres looks at ELSE first for the common type.
    made = unify((last, *results), scope.zone, "CASE", position_of(node))
    branches = " ".join(f"WHEN {c.sql} THEN {r.sql}" for c, r in zip(conditions, made[1:], strict=True))
    return join_terms(f"CASE {branches} ELSE {made[0].sql} END", made[0].type, (*conditions, *made), made[0].digits)


def _when(subject: Term | None, node: exp.Expr, scope: Scope) -> Term:
    if subject is None:
        return _condition(node, scope, "argument of CASE/WHEN")
    return compare("=", subject, expression(node, scope), scope.zone, position_of(node))


def _variadic(function: str, context: str) -> Maker:
    """COALESCE, GREATEST, LEAST: one type for all arguments."""

    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expressions", "ignore_nulls")
        terms = [expression(each, scope) for each in (node.this, *node.expressions)]
        made = unify(terms, scope.zone, context, position_of(node))
        name = function
        if made[0].kind is Kind.NUMERIC and made[0].digits is None and function != "COALESCE":
            name = f"pg_numeric_{function.lower()}"
            return join_terms(f"{name}([{', '.join(t.sql for t in made)}])", made[0].type, made)
        return join_terms(call(name, *(t.sql for t in made)), made[0].type, made, made[0].digits)

    return make


def _nullif(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression")
    left, right = expression(node.this, scope), expression(node.expression, scope)
    equal = compare("=", left, right, scope.zone, position_of(node))
    left = cast(left, TEXT, scope.zone) if left.kind is Kind.UNKNOWN else left
    return join_terms(f"CASE WHEN {equal.sql} THEN NULL ELSE {left.sql} END", left.type, (left, right), left.digits)


def _cast(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "to")
    if type(node) is not exp.Cast:
        raise unsupported(node)
    target, length = declared_type(node.to)
    term = cast(expression(node.this, scope), target, scope.zone, position_of(node))
    return term if length is None else term.becomes(call("left", term.sql, str(length)), target)


def _concatenate(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression", "safe")
    left, right = expression(node.this, scope), expression(node.expression, scope)
    return concatenate(left, right, scope.zone, position_of(node.expression))


def _interval(node: exp.Expr, _scope: Scope) -> Term:
    only(node, "this", "unit")
    if not isinstance(node.this, exp.Literal):
        raise unsupported(node)
    unit = node.args.get("unit")
    text = str(node.this.this) + (f" {unit.name}" if unit is not None else "")
    return Term(interval_constant(parse_interval(text)), INTERVAL)


def _window(node: exp.Expr, scope: Scope) -> Term:
    return window_call(node, scope)


def _filter(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression")
    return aggregate_call(node.this, scope, node.expression)


_MAKERS: dict[type[exp.Expr], Maker] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Paren: _paren,
    exp.Neg: _negative,
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.Mod: _mod,
    exp.EQ: _compare("="),
    exp.NEQ: _compare("<>"),
    exp.LT: _compare("<"),
    exp.LTE: _compare("<="),
    exp.GT: _compare(">"),
    exp.GTE: _compare(">="),
    exp.NullSafeEQ: _compare("IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: _compare("IS DISTINCT FROM"),
    exp.And: _connective("AND"),
    exp.Or: _connective("OR"),
    exp.Not: _not,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Exists: _exists,
    exp.Subquery: _scalar,
    exp.Case: _case,
    exp.Coalesce: _variadic("COALESCE", "COALESCE"),
    exp.Greatest: _variadic("GREATEST", "GREATEST"),
    exp.Least: _variadic("LEAST", "LEAST"),
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.DPipe: _concatenate,
    exp.Interval: _interval,
    exp.Window: _window,
    exp.Filter: _filter,
}
