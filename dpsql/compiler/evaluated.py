"""The exact value of an expression for one row of values, as the emitted SQL computes it.

Decides what is known of an expression beyond its bounds: `groups` and `keys` ask which values it can take at all. It
must give the backend's own value or none: what no arithmetic here is sure of raises `Unknown`, never a guess. Whole
numbers and decimals are exact; binary floats are computed as IEEE 754 says, like in the backends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, floor, isfinite, trunc

from dpsql.compiler.algebra import Call, Case, Col, Exists, Expr, Lit, Scalar
from dpsql.compiler.calendar import binned, day_of, from_epoch, moved, part_value, truncate_value
from dpsql.compiler.domains import moment, number, single
from dpsql.compiler.exact import scale_of, whole_quotient
from dpsql.compiler.formats import pieces, text_of
from dpsql.types import Kind, SqlType, Value

Known = Value | Fraction
"""Numbers are Fractions; dates and timestamps are timestamps."""

Row = Mapping[str, Known]


class Unknown(Exception):
    """No value is known for sure."""


def comparable(value: Known) -> Known:
    """The value in the form that equal ones share."""
    if isinstance(value, Fraction):
        return value
    exact = number(value)
    return exact if exact is not None else moment(value) or value


def value_of(expr: Expr, row: Row) -> Known:
    """Raises Unknown where the row, or this module, does not tell."""
    match expr:
        case Col(name=name):
            if name not in row:
                raise Unknown
            return row[name]
        case Lit(value=value):
            return comparable(value)
        case Case(branches=branches, default=default):
            for condition, result in branches:
                if value_of(condition, row) is True:
                    return value_of(result, row)
            return None if default is None else value_of(default, row)
        case Scalar() | Exists():
            raise Unknown
        case Call(op="and" | "or"):
            return _connected(expr, row)
        case Call(op="coalesce", args=args):
            return next((v for v in (value_of(a, row) for a in args) if v is not None), None)
        case Call():
            return _called(expr, tuple(value_of(a, row) for a in expr.args))


def _connected(call: Call, row: Row) -> bool | None:
    decisive = call.op == "or"
    found = [value_of(a, row) for a in call.args]
    return decisive if decisive in found else None if None in found else not decisive


def _called(call: Call, args: tuple[Known, ...]) -> Known:
    match call.op:
        case "is_null":
            return args[0] is None
        case "is_true" | "is_false":
            return args[0] is (call.op == "is_true")
        case "distinct":
            return args[0] != args[1]
        case "nullif":
            return None if args[0] is not None and args[0] == args[1] else args[0]
        case "in":
            return None if args[0] is None else True if args[0] in args[1:] else None if None in args else False
        case "least" | "greatest":
            return _extreme(call.op, [a for a in args if a is not None])
        case "row":
            raise Unknown
        case _ if None in args:
            return None
        case "not":
            return not args[0]
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            return _compared(call, args[0], args[1])
        case _ if all(isinstance(a, Fraction) for a in args) and call.op in _NUMERIC:
            return _number(call, [a for a in args if isinstance(a, Fraction)])
        case _:
            return _other(call, args)


def _extreme(op: str, args: Sequence[Known]) -> Known:
    if not all(type(a) is type(args[0]) and isinstance(a, Fraction | datetime) for a in args):
        raise Unknown
    return (min if op == "least" else max)(args, default=None)  # type: ignore[type-var]


def _compared(call: Call, a: Known, b: Known) -> bool:
    if type(a) is not type(b):
        raise Unknown
    if call.op in ("eq", "ne"):
        return (a == b) is (call.op == "eq")
    if not isinstance(a, Fraction | datetime | str):
        raise Unknown
    if call.op in ("lt", "le"):
        return a < b or (call.op == "le" and a == b)  # type: ignore[operator]
    return a > b or (call.op == "ge" and a == b)  # type: ignore[operator]


# Numbers ------------------------------------------------------------------------------------------------------------

_NUMERIC = (
    "add", "sub", "mul", "div", "idiv", "mod", "neg", "abs", "sign", "floor", "ceil", "trunc", "round", "to_int",
    "to_float", "to_numeric",
)  # fmt: skip


def _number(call: Call, args: list[Fraction]) -> Fraction | None:
    a, b = (*args, Fraction(0))[:2]
    inexact = call.type.is_float or any(arg.type.is_float for arg in call.args)
    if call.type.kind is Kind.NUMERIC and (inexact or scale_of(call) is None):
        return _numeric_in_floats(call, a, b)
    match call.op:
        case "div" | "idiv" | "mod" if not b:
            return None
        case "add" | "sub" | "mul" | "div" if inexact:
            return _as_float(call.op, a, b)
        case "add" | "sub" | "mul" | "div":
            return _EXACT[call.op](a, b)
        case "idiv":
            return Fraction(trunc(a / b))
        case "mod":
            return a - b * trunc(a / b)
        case "neg" | "abs":
            return -a if call.op == "neg" or a < 0 else a
        case "sign":
            return Fraction((a > 0) - (a < 0))
        case "to_int":
            return _rounded("round", a, Fraction(1), ties=not inexact)
        case "to_float":
            return single(a) if call.type.kind is Kind.FLOAT4 else Fraction(float(a))
        case "to_numeric":
            return a
        case "floor" | "ceil" | "trunc" | "round":
            if inexact and b:
                raise Unknown
            return _rounded(call.op, a, Fraction(10) ** -int(b), ties=not inexact)
        case _:
            raise Unknown


def _numeric_in_floats(call: Call, a: Fraction, b: Fraction) -> Fraction | None:
    """Decimals that backends compute in floats; a float's leading digits are not known here."""
    match call.op:
        case "div" if whole_quotient(*call.args) is not None:
            return Fraction(float(a / b)) if b else None
        case "add" | "sub" | "mul":
            return _as_float(call.op, a, b)
        case "floor" | "ceil" | "trunc" if not b:
            return _rounded(call.op, a, Fraction(1), ties=False)
        case _:
            raise Unknown


