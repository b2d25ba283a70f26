"""Postgres's numeric on text: exact, with Postgres's scale rules. Each function takes and gives the printed form.

The rules are those of Postgres's numeric.c: `select_div_scale`, `sqrt_var`, `numeric_stddev_internal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext

from dpsql.errors import DIVISION_BY_ZERO, OUT_OF_RANGE, Rejected

EXACT = Context(prec=2000, Emax=99999, Emin=-99999, traps=[])
_SIGNIFICANT = 16
_GROUP = 4
"""Decimal digits in one of numeric.c's base-10000 digits; weights count those."""


def show(value: Decimal) -> str:
    """As Postgres prints it: no exponent, no negative zero."""
    if not value.is_finite():
        return "NaN" if value.is_nan() else ("-Infinity" if value < 0 else "Infinity")
    return f"{value if value else value.copy_abs():f}"


def _parts(value: Decimal) -> tuple[int, int, str]:
    """A finite value as an integer over a power of ten: the integer, the scale, the integer's digits."""
    text = f"{value:f}"
    whole, _, fraction = text.partition(".")
    digits = whole + fraction
    return int(digits), len(fraction), digits.lstrip("-0")


def scale_of(value: Decimal) -> int:
    return len(f"{value:f}".partition(".")[2]) if value.is_finite() else 0


def rescale(value: Decimal, scale: int, rounding: str = ROUND_HALF_UP) -> Decimal:
    if not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=EXACT)


def weight(value: Decimal) -> tuple[int, int]:
    """Weight and value of the first base-10000 digit; (0, 0) of zero."""
    _, scale, digits = _parts(value)
    return _weight(scale, digits)


def _weight(scale: int, digits: str) -> tuple[int, int]:
    if not digits:
        return 0, 0
    group, place = divmod(len(digits) - 1 - scale, _GROUP)
    return group, int(digits[: place + 1].ljust(place + 1, "0"))


def division_scale(left: Decimal, right: Decimal) -> int:
    """numeric.c, select_div_scale."""
    (_, s1, digits1), (_, s2, digits2) = _parts(left), _parts(right)
    return _division_scale(s1, digits1, s2, digits2)


def _division_scale(s1: int, digits1: str, s2: int, digits2: str) -> int:
    (w1, d1), (w2, d2) = _weight(s1, digits1), _weight(s2, digits2)
    wanted = _SIGNIFICANT - (w1 - w2 - (1 if d1 <= d2 else 0)) * _GROUP
    return min(max(wanted, s1, s2, 0), 1000)


def divide(left: Decimal, right: Decimal) -> Decimal:
    if not (left.is_finite() and right.is_finite()):
        return EXACT.divide(left, right)
    (top, s1, digits1), (bottom, s2, digits2) = _parts(left), _parts(right)
    if not bottom:
        raise Rejected("division by zero", sqlstate=DIVISION_BY_ZERO)
    return _quotient(top, s1, bottom, s2, _division_scale(s1, digits1, s2, digits2))


def quotient(left: Decimal, right: Decimal, scale: int) -> Decimal:
    """Rounded half away from zero to `scale`."""
    (top, s1, _), (bottom, s2, _) = _parts(left), _parts(right)
    return _quotient(top, s1, bottom, s2, scale)


def _quotient(top: int, s1: int, bottom: int, s2: int, scale: int) -> Decimal:
    shift = scale + s2 - s1
    top, bottom = (top * 10**shift, bottom) if shift >= 0 else (top, bottom * 10**-shift)
    whole = (2 * abs(top) + abs(bottom)) // (2 * abs(bottom))
    return Decimal(-whole if (top < 0) != (bottom < 0) else whole).scaleb(-scale, context=EXACT)


def modulo(left: Decimal, right: Decimal) -> Decimal:
    if right.is_finite() and not right:
        raise Rejected("division by zero", sqlstate=DIVISION_BY_ZERO)
    made = EXACT.remainder(left, right)
    return rescale(made, max(scale_of(left), scale_of(right)))


def square_root(value: Decimal, scale: int | None = None) -> Decimal:
    if value < 0:
        raise Rejected("cannot take square root of a negative number", sqlstate="2201F")
    if not value.is_finite():
        return value
    if scale is None:
        group = weight(value)[0]
        whole = group * _GROUP // 2 + 1 if group >= 0 else 1 - (1 - group * _GROUP) // 2
        scale = min(max(_SIGNIFICANT - whole, scale_of(value), 0), 1000)
    return rescale(EXACT.sqrt(value), scale)


