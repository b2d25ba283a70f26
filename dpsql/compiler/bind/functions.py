"""Numbers, choices and casts over private rows, with Postgres's types and derived domains.

Every form chosen here has a total translation in each dialect (see `emit`), whatever the rows hold.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import log

from sqlglot import exp

from dpsql.compiler import domains
from dpsql.compiler.algebra import LARGEST_EXPONENT, Call, Case, Domain, Expr, Lit, Op
from dpsql.compiler.bind import temporal
from dpsql.compiler.bind.context import (
    Context,
    Rule,
    as_type,
    bind,
    bind_condition,
    boolean,
    comparable,
    number,
    pair,
    same_type,
)
from dpsql.compiler.bind.intervals import is_interval
from dpsql.compiler.bind.narrowing import where_true
from dpsql.compiler.bind.numbers import arithmetic, cast_number, extremum_domain, fold, numeric, rounded, sql_type
from dpsql.compiler.bind.parsing import surely, tried
from dpsql.compiler.bind.text import substring_of
from dpsql.compiler.bind.written import as_text
from dpsql.compiler.exact import scale_of
from dpsql.compiler.facts import narrowed
from dpsql.compiler.parse import only, refuse
from dpsql.errors import BAD_PARAMETER, OUT_OF_RANGE
from dpsql.types import FLOAT8, INT4, NUMERIC, TEXT, Kind


def _arithmetic(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression", "typed", "safe")
        left, right = node.this, node.args["expression"]
        if op in ("add", "sub") and (is_interval(right) or is_interval(left)):
            return temporal.shift(op, node, context)
        a, b = pair(left, right, context)
        if op == "sub" and a.type.is_time and b.type.is_time:
            return temporal.difference(a, b, node)
        if a.type.kind is Kind.DATE and b.type.is_integer:
            return temporal.shift_days(op, a, b, node)
        a, b = number(a, left, context), number(b, right, context)
        folded = fold(op, a, b)
        return folded if folded is not None else arithmetic(op, a, b, node)

    return rule


def _negative(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = number(bind(node.this, context), node.this, context)
    if isinstance(inner, Lit) and inner.value is not None:
        return Lit(-inner.value, inner.type)  # type: ignore[operator]
    return numeric("neg", (inner,), inner.type, replace(domains.negate(inner.domain), scale=scale_of(inner)), node)


def _abs(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = number(bind(node.this, context), node.this, context)
    return numeric("abs", (inner,), inner.type, replace(domains.absolute(inner.domain), scale=scale_of(inner)), node)


def _sign(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = number(bind(node.this, context), node.this, context)
    one = Fraction(1)
    scale = None if scale_of(inner) is None else 0
    domain = Domain(-one, one, (-1, 0, 1), nullable=inner.domain.nullable, reach=one, grain=one, scale=scale)
    return numeric("sign", (inner,), NUMERIC if inner.type.kind is Kind.NUMERIC else FLOAT8, domain, node)


def _rounding(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "decimals", "to")
        inner = number(bind(node.this, context), node.this, context)
        digits = node.args.get("decimals")
        places = 0
        if digits is not None:
            literal = bind(digits, context)
            if not isinstance(literal, Lit) or not isinstance(literal.value, int) or abs(literal.value) > 15:
                raise refuse("the number of decimals must be a constant between -15 and 15", node)
            places = literal.value
        whole = inner.type.is_integer and digits is None
        type_ = FLOAT8 if inner.type.is_float or whole else NUMERIC
        return numeric(op, (inner, Lit(places, INT4)), type_, rounded(op, inner, places), node)

    return rule


def _root(op: Op) -> Rule:
    """SQRT and LN: NULL where Postgres would raise an error."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node)
        inner = number(bind(node.this, context), node.this, context)
        return numeric(op, (inner,), FLOAT8, domains.root(inner.domain, op), node)

    return rule


def _exp(node: exp.Expr, context: Context) -> Expr:
    """EXP(x), of values whose result stays below 10^15."""
    only(node)
    inner = number(bind(node.this, context), node.this, context)
    if inner.domain.upper is not None and inner.domain.upper > LARGEST_EXPONENT:
        raise refuse(
            f"EXP over private rows takes values up to {LARGEST_EXPONENT}",
            node,
            sqlstate=OUT_OF_RANGE,
            hint=f"Bound it: EXP(LEAST(x, {LARGEST_EXPONENT})).",
        )
    return numeric("exp", (inner,), FLOAT8, domains.exponential(inner.domain), node)


