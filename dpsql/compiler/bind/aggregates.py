"""The aggregates that exist over private rows, and what each needs of its argument.

Decides by allow-list. COUNT takes anything; SUM, AVG and the statistics take numbers with derived bounds, since an
unbounded value would have no finite sensitivity; what chooses a value (MIN, MEDIAN, ...) is in `choices`.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.algebra import Aggregate, AggregateKind, Call, Col, Expr, Lit, Scalar, columns_of, is_constant
from dpsql.compiler.bind.choices import choice, chooses
from dpsql.compiler.bind.contributions import within
from dpsql.compiler.bind.expr import Context, bind, bind_condition
from dpsql.compiler.bind.narrowing import where_true
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.bind.text import row
from dpsql.compiler.exact import measured
from dpsql.compiler.facts import Narrowed, narrowed
from dpsql.compiler.parse import only, refuse, unwrap, written
from dpsql.compiler.walk import parts
from dpsql.errors import NOT_SUPPORTED, TYPE_MISMATCH, Rejected
from dpsql.types import FLOAT8, INT8, NUMERIC, Kind, SqlType

SUPPORTED = (
    "COUNT, COUNT(DISTINCT x), SUM, AVG, VARIANCE, STDDEV, COVAR, CORR, MIN, MAX, MEDIAN, PERCENTILE_CONT, "
    "PERCENTILE_DISC and MODE, each with FILTER"
)


def aggregate(node: exp.Expr, condition: exp.Expr | None, source: Source, context: Context) -> Aggregate:
    made = _bound_aggregate(within(node, source, context), condition, source, context)
    strict = made.argument is not None and _null_with(made.argument, source.tables)
    if source.preserved and not strict:
        raise refuse(
            "In an outer join that keeps public rows, an aggregate must ignore rows without a private match.",
            node,
            hint=f"Use COUNT(column of {source.tables[0]}) instead of COUNT(*), or an inner join.",
        )
    return made


_STRICT = (
    "add", "sub", "mul", "div", "idiv", "mod", "neg", "abs", "floor", "ceil", "round", "trunc", "sign", "extract",
    "date_trunc", "add_interval", "date_diff", "to_int", "to_float", "to_numeric", "to_date", "to_timestamp",
    "date_bin", "to_text", "to_char", "lower", "upper", "length", "substring", "right", "concat", "trim", "ltrim",
    "rtrim", "lpad", "rpad", "replace", "split_part", "position", "exp", "left", "translate", "md5", "text_to_int",
    "text_to_float", "text_to_date", "text_to_timestamp",
)  # fmt: skip


def _null_with(expr: Expr, tables: tuple[str, ...]) -> bool:
    """Whether the expression is NULL wherever the columns of these tables are."""
    if isinstance(expr, Col):
        return expr.origin is not None and expr.origin[0] in tables
    return isinstance(expr, Call) and expr.op in _STRICT and any(_null_with(arg, tables) for arg in expr.args)


def _bound_aggregate(node: exp.Expr, condition: exp.Expr | None, source: Source, context: Context) -> Aggregate:
    where = bind_condition(condition, context) if condition is not None else None
    context, told = where_true(where, context)
    known = {**source.known, **told}
    match node:
        case exp.Count():
            return _count(node, where, source, context)
        case exp.Sum():
            only(node)
            argument = _measured(node.this, "sum", context, known)
            return Aggregate("sum", argument, where, _result_type("sum", argument.type))
        case _ if type(node) in _STATISTICS:
            only(node, "expression")
            kind = _STATISTICS[type(node)]
            argument = _measured(node.this, kind, context, known)
            second = node.args.get("expression")
            other = None if second is None else _measured(second, kind, context, known)
            type_ = FLOAT8 if other is not None else _result_type(kind, argument.type)
            return Aggregate(kind, argument, where, type_, other)
        case exp.CountIf():
            only(node)
            condition = node.this if condition is None else exp.And(this=condition.copy(), expression=node.this.copy())
            return Aggregate("count", None, bind_condition(condition, context), INT8)
        case exp.ApproxDistinct():
            only(node)
            return _count_distinct(exp.Distinct(expressions=[node.this]), where, source, context)
        case _ if chooses(node):
            return choice(node, where, context, known)
        case _:
            raise _no_aggregate(node)


def _quartiles(node: exp.Expr) -> str:
    """APPROX_QUANTILES(x, n), one percentile for each."""
    number = node.args.get("expression")
    parts = int(number.name) if isinstance(number, exp.Literal) and number.name.isdigit() and int(number.name) else 4
    x = node.this.sql("postgres")
    shown = [f"percentile_disc({i / parts:g}) WITHIN GROUP (ORDER BY {x})" for i in range(1, min(max(parts, 2), 6))]
    return "Each percentile is an aggregate of its own, and costs accuracy: SELECT " + ", ".join(shown)


def _no_aggregate(node: exp.Expr) -> Rejected:
    """The refusal of an aggregate that does not exist here, with what to ask instead."""
    hint = f"Available: {SUPPORTED}."
    inner = node.this.sql("postgres") if isinstance(node.this, exp.Expr) else "x"
    if isinstance(node, exp.LogicalOr):
        hint = f"Ask how many there are, and compare with more than the noise: COUNT(*) FILTER (WHERE {inner}) > 20"
    elif isinstance(node, exp.LogicalAnd):
        hint = f"Ask how many are not so: COUNT(*) FILTER (WHERE NOT ({inner})) < 20"
    elif isinstance(node, exp.ArrayAgg | exp.GroupConcat | exp.AnyValue | exp.First | exp.Last):
        hint = "It would show values of single rows. Group by the column: each value that enough units share is a row."
    elif isinstance(node, exp.RegrSlope | exp.RegrIntercept):
        hint = "Write the formula: the slope is COVAR_POP(y, x) / VAR_POP(x), the intercept AVG(y) - slope * AVG(x)."
    elif isinstance(node, exp.ApproxQuantiles):
        hint = _quartiles(node)
    elif isinstance(node, exp.ApproxTopK | exp.ApproxTopSum):
        hint = f"Group by it and sort: SELECT {inner}, COUNT(*) AS n FROM ... GROUP BY 1 ORDER BY n DESC LIMIT 10"
    elif isinstance(node, exp.ArgMax | exp.ArgMin):
        hint = "It would show a value of a single row. Average the others: AVG(x) FILTER (WHERE y > ...)."
    elif isinstance(node, exp.Kurtosis | exp.Skewness):
        hint = f"Percentiles tell the shape: percentile_cont(0.1), (0.5), (0.9) WITHIN GROUP (ORDER BY {inner})."
    return refuse(f"{written(node)} over private rows is not supported", node, sqlstate=NOT_SUPPORTED, hint=hint)


_STATISTICS: dict[type[exp.Expr], AggregateKind] = {
    exp.Avg: "avg",
    exp.VariancePop: "var_pop",
    exp.Variance: "var_samp",
    exp.StddevPop: "stddev_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.Corr: "corr",
}


def _count(node: exp.Count, where: Expr | None, source: Source, context: Context) -> Aggregate:
    if node.expressions:
        raise refuse(
            "COUNT takes one argument",
            node,
            hint="Bounds of contributions are in the policy. Pairs are counted by COUNT(DISTINCT (a, b)).",
        )
    only(node, "big_int")
    argument = node.this
    if isinstance(argument, exp.Star) or argument is None:
        return Aggregate("count", None, where, INT8)
    if isinstance(argument, exp.Distinct):
        return _count_distinct(argument, where, source, context)
    bound = bind(argument, context)
    if is_constant(bound) and isinstance(bound, Lit) and bound.value is not None:
        return Aggregate("count", None, where, INT8)
    return Aggregate("count", measured(bound) if bound.type.is_number else bound, where, INT8)


def _count_distinct(node: exp.Distinct, where: Expr | None, source: Source, context: Context) -> Aggregate:
    only(node, "expressions")
    parts = node.expressions
    if len(parts) != 1:
        raise refuse(
            "COUNT(DISTINCT ...) takes one expression",
            node,
            hint=f"Write COUNT(DISTINCT ({', '.join(p.sql('postgres') for p in parts)})).",
        )
    rows = unwrap(parts[0])
    if isinstance(rows, exp.Tuple) or (isinstance(rows, exp.Anonymous) and str(rows.this).lower() == "row"):
        return Aggregate("count_distinct", row(rows, context), where, INT8)
    bound = bind(parts[0], context)
    if isinstance(bound, Col) and bound.name in source.units:
        return Aggregate("count_units", bound, where, INT8)
    return Aggregate("count_distinct", bound, where, INT8)


def _measured(node: exp.Expr, kind: str, context: Context, known: Narrowed) -> Expr:
    """The argument of SUM or AVG: a number with derived bounds."""
    if isinstance(node, exp.Distinct):
        raise _distinct(node, kind)
    argument = narrowed(bind(node, context), known)
    if isinstance(argument, Lit) and argument.type.kind is Kind.UNKNOWN:
        argument = context.coerce(argument, NUMERIC, node)
    if not argument.type.is_number:
        hint = _numbers_of(argument, node, kind)
        raise refuse(f"{kind.upper()} takes numbers, not {argument.type}", node, sqlstate=TYPE_MISMATCH, hint=hint)
    if not argument.domain.bounded:
        raise _unbounded(node, argument, kind)
    return measured(argument)


def _numbers_of(argument: Expr, node: exp.Expr, kind: str) -> str | None:
    """What to write instead of the sum or average of what is no number."""
    x = node.sql("postgres", comments=False)
    if argument.type.is_time and kind == "avg" and len(x) <= 100:
        return f"Write to_timestamp(AVG(EXTRACT(epoch FROM {x}))), or MEDIAN({x})."
    if argument.type.kind is Kind.BOOL and len(x) <= 100:
        share = f"COUNT(*) FILTER (WHERE {x})"
        return f"Write {share} * 1.0 / COUNT(*) for the share." if kind == "avg" else f"Write {share}."
    if argument.type.kind is Kind.TEXT and len(x) <= 100:
        return (
            f"Write {kind.upper()}(LEAST(GREATEST(TRY_CAST({x} AS double precision), 0), 100)), with bounds of yours."
        )
    return None


def _distinct(node: exp.Distinct, kind: str) -> Rejected:
    """SUM(DISTINCT x), AVG(DISTINCT x): the values that somebody has are released first, as private keys are."""
    x = node.expressions[0].sql("postgres") if node.expressions else "x"
    return refuse(
        f"{kind.upper()}(DISTINCT ...) is not supported over private rows",
        node,
        hint="List the values that enough rows have, then add them up: "
        f"SELECT {kind.upper()}(x) FROM (SELECT {x} AS x FROM ... GROUP BY 1 HAVING COUNT(*) > 20) AS present",
    )


def _unbounded(node: exp.Expr, argument: Expr, kind: str) -> Rejected:
    missing = sorted(
        {f"{c.origin[0]}.{c.origin[1]}" for c in columns_of(argument) if c.origin and not c.domain.bounded}
    )
    if missing:
        text = f"{', '.join(missing)} has no declared bounds, so {kind.upper()} over it has no finite sensitivity"
        hint = "Declare lower and upper for it in the policy, or filter it with BETWEEN."
        if any(c.type.kind is Kind.TEXT for c in columns_of(argument)):
            hint = f"Bound it in the statement: LEAST(GREATEST({node.sql('postgres')}, 0), 100)."
        return refuse(text, node, hint=hint)
    hint = f"Clamp it, as in LEAST(GREATEST({node.sql('postgres')}, 0), 100)."
    if any(isinstance(part, Scalar) for part in parts(argument)):
        hint = f"The value of a subquery has no bounds that are known beforehand. {hint}"
    elif any(isinstance(part, Call) and part.op in ("div", "idiv") for part in parts(argument)):
        hint = f"A division needs a divisor whose bounds keep away from zero. {hint}"
    return refuse(f"the argument of {kind.upper()} has no derivable bounds", node, hint=hint)


def _result_type(kind: str, type_: SqlType) -> SqlType:
    """Postgres's result types: sum(int4) int8, sum(int8) numeric, avg(int) numeric, floats stay float8."""
    if type_.is_float:
        return FLOAT8
    if kind == "sum" and type_.kind in (Kind.INT2, Kind.INT4):
        return INT8
    return NUMERIC
