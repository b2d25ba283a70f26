"""Ordered axes: positions of numbers and times, and where a rising function of a column reaches a value.

A function that never falls is at least v from one position of its column on; so each interval of its values is one
interval of the column's. Decides for which functions that position is known. All exact: integers and fractions.

A database computes in doubles where a value or a constant is no whole number. So arithmetic is followed through whole
numbers only, quotients only to whole numbers (none that is not one comes near enough to be rounded to it), and whole
numbers are not compared with what a double takes for one. Floats and decimals of many or any digits are compared as
they are, but no function of them is followed: in these NaN is NULL, huge numbers are cut and tiny ones are 0.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from math import ceil, floor
from typing import Final

from dpsql.compiler.algebra import Call, Col, Expr, Lit
from dpsql.compiler.calendar import next_value, truncate_value
from dpsql.compiler.domains import moment, number
from dpsql.replay.sets import Position, Set, union
from dpsql.types import Kind, Value

LEAST: Final = -(2**100)
MOST: Final = 2**100
"""Beyond all that a column can have."""

_EPOCH: Final = datetime(1970, 1, 1)
_MICRO: Final = datetime.resolution
_DAY: Final = 86_400_000_000


def position(value: Value | Fraction) -> Position | None:
    if isinstance(value, Fraction):
        return value
    at = moment(value)
    if at is not None:
        return (at - _EPOCH) // _MICRO
    exact = number(value)
    return int(exact) if exact is not None and exact.denominator == 1 else exact


def after(subject: Expr, at: Position) -> Position | None:
    """The least position above `at` that a value of this type can have; None where there is none."""
    kind = subject.type.kind
    if kind is Kind.DATE:
        return (floor(at) // _DAY + 1) * _DAY
    if subject.type.is_time:
        return floor(at) + 1
    return floor(at) + 1 if subject.type.is_integer or _is_whole(subject) else None


def _is_whole(subject: Expr) -> bool:
    if not isinstance(subject, Call):
        return False
    inner = varying(subject) if subject.op in ("to_float", "to_numeric") else None
    return subject.op in ("floor", "extract", "idiv") or (
        inner is not None and (inner.type.is_integer or _is_whole(inner))
    )


def is_exact(col: Col) -> bool:
    """Whether functions of it rise as they do on paper: decimals of up to 15 digits are told apart as doubles."""
    digits = col.type.precision
    return (
        not col.type.is_number or col.type.is_integer or (not col.type.is_float and digits is not None and digits < 16)
    )


def is_told_apart(subject: Expr, at: Position) -> bool:
    """Whether a comparison with the constant means it exactly, where the subject is a whole number."""
    if not (subject.type.is_integer or _is_whole(subject)):
        return True
    return -(2**53) < at < 2**53 and (type(at) is int or not float(at).is_integer())


def grid(col: Col, at: Position) -> Position:
    """The least position at or above `at` that the column can have."""
    if col.type.kind is Kind.DATE:
        return -(-ceil(at) // _DAY) * _DAY
    return ceil(at) if col.type.is_integer or col.type.is_time else at


def between(subject: Expr, low: Position, high: Position) -> Set | None:
    """Where the subject's value lies in [low, high), on its column's axis; None where that is not known."""
    start, end = _threshold(subject, low), _threshold(subject, high)
    return None if start is None or end is None else union(((start, end),))


def _threshold(subject: Expr, at: Position) -> Position | None:
    """The least position of the column where the subject's value is at least `at`."""
    while isinstance(subject, Call) and LEAST < at < MOST:
        below, inner = at_least(subject, at), varying(subject)
        if below is None or inner is None:
            return None
        subject, at = inner, below
    if at <= LEAST or at >= MOST or not isinstance(subject, Col):
        return at
    return grid(subject, at)


def varying(call: Call) -> Expr | None:
    found = [arg for arg in call.args if not isinstance(arg, Lit)]
    return found[0] if len(found) == 1 else None


def at_least(call: Call, at: Position) -> Position | None:
    """v with: the call's value is at least `at` just where its argument is at least v. None: it does not rise so."""
    inner = varying(call)
    if inner is None:
        return None
    constants = [arg.value for arg in call.args if isinstance(arg, Lit)]
    match call.op:
        case "date_trunc" if isinstance(call.args[0], Lit) and inner.type.kind in (Kind.DATE, Kind.TIMESTAMP):
            return _truncated(str(constants[0]), at)
        case "to_date" if inner.type.kind is Kind.TIMESTAMP:
            return _truncated("day", at)
        case "to_timestamp" if inner.type.kind is Kind.DATE and call.type.kind is Kind.TIMESTAMP:
            return at
        case "extract" if constants[:1] == ["year"] and inner.type.kind in (Kind.DATE, Kind.TIMESTAMP):
            return position(datetime(ceil(at), 1, 1)) if 1 <= ceil(at) <= 9990 else None
        case "floor" if constants in ([0], []):
            return ceil(at)
        case "to_float" | "to_numeric":
            return at
        case "add" | "sub" | "mul" | "div" | "idiv":
            return _arithmetic(call, at, position(constants[0]))
    return None


def _arithmetic(call: Call, at: Position, constant: Position | None) -> Position | None:
    first = isinstance(call.args[0], Lit)
    inner = varying(call)
    if not isinstance(constant, int) or inner is None or not (inner.type.is_integer or _is_whole(inner)):
        return None
    match call.op:
        case "add":
            return at - constant
        case "sub" if not first:
            return at + constant
        case "mul" if constant > 0:
            return Fraction(at) / constant
        case "div" if constant > 0 and not first and type(at) is int:
            return at * constant
        case "idiv" if constant > 0 and not first:  # towards zero, of whole numbers
            whole = ceil(at)
            return whole * constant if whole > 0 else (whole - 1) * constant + 1
    return None


def _truncated(unit: str, at: Position) -> Position | None:
    """Truncation is at least `at` from the first whole unit on that is not before it."""
    try:
        exact = _EPOCH + ceil(at) * _MICRO
        start = truncate_value(unit, exact)
        return position(start if start == exact else next_value(unit, start))
    except (OverflowError, ValueError):
        return None
