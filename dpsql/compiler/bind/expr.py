"""Scalar expressions: sqlglot nodes to the closed algebra, with Postgres's types and derived domains.

Decides which operators and functions exist over private rows. Everything is by allow-list: an unknown node, or an
argument that the rule for its node does not read, is refused. Every form chosen here has a total translation in each
dialect (see `emit`), whatever the rows hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from dpsql.compiler import domains
from dpsql.compiler.algebra import Call, Case, Domain, Expr, Lit, Op
from dpsql.compiler.bind import literals, temporal
from dpsql.compiler.bind.numbers import (
    arithmetic,
    cast_number,
    common_type,
    extremum_domain,
    family,
    fold,
    numeric,
    sql_type,
)
from dpsql.compiler.bind.scope import Field, resolve
from dpsql.compiler.parse import name_of, only, refuse, unwrap, written
from dpsql.errors import (
    SYNTAX,
    TYPE_MISMATCH,
    UNDEFINED_FUNCTION,
    Rejected,
)
from dpsql.types import BOOL, FLOAT8, INT4, NUMERIC, TEXT, UNKNOWN, Kind, SqlType


@dataclass(frozen=True, slots=True)
class Context:
    """What expressions may refer to: visible columns, then those of the query outside, parameters, subqueries.

    The callbacks bind what needs more than an expression; None refuses it. `membership` takes the subquery of IN, the
    left side, and whether it is NOT IN. `inferred` collects the types that their place gave to untyped parameters.
    """

    fields: tuple[Field, ...]
    parameters: tuple[Lit, ...] = ()
    inferred: dict[int, SqlType] = field(default_factory=dict)
    subquery: Callable[[exp.Expr], Expr] | None = None
    exists: Callable[[exp.Exists], Expr] | None = None
    membership: Callable[[exp.Expr, Expr, bool], Expr] | None = None
    aggregate: Callable[[exp.Expr], Expr] | None = None
    outer: tuple[Field, ...] = ()
    zone: tzinfo = UTC

    def coerce(self, literal: Lit, type_: SqlType, at: exp.Expr) -> Lit:
        parameter = unwrap(at)
        if isinstance(parameter, exp.Parameter) and literal.type.kind is Kind.UNKNOWN:
            self.inferred[parameter_index(parameter)] = type_
        return literals.coerce(literal, type_, at, self.zone)


def bind(node: exp.Expr, context: Context) -> Expr:
    """The algebra's form of a scalar expression."""
    rule = _RULES.get(type(node))
    if rule is None and context.aggregate is not None and isinstance(node, exp.AggFunc | exp.Filter):
        return context.aggregate(node)
    if rule is None and isinstance(node, exp.Anonymous) and str(node.this).lower() == "date_part":
        return temporal.date_part(node, context)
    if rule is None:
        raise _unsupported(node)
    return rule(node, context)


def bind_condition(node: exp.Expr, context: Context) -> Expr:
    """A boolean expression, as WHERE, ON and FILTER need it."""
    expr = _typed(bind(node, context), BOOL, node, context)
    if expr.type.kind is not Kind.BOOL:
        raise refuse(f"a condition must be boolean, not {expr.type}", node, sqlstate=TYPE_MISMATCH)
    return expr


def parameter_index(node: exp.Parameter) -> int:
    """The 0-based index of `$n`."""
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise refuse("parameters are written $1, $2, ...", node, sqlstate="42P02")
    return int(text) - 1


def _unsupported(node: exp.Expr) -> Rejected:
    if isinstance(node, exp.Anonymous):
        return refuse(
            f"function {str(node.this).lower()} is not available over private rows",
            node,
            sqlstate=UNDEFINED_FUNCTION,
            hint="Only functions that cannot fail on any row may touch private data; apply others to the aggregates.",
        )
    if isinstance(node, exp.AggFunc):
        return refuse("an aggregate function is not allowed here", node, sqlstate="42803")
    if isinstance(node, exp.Window):
        return refuse("window functions over private rows are not supported", node)
    return refuse(f"{written(node)} is not supported over private rows", node)


def _typed(expr: Expr, type_: SqlType, node: exp.Expr, context: Context) -> Expr:
    """Gives an untyped literal or parameter the type that its place asks for."""
    if isinstance(expr, Lit) and expr.type.kind is Kind.UNKNOWN:
        return context.coerce(expr, type_, node)
    return expr


