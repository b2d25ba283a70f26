"""Types and arithmetic of bound expressions: Postgres's result types, derived domains, and what could grow too large.

Works on expressions that are bound already; nothing here reads names or parameters.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from sqlglot import exp

from dpsql.compiler import domains
from dpsql.compiler.algebra import WIDE_MAX, Call, Domain, Expr, Lit, Op
from dpsql.compiler.exact import LEADING, MOST_DIGITS, derived, digits, scale_of, within_bigint
from dpsql.compiler.parse import refuse
from dpsql.errors import BAD_PARAMETER, NOT_SUPPORTED, OUT_OF_RANGE, TYPE_MISMATCH
from dpsql.types import FLOAT4, FLOAT8, INT4, INT8, NUMERIC, TEXT, Kind, SqlType

FLOAT_LIMIT = Fraction(10**290)


FLOAT_FLOOR = Fraction(1, 10**290)


def family(type_: SqlType) -> str:
    if type_.is_number:
        return "number"
    return "time" if type_.is_time else type_.kind.value


def common_type(types: list[SqlType], node: exp.Expr) -> SqlType:
    """The type of CASE, COALESCE, ...: the widest of one family."""
    known = [t for t in types if t.kind is not Kind.UNKNOWN]
    if not known:
        return TEXT
    if len({family(t) for t in known}) > 1:
        raise refuse(f"types {known[0]} and {known[-1]} do not match", node, sqlstate=TYPE_MISMATCH)
    if known[0].is_number:
        kinds = {t.kind for t in known}
        return FLOAT4 if Kind.FLOAT4 in kinds and Kind.FLOAT8 not in kinds else number_type(known)
    rank = [Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ]
    return max(known, key=lambda t: rank.index(t.kind)) if known[0].is_time else known[0]


def number_type(types: list[SqlType]) -> SqlType:
    if any(t.is_float for t in types):
        return FLOAT4 if all(t.kind is Kind.FLOAT4 for t in types) else FLOAT8
    if any(t.kind is Kind.NUMERIC for t in types):
        return types[0] if all(t == types[0] for t in types) else NUMERIC
    return INT8 if any(t.kind is Kind.INT8 for t in types) else INT4


def numeric(op: Op, args: tuple[Expr, ...], type_: SqlType, domain: Domain, node: exp.Expr) -> Expr:
    """A numeric call, refused where its values could leave what the backend's arithmetic holds without an error."""
    limit = WIDE_MAX if type_.is_integer else FLOAT_LIMIT
    if domain.reach > limit or domain.grain < FLOAT_FLOOR:
        raise refuse("this expression can grow too large", node, sqlstate=OUT_OF_RANGE, hint="Use fewer factors.")
    return Call(op, args, type_, domain)


def arithmetic(op: Op, a: Expr, b: Expr, node: exp.Expr) -> Expr:
    """a op b over numbers, typed as Postgres does: integers stay integers, division by zero is NULL."""
    type_ = number_type([a.type, b.type])
    if op in ("add", "sub", "mul") and type_.kind is Kind.NUMERIC:
        type_ = NUMERIC
    match op:
        case "add" | "sub" | "mul":
            a, b = _fitting(op, a, b, type_)
            domain = derived(op, (a, b))
        case "div" if type_.is_integer:
            op, domain = (
                "idiv",
                replace(domains.whole(domains.divide(a.domain, b.domain), "trunc"), reach=a.domain.reach),
            )
        case "div":
            domain = derived(op, (a, b))
        case _:
            if not type_.is_integer:
                raise refuse("% takes integers over private rows", node)
            domain = _modulo(a.domain, b.domain)
    if type_.kind is Kind.FLOAT4:  # rounded twice, which for the four operations is the same as once
        return cast_number(numeric(op, (a, b), FLOAT8, domain, node), FLOAT4, node)
    return numeric(op, (a, b), type_, domain, node)


def _fitting(op: Op, a: Expr, b: Expr, type_: SqlType) -> tuple[Expr, Expr]:
    """Both sides, integers within BIGINT where the result could not be held otherwise: beyond, Postgres has none."""
    if not type_.is_integer or derived(op, (a, b)).reach <= WIDE_MAX:
        return a, b
    return within_bigint(a), within_bigint(b)


def _modulo(a: Domain, b: Domain) -> Domain:
    if b.lower is None or b.upper is None:
        return Domain(reach=b.reach, grain=Fraction(1))
    largest = max(abs(b.lower), abs(b.upper)) - 1
    lower = Fraction(0) if a.lower is not None and a.lower >= 0 else -largest
    nullable = a.nullable or b.nullable or b.lower <= 0 <= b.upper
    return Domain(lower, max(largest, Fraction(0)), nullable=nullable, reach=b.reach, grain=Fraction(1))


def fold(op: Op, a: Expr, b: Expr) -> Lit | None:
    """Constants are computed exactly here: 0.06 + 0.01 is 0.07, not a binary approximation."""
    if not isinstance(a, Lit) or not isinstance(b, Lit) or a.type.is_float or b.type.is_float:
        return None
    if a.value is None or b.value is None or op not in ("add", "sub", "mul"):
        return None
    x, y = a.value, b.value
    if not isinstance(x, bool | str) and not isinstance(y, bool | str):
        with localcontext(prec=200):
            result: Any = x + y if op == "add" else x - y if op == "sub" else x * y  # type: ignore[operator]
        integral = isinstance(result, int)
        if abs(result) >= (2**63 if integral else 10**30) or 0 < abs(result) < Fraction(1, 10**30):
            return None
        return Lit(result, (INT4 if abs(result) < 2**31 else INT8) if integral else NUMERIC)
    return None


