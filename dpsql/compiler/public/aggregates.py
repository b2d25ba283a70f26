"""Aggregates over public rows, with Postgres's result types: sum(bigint) is numeric, avg(integer) numeric, ...

`{d}` stands for DISTINCT, `{tail}` for FILTER and OVER. The arguments of an aggregate may not hold another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dpsql.compiler.public.coerce import cast, distinct_form, name_of, numeric_text
from dpsql.compiler.public.literals import parse_float
from dpsql.compiler.public.order import order_list
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Scope, position_of
from dpsql.compiler.public.storage import Digits, duckdb_type
from dpsql.compiler.public.term import Term, join_terms
from dpsql.errors import GROUPING, UNDEFINED_FUNCTION, Rejected
from dpsql.types import BOOL, FLOAT8, INT8, NUMERIC, TEXT, Kind, SqlType

AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.GroupConcat: "string_agg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.RegrSlope: "regr_slope",
    exp.RegrIntercept: "regr_intercept",
    exp.RegrR2: "regr_r2",
}


@dataclass(frozen=True, slots=True)
class _Call:
    """An aggregate call, its arguments translated."""

    name: str
    terms: tuple[Term, ...]
    distinct: str
    order: str
    tail: str

    def text(self, function: str, *arguments: str) -> str:
        return f"{function}({self.distinct}{', '.join(arguments)}{self.order}){self.tail}"


def aggregate_name(node: exp.Expr) -> str | None:
    """The name of the aggregate that `node` calls; None if it calls none."""
    if isinstance(node, exp.Anonymous):
        return "bool_and" if str(node.this).lower() == "every" else None
    return AGGREGATES.get(type(node))


def holds_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate of its own query: not inside a subquery, nor as a window function."""
    rest = [node]
    while rest:
        each = rest.pop()
        if isinstance(each, exp.Query):
            continue
        if isinstance(each, exp.Window):
            function = each.this.this if isinstance(each.this, exp.Filter) else each.this
            rest += [*function.iter_expressions(), *(c for c in each.iter_expressions() if c is not each.this)]
            continue
        if aggregate_name(each) is not None or isinstance(each, exp.WithinGroup | exp.Grouping):
            return True
        rest += each.iter_expressions()
    return False


def aggregate_call(node: exp.Expr, scope: Scope, where: exp.Expr | None, over: str | None = None) -> Term:
    """An aggregate, with FILTER; with `over`, as a window function, whose arguments may hold aggregates."""
    name = aggregate_name(node)
    if name is None:
        raise unsupported(node)
    inner = scope if over is not None else replace(scope, in_aggregate=True)
    only(node, "this", "expressions", "expression", "separator", "big_int")
    argument, distinct, order = _argument(node)
    terms = tuple(scope.context.expression(a, inner) for a in argument)
    held = [*terms]
    tail = "" if over is None else f" OVER ({over})"
    if where is not None:
        condition = scope.context.expression(where.this, inner)
        held.append(condition)
        tail = f" FILTER (WHERE {condition.sql}){tail}"
    ordering = ""
    if order:
        ordering = " ORDER BY " + order_list(order, lambda each: scope.context.expression(each, inner))
    made = _text(_Call(name, terms, "DISTINCT " if distinct else "", ordering, tail), scope.zone, node)
    made = join_terms(made.sql, made.type, held, made.digits)
    return made if over is not None else _own(made, scope, node)


_ORDERED_SET: dict[type[exp.Expr], str] = {
    exp.PercentileCont: "percentile_cont",
    exp.PercentileDisc: "percentile_disc",
    exp.Mode: "mode",
}


def ordered_set_call(node: exp.Expr, scope: Scope, where: exp.Expr | None) -> Term:
    """percentile_cont, percentile_disc and mode WITHIN GROUP (ORDER BY x)."""
    only(node, "this", "expression")
    name = _ORDERED_SET.get(type(node.this))
    order = node.expression
    if name is None or not isinstance(order, exp.Order) or len(order.expressions) != 1:
        raise unsupported(node)
    only(node.this, "this")
    only(order, "expressions")
    inner = replace(scope, in_aggregate=True)
    term = scope.context.expression(order.expressions[0].this, inner)
    held, tail = [term], ""
    if where is not None:
        held.append(scope.context.expression(where.this, inner))
        tail = f" FILTER (WHERE {held[1].sql})"
    direction = " DESC" if order.expressions[0].args.get("desc") else ""
    made = _ordered_set(name, node, term, direction, scope)
    return _own(join_terms(made.sql + tail, made.type, held, made.digits), scope, node)


