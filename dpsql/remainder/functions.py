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
from duckdb.func import FunctionNullHandling

from dpsql.compiler.public import literals
from dpsql.errors import OUT_OF_RANGE, Rejected
from dpsql.pgwire.times import parse_interval
from dpsql.remainder import dates, numeric, text, text_forms, to_char
from dpsql.remainder.forms import interval_parts
from dpsql.types import Interval, Kind

_MARK = re.compile(r"dpsql\[(\w{5})\](.*)", re.DOTALL)

MACROS = (
    """pg_float_div(a, b) AS list_transform([{'a': a, 'b': b}], lambda x:
    CASE WHEN x['b'] = 0 THEN CAST('dpsql[22012]division by zero' AS TINYINT) ELSE x['a'] / x['b'] END)[1]""",
    """pg_nonzero(b) AS list_transform([b], lambda x:
    CASE WHEN x = 0 THEN CAST('dpsql[22012]division by zero' AS TINYINT) ELSE x END)[1]""",
    """pg_nullif(a, b) AS list_transform([{'a': a, 'b': b}], lambda x:
    CASE WHEN x['a'] = x['b'] THEN NULL ELSE x['a'] END)[1]""",
    f"pg_text_of_interval(i) AS list_transform([i], lambda x: pg_show_interval({interval_parts('x')}))[1]",
    """pg_interval_of_text(t) AS list_transform([pg_read_interval(t)], lambda x:
    to_months(CAST(x[1] AS INTEGER)) + to_days(CAST(x[2] AS INTEGER)) + to_microseconds(x[3]))[1]""",
    """pg_epoch_us(i) AS list_transform([i], lambda x:
    (extract(year FROM x) * 31557600 + extract(month FROM x) * 2592000 + extract(day FROM x) * 86400
    + extract(hour FROM x) * 3600 + extract(minute FROM x) * 60) * 1000000 + extract(microsecond FROM x))[1]""",
)
"""Each uses a parameter once: DuckDB copies the argument's text, and nested calls must not grow exponentially.

A struct is written {'a': a} and read x['a']: HAVING takes the names in struct_pack(a := a) and x.a for columns.
An error is a cast that fails, not error(): that is volatile, and keys of windows may not be.
"""


def decode_error(text: str) -> Rejected | None:
    """The refusal inside a DuckDB error text, if one of our functions raised it."""
    found = _MARK.search(text)
    if found is None:
        return None
    by_cast = text[: found.start()].endswith("string '")
    words = found[2].partition("' to ")[0] if by_cast else found[2]
    return Rejected(words.strip(), sqlstate=found[1])


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the functions known to an engine."""
    for table, nulls in ((FUNCTIONS, FunctionNullHandling.DEFAULT), (_NULLABLE, FunctionNullHandling.SPECIAL)):
        for name, (function, arguments, result) in table.items():
            fixed = _ARITY[len(arguments)](_guarded(function, _dated(arguments)))
            connection.create_function(name, fixed, [*arguments], result, null_handling=nulls)
    connection.create_function("pg_now", dates.now, [], "TIMESTAMP", side_effects=True)
    for macro in MACROS:
        connection.execute(f"CREATE MACRO {macro}")


def _dated(arguments: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(i for i, kind in enumerate(arguments) if kind in ("DATE", "TIMESTAMP"))


def _guarded(function: Callable[..., Any], dated: tuple[int, ...]) -> Callable[..., Any]:
    """`dated` arguments arrive as text where Python's calendar does not hold them."""

    def call(*arguments: Any) -> Any:
        try:
            if any(isinstance(arguments[i], str) for i in dated):
                raise Rejected("dates outside the years 1 to 9999 cannot be used here", sqlstate="22008")
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

    def call(values: list[str | None] | None) -> str | None:
        known = [Decimal(v) for v in values or () if v is not None]
        made = function(known) if known else None
        return None if made is None else numeric.show(made)

    return call


def _interval_of_text(text: str) -> list[int]:
    made = parse_interval(text)
    return [made.months, made.days, made.micros]


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


def _common_logarithm(value: float) -> float:
    _logarithm(value)
    return math.log10(value)


