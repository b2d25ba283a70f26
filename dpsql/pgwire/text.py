"""The text form of values, exactly as Postgres 15 prints them, and the strict reading of parameters.

Must never accept what Postgres would refuse for the type.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from typing import cast
from uuid import UUID

from dpsql.errors import BAD_TEXT, OUT_OF_RANGE, TOO_COMPLEX, Rejected
from dpsql.pgwire import times
from dpsql.pgwire.oids import ELEMENT, OID_OF, VECTORS, WireValue
from dpsql.types import Kind, Value

INVALID_ENCODING = "22021"
MAX_NUMERIC = 1_000
"""Digits before or after the point of a number: more is refused, so that no text blows up."""


# --- writing -------------------------------------------------------------------------------------------------------


def encoder(kind: Kind) -> Callable[[WireValue], bytes]:
    """The function that writes values of a type that are not NULL."""
    return _ENCODERS[kind]


def _encode_bool(value: WireValue) -> bytes:
    return b"t" if value else b"f"


def _encode_int(value: WireValue) -> bytes:
    return b"%d" % cast(int, value)


def _encode_str(value: WireValue) -> bytes:
    return str(value).encode()


def _encode_numeric(value: WireValue) -> bytes:
    if not isinstance(value, Decimal):
        return _encode_int(value)
    if not value.is_finite():
        return b"NaN" if value.is_nan() else (b"Infinity" if value > 0 else b"-Infinity")
    return f"{value if value else abs(value):f}".encode()


def _encode_float8(value: WireValue) -> bytes:
    number = float(cast(float, value))
    if abs(number) >= 2**53 and math.isfinite(number):
        return _format_float(number, _shortest(number, math.ulp(number), float), 15)
    return _format_float(number, repr(number), 15)


def _encode_float4(value: WireValue) -> bytes:
    number = cast(float, value)
    ulp = math.ldexp(1.0, math.frexp(number)[1] - 24)
    return _format_float(number, _shortest(number, ulp, lambda text: to_single(float(text))), 6)


def _shortest(value: float, ulp: float, read: Callable[[str], float]) -> str:
    """The fewest digits that are nearer to this float than to any other.

    Postgres prints one digit more than Python does where the fewest lie just halfway, as only whole numbers can.
    """
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        if read(text) == value and not (ulp > 1 and 2 * abs(int(Decimal(text)) - int(value)) == int(ulp)):
            return text
    return repr(value)


def _format_float(value: float, shortest: str, fixed_below: int) -> bytes:
    """Postgres's layout of the shortest digits: an exponent below 1e-4 and from 10^fixed_below on."""
    if not math.isfinite(value):
        return b"NaN" if math.isnan(value) else (b"Infinity" if value > 0 else b"-Infinity")
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    point = len(digits) + cast(int, exponent) - 1
    text = "".join(map(str, digits))
    if value == 0:
        text = "0"
    elif -4 <= point < fixed_below:
        text = f"{Decimal((0, digits, cast(int, exponent))):f}"
    else:
        text = f"{text[0]}{'.' if len(text) > 1 else ''}{text[1:]}e{'-' if point < 0 else '+'}{abs(point):02}"
    return f"{'-' if sign else ''}{text}".encode()


def _encode_bytea(value: WireValue) -> bytes:
    return b"\\x" + cast(bytes, value).hex().encode()


def _encode_array(value: WireValue, element: Kind) -> bytes:
    encode = encoder(element)
    items = ("NULL" if item is None else _quote(encode(item).decode()) for item in cast(tuple[Value, ...], value))
    return "{{{}}}".format(",".join(items)).encode()


def _encode_vector(value: WireValue) -> bytes:
    return b" ".join(_encode_int(item) for item in cast(tuple[Value, ...], value))


_PLAIN_ITEM = re.compile(r'[^\s{}",\\]+')


def _quote(item: str) -> str:
    if _PLAIN_ITEM.fullmatch(item) and item.upper() != "NULL":
        return item
    return '"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"'