def to_int8(value: Decimal) -> int:
    if not value.is_finite():
        raise Rejected(f"cannot convert {show(value)} to bigint", sqlstate="0A000")
    made = int(rescale(value, 0))
    if not -(2**63) <= made < 2**63:
        raise Rejected("bigint out of range", sqlstate=OUT_OF_RANGE)
    return made


def declare(value: Decimal, precision: int, scale: int) -> Decimal:
    """numeric(precision, scale) of a value."""
    made = rescale(value, scale)
    if made.is_infinite() or (made.is_finite() and made and made.adjusted() >= precision - scale):
        detail = f"A field with precision {precision}, scale {scale} must round to an absolute value less than "
        limit = f"10^{precision - scale}" if precision > scale else "1"
        raise Rejected("numeric field overflow", sqlstate=OUT_OF_RANGE, detail=detail + limit + ".")
    return made


def key(value: Decimal) -> str:
    """Text that sorts as the values do, equal for equal values; NaN last, as in Postgres."""
    if not value.is_finite():
        return "3" if value.is_nan() else ("0" if value < 0 else "2~")
    if not value:
        return "1"
    whole, scale, digits = _parts(value)
    exponent, digits = len(digits) - scale, digits.rstrip("0")
    return f"2{50000 + exponent:06d}{digits}" if whole > 0 else f"0{50000 - exponent:06d}{digits.translate(_FLIPPED)}~"


_FLIPPED = str.maketrans("0123456789", "9876543210")


def plain(value: Decimal) -> Decimal:
    """Without trailing zeros after the point."""
    if not value.is_finite() or not scale_of(value):
        return value
    made = value.normalize(EXACT)
    return rescale(made, max(0, scale_of(made)))


def total(values: Sequence[Decimal]) -> Decimal:
    made = Decimal(0)
    for value in values:
        made = EXACT.add(made, value)
    return made


def variance(values: Sequence[Decimal], sample: bool, root: bool) -> Decimal | None:
    """numeric.c, numeric_stddev_internal."""
    count = len(values)
    if count <= (1 if sample else 0):
        return None
    if any(not v.is_finite() for v in values):
        return Decimal("NaN")
    first, second = total(values), total([EXACT.multiply(v, v) for v in values])
    n = Decimal(count)
    top = EXACT.subtract(EXACT.multiply(n, second), EXACT.multiply(first, first))
    if top <= 0:
        return Decimal(0)
    bottom = EXACT.multiply(n, n - 1 if sample else n)
    scale = division_scale(top, bottom)
    made = quotient(top, bottom, scale)
    return square_root(made, scale) if root else made


Unary = Callable[[Decimal], Decimal]
Binary = Callable[[Decimal, Decimal], Decimal]


def rounded(rounding: str) -> Callable[[Decimal, int], Decimal]:
    """round and trunc of a numeric to a number of places, which may be negative."""

    def make(value: Decimal, places: int) -> Decimal:
        places = max(-1000, min(1000, places))
        made = rescale(value, places, rounding)
        return made if places >= 0 or not made.is_finite() else rescale(made, 0)

    return make


ROUND = rounded(ROUND_HALF_UP)
TRUNC = rounded(ROUND_DOWN)


def ceiling(value: Decimal) -> Decimal:
    return rescale(value, 0, ROUND_CEILING)


def floor(value: Decimal) -> Decimal:
    return rescale(value, 0, ROUND_FLOOR)