def _power(node: exp.Expr, context: Context) -> Expr:
    """POWER with a constant whole exponent, as a product."""
    only(node, "expression")
    base = number(bind(node.this, context), node.this, context)
    exponent = bind(node.args["expression"], context)
    times = exponent.value if isinstance(exponent, Lit) else None
    if times == Decimal("0.5"):
        return numeric("sqrt", (base,), FLOAT8, domains.root(base.domain, "sqrt"), node)
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= 8:
        raise refuse("POWER takes a constant exponent, a whole number from 1 to 8 or 0.5", node)
    type_ = NUMERIC if base.type.kind is Kind.NUMERIC else FLOAT8
    factor = as_type(base, type_, context, node) if base.type.kind is not Kind.NUMERIC else base
    made = factor
    for _ in range(times - 1):
        made = arithmetic("mul", made, factor, node)
    if times % 2 == 0 and isinstance(made, Call) and made.domain.lower is not None:
        made = replace(made, domain=replace(made.domain, lower=max(made.domain.lower, Fraction(0))))
    return made


def _width_bucket(node: exp.Expr, context: Context) -> Expr:
    """WIDTH_BUCKET(x, low, high, count) of constants: 0 below, count + 1 from `high` on, as in Postgres."""
    only(node, "min_value", "max_value", "num_buckets")
    parts = [bind(node.args[key], context) if node.args.get(key) is not None else None for key in _BUCKET_PARTS]
    low, high, count = (domains.number(p.value) if isinstance(p, Lit) else None for p in parts)
    whole = count is not None and count.denominator == 1 and 1 <= count <= 10_000
    if low is None or high is None or count is None or low >= high or not whole:
        raise refuse("WIDTH_BUCKET takes constants low < high and 1 to 10,000 buckets over private rows", node)
    x = number(bind(node.this, context), node.this, context)
    ends = [Lit(Decimal(n.numerator) / Decimal(n.denominator), NUMERIC) for n in (low, high, count, high - low)]
    above = cast_number(arithmetic("sub", x, ends[0], node), FLOAT8, node)
    inside = arithmetic("div", arithmetic("mul", above, ends[2], node), ends[3], node)
    floored = numeric("floor", (inside, Lit(0, INT4)), FLOAT8, domains.integral(inside.domain), node)
    within = arithmetic("add", cast_number(floored, INT4, node), Lit(1, INT4), node)
    domain = Domain(Fraction(0), count + 1, nullable=x.domain.nullable, reach=within.domain.reach, grain=Fraction(1))
    branches = ((boolean("lt", x, ends[0]), Lit(0, INT4)), (boolean("ge", x, ends[1]), Lit(int(count) + 1, INT4)))
    return Case(branches, within, INT4, domain)


def _case(node: exp.Expr, context: Context) -> Expr:
    only(node, "ifs", "default")
    subject = node.args.get("this")
    conditions, results = [], []
    for branch in node.args["ifs"]:
        test = branch.this if subject is None else exp.EQ(this=subject.copy(), expression=branch.this.copy())
        conditions.append(bind_condition(test, context))
        inside, known = where_true(conditions[-1], context)
        results.append((branch.args["true"], narrowed(bind(branch.args["true"], inside), known)))
    default = node.args.get("default")
    if default is not None:
        results.append((default, bind(default, context)))
    values = same_type(results, node, context)
    branches = tuple(zip(conditions, values, strict=False))
    last = values[-1] if default is not None else None
    parts = [v.domain for v in values] + ([domains.null_domain()] if last is None else [])
    return Case(branches, last, values[0].type, domains.hull(parts))


def _coalesce(node: exp.Expr, context: Context) -> Expr:
    only(node, "expressions", "is_nvl", "is_null")
    nodes = [node.this, *node.args.get("expressions", [])]
    values = same_type([(n, bind(n, context)) for n in nodes], node, context)
    parts = [domains.without_null(v.domain) for v in values[:-1]] + [values[-1].domain]
    return Call("coalesce", tuple(values), values[0].type, domains.hull(parts))


def _nullif(node: exp.Expr, context: Context) -> Expr:
    only(node, "expression")
    a, b = pair(node.this, node.args["expression"], context)
    comparable(a, b, node)
    return Call("nullif", (a, b), a.type, domains.hull([a.domain, domains.null_domain()]))


