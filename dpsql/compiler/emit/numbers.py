"""Numeric functions as SQL, in the type that `Emitter.number` computes them in.

Decides that no call can fail for any row: divisors are wrapped in NULLIF(x, 0), roots and logarithms are taken where
they are defined, and what becomes an integer is kept inside its type first.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.compiler.algebra import Call, Expr, Lit
from dpsql.compiler.emit import decimals
from dpsql.compiler.emit.parsed import exponential, parsed
from dpsql.compiler.exact import is_exact, whole_quotient
from dpsql.errors import Failed
from dpsql.types import Kind

if TYPE_CHECKING:
    from dpsql.compiler.emit.common import Emitter, Rep


_LARGEST_WHOLE_DOUBLE = 2**63 - 1024
"""The largest double below 2^63."""


def number_call(emitter: Emitter, call: Call, rep: Rep) -> str:
    """A numeric call, computed in `rep`."""
    args = call.args
    match call.op:
        case "mul" if rep == "exact":
            return decimals.product(emitter, call)
        case "add" | "sub" | "mul":
            sign = {"add": "+", "sub": "-", "mul": "*"}[call.op]
            return f"({emitter.as_rep(args[0], rep)} {sign} {emitter.as_rep(args[1], rep)})"
        case "div" if rep == "exact":
            return decimals.quotient(emitter, call)
        case "div" if (scale := whole_quotient(*args)) is not None:
            a, b = (decimals.whole_double(emitter, arg, scale) for arg in args)
            return f"({a} / NULLIF({b}, 0))"
        case "div":
            return f"({emitter.as_double(args[0])} / NULLIF({emitter.as_double(args[1])}, 0))"
        case "idiv":
            a, b = (emitter.as_rep(x, rep) for x in args)
            quotient = emitter.dialect.whole_division(a, f"NULLIF({b}, 0)")
            return f"CAST({quotient} AS {emitter.rep_type('wide' if rep == 'wide' else 'int')})"
        case "mod":
            return f"({emitter.as_rep(args[0], rep)} % NULLIF({emitter.as_rep(args[1], rep)}, 0))"
        case "neg":
            return f"(-{emitter.as_rep(args[0], rep)})"
        case "abs":
            return f"ABS({emitter.as_rep(args[0], rep)})"
        case "sqrt" | "ln":
            x = emitter.as_double(args[0])
            return f"{call.op.upper()}(CASE WHEN {x} {'>=' if call.op == 'sqrt' else '>'} 0 THEN {x} END)"
        case "exp":
            return exponential(emitter, call)
        case "text_to_float" | "text_to_int":
            return parsed(emitter, call)
        case "clamp":
            return decimals.clamped(emitter, call)
        case "sign" if rep == "exact":
            return f"CAST(SIGN({emitter.as_rep(args[0], rep)}) AS {decimals.type_of(emitter, call)})"
        case "sign":
            return f"CAST(SIGN({emitter.as_double(args[0])}) AS {emitter.dialect.double})"
        case "floor" | "ceil" | "trunc" | "round":
            return _rounded(emitter, call, rep)
        case "coalesce" | "nullif":
            return emitter.choice(call, lambda e: emitter.as_rep(e, rep))
        case "least" | "greatest":
            return f"{call.op.upper()}({', '.join(emitter.as_rep(a, rep) for a in args)})"
        case "to_int":
            return _to_int(emitter, args[0], call)
        case "to_numeric" if rep == "exact":
            return emitter.as_rep(args[0], rep) if is_exact(args[0]) else decimals.of_float(emitter, args[0], call)
        case "to_float" if call.type.kind is Kind.FLOAT4 and args[0].type.kind is not Kind.FLOAT4:
            return _single(emitter, args[0])
        case "to_float" | "to_numeric":
            return emitter.as_double(args[0])
        case "bool_to_int":
            inner = emitter.condition(args[0])
            return f"CAST(CASE WHEN {inner} THEN 1 WHEN NOT {inner} THEN 0 END AS BIGINT)"
        case "extract":
            return _extract(emitter, call)
        case "date_diff":
            a, b = (f"CAST({emitter.moment(x)} AS DATE)" for x in args)
            return f"CAST({a} - {b} AS BIGINT)"
        case "length":
            return f"CAST(LENGTH({emitter.value(args[0])}) AS BIGINT)"
        case "position":
            return f"CAST(STRPOS({emitter.value(args[0])}, {emitter.value(args[1])}) AS BIGINT)"
        case _:
            raise Failed(f"no numeric form of {call.op}")


def _rounded(emitter: Emitter, call: Call, rep: Rep) -> str:
    """floor, ceil, trunc and round, at a number of decimals."""
    inner, places = call.args
    digits = places.value if isinstance(places, Lit) and isinstance(places.value, int) else 0
    if rep == "exact":
        return decimals.rounded(emitter, call.op, inner, digits)
    x = emitter.as_double(inner)
    scale = emitter.double(Fraction(10) ** abs(digits))
    if digits:
        x = f"({x} {'*' if digits > 0 else '/'} {scale})"
    made = emitter.dialect.rounded(x) if call.op == "round" else f"{call.op.upper()}({x})"
    return f"({made} {'/' if digits > 0 else '*'} {scale})" if digits else made


def _single(emitter: Emitter, inner: Expr) -> str:
    """The nearest float of 32 bits, as a double; within +-10^38, and below 10^-37 as 0, so that no cast fails."""
    x, most, least = emitter.as_double(inner), emitter.double(1e38), emitter.double(1e-37)
    if inner.domain.reach > 10**38 or inner.domain.grain < Fraction(1, 10**37):
        ends = f"WHEN {x} > {most} THEN {most} WHEN {x} < -{most} THEN -{most}"
        x = f"CASE {ends} WHEN {x} < {least} AND {x} > -{least} THEN 0 ELSE {x} END"
    return f"CAST(CAST({x} AS REAL) AS {emitter.dialect.double})"


def _to_int(emitter: Emitter, inner: Expr, call: Call) -> str:
    """Rounded, decimals half away from zero and floats to even, and kept inside the target type."""
    if emitter.representation(inner) in ("int", "wide") and inner.domain.reach <= call.domain.reach:
        return emitter.as_rep(inner, emitter.representation(call))
    largest = {Kind.INT2: 2**15 - 1, Kind.INT4: 2**31 - 1}.get(call.type.kind, 2**63 - 1)
    if is_exact(inner):
        return decimals.whole(emitter, inner, largest)
    x = emitter.dialect.rounded(emitter.as_double(inner))
    limit = emitter.double(float(min(largest, _LARGEST_WHOLE_DOUBLE)))
    clamped = f"(CASE WHEN {x} > {limit} THEN {limit} WHEN {x} < -{limit} THEN -{limit} ELSE {x} END)"
    return f"CAST({clamped} AS BIGINT)"


def _extract(emitter: Emitter, call: Call) -> str:
    part, inner = call.args
    name = str(part.value) if isinstance(part, Lit) else ""
    target = emitter.dialect.double if name == "epoch" else "BIGINT"
    return f"CAST(EXTRACT({name.upper()} FROM {emitter.moment(inner)}) AS {target})"
