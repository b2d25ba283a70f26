"""Value domains: interval arithmetic over declared bounds.

Decides what is publicly known of an expression's values. Nothing here is trusted for privacy: an aggregate's argument
is clamped to the interval that this module derives, and rows outside a public key domain are dropped, whatever the
data holds. `reach` alone must be true of every row; it is derived from types, never from declarations.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from dpsql.compiler.algebra import (
    FLOAT_GRAIN,
    FLOAT_REACH,
    LARGEST_EXPONENT,
    LEAST_EXPONENT,
    Bound,
    Domain,
)
from dpsql.policy.schema import SchemaColumn
from dpsql.types import Kind, SqlType, Value

INTEGER_REACH = {Kind.INT2: Fraction(2**15), Kind.INT4: Fraction(2**31), Kind.INT8: Fraction(2**63)}


def type_reach(type_: SqlType) -> Fraction:
    """The largest absolute value that a column of this type takes into arithmetic."""
    if type_.is_integer:
        return INTEGER_REACH[type_.kind]
    if type_.kind is Kind.NUMERIC and type_.precision is not None:
        return Fraction(10**type_.precision - 1, 10 ** (type_.scale or 0))
    return FLOAT_REACH


def type_grain(type_: SqlType) -> Fraction:
    """The smallest absolute value, 0 apart, that a column of this type takes into arithmetic."""
    if type_.kind is Kind.NUMERIC and type_.precision is not None:
        return Fraction(10) ** -(type_.scale or 0)
    return FLOAT_GRAIN if not type_.is_integer else Fraction(1)


FREE_SCALE = 15
"""Decimals with which a numeric of no declared precision is read into arithmetic."""


def type_scale(type_: SqlType) -> int | None:
    """How many decimals hold every value of a numeric column; None for other types."""
    if type_.kind is not Kind.NUMERIC:
        return None
    return FREE_SCALE if type_.precision is None else type_.scale or 0


def number(value: Value) -> Bound:
    """A bound as an exact number; None where it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Fraction(value)


_KNOWN: dict[int, tuple[SchemaColumn, Domain]] = {}
"""Domains of schema columns by identity: a public column may have thousands of values."""


def of_column(column: SchemaColumn) -> Domain:
    """The declared domain of a column; of a public one, the values of its snapshot."""
    known = _KNOWN.get(id(column))
    if known is not None and known[0] is column:
        return known[1]
    if len(_KNOWN) > 10_000:
        _KNOWN.clear()
    made = _declared(column)
    _KNOWN[id(column)] = (column, made)
    return made


def _declared(column: SchemaColumn) -> Domain:
    values = column.values
    if column.type.kind is Kind.BOOL and values is None:
        values = (False, True)
    lower, upper = number(column.lower), number(column.upper)
    if values and column.type.is_number:
        lower, upper = number(min(values)), number(max(values))  # type: ignore[type-var]
    first, last = column.lower, column.upper
    if not column.type.is_time:
        first = last = None
    elif values and first is None and last is None:
        first = min(values, key=lambda v: moment(v) or datetime.min)
        last = max(values, key=lambda v: moment(v) or datetime.max)
    reach, grain, scale = type_reach(column.type), type_grain(column.type), type_scale(column.type)
    return Domain(lower, upper, values, first, last, column.nullable, reach, grain, scale=scale)


def hull(domains: Iterable[Domain]) -> Domain:
    """The smallest domain that holds all of them (the result of CASE, COALESCE, ...)."""
    return reduce(_hull, domains)


def _hull(a: Domain, b: Domain) -> Domain:
    if a.values == () or b.values == ():
        kept = b if a.values == () else a
        reach, grain = max(a.reach, b.reach), min(a.grain, b.grain)
        nullable = a.nullable or b.nullable
        scale = _wider(a.scale, b.scale)
        return Domain(kept.lower, kept.upper, kept.values, kept.first, kept.last, nullable, reach, grain, scale=scale)
    values = None
    if a.values is not None and b.values is not None:
        values = tuple(dict.fromkeys((*a.values, *b.values)))
    return Domain(
        None if a.lower is None or b.lower is None else min(a.lower, b.lower),
        None if a.upper is None or b.upper is None else max(a.upper, b.upper),
        values,
        earlier(a.first, b.first),
        later(a.last, b.last),
        a.nullable or b.nullable,
        max(a.reach, b.reach),
        min(a.grain, b.grain),
        scale=_wider(a.scale, b.scale),
    )