def cast_number(value: Expr, type_: SqlType, node: exp.Expr) -> Expr:
    """CAST between numbers: to integers rounds half away from zero and stays inside the type."""
    if type_.is_integer:
        limit = domains.INTEGER_REACH[type_.kind]
        domain = domains.integral(value.domain)
        return numeric("to_int", (value,), type_, Domain(
            domain.lower, domain.upper, nullable=domain.nullable, reach=min(domain.reach, limit), grain=Fraction(1)
        ), node)  # fmt: skip
    if type_.kind is Kind.NUMERIC:
        if type_.scale is not None and type_.precision is not None:
            value = as_numeric(value, node) if value.type.is_float else value
            return numeric("round", (value, Lit(type_.scale, INT4)), type_, rounded("round", value, type_.scale), node)
        return as_numeric(value, node)
    domain = domains.singled(value.domain) if type_.kind is Kind.FLOAT4 else domains.doubled(value.domain)
    return numeric("to_float", (value,), type_, domain, node)


FLOAT_DECIMALS = 20


def as_numeric(value: Expr, node: exp.Expr) -> Expr:
    """A number as numeric: integers exactly, floats by their leading digits, as Postgres does."""
    scale = scale_of(value)
    domain = replace(value.domain, scale=scale)
    if value.type.is_float:
        count = LEADING[value.type.kind]
        lower, upper = (None if x is None else _leading(x, count) for x in (domain.lower, domain.upper))
        grain, reach = Fraction(1, 10**FLOAT_DECIMALS), domain.reach * (1 + Fraction(1, 10 ** (count - 1)))
        domain = Domain(lower, upper, nullable=domain.nullable, reach=reach, grain=grain, scale=FLOAT_DECIMALS)
    return numeric("to_numeric", (value,), NUMERIC, domain, node)


def _leading(x: Fraction, count: int) -> Fraction:
    """The leading digits of a float, within FLOAT_DECIMALS decimals."""
    steps = Fraction(Decimal(f"{float(x):.{count}g}")) * 10**FLOAT_DECIMALS
    return Fraction(round(steps), 10**FLOAT_DECIMALS)


def rounded(op: Op, value: Expr, places: int) -> Domain:
    """The domain of ROUND, FLOOR, CEIL or TRUNC at a number of decimals."""
    step, scale = Fraction(10) ** -places, scale_of(value)
    inner = value.domain if scale is not None else domains.doubled(value.domain)
    domain = domains.whole(inner, op) if places == 0 else domains.rounded(inner, op, step, exact=scale is not None)
    once = op == "round" and places >= 0
    fits = scale is not None and (once or digits(value.domain.reach + 1, scale) + abs(places) + 1 <= MOST_DIGITS)
    return replace(domain, scale=max(places, 0) if fits else None)


def extremum_domain(op: Op, parts: list[Domain]) -> Domain:
    """LEAST/GREATEST ignore NULLs: arguments that are never NULL bound the result on one side."""
    hulled = domains.hull(parts)
    sure = [p for p in parts if not p.nullable]
    lower, upper = hulled.lower, hulled.upper
    if op == "least":
        upper = min((p.upper for p in sure if p.upper is not None), default=upper)
    else:
        lower = max((p.lower for p in sure if p.lower is not None), default=lower)
    return Domain(lower, upper, nullable=not sure, reach=hulled.reach, grain=hulled.grain, scale=hulled.scale)


def sql_type(node: exp.DataType, at: exp.Expr) -> SqlType:
    """The type that a cast names."""
    kind = _TYPES.get(str(getattr(node.this, "value", node.this)))
    if kind is None:
        name = node.sql("postgres").lower()
        raise refuse(f"type {name} is not supported", at, sqlstate=NOT_SUPPORTED, hint=_INSTEAD_OF_TYPE.get(name))
    if kind is Kind.NUMERIC and node.expressions:
        if not all(p.name.isdecimal() and p.name.isascii() for p in node.expressions):
            raise refuse("numeric takes whole numbers as precision and scale", at, sqlstate=BAD_PARAMETER)
        numbers = [int(p.name) for p in node.expressions]
        scale = numbers[1] if len(numbers) > 1 else 0
        if not 1 <= numbers[0] <= 38 or not 0 <= scale <= min(numbers[0], 15):
            raise refuse("numeric precision must be 1..38 and scale 0..15", at, sqlstate=BAD_PARAMETER)
        return SqlType(kind, numbers[0], scale)
    return SqlType(kind)


_INSTEAD_OF_TYPE = {
    "time": "Write to_char(x, 'HH24:MI:SS'), or EXTRACT(hour FROM x).",
    "interval": "Intervals are constants here: INTERVAL '7 days'. Seconds between: EXTRACT(EPOCH FROM a - b).",
    "char": "Write CAST(x AS text) or left(x, 1).",
}
_TYPES = {
    "INT": Kind.INT4,
    "BIGINT": Kind.INT8,
    "SMALLINT": Kind.INT2,
    "DOUBLE": Kind.FLOAT8,
    "FLOAT": Kind.FLOAT4,
    "DECIMAL": Kind.NUMERIC,
    "TEXT": Kind.TEXT,
    "VARCHAR": Kind.TEXT,
    "BOOLEAN": Kind.BOOL,
    "DATE": Kind.DATE,
    "TIMESTAMP": Kind.TIMESTAMP,
    "TIMESTAMPTZ": Kind.TIMESTAMPTZ,
    "UUID": Kind.UUID,
}
