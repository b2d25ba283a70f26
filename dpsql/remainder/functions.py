"""The `pg_` functions that translated text calls: what Postgres does and DuckDB does not.

Each is pure. A refusal is raised as Rejected; it crosses DuckDB as text and `decode_error` finds it again.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import duckdb

from dpsql.compiler.public import literals
from dpsql.errors import OUT_OF_RANGE, Rejected
from dpsql.remainder import numeric, text_forms
from dpsql.types import Kind

_MARK = re.compile(r"dpsql\[(\w{5})\](.*)", re.DOTALL)

MACROS = (
    """CREATE MACRO pg_float_div(a, b) AS
    list_transform([struct_pack(a := a, b := b)], lambda x: CASE WHEN x.b = 0 THEN
    error('dpsql[22012]division by zero') ELSE x.a / x.b END)[1]""",
)


def decode_error(text: str) -> Rejected | None:
    """The refusal inside a DuckDB error text, if one of our functions raised it."""
    found = _MARK.search(text)
    return None if found is None else Rejected(found[2].strip(), sqlstate=found[1])


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the functions known to an engine."""
    for macro in MACROS:
        connection.execute(macro)
    for name, (function, arguments, result) in FUNCTIONS.items():
        fixed = _ARITY[len(arguments)](_guarded(function))
        connection.create_function(name, fixed, [duckdb.type(a) for a in arguments], duckdb.type(result))


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Rejected as error:
            raise ValueError(f"dpsql[{error.sqlstate}]{error.message}") from None
        except OverflowError:
            raise ValueError(f"dpsql[{OUT_OF_RANGE}]value out of range: overflow") from None

    return call


_ARITY: dict[int, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    1: lambda f: lambda a: f(a),
    2: lambda f: lambda a, b: f(a, b),
    3: lambda f: lambda a, b, c: f(a, b, c),
    4: lambda f: lambda a, b, c, d: f(a, b, c, d),
}
"""DuckDB counts a function's parameters, so each arity needs a function of its own."""


def _numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numerics as one of their text forms; whole numbers pass as they are."""

    def call(*arguments: Any) -> Any:
        made = function(*(Decimal(a) if isinstance(a, str) else a for a in arguments))
        return numeric.show(made) if isinstance(made, Decimal) else made

    return call


def _lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a list of numerics; NULLs are left out, and a list of nothing but NULLs gives NULL."""

    def call(values: list[str | None]) -> str | None:
        known = [Decimal(v) for v in values if v is not None]
        made = function(known) if known else None
        return None if made is None else numeric.show(made)

    return call


def _square_root(value: float) -> float:
    if value < 0:
        raise Rejected("cannot take square root of a negative number", sqlstate="2201F")
    return math.sqrt(value)


def _logarithm(value: float) -> float:
    if value <= 0:
        what = "zero" if value == 0 else "a negative number"
        raise Rejected(f"cannot take logarithm of {what}", sqlstate="2201E")
    return math.log(value)


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        raise Rejected("zero raised to a negative power is undefined", sqlstate="2201F")
    if base < 0 and math.isfinite(exponent) and exponent != int(exponent):
        text = "a negative number raised to a non-integer power yields a complex result"
        raise Rejected(text, sqlstate="2201F")
    return math.pow(base, exponent)


def _timestamptz(text: str, zone: str) -> datetime:
    return literals.parse_timestamptz(text, ZoneInfo(zone))


def _date(text: str) -> date:
    return literals.parse_date(text)


_TEXT, _LIST = "VARCHAR", "VARCHAR[]"
Entry = tuple[Callable[..., Any], tuple[str, ...], str]

