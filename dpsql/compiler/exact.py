"""Exact decimals: which numbers are computed without rounding, and how many digits they need.

Decides the arithmetic of each expression: integers and numerics are exact wherever every value that any row could give
fits into 38 digits, the most that DuckDB's DECIMAL holds; all else is computed in binary floats. The decimals needed
(`scale`) and the largest value (`reach`) are certain of every row, so no operation can leave its type and fail. What is
measured is clamped to its bounds in the end, so its columns may be read within theirs first (`bounded`). Nothing here
depends on the dialect.

Division: by a constant whose reciprocal is a short decimal (100, 0.5, 8) it is that exact product. Others are one
correctly rounded division of whole numbers in doubles. Below 2^53 that is the nearest double of the true quotient and
never crosses a whole number; Postgres rounds its numeric quotients to 16 digits or more.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dpsql.compiler import domains
from dpsql.compiler.algebra import INT8_MAX, Call, Case, Col, Domain, Expr, Lit
from dpsql.types import NUMERIC, Kind

MOST_DIGITS = 38
_LONGEST_RECIPROCAL = 12
LEADING = {Kind.FLOAT4: 6, Kind.FLOAT8: 15}
"""Decimal digits of a float that its cast to numeric keeps."""


def scale_of(expr: Expr) -> int | None:
    """How many decimals hold every value exactly; None where it is computed in binary floats."""
    if is_whole_part(expr):
        scale: int | None = 0
    else:
        scale = 0 if expr.type.is_integer else expr.domain.scale if expr.type.kind is Kind.NUMERIC else None
    return scale if scale is not None and digits(expr.domain.reach, scale) <= MOST_DIGITS else None


def digits(reach: Fraction, scale: int) -> int:
    """The precision of the narrowest DECIMAL of this scale that holds all values up to `reach`."""
    return max(len(str(int(reach))) if reach >= 1 else 0, 1 if scale == 0 else 0) + scale


def precision_of(expr: Expr) -> int:
    """The precision of an exact expression."""
    return digits(expr.domain.reach, scale_of(expr) or 0)


def is_exact(expr: Expr) -> bool:
    return scale_of(expr) is not None


def is_whole_part(expr: Expr) -> bool:
    """EXTRACT of anything but the epoch gives whole numbers, though Postgres calls them numeric."""
    if not isinstance(expr, Call) or expr.op != "extract" or not isinstance(expr.args[0], Lit):
        return False
    return not expr.type.is_float and expr.args[0].value != "epoch"


def reciprocal(divisor: Expr) -> Decimal | None:
    """1 / divisor, where that is a constant and a short decimal."""
    value = divisor.value if isinstance(divisor, Lit) and not divisor.type.is_float else None
    number = domains.number(value)
    if not number:
        return None
    scaled = 10**_LONGEST_RECIPROCAL / number
    if scaled.denominator != 1 or abs(scaled) > 10 ** (2 * _LONGEST_RECIPROCAL):
        return None
    return decimal_of(scaled.numerator, _LONGEST_RECIPROCAL).normalize()


def decimal_of(whole: int, scale: int) -> Decimal:
    """whole * 10^-scale, without rounding."""
    return Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -scale))


def whole_quotient(a: Expr, b: Expr) -> int | None:
    """The power of ten by which both sides of a division become whole numbers that fit; None where they do not."""
    scales = [scale_of(a), scale_of(b)]
    scale = max((s for s in scales if s is not None), default=0)
    fits = all(digits(x.domain.reach, s or 0) + scale <= MOST_DIGITS for x, s in zip((a, b), scales, strict=True))
    return scale if None not in scales and fits else None


def decimals(value: Decimal) -> int:
    """How many decimals a constant has."""
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else MOST_DIGITS


MOST_ROWS = Fraction(2**40)
"""Of one unit: no table can hold more."""


def sums_exactly(expr: Expr, resolution: Fraction) -> bool:
    """Whether a unit's rows of it are added up in its own decimals."""
    scale = scale_of(expr)
    if scale is None or resolution != Fraction(1, 10**scale):
        return False
    return digits(expr.domain.reach * MOST_ROWS, scale) <= MOST_DIGITS


def within_bigint(expr: Expr) -> Expr:
    """An integer within BIGINT: where it would be larger, Postgres raises an error."""
    if expr.domain.reach <= INT8_MAX + 1 or isinstance(expr, Lit):
        return expr
    ends = (Lit(-INT8_MAX - 1, NUMERIC), Lit(INT8_MAX, NUMERIC))
    return Call("clamp", (expr, *ends), expr.type, replace(expr.domain, reach=Fraction(INT8_MAX + 1)))