_ENCODERS: dict[Kind, Callable[[WireValue], bytes]] = {
    **dict.fromkeys(Kind, _encode_str),
    Kind.BOOL: _encode_bool,
    Kind.INT2: _encode_int,
    Kind.INT4: _encode_int,
    Kind.INT8: _encode_int,
    Kind.OID: _encode_int,
    Kind.NUMERIC: _encode_numeric,
    Kind.FLOAT4: _encode_float4,
    Kind.FLOAT8: _encode_float8,
    Kind.DATE: lambda value: times.format_date(cast(date, value)).encode(),
    Kind.TIME: lambda value: times.format_time(cast(time, value)).encode(),
    Kind.TIMESTAMP: lambda value: times.format_timestamp(cast(datetime, value)).encode(),
    Kind.TIMESTAMPTZ: lambda value: times.format_timestamptz(cast(datetime, value)).encode(),
    Kind.BYTEA: _encode_bytea,
    **{array: partial(_encode_array, element=element) for array, element in ELEMENT.items()},
    **dict.fromkeys(VECTORS, _encode_vector),
}


# --- reading -------------------------------------------------------------------------------------------------------


def decode(data: bytes, kind: Kind) -> WireValue:
    """The value of a parameter's text."""
    text = decode_utf8(data)
    if kind in VECTORS:
        return tuple(parse(item, ELEMENT[kind]) for item in text.split())
    if kind in ELEMENT:
        return _parse_array(text, ELEMENT[kind])
    return parse(text, kind)