_EXACT: Mapping[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
}  # fmt: skip


def _as_float(op: str, a: Fraction, b: Fraction) -> Fraction:
    """Binary floats: each operation rounds to the nearest."""
    x, y = float(a), float(b)
    try:
        made = {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y if y else 0.0}[op]
    except OverflowError:
        raise Unknown from None
    if not isfinite(made):
        raise Unknown
    return Fraction(made)


def _rounded(op: str, a: Fraction, step: Fraction, *, ties: bool) -> Fraction:
    """To a multiple of `step`. Without `ties`, what lies between two of them is not known, as of floats."""
    size = a / step
    match op:
        case "floor":
            return floor(size) * step
        case "ceil":
            return ceil(size) * step
        case "trunc":
            return trunc(size) * step
        case _:
            if not ties and size.denominator == 2:
                raise Unknown
            half = floor(abs(size) + Fraction(1, 2))
            return (half if size >= 0 else -half) * step


# Dates and texts ----------------------------------------------------------------------------------------------------


def _other(call: Call, args: tuple[Known, ...]) -> Known:
    match call.op, args:
        case "date_trunc", (str() as unit, datetime() as at):
            return truncate_value(unit, at)
        case "extract", (str() as part, datetime() as at):
            return comparable(part_value(part, at))
        case "date_bin", (Fraction() as width, datetime() as at, datetime() as origin):
            return binned(at, origin, int(width))
        case "add_interval", (datetime() as at, Fraction() as months, Fraction() as days, Fraction() as micros):
            return comparable(moved(at, (int(months), int(days), int(micros))))
        case "date_diff", (datetime() as a, datetime() as b):
            return Fraction((a.date() - b.date()) // timedelta(days=1))
        case "from_epoch", (Fraction() as seconds,):
            return from_epoch(seconds)
        case "to_date", (datetime() as at,):
            return comparable(day_of(at))
        case "to_timestamp", (datetime() as at,):
            return at
        case "to_char", (datetime() as at, str() as pattern):
            return _formatted(at, pattern)
        case "bool_to_int", (bool() as flag,):
            return Fraction(flag)
        case "to_text", (value,):
            return _text(value, call.args[0].type)
        case _:
            return _of_texts(call, args)


def _formatted(at: datetime, pattern: str) -> str:
    parts = pieces(pattern)
    if parts is None:
        raise Unknown
    return text_of(at, parts)


def _text(value: Known, type_: SqlType) -> str:
    if isinstance(value, Fraction) and type_.is_integer:
        return str(int(value))
    if isinstance(value, datetime) and type_.kind is Kind.DATE:
        return f"{value:%Y-%m-%d}"
    if isinstance(value, str):
        return value
    raise Unknown


def _of_texts(call: Call, args: tuple[Known, ...]) -> Known:
    """Functions that give the same characters everywhere, of texts that no backend cuts."""
    if any(isinstance(a, str) and len(a) > _LONGEST for a in args):
        raise Unknown
    match call.op, args:
        case "concat", _ if all(isinstance(a, str) for a in args):
            return "".join(str(a) for a in args)
        case "lower" | "upper", (str() as word,) if word.isascii():
            return word.lower() if call.op == "lower" else word.upper()
        case "length", (str() as word,):
            return Fraction(len(word))
        case "left" | "right", (str() as word, Fraction() as count):
            return word[: int(count)] if call.op == "left" else word[-int(count) :] if count else ""
        case "lpad" | "rpad", (str() as word, Fraction() as width, str() as fill):
            return _padded(word, int(width), fill, left=call.op == "lpad")
        case "substring", (str() as word, Fraction() as start, *rest):
            end = max(int(start) + int(rest[0]) - 1, 0) if rest and isinstance(rest[0], Fraction) else None
            return word[max(int(start) - 1, 0) : end]
        case "replace", (str() as word, str() as old, str() as new):
            return word.replace(old, new)
        case "split_part", (str() as word, str() as mark, Fraction() as index):
            return "".join(word.split(mark)[int(index) - 1 : int(index)])
        case _:
            raise Unknown


_LONGEST = 1000


def _padded(word: str, width: int, fill: str, *, left: bool) -> str:
    missing = (fill * width)[: max(width - len(word), 0)] if fill else ""
    return (missing + word if left and len(word) < width else word + missing)[:width]