def measured(expr: Expr) -> Expr:
    """What is added up, its columns read within their bounds where it would need wide decimals or doubles otherwise."""
    if expr.type.is_float or isinstance(expr, Col | Lit) or (is_exact(expr) and precision_of(expr) <= _NARROW):
        return expr
    cut = bounded(expr)
    return cut if is_exact(cut) else expr


_NARROW = 18
"""Digits of a decimal that backends compute with in 64 bits."""


def bounded(expr: Expr) -> Expr:
    """The expression over columns read within their declared bounds; itself where there are none.

    Within the bounds of all columns it has the same values.
    """
    match expr:
        case Call(op="add" | "sub" | "mul" | "neg" | "to_numeric", args=args):
            return _again(expr, tuple(bounded(arg) for arg in args))
        case Case(branches=branches, default=default):
            cut = tuple((condition, bounded(value)) for condition, value in branches)
            last = None if default is None else bounded(default)
            return _chosen(replace(expr, branches=cut, default=last))
        case Col() | Call() if is_exact(expr) and expr.domain.bounded:
            return _clamped(expr)
        case _:
            return expr


def _clamped(expr: Col | Call) -> Expr:
    """Written with its bounds, so that the emitted SQL follows from the tree alone."""
    domain, scale = expr.domain, scale_of(expr) or 0
    low, high = (_end(end, scale) for end in (domain.lower, domain.upper))
    reach = max(abs(Fraction(low)), abs(Fraction(high)))
    if low > high or reach >= domain.reach:
        return expr
    return Call("clamp", (expr, Lit(low, NUMERIC), Lit(high, NUMERIC)), expr.type, replace(domain, reach=reach))


def _end(end: Fraction | None, scale: int) -> Decimal:
    """A bound in the decimals that the expression has: outward or not makes no difference to what is inside."""
    return decimal_of(((end or Fraction(0)) * 10**scale).__floor__(), scale)


def _again(call: Call, args: tuple[Expr, ...]) -> Expr:
    """The call with narrower arguments, and what is certain of its values then."""
    made = derived(call.op, args)
    domain = replace(call.domain, reach=made.reach, grain=made.grain, scale=made.scale)
    return replace(call, args=args, domain=domain)


def _chosen(case: Case) -> Case:
    values = [v for _, v in case.branches] + ([] if case.default is None else [case.default])
    reach = max(v.domain.reach for v in values)
    return replace(case, domain=replace(case.domain, reach=reach))


def derived(op: str, args: tuple[Expr, ...]) -> Domain:
    """The domain of +, -, *, / and negation over numbers, as they are computed: exactly, or in doubles."""
    scales = [scale_of(arg) for arg in args]
    domain = _combined(op, tuple(arg.domain for arg in args))
    if None in scales:
        return _in_doubles(op, args)
    scale = _scale(op, args, [s or 0 for s in scales])
    made = replace(domain, scale=scale)
    if scale is None or digits(made.reach, scale) > MOST_DIGITS:
        return _in_doubles(op, args)
    return replace(made, grain=Fraction(1, 10**scale))


def _scale(op: str, args: tuple[Expr, ...], scales: list[int]) -> int | None:
    match op:
        case "mul":
            return sum(scales)
        case "div":
            factor = reciprocal(args[1])
            return None if factor is None else scales[0] + decimals(factor)
        case _:
            return max(scales)


def _in_doubles(op: str, args: tuple[Expr, ...]) -> Domain:
    """Each end as the backends compute it: rounding is monotonic, so no value lies outside."""
    if op == "to_numeric":
        return replace(args[0].domain, scale=None)
    if op == "div" and whole_quotient(*args) is not None:
        return domains.doubled(_combined(op, tuple(arg.domain for arg in args)))
    return domains.doubled(_combined(op, tuple(domains.doubled(arg.domain) for arg in args)))


def _combined(op: str, parts: tuple[Domain, ...]) -> Domain:
    match op:
        case "add":
            return domains.add(*parts)
        case "sub":
            return domains.add(parts[0], domains.negate(parts[1]))
        case "mul":
            return domains.multiply(*parts)
        case "div":
            return domains.divide(*parts)
        case "neg":
            return domains.negate(parts[0])
        case _:
            return parts[0]