def _ordered_set(name: str, node: exp.Expr, term: Term, direction: str, scope: Scope) -> Term:
    if name == "percentile_cont" and (term.type.is_number or term.kind is Kind.UNKNOWN):
        term = cast(term, FLOAT8, scope.zone, node)
    elif name == "percentile_cont" or term.kind is Kind.UNKNOWN or (term.kind is Kind.NUMERIC and not term.digits):
        raise unsupported(node)
    if name == "mode":
        return Term(f"mode({term.sql} ORDER BY {term.sql}{direction})", term.type, term.digits)
    text = f"{name}({_fraction(node.this.this)}) WITHIN GROUP (ORDER BY {term.sql}{direction})"
    return Term(text, term.type if term.kind is not Kind.NUMERIC else NUMERIC, term.digits)


def _fraction(node: exp.Expr) -> str:
    inner = node.this if isinstance(node, exp.Cast) else node.unnest()
    if not isinstance(inner, exp.Literal):
        raise unsupported(node)
    fraction = parse_float(str(inner.this))
    if not 0 <= fraction <= 1:
        text = f"percentile value {fraction:g} is not between 0 and 1"
        raise Rejected(text, sqlstate="22003", position=position_of(node))
    return repr(fraction)


def _own(made: Term, scope: Scope, node: exp.Expr) -> Term:
    """The aggregate of a grouped query: its columns are no longer loose."""
    if scope.level in made.aggregate or made.window:
        inner = "window function" if made.window else "aggregate function"
        text = f"aggregate function calls cannot contain {inner} calls"
        raise Rejected(text, sqlstate=GROUPING, position=position_of(node))
    if made.loose and all(each.level != scope.level for each in made.loose):
        raise unsupported(node)
    loose = frozenset(each for each in made.loose if each.level != scope.level)
    return replace(made, loose=loose, aggregate=made.aggregate | {scope.level})


def _argument(node: exp.Expr) -> tuple[list[exp.Expr], bool, Sequence[exp.Expr]]:
    """The arguments, whether DISTINCT, and the ORDER BY inside the parentheses."""
    inner, order = node.this, ()
    if isinstance(node, exp.Anonymous):
        return list(node.expressions), False, ()
    if inner is None:
        text = f"{aggregate_name(node)}(*) must be used to call a parameterless aggregate function"
        raise Rejected(text, sqlstate="42809", position=position_of(node))
    if isinstance(inner, exp.Order):
        inner, order = inner.this, inner.expressions
    distinct = isinstance(inner, exp.Distinct)
    if distinct:
        only(inner, "expressions")
        arguments = list(inner.expressions)
    else:
        more = [*(node.args.get("expressions") or ()), node.args.get("expression")]
        arguments = [] if isinstance(inner, exp.Star) else [inner, *(e for e in more if e is not None)]
    separator = node.args.get("separator")
    return [*arguments, separator] if separator is not None else arguments, distinct, order


def _text(call: _Call, zone: str, node: exp.Expr) -> Term:
    if call.name == "count":
        return _count(call, node)
    if call.name == "string_agg":
        return _string_agg(call, zone, node)
    if call.name in _PAIRS:
        return _pair(call, zone, node)
    if len(call.terms) != 1:
        raise _undefined(call, node)
    term = call.terms[0]
    if call.name in ("bool_and", "bool_or"):
        if term.kind not in (Kind.BOOL, Kind.UNKNOWN):
            raise _undefined(call, node)
        return Term(call.text(call.name, cast(term, BOOL, zone).sql), BOOL)
    if call.name in ("min", "max"):
        return _extreme(call, zone, node)
    if term.kind is Kind.UNKNOWN:
        term = cast(term, FLOAT8, zone, node)
    made = _NUMBERS[call.name](call, term)
    if made is None:
        raise _undefined(call, node)
    return made


def _undefined(call: _Call, node: exp.Expr) -> Rejected:
    given = ", ".join(name_of(t.type) for t in call.terms)
    text = f"function {call.name}({given}) does not exist"
    return Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(node))


