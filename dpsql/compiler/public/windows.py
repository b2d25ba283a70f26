"""Window functions: PARTITION BY, ORDER BY, frames, and named windows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.compiler.public.aggregates import aggregate_call, aggregate_name
from dpsql.compiler.public.coerce import cast, distinct_form, name_of, unify
from dpsql.compiler.public.order import order_list
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Scope, position_of
from dpsql.compiler.public.scope import name_of as identifier
from dpsql.compiler.public.term import Term, join_terms
from dpsql.errors import NOT_SUPPORTED, UNDEFINED_FUNCTION, UNDEFINED_OBJECT, Rejected
from dpsql.types import FLOAT8, INT4, INT8, Kind, SqlType

_RANKING: dict[type[exp.Expr], tuple[str, SqlType]] = {
    exp.RowNumber: ("row_number", INT8),
    exp.Rank: ("rank", INT8),
    exp.DenseRank: ("dense_rank", INT8),
    exp.PercentRank: ("percent_rank", FLOAT8),
    exp.CumeDist: ("cume_dist", FLOAT8),
}
_OFFSETS: dict[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead"}
_VALUES: dict[type[exp.Expr], str] = {exp.FirstValue: "first_value", exp.LastValue: "last_value"}


def window_call(node: exp.Expr, scope: Scope) -> Term:
    """`f(...) OVER (...)`."""
    only(node, "this", "partition_by", "order", "spec", "alias", "over")
    if scope.clause in ("WHERE", "HAVING", "GROUP BY", "JOIN/ON", "VALUES"):
        text = f"window functions are not allowed in {scope.clause.replace('/ON', ' conditions')}"
        raise Rejected(text, sqlstate="42P20", position=position_of(node))
    over, parts = _definition(node, scope)
    function, where = node.this, None
    if isinstance(function, exp.Filter):
        function, where = function.this, function.expression
    if aggregate_name(function) is not None:
        made = aggregate_call(function, scope, where, over)
    elif where is not None:
        text = "FILTER is not implemented for non-aggregate window functions"
        raise Rejected(text, sqlstate=NOT_SUPPORTED, position=position_of(node))
    else:
        made = _function(function, scope, over)
    if made.window or any(part.window for part in parts):
        raise Rejected("window function calls cannot be nested", sqlstate="42P20", position=position_of(node))
    return replace(join_terms(made.sql, made.type, (made, *parts), made.digits), window=True)


def _definition(node: exp.Expr, scope: Scope) -> tuple[str, tuple[Term, ...]]:
    """The text inside OVER (...), and the terms it holds."""
    name = identifier(node.args.get("alias"))
    pieces, parts = [], []
    partition, order, spec = node.args.get("partition_by") or [], node.args.get("order"), node.args.get("spec")
    if name:
        base = scope.windows.get(name)
        if base is None:
            text = f'window "{name}" does not exist'
            raise Rejected(text, sqlstate=UNDEFINED_OBJECT, position=position_of(node))
        only(base, "this", "partition_by", "order", "spec")
        partition = partition or base.args.get("partition_by") or []
        order, spec = order or base.args.get("order"), spec or base.args.get("spec")
    if partition:
        terms = [scope.context.expression(each, scope) for each in partition]
        parts += terms
        pieces.append("PARTITION BY " + ", ".join(distinct_form(t).sql for t in terms))
    if order is not None:

        def key(each: exp.Expr) -> Term:
            parts.append(scope.context.expression(each, scope))
            return parts[-1]

        pieces.append("ORDER BY " + order_list(order.expressions, key))
    if spec is not None:
        pieces.append(_frame(spec))
    return " ".join(pieces), tuple(parts)


def _frame(node: exp.Expr) -> str:
    only(node, "kind", "start", "start_side", "end", "end_side", "exclude")
    kind = str(node.args["kind"]).upper()
    if kind not in ("ROWS", "RANGE", "GROUPS"):
        raise unsupported(node)
    start = _bound(node.args.get("start"), node.args.get("start_side"), kind)
    end = _bound(node.args.get("end") or "CURRENT ROW", node.args.get("end_side"), kind)
    exclude = node.args.get("exclude")
    text = f" EXCLUDE {_EXCLUDE[exclude.name.upper()]}" if exclude is not None else ""
    return f"{kind} BETWEEN {start} AND {end}{text}"


_EXCLUDE = {"CURRENT ROW": "CURRENT ROW", "GROUP": "GROUP", "TIES": "TIES", "NO OTHERS": "NO OTHERS"}


def _bound(bound: object, side: object, kind: str) -> str:
    if bound == "CURRENT ROW":
        return "CURRENT ROW"
    direction = {"PRECEDING": "PRECEDING", "FOLLOWING": "FOLLOWING"}[str(side).upper()]
    if bound == "UNBOUNDED":
        return f"UNBOUNDED {direction}"
    if kind == "RANGE" or not isinstance(bound, exp.Literal) or not str(bound.this).isdigit():
        raise Rejected(
            "a window frame's offset must be a whole number, in ROWS or GROUPS mode",
            sqlstate=NOT_SUPPORTED,
            position=position_of(bound) if isinstance(bound, exp.Expr) else None,
        )
    return f"{int(bound.this)} {direction}"


def _function(node: exp.Expr, scope: Scope, over: str) -> Term:
    kind = type(node)
    if kind in _RANKING:
        only(node)
        name, type_ = _RANKING[kind]
        return Term(f"{name}() OVER ({over})", type_)
    if kind in _OFFSETS:
        return _offset(node, scope, over)
    if kind in _VALUES:
        only(node, "this")
        term = scope.context.expression(node.this, scope)
        return term.becomes(f"{_VALUES[kind]}({term.sql}) OVER ({over})", term.type, term.digits)
    if kind is exp.NthValue:
        only(node, "this", "offset")
        term, place = (
            scope.context.expression(node.this, scope),
            _positive(node.args["offset"], scope, "nth_value", "22016"),
        )
        return join_terms(f"nth_value({term.sql}, {place.sql}) OVER ({over})", term.type, (term, place), term.digits)
    if kind is exp.Ntile:
        only(node, "this")
        buckets = _positive(node.this, scope, "ntile", "22014")
        return buckets.becomes(f"CAST(ntile({buckets.sql}) OVER ({over}) AS INTEGER)", INT4)
    raise unsupported(node)


def _positive(node: exp.Expr, scope: Scope, function: str, sqlstate: str) -> Term:
    """A constant above zero: DuckDB and Postgres disagree about others."""
    if not isinstance(node, exp.Literal):
        raise Rejected(f"{function} takes a constant here", sqlstate=NOT_SUPPORTED, position=position_of(node))
    term = _integer(node, scope)
    if str(node.this).strip("0") == "":
        text = f"argument of {function} must be greater than zero"
        raise Rejected(text, sqlstate=sqlstate, position=position_of(node))
    return term


def _integer(node: exp.Expr, scope: Scope) -> Term:
    term = scope.context.expression(node, scope)
    if term.kind not in (Kind.INT2, Kind.INT4, Kind.UNKNOWN):
        text = f"a window function takes an integer here, not {name_of(term.type)}"
        raise Rejected(text, sqlstate=UNDEFINED_FUNCTION, position=position_of(node))
    return cast(term, INT4, scope.zone, node)


def _offset(node: exp.Expr, scope: Scope, over: str) -> Term:
    """lag and lead, with the default in the value's type."""
    only(node, "this", "offset", "default")
    term = scope.context.expression(node.this, scope)
    default, distance = node.args.get("default"), node.args.get("offset")
    arguments, held = [term], [term]
    if distance is not None:
        held.append(_integer(distance, scope))
    if default is not None:
        made = unify((term, scope.context.expression(default, scope)), scope.zone, "lag", default)
        arguments, held = [made[0]], [made[0], held[1], made[1]]
    text = ", ".join(t.sql for t in held)
    return join_terms(f"{_OFFSETS[type(node)]}({text}) OVER ({over})", arguments[0].type, held, arguments[0].digits)
