"""Exact decimals as SQL: DuckDB's DECIMAL and Postgres's NUMERIC, in which no operation rounds unless it says so.

Decides the types and conversions around `exact`: what is written here is total, since `exact` has found that every
value fits. DuckDB finds the types of sums itself, wide enough; products of two decimals of up to 18 digits it keeps in
18, so one factor is widened. It turns decimals of at most 15 digits into the nearest double, longer ones by way of
their text.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.compiler.algebra import Call, Expr, Lit, Op
from dpsql.compiler.exact import LEADING, MOST_DIGITS, decimal_of, digits, precision_of, reciprocal, scale_of
from dpsql.errors import Failed
from dpsql.types import Kind

if TYPE_CHECKING:
    from dpsql.compiler.emit.common import Emitter

_SAFE_DIGITS = 15
_WHOLE_DIGITS = 18


def decimal_type(emitter: Emitter, precision: int, scale: int) -> str:
    return "NUMERIC" if emitter.dialect.name == "postgres" else f"DECIMAL({max(precision, 1)},{scale})"


def type_of(emitter: Emitter, expr: Expr) -> str:
    """The type that holds an exact expression."""
    return decimal_type(emitter, precision_of(expr), scale_of(expr) or 0)


def constant(emitter: Emitter, value: Fraction, scale: int) -> str:
    """A constant with this many decimals, as a decimal."""
    whole = value * 10**scale
    if whole.denominator != 1:
        raise Failed("a constant with more decimals than its type")
    text = written(value, scale)
    return text if scale else f"CAST({text} AS {decimal_type(emitter, digits(abs(value), 0), 0)})"


def written(value: Fraction, scale: int) -> str:
    """The digits of a number with this many decimals."""
    return f"{decimal_of(int(value * 10**scale), scale):f}"


def canonical(emitter: Emitter, expr: Expr) -> str:
    """One representative for all equal values: with the decimals that its type has."""
    sql = emitter.value(expr)
    return f"ROUND({sql}, {scale_of(expr) or 0})" if emitter.dialect.name == "postgres" else sql


def as_double(emitter: Emitter, sql: str, precision: int) -> str:
    """The nearest double of a decimal or whole number of so many digits."""
    if precision > _SAFE_DIGITS and emitter.dialect.name == "duckdb":
        sql = f"CAST({sql} AS VARCHAR)"
    return f"CAST({sql} AS {emitter.dialect.double})"


def product(emitter: Emitter, call: Call) -> str:
    """a * b exactly."""
    a, b = (emitter.as_rep(arg, "exact") for arg in call.args)
    return f"({_factor(emitter, a, call.args[0], precision_of(call))} * {b})"


def _factor(emitter: Emitter, sql: str, expr: Expr, made: int) -> str:
    """An exact number as a factor of a product of `made` digits."""
    if emitter.dialect.name == "postgres" or made <= _WHOLE_DIGITS:
        return sql
    return f"CAST({sql} AS DECIMAL({max(precision_of(expr), _WHOLE_DIGITS + 1)},{scale_of(expr) or 0}))"


def times(emitter: Emitter, sql: str, expr: Expr, by: Fraction) -> str:
    """An exact number (rendered) times a power of ten, or another constant of few decimals."""
    scale = 0
    while (by * 10**scale).denominator != 1:
        scale += 1
    made = digits(expr.domain.reach * abs(by), (scale_of(expr) or 0) + scale)
    return f"{_factor(emitter, sql, expr, made)} * {constant(emitter, by, scale)}"


def quotient(emitter: Emitter, call: Call) -> str:
    """a / b exactly, by the constant's reciprocal."""
    factor, a = reciprocal(call.args[1]), call.args[0]
    if factor is None:
        raise Failed("an exact quotient by what has no short reciprocal")
    return f"({times(emitter, emitter.as_rep(a, 'exact'), a, Fraction(factor))})"


def whole_double(emitter: Emitter, expr: Expr, scale: int) -> str:
    """An exact number times 10^scale, which is whole, as the nearest double."""
    if isinstance(expr, Lit) and isinstance(expr.value, int | Decimal):
        return emitter.double(Fraction(expr.value) * 10**scale)
    if scale == 0:
        return emitter.as_double(expr)
    size = digits(expr.domain.reach * 10**scale, 0)
    exact = times(emitter, emitter.as_rep(expr, "exact"), expr, Fraction(10**scale))
    if size <= _WHOLE_DIGITS:
        return f"CAST(CAST({exact} AS BIGINT) AS {emitter.dialect.double})"
    return as_double(emitter, f"CAST({exact} AS {emitter.dialect.wide})", size)