def _wider(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def null_domain() -> Domain:
    """NULL alone: adds nothing to a hull but NULL."""
    return Domain(nullable=True, reach=Fraction(0), values=(), grain=Fraction(1), scale=0)


def without_null(domain: Domain) -> Domain:
    return replace(domain, nullable=False)


def moment(value: Value) -> datetime | None:
    """A date or timestamp as a timestamp, for comparing."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, date):
        return datetime.combine(value, time())
    return None


def earlier(a: Value, b: Value) -> Value:
    """The earlier of two; None, unknown, wins."""
    left, right = moment(a), moment(b)
    return None if left is None or right is None else (a if left <= right else b)


def later(a: Value, b: Value) -> Value:
    left, right = moment(a), moment(b)
    return None if left is None or right is None else (a if left >= right else b)


def doubled(a: Domain) -> Domain:
    """Both ends as the nearest binary floats: what is computed from such ends bounds what backends compute."""
    lower, upper = (None if x is None else _nearest(x) for x in (a.lower, a.upper))
    return replace(a, lower=lower, upper=upper, scale=None)


def _nearest(x: Fraction) -> Fraction:
    return Fraction(float(x)) if abs(x) < 10**300 else x


def singled(a: Domain) -> Domain:
    """Both ends as the nearest binary floats of 32 bits, which hold as much as the backends are given to round."""
    lower, upper = (None if x is None else single(x) for x in (a.lower, a.upper))
    return replace(a, lower=lower, upper=upper, scale=None)


def single(x: Fraction) -> Fraction:
    """The nearest float of 32 bits, within +-10^38."""
    inside = max(min(x, Fraction(10**38)), Fraction(-(10**38)))
    (nearest,) = struct.unpack("f", struct.pack("f", float(inside)))
    return Fraction(nearest)


def add(a: Domain, b: Domain) -> Domain:
    lower = None if a.lower is None or b.lower is None else a.lower + b.lower
    upper = None if a.upper is None or b.upper is None else a.upper + b.upper
    grain = min(a.grain, b.grain) / 2**53
    return Domain(lower, upper, nullable=a.nullable or b.nullable, reach=a.reach + b.reach, grain=grain)


def negate(a: Domain) -> Domain:
    lower = None if a.upper is None else -a.upper
    upper = None if a.lower is None else -a.lower
    return Domain(lower, upper, nullable=a.nullable, reach=a.reach, grain=a.grain)


def multiply(a: Domain, b: Domain) -> Domain:
    nullable, reach, grain = a.nullable or b.nullable, a.reach * b.reach, a.grain * b.grain / 2
    if a.lower is None or a.upper is None or b.lower is None or b.upper is None:
        return Domain(nullable=nullable, reach=reach, grain=grain)
    corners = [x * y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Domain(min(corners), max(corners), nullable=nullable, reach=reach, grain=grain)


def divide(a: Domain, b: Domain) -> Domain:
    """a / b where b = 0 gives NULL; bounded only if b's interval keeps away from zero."""
    reach, grain = 2 * a.reach / b.grain, a.grain / max(b.reach, Fraction(1)) / 2
    if a.lower is None or a.upper is None or b.lower is None or b.upper is None or b.lower <= 0 <= b.upper:
        return Domain(nullable=True, reach=reach, grain=grain)
    corners = [x / y for x in (a.lower, a.upper) for y in (b.lower, b.upper)]
    return Domain(min(corners), max(corners), nullable=a.nullable or b.nullable, reach=reach, grain=grain)


def absolute(a: Domain) -> Domain:
    if a.lower is None or a.upper is None:
        return Domain(Fraction(0), None, nullable=a.nullable, reach=a.reach, grain=a.grain)
    largest = max(abs(a.lower), abs(a.upper))
    smallest = Fraction(0) if a.lower <= 0 <= a.upper else min(abs(a.lower), abs(a.upper))
    return Domain(smallest, largest, nullable=a.nullable, reach=a.reach, grain=a.grain)


def exponential(a: Domain) -> Domain:
    """The interval of EXP, a little wider than exact, within what it is computed in."""
    lower, upper = (None if x is None else _exponential(x) for x in (a.lower, a.upper))
    lower = None if lower is None else lower * (1 - _SLACK)
    upper = None if upper is None else upper * (1 + _SLACK)
    return Domain(lower, upper, nullable=a.nullable, reach=FLOAT_REACH, grain=FLOAT_GRAIN)


_SLACK = Fraction(1, 10**9)


def _exponential(x: Fraction) -> Fraction:
    return Fraction(math.exp(max(min(float(x), LARGEST_EXPONENT), LEAST_EXPONENT)))


def root(a: Domain, op: str) -> Domain:
    """The interval of SQRT or LN, a little wider than exact; NULL where it is not defined."""
    least = Fraction(0) if op == "sqrt" else None
    defined = a.lower is not None and (a.lower >= 0 if op == "sqrt" else a.lower > 0)
    lower = _outward(op, a.lower, down=True) if defined and a.lower is not None else least
    above = a.upper is not None and (a.upper >= 0 if op == "sqrt" else a.upper > 0)
    upper = _outward(op, a.upper, down=False) if above and a.upper is not None else None
    return Domain(lower, upper, nullable=a.nullable or not defined, reach=a.reach + 800, grain=_SMALLEST_ROOT)


_SMALLEST_ROOT = Fraction(1, 10**150)
"""No nonzero root or logarithm of a double above 10^-290 is smaller: ln(1 + 2^-52) is about 10^-16."""


def _outward(op: str, value: Fraction, *, down: bool) -> Fraction:
    found = Fraction(math.sqrt(value) if op == "sqrt" else math.log(value))
    slack = abs(found) / 10**9 + Fraction(1, 10**9)
    moved = found - slack if down else found + slack
    return max(moved, Fraction(0)) if op == "sqrt" else moved


def widen(a: Domain, step: Fraction) -> Domain:
    """Both ends moved outward by a rounding step."""
    lower = None if a.lower is None else a.lower - step
    upper = None if a.upper is None else a.upper + step
    return Domain(lower, upper, nullable=a.nullable, reach=a.reach + step, grain=step / 2)


def rounded(a: Domain, op: str, step: Fraction, *, exact: bool) -> Domain:
    """ROUND, FLOOR, CEIL or TRUNC to multiples of a power of ten, its ends as they are computed: exactly or in doubles.

    A float at decimals is divided by a power of ten again, so its ends are moved outward instead.
    """
    widened = widen(a, step)
    if (step < 1 and not exact) or a.lower is None or a.upper is None:
        return widened
    sizes = (end / step if exact else _nearest(end / step) for end in (a.lower, a.upper))
    lower, upper = (_to_multiple(size, op) * step for size in sizes)
    return replace(widened, lower=lower, upper=upper)


def _to_multiple(size: Fraction, op: str) -> int:
    match op:
        case "floor":
            return math.floor(size)
        case "ceil":
            return math.ceil(size)
        case "trunc":
            return math.trunc(size)
        case _:
            half = math.floor(abs(size) + Fraction(1, 2))
            return half if size >= 0 else -half


def whole(a: Domain, op: str) -> Domain:
    """FLOOR, CEIL or TRUNC to whole numbers, or a division of whole numbers (TRUNC): they rise with the value.

    ROUND is only known to lie between the whole numbers outside: ties differ between types. So is an end just short of
    one, which several operations on floats may reach.
    """
    outward = integral(a)
    if op not in ("floor", "ceil", "trunc"):
        return outward
    lower = None if a.lower is None or outward.lower is None else Fraction(_whole(a.lower, op, outward.lower))
    upper = None if a.upper is None or outward.upper is None else Fraction(_whole(a.upper, op, outward.upper))
    return replace(outward, lower=lower, upper=upper)


def _whole(value: Fraction, op: str, outward: Fraction) -> Fraction | int:
    if abs(value - outward) < _SLACK:
        return outward
    return math.floor(value) if op == "floor" else math.ceil(value) if op == "ceil" else math.trunc(value)


def integral(a: Domain) -> Domain:
    """Ends rounded outward to whole numbers."""
    lower = None if a.lower is None else Fraction(a.lower.__floor__())
    upper = None if a.upper is None else Fraction(a.upper.__ceil__())
    return Domain(lower, upper, nullable=a.nullable, reach=a.reach + 1, grain=Fraction(1))