def _inverse(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        if not -1 <= value <= 1:
            raise Rejected("input is out of range", sqlstate=OUT_OF_RANGE)
        return function(value)

    return call


def _bucket(value: float, low: float, high: float, count: int) -> int:
    if not all(map(math.isfinite, (low, high))) or value != value:
        raise Rejected("lower and upper bounds must be finite", sqlstate="2201G")
    return numeric.bucket(Decimal(value), Decimal(low), Decimal(high), count)


def _nullif(left: str | None, right: str | None) -> str | None:
    same = None not in (left, right) and numeric.key(Decimal(str(left))) == numeric.key(Decimal(str(right)))
    return None if same else left


def _unless_null(function: Callable[..., Any], required: int) -> Callable[..., Any]:
    """NULL if one of the first `required` arguments is."""

    def call(*arguments: Any) -> Any:
        return None if None in arguments[:required] else function(*arguments)

    return call


_TEXT, _LIST = "VARCHAR", "VARCHAR[]"
Entry = tuple[Callable[..., Any], tuple[str, ...], str]

_NUMERIC: dict[str, Entry] = {
    "exp": (numeric.exponential, (_TEXT,), _TEXT),
    "ln": (numeric.natural_log, (_TEXT,), _TEXT),
    "log": (numeric.logarithm, (_TEXT, _TEXT), _TEXT),
    "power": (numeric.power, (_TEXT, _TEXT), _TEXT),
    "whole": (numeric.whole_quotient, (_TEXT, _TEXT), _TEXT),
    "width_bucket": (numeric.bucket, (_TEXT, _TEXT, _TEXT, "INTEGER"), "INTEGER"),
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

_TEXTS: dict[str, Entry] = {
    "initcap": (text.capitals, (_TEXT,), _TEXT),
    "btrim": (lambda value, characters: value.strip(characters), (_TEXT, _TEXT), _TEXT),
    "ltrim": (lambda value, characters: value.lstrip(characters), (_TEXT, _TEXT), _TEXT),
    "rtrim": (lambda value, characters: value.rstrip(characters), (_TEXT, _TEXT), _TEXT),
    "lpad": (text.pad_left, (_TEXT, "INTEGER", _TEXT), _TEXT),
    "rpad": (text.pad_right, (_TEXT, "INTEGER", _TEXT), _TEXT),
    "repeat": (text.repeat, (_TEXT, "INTEGER"), _TEXT),
    "reverse": (lambda value: value[::-1], (_TEXT,), _TEXT),
    "replace": (text.replace, (_TEXT, _TEXT, _TEXT), _TEXT),
    "translate": (text.translate, (_TEXT, _TEXT, _TEXT), _TEXT),
    "split_part": (text.split_part, (_TEXT, _TEXT, "INTEGER"), _TEXT),
    "ascii": (text.code, (_TEXT,), "INTEGER"),
    "chr": (text.character, ("INTEGER",), _TEXT),
    "to_hex4": (lambda value: f"{value % 2**32:x}", ("INTEGER",), _TEXT),
    "to_hex8": (lambda value: f"{value % 2**64:x}", ("BIGINT",), _TEXT),
    "quote_literal": (text.quote_literal, (_TEXT,), _TEXT),
    "to_char_numeric": (lambda value, pattern: to_char.number(Decimal(value), pattern), (_TEXT, _TEXT), _TEXT),
    "to_char_float8": (to_char.float_number, ("DOUBLE", _TEXT), _TEXT),
    "read_interval": (_interval_of_text, (_TEXT,), "BIGINT[]"),
    "show_interval": (lambda parts: str(Interval(*parts)), ("BIGINT[]",), _TEXT),
}

_DATES: dict[str, Entry] = {
    "make_date": (dates.make_date, ("INTEGER", "INTEGER", "INTEGER"), "DATE"),
    "make_timestamp": (dates.make_timestamp, ("INTEGER[]", "DOUBLE"), "TIMESTAMP"),
    "from_epoch": (dates.from_epoch, ("DOUBLE",), "TIMESTAMP"),
    "to_date": (dates.to_date, (_TEXT, _TEXT), "DATE"),
    "to_timestamp": (dates.to_timestamp, (_TEXT, _TEXT, _TEXT), "TIMESTAMP"),
}

_NULLABLE: dict[str, Entry] = {
    **{f"pg_numeric_{n}": (_lists(f), (_LIST,), _TEXT) for n, f in _LISTS.items()},
    "pg_numeric_nullif": (_nullif, (_TEXT, _TEXT), _TEXT),
    "pg_substring": (_unless_null(text.substring, 2), (_TEXT, "INTEGER", "INTEGER"), _TEXT),
    "pg_overlay": (_unless_null(text.overlay, 3), (_TEXT, _TEXT, "INTEGER", "INTEGER"), _TEXT),
    "pg_to_char_timestamp": (_unless_null(to_char.timestamp, 2), ("TIMESTAMP", _TEXT, _TEXT), _TEXT),
}
"""Functions that take NULL for an argument without giving NULL, or the other way about."""

FUNCTIONS: dict[str, Entry] = {
    **{f"pg_numeric_{n}": (_numbers(f), a, r) for n, (f, a, r) in _NUMERIC.items()},
    "pg_numeric_of_text": (lambda text: numeric.show(literals.parse_numeric(text)), (_TEXT,), _TEXT),
    **{f"pg_{n}": entry for n, entry in _TEXTS.items()},
    **{f"pg_{n}": entry for n, entry in _DATES.items()},
    "pg_asin": (_inverse(math.asin), ("DOUBLE",), "DOUBLE"),
    "pg_acos": (_inverse(math.acos), ("DOUBLE",), "DOUBLE"),
    "pg_log": (_common_logarithm, ("DOUBLE",), "DOUBLE"),
    "pg_width_bucket": (_bucket, ("DOUBLE", "DOUBLE", "DOUBLE", "INTEGER"), "INTEGER"),
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