def rounded(emitter: Emitter, op: Op, inner: Expr, places: int) -> str:
    """floor, ceil, trunc, and round half away from zero, at a number of decimals."""
    x, unit = emitter.as_rep(inner, "exact"), Fraction(10) ** places
    if op == "round" and places >= 0:
        return _nearest(emitter, x, inner.domain.reach + 1, places)
    if places:
        x = f"({times(emitter, x, inner, unit)})"
    made = f"{op.upper()}({x})" if op != "round" else _nearest(emitter, x, inner.domain.reach * unit + 1, 0)
    if not places:
        return made
    size = digits((inner.domain.reach * unit + 1) / unit, max(places, 0))
    if emitter.dialect.name == "duckdb" and size > _WHOLE_DIGITS:
        made = f"CAST({made} AS DECIMAL({MOST_DIGITS - abs(places)},0))"
    return f"({made} * {constant(emitter, 1 / unit, max(places, 0))})"


def _nearest(emitter: Emitter, x: str, reach: Fraction, places: int) -> str:
    """Rounded half away from zero: so does DuckDB's CAST between decimals."""
    if emitter.dialect.name == "postgres":
        return f"ROUND({x}, {places})" if places else f"ROUND({x})"
    return f"CAST({x} AS {decimal_type(emitter, digits(reach, places), places)})"


def whole(emitter: Emitter, inner: Expr, limit: int) -> str:
    """Rounded half away from zero to a BIGINT, kept inside [-limit - 1, limit]."""
    x = rounded(emitter, "round", inner, 0) if scale_of(inner) else emitter.as_rep(inner, "exact")
    if inner.domain.reach + Fraction(1, 2) > limit:
        x = f"(CASE WHEN {x} > {limit} THEN {limit} WHEN {x} < {-limit} THEN {-limit} ELSE {x} END)"
    return f"CAST({x} AS BIGINT)"


def clamped(emitter: Emitter, call: Call) -> str:
    """An exact number within constant ends, in the narrow type that holds them."""
    inner, low, high = call.args
    rep = emitter.representation(inner)
    x, ends = emitter.number(inner)[0], [emitter.as_rep(end, rep) for end in (low, high)]
    made = f"CASE WHEN {x} > {ends[1]} THEN {ends[1]} WHEN {x} < {ends[0]} THEN {ends[0]} ELSE {x} END"
    return f"CAST({made} AS {type_of(emitter, call)})" if rep == "exact" else f"({made})"


def of_float(emitter: Emitter, inner: Expr, call: Call) -> str:
    """A float's leading digits, as Postgres casts it; its reach fits, so TRY_CAST finds nothing wrong."""
    x, scale = emitter.as_double(inner), scale_of(call) or 0
    if emitter.dialect.name == "postgres":
        stored = f"CAST({x} AS REAL)" if inner.type.kind is Kind.FLOAT4 else x
        return f"ROUND(CAST({stored} AS NUMERIC), {scale})"
    return f"TRY_CAST(FORMAT('{{:.{LEADING[inner.type.kind]}g}}', {x}) AS {type_of(emitter, call)})"


def steps(emitter: Emitter, x: str, argument: Expr, resolution: Fraction, low: int) -> str:
    """The nearest grid step of an exact number at or above `low` steps, halves upward: no float takes part."""
    scale = scale_of(argument) or 0
    if resolution > 1:
        half = constant(emitter, resolution / 2, 0)
        reached, size = f"CAST(FLOOR({x} + {half}) AS {emitter.dialect.wide})", int(resolution)
        from_low = f"({reached} - {low * size})"
        return f"(CAST({emitter.dialect.whole_division(from_low, str(size))} AS BIGINT) + {low})"
    scaled = x if resolution == 1 else times(emitter, x, argument, 1 / resolution)
    exact = (1 / resolution).numerator % 10**scale == 0
    return f"CAST({scaled} AS BIGINT)" if exact else f"CAST(FLOOR({scaled} + 0.5) AS BIGINT)"