_NUMERIC: dict[str, Entry] = {
    "add": (numeric.EXACT.add, (_TEXT, _TEXT), _TEXT),
    "sub": (numeric.EXACT.subtract, (_TEXT, _TEXT), _TEXT),
    "mul": (numeric.EXACT.multiply, (_TEXT, _TEXT), _TEXT),
    "div": (numeric.divide, (_TEXT, _TEXT), _TEXT),
    "mod": (numeric.modulo, (_TEXT, _TEXT), _TEXT),
    "neg": (numeric.EXACT.minus, (_TEXT,), _TEXT),
    "abs": (Decimal.copy_abs, (_TEXT,), _TEXT),
    "ceil": (numeric.ceiling, (_TEXT,), _TEXT),
    "floor": (numeric.floor, (_TEXT,), _TEXT),
    "sign": (numeric.sign, (_TEXT,), _TEXT),
    "sqrt": (numeric.square_root, (_TEXT,), _TEXT),
    "plain": (numeric.plain, (_TEXT,), _TEXT),
    "key": (numeric.key, (_TEXT,), _TEXT),
    "round": (numeric.ROUND, (_TEXT, "INTEGER"), _TEXT),
    "trunc": (numeric.TRUNC, (_TEXT, "INTEGER"), _TEXT),
    "declare": (numeric.declare, (_TEXT, "INTEGER", "INTEGER"), _TEXT),
    "to_int8": (numeric.to_int8, (_TEXT,), "BIGINT"),
    "of_float8": (lambda value: numeric.of_float(value, 15), ("DOUBLE",), _TEXT),
    "of_float4": (lambda value: numeric.of_float(value, 6), ("FLOAT",), _TEXT),
    "of_text": (lambda text: literals.parse_numeric(str(text)), (_TEXT,), _TEXT),
}

_LISTS: dict[str, Callable[..., Any]] = {
    "sum": numeric.total,
    "var_samp": functools.partial(numeric.variance, sample=True, root=False),
    "var_pop": functools.partial(numeric.variance, sample=False, root=False),
    "stddev_samp": functools.partial(numeric.variance, sample=True, root=True),
    "stddev_pop": functools.partial(numeric.variance, sample=False, root=True),
    "greatest": lambda values: max(values, key=numeric.key),
    "least": lambda values: min(values, key=numeric.key),
}

FUNCTIONS: dict[str, Entry] = {
    **{f"pg_numeric_{n}": (_numbers(f), a, r) for n, (f, a, r) in _NUMERIC.items() if n != "of_text"},
    **{f"pg_numeric_{n}": (_lists(f), (_LIST,), _TEXT) for n, f in _LISTS.items()},
    "pg_numeric_of_text": (lambda text: numeric.show(literals.parse_numeric(text)), (_TEXT,), _TEXT),
    "pg_sqrt": (_square_root, ("DOUBLE",), "DOUBLE"),
    "pg_cbrt": (math.cbrt, ("DOUBLE",), "DOUBLE"),
    "pg_exp": (math.exp, ("DOUBLE",), "DOUBLE"),
    "pg_ln": (_logarithm, ("DOUBLE",), "DOUBLE"),
    "pg_power": (_power, ("DOUBLE", "DOUBLE"), "DOUBLE"),
    "pg_int2_of_text": (lambda text: literals.parse_integer(text, Kind.INT2), (_TEXT,), "BIGINT"),
    "pg_int4_of_text": (lambda text: literals.parse_integer(text, Kind.INT4), (_TEXT,), "BIGINT"),
    "pg_int8_of_text": (lambda text: literals.parse_integer(text, Kind.INT8), (_TEXT,), "BIGINT"),
    "pg_float8_of_text": (literals.parse_float, (_TEXT,), "DOUBLE"),
    "pg_bool_of_text": (literals.parse_bool, (_TEXT,), "BOOLEAN"),
    "pg_date_of_text": (_date, (_TEXT,), "DATE"),
    "pg_timestamp_of_text": (literals.parse_timestamp, (_TEXT,), "TIMESTAMP"),
    "pg_timestamptz_of_text": (_timestamptz, (_TEXT, _TEXT), "TIMESTAMP"),
    "pg_local": (text_forms.local, ("TIMESTAMP", _TEXT), "TIMESTAMP"),
    "pg_utc": (text_forms.utc, ("TIMESTAMP", _TEXT), "TIMESTAMP"),
    "pg_text_of_float8": (text_forms.float8, ("DOUBLE",), _TEXT),
    "pg_text_of_float4": (text_forms.float4, ("FLOAT",), _TEXT),
    "pg_text_of_timestamp": (text_forms.timestamp, ("TIMESTAMP",), _TEXT),
    "pg_text_of_timestamptz": (text_forms.timestamptz, ("TIMESTAMP", _TEXT), _TEXT),
}
