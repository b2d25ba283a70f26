"""Expressions: each sqlglot node on the allow-list to a typed DuckDB term. Anything else is refused with 0A000."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from dpsql.compiler.fuel import spend
from dpsql.compiler.public import conditions, temporal
from dpsql.compiler.public.aggregates import aggregate_call, aggregate_name, ordered_set_call
from dpsql.compiler.public.coerce import cast, interval_constant, numeric_constant, unify
from dpsql.compiler.public.conditions import condition
from dpsql.compiler.public.functions import apply
from dpsql.compiler.public.nodes import function_of
from dpsql.compiler.public.operators import (
    arithmetic,
    bitwise,
    comparable,
    compare,
    compared_as_is,
    concatenate,
    negative,
    undefined,
)
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Scope, keyed, position_of, resolve
from dpsql.compiler.public.term import Term, call, join_terms, quote_text
from dpsql.compiler.public.type_names import declared_type
from dpsql.compiler.public.windows import window_call
from dpsql.errors import GROUPING, SYNTAX, Rejected
from dpsql.pgwire.times import parse_interval
from dpsql.types import BOOL, DATE, INT4, INT8, INTERVAL, NUMERIC, TEXT, TIMESTAMPTZ, UNKNOWN, Kind

Maker = Callable[[exp.Expr, Scope], Term]


def expression(node: exp.Expr, scope: Scope) -> Term:
    """The term of any expression."""
    spend(20)
    maker = _MAKERS.get(type(node), _call)
    return keyed(maker(node, scope), scope)


def _call(node: exp.Expr, scope: Scope) -> Term:
    """A function of the table, or an aggregate."""
    if aggregate_name(node) is not None:
        return aggregate_call(node, scope, None)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "date_part":
        return temporal.date_part(node, scope)
    found = function_of(node)
    if found is None:
        raise unsupported(node)
    name, arguments = found
    return apply(name, [expression(a, scope) for a in arguments], scope.zone, node)


def _column(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star) or not isinstance(node, exp.Column):
        raise unsupported(node.this)
    return resolve(node, scope)


def _literal(node: exp.Expr, scope: Scope) -> Term:
    text = str(node.this)
    if node.args.get("is_string"):
        return Term(quote_text(text), UNKNOWN, literal=text, position=position_of(node))
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
    return negative(expression(inner, scope), scope.zone, node)


def _arithmetic(operator: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression", "typed", "safe")
        left, right = expression(node.this, scope), expression(node.expression, scope)
        return arithmetic(operator, left, right, scope.zone, node)

    return make


def _power(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression")
    return _function("power", node.this, node.expression, scope, node)


def _function(name: str, left: exp.Expr, right: exp.Expr, scope: Scope, node: exp.Expr) -> Term:
    terms = [expression(left, scope), expression(right, scope)]
    return apply(name, terms, scope.zone, node)


def _bits(symbol: str) -> Maker:
    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expression")
        left, right = expression(node.this, scope), expression(node.expression, scope)
        return bitwise(symbol, left, right, scope.zone, node)

    return make


def _bit_not(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this")
    term = expression(node.this, scope)
    if not term.type.is_integer:
        raise undefined("~", None, term, node)
    return term.becomes(f"(~ {term.sql})", term.type)


def _concat(node: exp.Expr, scope: Scope) -> Term:
    """concat and concat_ws: NULLs are skipped, booleans are `t` and `f`."""
    only(node, "expressions", "safe", "coalesce")
    terms = [expression(each, scope) for each in node.expressions]
    texts = [_output(term, scope) for term in terms]
    name = "concat_ws" if isinstance(node, exp.ConcatWs) else "concat"
    return join_terms(call(name, *(t.sql for t in texts)), TEXT, texts)


def _output(term: Term, scope: Scope) -> Term:
    if term.kind is Kind.BOOL:
        return term.becomes(f"left(CAST({term.sql} AS VARCHAR), 1)", TEXT)
    return cast(term, TEXT, scope.zone)


def _now(node: exp.Expr, scope: Scope) -> Term:
    only(node)
    now = Term("pg_now()", TIMESTAMPTZ)
    return cast(now, DATE, scope.zone) if isinstance(node, exp.CurrentDate) else now


def _scalar(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "with_")
    query = scope.context.subquery(node, scope)
    if len(query.fields) != 1:
        raise Rejected("subquery must return only one column", sqlstate=SYNTAX, position=position_of(node))
    field = query.fields[0]
    type_ = TEXT if field.type.kind is Kind.UNKNOWN else field.type
    return Term(f"({query.sql})", type_, field.digits, loose=query.loose)


def _case(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "ifs", "default")
    default = node.args.get("default")
    results = [expression(each.args["true"], scope) for each in node.args["ifs"]]
    last = Term("NULL", UNKNOWN) if default is None else expression(default, scope)
    # Postgres looks at ELSE first for the common type.
    made = unify((last, *results), scope.zone, "CASE", node)
    tests = _tests(node, scope)
    branches = " ".join(f"WHEN {test.sql} THEN {r.sql}" for test, r in zip(tests, made[1:], strict=True))
    held = (*tests, *made)
    return join_terms(f"CASE {branches} ELSE {made[0].sql} END", made[0].type, held, made[0].digits)


def _tests(node: exp.Expr, scope: Scope) -> list[Term]:
    """The conditions of a CASE. A subject is repeated in each, as DuckDB would do by itself, but counted."""
    listed = [each.this for each in node.args["ifs"]]
    if node.args.get("this") is None:
        return [condition(each, scope, "argument of CASE/WHEN") for each in listed]
    subject = expression(node.this, scope)
    return [compare("=", subject, expression(each, scope), scope.zone, each) for each in listed]


def _variadic(function: str, context: str) -> Maker:
    """COALESCE, GREATEST, LEAST: one type for all arguments."""

    def make(node: exp.Expr, scope: Scope) -> Term:
        only(node, "this", "expressions", "ignore_nulls")
        terms = [expression(each, scope) for each in (node.this, *node.expressions)]
        made = unify(terms, scope.zone, context, node)
        name = function
        if made[0].kind is Kind.NUMERIC and made[0].digits is None and function != "COALESCE":
            name = f"pg_numeric_{function.lower()}"
            return join_terms(f"{name}([{', '.join(t.sql for t in made)}])", made[0].type, made)
        return join_terms(call(name, *(t.sql for t in made)), made[0].type, made, made[0].digits)

    return make


def _nullif(node: exp.Expr, scope: Scope) -> Term:
    """Of the first argument's type, or of the type in which Postgres compares the two."""
    only(node, "this", "expression")
    terms = [expression(node.this, scope), expression(node.expression, scope)]
    left, right = comparable(terms[0], terms[1], scope.zone, "=", node)
    if left.kind is Kind.NUMERIC and left.digits is None:
        return join_terms(call("pg_numeric_nullif", left.sql, right.sql), NUMERIC, (left, right))
    made = join_terms(call("pg_nullif", left.sql, right.sql), left.type, (left, right), left.digits)
    return cast(made, terms[0].type, scope.zone, node) if compared_as_is(terms[0], terms[1]) else made