def _extremum(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expressions", "ignore_nulls")
        nodes = [node.this, *node.args.get("expressions", [])]
        values = same_type([(n, bind(n, context)) for n in nodes], node, context)
        if values[0].type.is_time:
            return Call(op, tuple(values), values[0].type, domains.hull([v.domain for v in values]))
        if not values[0].type.is_number:
            raise refuse(f"{op.upper()} takes numbers, dates and timestamps over private rows", node)
        return Call(op, tuple(values), values[0].type, extremum_domain(op, [v.domain for v in values]))

    return rule


def _cast(node: exp.Expr, context: Context) -> Expr:
    only(node, "to")
    type_ = sql_type(node.args["to"], node)
    inner = bind(node.this, context)
    length = _length_of(node.args["to"], node) if type_.kind is Kind.TEXT else None
    if length is not None:
        written = as_text(context.coerce(inner, TEXT, node) if isinstance(inner, Lit) else inner, node)
        return substring_of(written, 1, length)
    if type_.kind is Kind.TEXT and not isinstance(inner, Lit):
        return as_text(inner, node)
    if isinstance(inner, Lit):
        if inner.type.is_number and type_.is_integer and not isinstance(inner.value, int):
            return cast_number(inner, type_, node)
        return context.coerce(inner, type_, node)
    if inner.type == type_:
        return inner
    if inner.type.is_number and type_.is_number:
        return cast_number(inner, type_, node)
    if inner.type.is_time and type_.is_time:
        return temporal.cast(inner, type_, node)
    if inner.type.kind is Kind.BOOL and type_.is_integer:
        one = Fraction(1)
        domain = Domain(Fraction(0), one, (0, 1), nullable=inner.domain.nullable, reach=one, grain=one)
        return Call("bool_to_int", (inner,), type_, domain)
    if inner.type.kind is Kind.TEXT and (type_.is_number or type_.is_time):
        return surely(inner, type_, node, context)
    raise refuse(
        f"CAST from {inner.type} to {type_} could fail on some row, so it is not available over private rows",
        node,
        hint="Cast the aggregated result instead, or declare the column with the type you need.",
    )


def _length_of(type_: exp.DataType, node: exp.Expr) -> int | None:
    """The n of varchar(n), to which a cast cuts a text."""
    if not type_.expressions:
        return None
    name = type_.expressions[0].name
    if len(type_.expressions) != 1 or not name.isdigit() or not 1 <= int(name) <= 10_485_760:
        raise refuse("the length of varchar must be a number from 1 to 10485760", node, sqlstate=BAD_PARAMETER)
    return int(name)


def _try_cast(node: exp.Expr, context: Context) -> Expr:
    """TRY_CAST(x AS type): NULL where a text does not have the type's form."""
    only(node, "to", "safe")
    inner = bind(node.this, context)
    type_ = sql_type(node.args["to"], node)
    if inner.type.kind in (Kind.TEXT, Kind.UNKNOWN) and type_.kind is not Kind.TEXT:
        return tried(inner, type_, node, context)
    return _cast(exp.Cast(this=node.this.copy(), to=node.args["to"].copy()), context)


_BUCKET_PARTS = ("min_value", "max_value", "num_buckets")


def _if(node: exp.Expr, context: Context) -> Expr:
    """IF(condition, a, b), as CASE."""
    only(node, "true", "false")
    branch = exp.If(this=node.this.copy(), true=node.args["true"].copy())
    default = node.args.get("false")
    return _case(exp.Case(ifs=[branch], default=None if default is None else default.copy()), context)


def _logarithm(node: exp.Expr, context: Context) -> Expr:
    """LOG(x), to base 10, and LOG(base, x) with a constant base: logarithms divided by that of the base."""
    only(node, "expression")
    x_node = node.args.get("expression") or node.this
    base = domains.number(found.value) if isinstance(found := bind(node.this, context), Lit) else None
    if node.args.get("expression") is None:
        base = Fraction(10)
    if base is None or base <= 0 or base == 1:
        raise refuse("LOG takes a constant base above 0 other than 1 over private rows", node)
    x = number(bind(x_node, context), x_node, context)
    natural = numeric("ln", (x,), FLOAT8, domains.root(x.domain, "ln"), node)
    return arithmetic("div", natural, Lit(log(base), FLOAT8), node)


FUNCTION_RULES: dict[type[exp.Expr], Rule] = {
    exp.Add: _arithmetic("add"),
    exp.Sub: _arithmetic("sub"),
    exp.Mul: _arithmetic("mul"),
    exp.Div: _arithmetic("div"),
    exp.Mod: _arithmetic("mod"),
    exp.Neg: _negative,
    exp.Abs: _abs,
    exp.Sign: _sign,
    exp.Floor: _rounding("floor"),
    exp.Ceil: _rounding("ceil"),
    exp.Round: _rounding("round"),
    exp.Trunc: _rounding("trunc"),
    exp.Sqrt: _root("sqrt"),
    exp.Ln: _root("ln"),
    exp.Exp: _exp,
    exp.Log: _logarithm,
    exp.Pow: _power,
    exp.WidthBucket: _width_bucket,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extremum("least"),
    exp.Greatest: _extremum("greatest"),
    exp.Cast: _cast,
    exp.TryCast: _try_cast,
}