def _pair(left: exp.Expr, right: exp.Expr, context: Context) -> tuple[Expr, Expr]:
    """Both sides of an operator; an untyped one takes the other's type."""
    a, b = bind(left, context), bind(right, context)
    if a.type.kind is Kind.UNKNOWN and b.type.kind is Kind.UNKNOWN:
        return _typed(a, TEXT, left, context), _typed(b, TEXT, right, context)
    return _typed(a, b.type, left, context), _typed(b, a.type, right, context)


def boolean(op: Op, *args: Expr) -> Call:
    """A boolean call; its domain is both truth values, and NULL where an argument may be NULL."""
    nullable = op not in ("is_null", "distinct", "is_true", "is_false") and any(a.domain.nullable for a in args)
    return Call(op, args, BOOL, Domain(values=(False, True), nullable=nullable))


def _comparison(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        other = unwrap(node.args["expression"])
        if isinstance(other, exp.Any) and op == "eq":
            return _any(node, other, context)
        a, b = _pair(node.this, node.args["expression"], context)
        _comparable(a, b, node)
        return boolean(op, a, b)

    return rule


def _comparable(a: Expr, b: Expr, node: exp.Expr) -> None:
    if family(a.type) != family(b.type):
        raise refuse(
            f"operator does not exist: {a.type} compared with {b.type}",
            node,
            sqlstate=UNDEFINED_FUNCTION,
            hint="Write the constant in the type of the column.",
        )


def _any(node: exp.Expr, other: exp.Any, context: Context) -> Expr:
    """x = ANY(ARRAY[...]) is an IN list."""
    array = unwrap(other.this)
    if isinstance(array, exp.Array):
        return _in(exp.In(this=node.this.copy(), expressions=[e.copy() for e in array.expressions]), context)
    raise refuse("= ANY(...) takes ARRAY[...] of constants here", node)


def _connector(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        parts, stack = [], [node]
        while stack:
            part = stack.pop()
            if type(part) is type(node):
                stack += [part.args["expression"], part.this]
            else:
                parts.append(bind_condition(part, context))
        return boolean(op, *parts)

    return rule


def _not(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = unwrap(node.this)
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        return _in_query(inner, context, negated=True)
    return boolean("not", bind_condition(node.this, context))


def _is(node: exp.Expr, context: Context) -> Expr:
    only(node, "expression", "negate")
    other = node.args["expression"]
    inner = bind(node.this, context)
    if isinstance(other, exp.Null):
        found = boolean("is_null", _typed(inner, TEXT, node.this, context))
    elif isinstance(other, exp.Boolean):
        found = boolean("is_true" if other.this else "is_false", _typed(inner, BOOL, node.this, context))
        if found.args[0].type.kind is not Kind.BOOL:
            raise refuse("IS TRUE and IS FALSE take a boolean", node, sqlstate=TYPE_MISMATCH)
    else:
        raise refuse("IS takes NULL, TRUE, FALSE or DISTINCT FROM", node)
    return boolean("not", found) if node.args.get("negate") else found


def _distinct_from(negated: bool) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression")
        a, b = _pair(node.this, node.args["expression"], context)
        _comparable(a, b, node)
        found = boolean("distinct", a, b)
        return boolean("not", found) if negated else found

    return rule


def _between(node: exp.Expr, context: Context) -> Expr:
    only(node, "low", "high", "negate")
    a, low = _pair(node.this, node.args["low"], context)
    b, high = _pair(node.this, node.args["high"], context)
    _comparable(a, low, node)
    _comparable(b, high, node)
    found = boolean("and", boolean("ge", a, low), boolean("le", b, high))
    return boolean("not", found) if node.args.get("negate") else found


def _in(node: exp.Expr, context: Context) -> Expr:
    assert isinstance(node, exp.In)
    only(node, "expressions", "query", "negate")
    if node.args.get("query") is not None:
        return _in_query(node, context, negated=bool(node.args.get("negate")))
    found = _in_list(node, bind(node.this, context), context)
    return boolean("not", found) if node.args.get("negate") else found


def _in_query(node: exp.In, context: Context, *, negated: bool) -> Expr:
    if context.membership is None:
        raise refuse("IN (SELECT ...) is not supported here", node)
    return context.membership(node.args["query"], bind(node.this, context), negated)


def _exists(node: exp.Expr, context: Context) -> Expr:
    if context.exists is None or not isinstance(node, exp.Exists):
        raise refuse("EXISTS is not supported here", node)
    return context.exists(node)


def _in_list(node: exp.Expr, subject: Expr, context: Context) -> Expr:
    options = []
    if not node.args["expressions"]:
        raise refuse("IN takes at least one value", node, sqlstate=SYNTAX)
    for option in node.args["expressions"]:
        bound = _typed(bind(option, context), subject.type, option, context)
        _comparable(subject, bound, option)
        options.append(bound)
    if all(isinstance(option, Lit) for option in options):
        return boolean("in", subject, *options)
    return boolean("or", *(boolean("eq", subject, option) for option in options))


def _like(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression", "negate")
        subject = _typed(bind(node.this, context), TEXT, node.this, context)
        pattern = _typed(bind(node.args["expression"], context), TEXT, node, context)
        if subject.type.kind is not Kind.TEXT or not isinstance(pattern, Lit):
            raise refuse("LIKE takes a text column and a constant pattern", node)
        text = str(pattern.value) if pattern.value is not None else ""
        if _dangling_escape(text):
            raise refuse("LIKE pattern must not end with an escape character", node, sqlstate="22025")
        if op == "ilike" and not text.isascii():
            raise refuse("ILIKE takes ASCII patterns only", node)
        found = boolean(op, subject, pattern)
        return boolean("not", found) if node.args.get("negate") else found

    return rule


def _dangling_escape(pattern: str) -> bool:
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def _number(expr: Expr, node: exp.Expr, context: Context) -> Expr:
    expr = _typed(expr, NUMERIC, node, context)
    if not expr.type.is_number:
        raise refuse(f"a number is needed here, not {expr.type}", node, sqlstate=UNDEFINED_FUNCTION)
    return expr


def _arithmetic(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expression", "typed", "safe")
        left, right = node.this, node.args["expression"]
        if op in ("add", "sub") and (isinstance(unwrap(right), exp.Interval) or isinstance(unwrap(left), exp.Interval)):
            return temporal.shift(op, node, context)
        a, b = _pair(left, right, context)
        if op == "sub" and a.type.is_time and b.type.is_time:
            return temporal.difference(a, b, node)
        if a.type.kind is Kind.DATE and b.type.is_integer:
            return temporal.shift_days(op, a, b, node)
        a, b = _number(a, left, context), _number(b, right, context)
        folded = fold(op, a, b)
        return folded if folded is not None else arithmetic(op, a, b, node)

    return rule


def _negative(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = _number(bind(node.this, context), node.this, context)
    if isinstance(inner, Lit) and inner.value is not None:
        return Lit(-inner.value, inner.type)  # type: ignore[operator]
    return numeric("neg", (inner,), inner.type, domains.negate(inner.domain), node)


def _abs(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = _number(bind(node.this, context), node.this, context)
    return numeric("abs", (inner,), inner.type, domains.absolute(inner.domain), node)


def _sign(node: exp.Expr, context: Context) -> Expr:
    only(node)
    inner = _number(bind(node.this, context), node.this, context)
    one = Fraction(1)
    domain = Domain(-one, one, (-1, 0, 1), nullable=inner.domain.nullable, reach=one, grain=one)
    return numeric("sign", (inner,), FLOAT8 if inner.type.is_float else NUMERIC, domain, node)


def _rounding(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "decimals", "to")
        inner = _number(bind(node.this, context), node.this, context)
        digits = node.args.get("decimals")
        places = 0
        if digits is not None:
            literal = bind(digits, context)
            if not isinstance(literal, Lit) or not isinstance(literal.value, int) or abs(literal.value) > 15:
                raise refuse("the number of decimals must be a constant between -15 and 15", node)
            places = literal.value
        type_ = FLOAT8 if inner.type.is_float or inner.type.is_integer else NUMERIC
        step = Fraction(1) if places == 0 else Fraction(10) ** -places
        domain = domains.integral(inner.domain) if places == 0 else domains.widen(inner.domain, step)
        return numeric(op, (inner, Lit(places, INT4)), type_, domain, node)

    return rule


def _root(op: Op) -> Rule:
    """SQRT and LN: NULL where Postgres would raise an error."""

    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node)
        inner = _number(bind(node.this, context), node.this, context)
        return numeric(op, (inner,), FLOAT8, domains.root(inner.domain, op), node)

    return rule


def _power(node: exp.Expr, context: Context) -> Expr:
    """POWER with a constant whole exponent, as a product."""
    only(node, "expression")
    base = _number(bind(node.this, context), node.this, context)
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
    x = _number(bind(node.this, context), node.this, context)
    ends = [Lit(Decimal(n.numerator) / Decimal(n.denominator), NUMERIC) for n in (low, high, count, high - low)]
    above = cast_number(arithmetic("sub", x, ends[0], node), FLOAT8, node)
    inside = arithmetic("div", arithmetic("mul", above, ends[2], node), ends[3], node)
    floored = numeric("floor", (inside, Lit(0, INT4)), FLOAT8, domains.integral(inside.domain), node)
    within = arithmetic("add", cast_number(floored, INT4, node), Lit(1, INT4), node)
    domain = Domain(Fraction(0), count + 1, nullable=x.domain.nullable, reach=within.domain.reach, grain=Fraction(1))
    branches = ((boolean("lt", x, ends[0]), Lit(0, INT4)), (boolean("ge", x, ends[1]), Lit(int(count) + 1, INT4)))
    return Case(branches, within, INT4, domain)


_BUCKET_PARTS = ("min_value", "max_value", "num_buckets")


def _case(node: exp.Expr, context: Context) -> Expr:
    only(node, "ifs", "default")
    subject = node.args.get("this")
    conditions, results = [], []
    for branch in node.args["ifs"]:
        test = branch.this if subject is None else exp.EQ(this=subject.copy(), expression=branch.this.copy())
        conditions.append(bind_condition(test, context))
        results.append((branch.args["true"], bind(branch.args["true"], context)))
    default = node.args.get("default")
    if default is not None:
        results.append((default, bind(default, context)))
    values = _same_type(results, node, context)
    branches = tuple(zip(conditions, values, strict=False))
    last = values[-1] if default is not None else None
    parts = [v.domain for v in values] + ([domains.null_domain()] if last is None else [])
    return Case(branches, last, values[0].type, domains.hull(parts))


def _same_type(results: list[tuple[exp.Expr, Expr]], node: exp.Expr, context: Context) -> list[Expr]:
    type_ = common_type([bound.type for _, bound in results], node)
    values = [_typed(bound, type_, at, context) for at, bound in results]
    return [as_type(value, type_, context, node) for value in values]


def as_type(value: Expr, type_: SqlType, context: Context, node: exp.Expr) -> Expr:
    """An expression of one family in another of its types."""
    if value.type == type_:
        return value
    if isinstance(value, Lit):
        return context.coerce(value, type_, node)
    if value.type.is_number:
        return cast_number(value, type_, node)
    return temporal.cast(value, type_, node)


def _coalesce(node: exp.Expr, context: Context) -> Expr:
    only(node, "expressions", "is_nvl", "is_null")
    nodes = [node.this, *node.args.get("expressions", [])]
    values = _same_type([(n, bind(n, context)) for n in nodes], node, context)
    parts = [domains.without_null(v.domain) for v in values[:-1]] + [values[-1].domain]
    return Call("coalesce", tuple(values), values[0].type, domains.hull(parts))


def _nullif(node: exp.Expr, context: Context) -> Expr:
    only(node, "expression")
    a, b = _pair(node.this, node.args["expression"], context)
    _comparable(a, b, node)
    return Call("nullif", (a, b), a.type, domains.hull([a.domain, domains.null_domain()]))


def _extremum(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "expressions", "ignore_nulls")
        nodes = [node.this, *node.args.get("expressions", [])]
        values = _same_type([(n, bind(n, context)) for n in nodes], node, context)
        if not values[0].type.is_number:
            raise refuse(f"{op.upper()} takes numbers over private rows", node)
        return Call(op, tuple(values), values[0].type, extremum_domain(op, [v.domain for v in values]))

    return rule


def _cast(node: exp.Expr, context: Context) -> Expr:
    only(node, "to")
    type_ = sql_type(node.args["to"], node)
    inner = bind(node.this, context)
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
    raise refuse(
        f"CAST from {inner.type} to {type_} could fail on some row, so it is not available over private rows",
        node,
        hint="Cast the aggregated result instead, or declare the column with the type you need.",
    )


def _text(op: Op) -> Rule:
    def rule(node: exp.Expr, context: Context) -> Expr:
        only(node, "big_int", "encoding")
        inner = _typed(bind(node.this, context), TEXT, node.this, context)
        if inner.type.kind is not Kind.TEXT:
            raise refuse(f"{op} takes text", node, sqlstate=UNDEFINED_FUNCTION)
        if op == "length":
            return Call(
                op,
                (inner,),
                INT4,
                Domain(Fraction(0), nullable=inner.domain.nullable, reach=Fraction(2**31), grain=Fraction(1)),
            )
        return Call(op, (inner,), TEXT, Domain(nullable=inner.domain.nullable))

    return rule


def _substring(node: exp.Expr, context: Context) -> Expr:
    """substring(x, start[, length]) with constant start >= 1 and length >= 0; left(x, n) with n >= 0."""
    only(node, "start", "length", "expression")
    inner = _typed(bind(node.this, context), TEXT, node.this, context)
    start = bind(node.args["start"], context) if node.args.get("start") else Lit(1, INT4)
    length_node = node.args.get("length") or node.args.get("expression")
    length = bind(length_node, context) if length_node is not None else Lit(2**31 - 1, INT4)
    if inner.type.kind is not Kind.TEXT or not all(
        isinstance(n, Lit) and isinstance(n.value, int) and least <= n.value < 2**31
        for n, least in ((start, 1), (length, 0))
    ):
        raise refuse("substring takes text, a constant start of at least 1 and a constant length of at least 0", node)
    return Call("substring", (inner, start, length), TEXT, Domain(nullable=inner.domain.nullable))


def _column(node: exp.Expr, context: Context) -> Expr:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise refuse("* is not a value", node)
    return resolve(node, context.fields, context.outer)


def _literal(node: exp.Expr, context: Context) -> Expr:
    return literals.string(str(node.this)) if node.args.get("is_string") else literals.number_literal(node.this, node)


def _parameter(node: exp.Expr, context: Context) -> Expr:
    assert isinstance(node, exp.Parameter)
    index = parameter_index(node)
    if index >= len(context.parameters):
        return Lit(None, UNKNOWN)
    return literals.parameter(context.parameters[index], node, context.zone)


def _scalar(node: exp.Expr, context: Context) -> Expr:
    if context.subquery is None:
        raise refuse("a subquery is not supported here", node)
    return context.subquery(node)


def _boolean_literal(node: exp.Expr, context: Context) -> Expr:
    return literals.TRUE if node.this else literals.FALSE


Rule = Callable[[exp.Expr, Context], Expr]

_RULES: dict[type[exp.Expr], Rule] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.ByteString: lambda node, context: literals.string(str(node.this)),
    exp.Parameter: _parameter,
    exp.Null: lambda node, context: Lit(None, UNKNOWN),
    exp.Boolean: _boolean_literal,
    exp.Paren: lambda node, context: bind(node.this, context),
    exp.And: _connector("and"),
    exp.Or: _connector("or"),
    exp.Not: _not,
    exp.EQ: _comparison("eq"),
    exp.NEQ: _comparison("ne"),
    exp.LT: _comparison("lt"),
    exp.LTE: _comparison("le"),
    exp.GT: _comparison("gt"),
    exp.GTE: _comparison("ge"),
    exp.Is: _is,
    exp.NullSafeEQ: _distinct_from(negated=True),
    exp.NullSafeNEQ: _distinct_from(negated=False),
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
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
    exp.Pow: _power,
    exp.WidthBucket: _width_bucket,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Least: _extremum("least"),
    exp.Greatest: _extremum("greatest"),
    exp.Cast: _cast,
    exp.Extract: temporal.extract,
    exp.StrToTime: temporal.parsed_time,
    exp.StrToDate: temporal.parsed_time,
    exp.TimestampTrunc: temporal.truncate,
    exp.DateTrunc: temporal.truncate,
    exp.Lower: _text("lower"),
    exp.Upper: _text("upper"),
    exp.Trim: _text("trim"),
    exp.Length: _text("length"),
    exp.Substring: _substring,
    exp.Left: _substring,
    exp.Subquery: _scalar,
    exp.Exists: _exists,
}


__all__ = ["Context", "bind", "bind_condition", "name_of", "parameter_index"]