def _cast(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "to")
    if isinstance(node.this, exp.IntDiv):
        return _function("div", node.this.this, node.this.expression, scope, node)
    if type(node) is not exp.Cast:
        raise unsupported(node)
    target, length = declared_type(node.to)
    term = cast(expression(node.this, scope), target, scope.zone, node)
    return term if length is None else term.becomes(call("left", term.sql, str(length)), target)


def _concatenate(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression", "safe")
    left, right = expression(node.this, scope), expression(node.expression, scope)
    return concatenate(left, right, scope.zone, node)


def _interval(node: exp.Expr, _scope: Scope) -> Term:
    only(node, "this", "unit", "fraction_in_string")
    if not isinstance(node.this, exp.Literal):
        raise unsupported(node)
    unit = node.args.get("unit")
    text = str(node.this.this) + (f" {unit.name}" if unit is not None else "")
    return Term(interval_constant(parse_interval(text)), INTERVAL)


def _grouping(node: exp.Expr, scope: Scope) -> Term:
    """GROUPING(keys...): which keys a row of ROLLUP, CUBE or GROUPING SETS leaves out."""
    only(node, "expressions")
    outside = replace(scope, keys=None)
    texts = [expression(each, outside).sql for each in node.expressions]
    if scope.keys is None or any(text not in scope.keys for text in texts):
        text = "arguments to GROUPING must be grouping expressions of the associated query level"
        raise Rejected(text, sqlstate=GROUPING, position=position_of(node))
    keys = ", ".join(scope.keys[text] for text in texts)
    return Term(f"CAST(grouping({keys}) AS INTEGER)", INT4, aggregate=frozenset((scope.level,)))


def _within_group(node: exp.Expr, scope: Scope) -> Term:
    return ordered_set_call(node, scope, None)


def _filter(node: exp.Expr, scope: Scope) -> Term:
    only(node, "this", "expression")
    if isinstance(node.this, exp.WithinGroup):
        return ordered_set_call(node.this, scope, node.expression)
    return aggregate_call(node.this, scope, node.expression)


_MAKERS: dict[type[exp.Expr], Maker] = {
    **conditions.MAKERS,
    **temporal.MAKERS,
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
    exp.Mod: _arithmetic("%"),
    exp.Pow: _power,
    exp.BitwiseAnd: _bits("&"),
    exp.BitwiseOr: _bits("|"),
    exp.BitwiseXor: _bits("#"),
    exp.BitwiseNot: _bit_not,
    exp.Subquery: _scalar,
    exp.Case: _case,
    exp.Coalesce: _variadic("COALESCE", "COALESCE"),
    exp.Greatest: _variadic("GREATEST", "GREATEST"),
    exp.Least: _variadic("LEAST", "LEAST"),
    exp.Nullif: _nullif,
    exp.Cast: _cast,
    exp.DPipe: _concatenate,
    exp.Interval: _interval,
    exp.Concat: _concat,
    exp.ConcatWs: _concat,
    exp.CurrentDate: _now,
    exp.CurrentTimestamp: _now,
    exp.Window: window_call,
    exp.Filter: _filter,
    exp.WithinGroup: _within_group,
    exp.Grouping: _grouping,
}