def sign(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    return Decimal((value > 0) - (value < 0))


def of_float(value: float, digits: int) -> Decimal:
    """float to numeric: 15 significant digits of float8, 6 of float4, as Postgres's printf("%.*g")."""
    if value != value or value in (float("inf"), float("-inf")):
        return Decimal(str(value))
    with localcontext(EXACT):
        made = Decimal(f"{value:.{digits}g}")
        return made if int(made.as_tuple().exponent) <= 0 else made.quantize(Decimal(1))


_NEAR_ONE = (Decimal("0.9"), Decimal("1.1"))


def _precise(digits: int) -> Context:
    """For logarithms and powers, which are rounded afterwards: some digits more than will be shown."""
    return Context(prec=max(digits, 0) + 12, Emax=99999, Emin=-99999, traps=[])


def _log_weight(value: Decimal) -> int:
    """numeric.c, estimate_ln_dweight."""
    if value <= 0:
        return 0
    if _NEAR_ONE[0] <= value <= _NEAR_ONE[1]:
        group, digit = weight(EXACT.subtract(value, Decimal(1)))
        return group * _GROUP + int(math.log10(digit)) if digit else 0
    return int(math.log10(abs(float(_precise(17).ln(value)))))


def _scale(wanted: int, *values: Decimal) -> int:
    return min(max(wanted, *(scale_of(v) for v in values), 0), 1000)


def _check_logarithm(value: Decimal) -> None:
    if value <= 0:
        what = "zero" if value == 0 else "a negative number"
        raise Rejected(f"cannot take logarithm of {what}", sqlstate="2201E")


def natural_log(value: Decimal) -> Decimal:
    if value.is_nan():
        return value
    _check_logarithm(value)
    if value.is_infinite():
        return value
    expected = _log_weight(value)
    scale = _scale(_SIGNIFICANT - expected, value)
    return rescale(_precise(scale + expected).ln(value), scale)


def logarithm(base: Decimal, value: Decimal) -> Decimal:
    if base.is_nan() or value.is_nan():
        return Decimal("NaN")
    _check_logarithm(base)
    _check_logarithm(value)
    if base == 1:
        raise Rejected("division by zero", sqlstate=DIVISION_BY_ZERO)
    expected = _log_weight(value) - _log_weight(base)
    scale = _scale(_SIGNIFICANT - expected, base, value)
    context = _precise(scale + abs(expected) + 8)
    return rescale(context.divide(context.ln(value), context.ln(base)), scale)


def exponential(value: Decimal) -> Decimal:
    if not value.is_finite():
        return Decimal(0) if value < 0 else value
    expected = float(value) * 0.434294481903252
    _check_size(expected)
    scale = _scale(_SIGNIFICANT - int(expected), value)
    return rescale(_precise(scale + int(expected)).exp(value), scale)


def _check_size(digits: float) -> None:
    """Results are kept below 10^1000: enough for any use, and cheap."""
    if digits > 1000:
        raise Rejected("value overflows numeric format", sqlstate=OUT_OF_RANGE)


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """numeric.c, power_var and power_var_int."""
    if not (base.is_finite() and exponent.is_finite()):
        return Decimal("NaN") if base.is_nan() or exponent.is_nan() else EXACT.power(base, exponent)
    whole = exponent == exponent.to_integral_value()
    if base == 0 and exponent < 0:
        raise Rejected("zero raised to a negative power is undefined", sqlstate="2201F")
    if base < 0 and not whole:
        text = "a negative number raised to a non-integer power yields a complex result"
        raise Rejected(text, sqlstate="2201F")
    if base == 0:
        return rescale(Decimal(0 if exponent else 1), _SIGNIFICANT)
    expected = float(exponent) * (math.log10(abs(base.scaleb(-base.adjusted()))) + base.adjusted())
    _check_size(expected)
    scale = _scale(_SIGNIFICANT - int(expected), base, exponent)
    context = _precise(scale + int(expected) + max(exponent.adjusted(), 0))
    if whole:
        return rescale(context.power(base, exponent), scale)
    return rescale(context.exp(context.multiply(context.ln(base), exponent)), scale)


def whole_quotient(left: Decimal, right: Decimal) -> Decimal:
    """div(): the quotient, truncated."""
    if right.is_finite() and not right:
        raise Rejected("division by zero", sqlstate=DIVISION_BY_ZERO)
    return rescale(EXACT.divide_int(left, right), 0) if left.is_finite() and right.is_finite() else Decimal("NaN")


def bucket(value: Decimal, low: Decimal, high: Decimal, count: int) -> int:
    """width_bucket of numerics, exactly."""
    if count <= 0:
        raise Rejected("count must be greater than zero", sqlstate="2201G")
    if low == high:
        raise Rejected("lower bound cannot equal upper bound", sqlstate="2201G")
    if (value < low) if low < high else (value > low):
        return 0
    if (value >= high) if low < high else (value <= high):
        return count + 1
    top, bottom = EXACT.subtract(value, low), EXACT.subtract(high, low)
    return int(EXACT.divide_int(EXACT.multiply(top, Decimal(count)), bottom)) + 1