def decode_utf8(data: bytes) -> str:
    """Strict UTF-8 without NUL; raises Rejected 22021."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise Rejected('invalid byte sequence for encoding "UTF8"', sqlstate=INVALID_ENCODING) from None
    if "\0" in text:
        raise Rejected('invalid byte sequence for encoding "UTF8": 0x00', sqlstate=INVALID_ENCODING)
    return text


def parse(text: str, kind: Kind) -> Value:
    """The value that a text denotes in a type that is not an array."""
    return _PARSERS[kind](text)


def invalid(name: str, text: str, sqlstate: str = BAD_TEXT) -> Rejected:
    return Rejected(f"invalid input syntax for type {name}: {text[:100]!r}", sqlstate=sqlstate)


_TRUE = frozenset(("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"))
_FALSE = frozenset(("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"))
_SPACES = " \t\n\v\f\r"


def _parse_bool(text: str) -> bool:
    word = text.strip(_SPACES).lower()
    if word not in _TRUE | _FALSE:
        raise invalid("boolean", text)
    return word in _TRUE


_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")


def _parse_int(text: str, kind: Kind, lower: int, upper: int) -> int:
    digits = text.strip(_SPACES)
    if _INTEGER.fullmatch(digits) is None:
        raise invalid(kind.value, text)
    value = int(digits)
    if not lower <= value <= upper:
        raise Rejected(f"value {text[:100]!r} is out of range for type {kind.value}", sqlstate=OUT_OF_RANGE)
    return value


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
_NOT_FINITE = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)


def _parse_numeric(text: str) -> Decimal:
    digits = text.strip(_SPACES)
    if _NOT_FINITE.fullmatch(digits):
        return Decimal(digits)
    if _NUMBER.fullmatch(digits) is None:
        raise invalid("numeric", text)
    value = Decimal(digits)
    if value.adjusted() >= MAX_NUMERIC or -cast(int, value.as_tuple().exponent) > MAX_NUMERIC:
        raise Rejected(f"value overflows numeric format: at most {MAX_NUMERIC} digits", sqlstate=OUT_OF_RANGE)
    return _plain(value)


def _plain(value: Decimal) -> Decimal:
    """Without an exponent above zero and without a negative zero, as numeric has neither."""
    sign, digits, exponent = value.as_tuple()
    shift = max(cast(int, exponent), 0)
    return Decimal((sign if value else 0, digits + (0,) * shift, cast(int, exponent) - shift))


def _parse_float(text: str, kind: Kind) -> float:
    digits = text.strip(_SPACES)
    if _NOT_FINITE.fullmatch(digits):
        return float(digits)
    if _NUMBER.fullmatch(digits) is None:
        raise invalid(kind.value, text)
    value = to_single(float(digits)) if kind is Kind.FLOAT4 else float(digits)
    vanished = value == 0 and any(digit in "123456789" for digit in digits.lower().partition("e")[0])
    if value in (float("inf"), float("-inf")) or vanished:
        raise Rejected(f"{text[:100]!r} is out of range for type {kind.value}", sqlstate=OUT_OF_RANGE)
    return value


def to_single(value: float) -> float:
    """The nearest single-precision number; infinite where there is none."""
    try:
        single: float = struct.unpack("!f", struct.pack("!f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return single


_UUID = re.compile(r"\{?[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\}?", re.IGNORECASE)


def _parse_uuid(text: str) -> UUID:
    if _UUID.fullmatch(text) is None or text.startswith("{") != text.endswith("}"):
        raise invalid("uuid", text)
    return UUID(text.strip("{}").replace("-", ""))


def _parse_json(text: str) -> str:
    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_constant=refuse, parse_int=str, parse_float=str)
    except ValueError:
        raise invalid("json", text) from None
    except RecursionError:
        raise Rejected("json is nested too deeply", sqlstate=TOO_COMPLEX) from None
    return text


_ESCAPED = re.compile(rb"\\(\\|[0-3][0-7]{2})")
_LONE_BACKSLASH = re.compile(rb"\\(?!\\|[0-3][0-7]{2})")


def _parse_bytea(text: str) -> bytes:
    if text.startswith("\\x"):
        try:
            return bytes.fromhex(text[2:])
        except ValueError:
            raise invalid("bytea", text) from None
    raw = text.encode()
    if _LONE_BACKSLASH.search(_ESCAPED.sub(b"", raw)):
        raise invalid("bytea", text)
    return _ESCAPED.sub(lambda match: b"\\" if match[1] == b"\\" else bytes((int(match[1], 8),)), raw)


_KIND_OF_NAME = {kind.value: kind for kind in Kind}


def _parse_regtype(text: str) -> int:
    """The OID of a type given by number or by name."""
    if _INTEGER.fullmatch(text):
        return _parse_int(text, Kind.OID, 0, 2**32 - 1)
    if text not in _KIND_OF_NAME:
        raise Rejected(f'type "{text[:100]}" does not exist', sqlstate="42704")
    return OID_OF[_KIND_OF_NAME[text]]


_PARSERS: dict[Kind, Callable[[str], Value]] = {
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN), str),
    Kind.CHAR: lambda text: text[:1],
    Kind.BOOL: _parse_bool,
    Kind.INT2: lambda text: _parse_int(text, Kind.INT2, -(2**15), 2**15 - 1),
    Kind.INT4: lambda text: _parse_int(text, Kind.INT4, -(2**31), 2**31 - 1),
    Kind.INT8: lambda text: _parse_int(text, Kind.INT8, -(2**63), 2**63 - 1),
    Kind.OID: lambda text: _parse_int(text, Kind.OID, 0, 2**32 - 1),
    Kind.REGTYPE: _parse_regtype,
    Kind.NUMERIC: _parse_numeric,
    Kind.FLOAT4: lambda text: _parse_float(text, Kind.FLOAT4),
    Kind.FLOAT8: lambda text: _parse_float(text, Kind.FLOAT8),
    Kind.DATE: times.parse_date,
    Kind.TIME: times.parse_time,
    Kind.TIMESTAMP: times.parse_timestamp,
    Kind.TIMESTAMPTZ: times.parse_timestamptz,
    Kind.INTERVAL: times.parse_interval,
    Kind.UUID: _parse_uuid,
    Kind.JSON: _parse_json,
    Kind.BYTEA: _parse_bytea,
}

_ITEM = re.compile(
    r'\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>(?:[^\s{}",\\]|\\.)(?:[^{}",\\]|\\.)*?))\s*(?P<end>[,}])', re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def _parse_array(text: str, element: Kind) -> tuple[Value, ...]:
    """A one-dimensional array in braces."""
    body = text.strip(_SPACES)
    if re.fullmatch(r"\{\s*\}", body):
        return ()
    if not body.startswith("{"):
        raise invalid("array", text)
    items: list[Value] = []
    at, end = 1, ","
    while end == ",":
        item = _ITEM.match(body, at)
        if item is None:
            raise invalid("array", text)
        items.append(_array_item(item, element))
        at, end = item.end(), item["end"]
    if at != len(body):
        raise invalid("array", text)
    return tuple(items)


def _array_item(item: re.Match[str], element: Kind) -> Value:
    if item["quoted"] is not None:
        return parse(_ESCAPE.sub(r"\1", item["quoted"]), element)
    if item["plain"].upper() == "NULL":
        return None
    return parse(_ESCAPE.sub(r"\1", item["plain"]), element)