def _count(call: _Call, node: exp.Expr) -> Term:
    if not call.terms:
        if call.distinct or not isinstance(node.this, exp.Star):
            raise _undefined(call, node)
        return Term(call.text("count", "*"), INT8)
    if len(call.terms) > 1:
        raise _undefined(call, node)
    return Term(call.text("count", distinct_form(call.terms[0]).sql), INT8)


_PAIRS = ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2")


def _pair(call: _Call, zone: str, node: exp.Expr) -> Term:
    """Statistics of two columns; undefined ones are NULL in Postgres, NaN in DuckDB."""
    if len(call.terms) != 2 or any(not t.type.is_number and t.kind is not Kind.UNKNOWN for t in call.terms):
        raise _undefined(call, node)
    texts = [cast(t, FLOAT8, zone, node).sql for t in call.terms]
    return Term(f"nullif({call.text(call.name, *texts)}, CAST('NaN' AS DOUBLE))", FLOAT8)


def _string_agg(call: _Call, zone: str, node: exp.Expr) -> Term:
    if len(call.terms) != 2 or any(t.kind not in (Kind.TEXT, Kind.NAME, Kind.UNKNOWN) for t in call.terms):
        raise _undefined(call, node)
    return Term(call.text("string_agg", *(cast(t, TEXT, zone).sql for t in call.terms)), TEXT)


def _extreme(call: _Call, zone: str, node: exp.Expr) -> Term:
    term = call.terms[0]
    if term.kind is Kind.UNKNOWN:
        term = cast(term, TEXT, zone)
    if term.kind in (Kind.BOOL, Kind.UUID, Kind.JSON):
        raise _undefined(call, node)
    if term.kind is Kind.NUMERIC and term.digits is None:
        plain = replace(call, distinct="")
        return Term(plain.text(f"arg_{call.name}", term.sql, f"pg_numeric_key({term.sql})"), NUMERIC)
    return Term(call.text(call.name, term.sql), SqlType(term.kind), term.digits)


def _sum(call: _Call, term: Term) -> Term | None:
    match term.kind:
        case Kind.INT2 | Kind.INT4:
            return Term(f"CAST({call.text('sum', term.sql)} AS BIGINT)", INT8)
        case Kind.INT8:
            digits = Digits(38, 0)
            return Term(f"CAST({call.text('sum', term.sql)} AS {duckdb_type(NUMERIC, digits)})", NUMERIC, digits)
        case Kind.FLOAT8:
            return Term(call.text("sum", term.sql), FLOAT8)
        case Kind.FLOAT4:
            return Term(f"CAST({call.text('sum', term.sql)} AS FLOAT)", SqlType(Kind.FLOAT4))
        case Kind.NUMERIC if term.digits is not None and term.digits.precision <= 28:
            return Term(call.text("sum", term.sql), NUMERIC, Digits(38, term.digits.scale))
        case Kind.NUMERIC:
            return Term(f"pg_numeric_sum({_listed(call, term)})", NUMERIC)
        case _:
            return None


def _avg(call: _Call, term: Term) -> Term | None:
    if term.type.is_float:
        return Term(call.text("avg", f"CAST({term.sql} AS DOUBLE)"), FLOAT8)
    total = _sum(call, term)
    if total is None:
        return None
    count = call.text("count", distinct_form(term).sql)
    return Term(f"pg_numeric_div(CAST({total.sql} AS VARCHAR), CAST({count} AS VARCHAR))", NUMERIC)


def _spread(call: _Call, term: Term) -> Term | None:
    """Variance and standard deviation: numeric for exact types, computed exactly."""
    if term.type.is_float:
        return Term(call.text(call.name, f"CAST({term.sql} AS DOUBLE)"), FLOAT8)
    if not term.type.is_number:
        return None
    return Term(f"pg_numeric_{call.name}({_listed(call, term)})", NUMERIC)


def _listed(call: _Call, term: Term) -> str:
    """The numbers as a list of texts; equal ones in one form where only distinct ones count."""
    if term.kind is not Kind.NUMERIC:
        return call.text("list", f"CAST({term.sql} AS VARCHAR)")
    text = numeric_text(term)
    return call.text("list", distinct_form(text).sql if call.distinct else text.sql)


_NUMBERS: dict[str, Callable[[_Call, Term], Term | None]] = {
    "sum": _sum,
    "avg": _avg,
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), _spread),
}
