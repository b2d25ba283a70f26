"""The binary form of values, as Postgres's typsend and typreceive have it.

Reading is strict: the length must be the type's, every number in its range.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import cast
from uuid import UUID

from dpsql.errors import NOT_SUPPORTED, OUT_OF_RANGE, Rejected
from dpsql.pgwire import text, times
from dpsql.pgwire.oids import ELEMENT, KIND_OF, OID_OF, VECTORS, WireValue
from dpsql.types import Interval, Kind, Value

BAD_BINARY = "22P03"

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_NUMERIC = struct.Struct("!hhHh")
_ARRAY = struct.Struct("!iiI")
_DIMENSION = struct.Struct("!ii")
_LENGTH = struct.Struct("!i")
_NAN, _INFINITY, _MINUS_INFINITY = 0xC000, 0xD000, 0xF000
_MINUS = 0x4000
_INFINITY_SCALE = 0x20
"""What Postgres sends; it means nothing."""
_MAX_GROUPS = 2 * text.MAX_NUMERIC // 4 + 2


# --- writing -------------------------------------------------------------------------------------------------------


def encoder(kind: Kind) -> Callable[[WireValue], bytes]:
    """The function that writes values of a type that are not NULL."""
    return _ENCODERS[kind]


def _packer(layout: str) -> Callable[[WireValue], bytes]:
    packed = struct.Struct("!" + layout)

    def pack(value: WireValue) -> bytes:
        try:
            return packed.pack(value)
        except (struct.error, OverflowError):
            raise Rejected("value is out of range for its type", sqlstate=OUT_OF_RANGE) from None

    return pack


def _encode_numeric(value: WireValue) -> bytes:
    """Groups of four decimal digits around the point: weight of the first, sign, digits after the point to show."""
    number = value if isinstance(value, Decimal) else Decimal(cast(int, value))
    if not number.is_finite():
        return _NUMERIC.pack(0, 0, _NAN, 0) if number.is_nan() else _encode_infinity(number)
    sign, digits, exponent = number.as_tuple()
    scale = max(0, -cast(int, exponent))
    padded_scale = -(-scale // 4) * 4
    whole = int("".join(map(str, digits))) * 10 ** (padded_scale + cast(int, exponent))
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.append(group)
    weight = len(groups) - padded_scale // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
    groups.reverse()
    head = _NUMERIC.pack(len(groups), weight if groups else 0, _MINUS if sign and groups else 0, scale)
    return head + struct.pack(f"!{len(groups)}H", *groups)


def _encode_infinity(number: Decimal) -> bytes:
    return _NUMERIC.pack(0, 0, _INFINITY if number > 0 else _MINUS_INFINITY, _INFINITY_SCALE)


def _encode_text(value: WireValue) -> bytes:
    return str(value).encode()


def _encode_date(value: WireValue) -> bytes:
    return _INT4((cast(date, value) - times.EPOCH.date()).days)


def _encode_time(value: WireValue) -> bytes:
    clock = datetime.combine(times.EPOCH, cast(time, value)) - times.EPOCH
    return _INT8(clock // _MICROSECOND)


def _encode_timestamp(value: WireValue) -> bytes:
    return _INT8((cast(datetime, value) - times.EPOCH) // _MICROSECOND)


def _encode_timestamptz(value: WireValue) -> bytes:
    return _INT8((cast(datetime, value) - times.EPOCH_UTC) // _MICROSECOND)


def _encode_interval(value: WireValue) -> bytes:
    interval = cast(Interval, value)
    return _INTERVAL.pack(interval.micros, interval.days, interval.months)


def _encode_regtype(value: WireValue) -> bytes:
    return _OID(text.parse(value, Kind.REGTYPE) if isinstance(value, str) else value)


def _encode_array(value: WireValue, kind: Kind) -> bytes:
    items = cast(tuple[Value, ...], value)
    encode = encoder(ELEMENT[kind])
    first = 0 if kind in VECTORS else 1
    parts = [_ARRAY.pack(1 if items or not first else 0, None in items, OID_OF[ELEMENT[kind]])]
    if items or not first:
        parts.append(_DIMENSION.pack(len(items), first))
    for item in items:
        data = b"" if item is None else encode(item)
        parts += (_LENGTH.pack(-1 if item is None else len(data)), data)
    return b"".join(parts)


_INT4, _INT8, _OID = _packer("i"), _packer("q"), _packer("I")
_INTERVAL = struct.Struct("!qii")

_ENCODERS: dict[Kind, Callable[[WireValue], bytes]] = {
    **dict.fromkeys(Kind, _encode_text),
    Kind.BOOL: _packer("?"),
    Kind.INT2: _packer("h"),
    Kind.INT4: _INT4,
    Kind.INT8: _INT8,
    Kind.OID: _OID,
    Kind.REGTYPE: _encode_regtype,
    Kind.FLOAT4: _packer("f"),
    Kind.FLOAT8: _packer("d"),
    Kind.NUMERIC: _encode_numeric,
    Kind.DATE: _encode_date,
    Kind.TIME: _encode_time,
    Kind.TIMESTAMP: _encode_timestamp,
    Kind.TIMESTAMPTZ: _encode_timestamptz,
    Kind.INTERVAL: _encode_interval,
    Kind.UUID: lambda value: cast(UUID, value).bytes,
    Kind.BYTEA: lambda value: cast(bytes, value),
    **{array: partial(_encode_array, kind=array) for array in ELEMENT},
}


# --- reading -------------------------------------------------------------------------------------------------------


def decode(data: bytes, kind: Kind) -> WireValue:
    """The value of a parameter's bytes."""
    if kind in ELEMENT:
        return _decode_array(data, kind)
    return _DECODERS[kind](data)


def without_jsonb_version(data: bytes) -> bytes:
    """The text inside jsonb's binary form."""
    if data[:1] != b"\x01":
        raise Rejected("unsupported jsonb version number", sqlstate=BAD_BINARY)
    return data[1:]


def _bad(kind: Kind) -> Rejected:
    return Rejected(f"incorrect binary data format for type {kind.value}", sqlstate=BAD_BINARY)


def _unpacker(layout: str, kind: Kind) -> Callable[[bytes], tuple[int, ...]]:
    packed = struct.Struct("!" + layout)

    def unpack(data: bytes) -> tuple[int, ...]:
        if len(data) != packed.size:
            raise _bad(kind)
        return packed.unpack(data)

    return unpack


def _number(layout: str, kind: Kind) -> Callable[[bytes], int]:
    unpack = _unpacker(layout, kind)
    return lambda data: unpack(data)[0]


def _decode_bool(data: bytes) -> bool:
    if data not in (b"\0", b"\1"):
        raise _bad(Kind.BOOL)
    return data == b"\1"


def _decode_char(data: bytes) -> str:
    if len(data) != 1:
        raise _bad(Kind.CHAR)
    return text.decode_utf8(data)


def _decode_numeric(data: bytes) -> Decimal:
    if len(data) < _NUMERIC.size:
        raise _bad(Kind.NUMERIC)
    count, weight, sign, scale = _NUMERIC.unpack_from(data)
    if sign in _SPECIAL:
        return Decimal(_SPECIAL[sign])
    if sign not in (0, _MINUS) or not 0 <= count <= _MAX_GROUPS or len(data) != _NUMERIC.size + 2 * count:
        raise _bad(Kind.NUMERIC)
    groups = struct.unpack_from(f"!{count}H", data, _NUMERIC.size)
    if any(group > 9_999 for group in groups):
        raise _bad(Kind.NUMERIC)
    if abs(weight) * 4 > text.MAX_NUMERIC or not 0 <= scale <= text.MAX_NUMERIC:
        raise Rejected(f"value overflows numeric format: at most {text.MAX_NUMERIC} digits", sqlstate=OUT_OF_RANGE)
    return _numeric(groups, weight, sign == _MINUS, scale)


def _numeric(groups: tuple[int, ...], weight: int, minus: bool, scale: int) -> Decimal:
    """The groups' value, cut to `scale` digits after the point as Postgres does."""
    whole = 0
    for group in groups:
        whole = whole * 10_000 + group
    shift = 4 * (weight + 1 - len(groups)) + scale
    whole = whole * 10**shift if shift >= 0 else whole // 10**-shift
    return Decimal((int(minus and whole > 0), tuple(map(int, str(whole))), -scale))


_SPECIAL = {_NAN: "NaN", _INFINITY: "Infinity", _MINUS_INFINITY: "-Infinity"}


def _decode_date(data: bytes) -> date:
    days = _number("i", Kind.DATE)(data)
    return _after_epoch(days, _DAY).date()


def _decode_time(data: bytes) -> time:
    micros = _number("q", Kind.TIME)(data)
    if not 0 <= micros < 86_400_000_000:
        raise Rejected("time out of range", sqlstate=times.DATETIME_RANGE)
    return _after_epoch(micros, _MICROSECOND).time()


def _decode_timestamp(data: bytes) -> datetime:
    micros = _number("q", Kind.TIMESTAMP)(data)
    return _after_epoch(micros, _MICROSECOND)


def _decode_timestamptz(data: bytes) -> datetime:
    return _decode_timestamp(data).replace(tzinfo=times.EPOCH_UTC.tzinfo)


def _after_epoch(count: int, unit: timedelta) -> datetime:
    try:
        return times.EPOCH + count * unit
    except OverflowError:
        raise Rejected("timestamp out of range: years 1 to 9999", sqlstate=times.DATETIME_RANGE) from None


def _decode_interval(data: bytes) -> Interval:
    micros, days, months = _unpacker("qii", Kind.INTERVAL)(data)
    return Interval(months, days, micros)


def _decode_uuid(data: bytes) -> UUID:
    if len(data) != 16:
        raise _bad(Kind.UUID)
    return UUID(bytes=data)


def _decode_float(layout: str, kind: Kind) -> Callable[[bytes], float]:
    unpack = _unpacker(layout, kind)
    return lambda data: float(unpack(data)[0])


_DECODERS: dict[Kind, Callable[[bytes], Value]] = {
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN), text.decode_utf8),
    Kind.CHAR: _decode_char,
    Kind.BOOL: _decode_bool,
    Kind.INT2: _number("h", Kind.INT2),
    Kind.INT4: _number("i", Kind.INT4),
    Kind.INT8: _number("q", Kind.INT8),
    Kind.OID: _number("I", Kind.OID),
    Kind.REGTYPE: _number("I", Kind.REGTYPE),
    Kind.FLOAT4: _decode_float("f", Kind.FLOAT4),
    Kind.FLOAT8: _decode_float("d", Kind.FLOAT8),
    Kind.NUMERIC: _decode_numeric,
    Kind.DATE: _decode_date,
    Kind.TIME: _decode_time,
    Kind.TIMESTAMP: _decode_timestamp,
    Kind.TIMESTAMPTZ: _decode_timestamptz,
    Kind.INTERVAL: _decode_interval,
    Kind.UUID: _decode_uuid,
    Kind.JSON: lambda data: text.parse(text.decode_utf8(data), Kind.JSON),
    Kind.BYTEA: bytes,
}

_ALIKE = (
    frozenset((Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.CHAR)),
    frozenset((Kind.INT2, Kind.INT4, Kind.INT8, Kind.OID)),
    frozenset((Kind.FLOAT4, Kind.FLOAT8)),
)
"""Types whose elements an array of one of the others may hold."""


def _may_hold(array: Kind, element: Kind | None) -> bool:
    own = ELEMENT[array]
    return element is own or any(own in kinds and element in kinds for kinds in _ALIKE)


def _decode_array(data: bytes, kind: Kind) -> tuple[Value, ...]:
    """One dimension, its elements of the type that the header names."""
    if len(data) < _ARRAY.size:
        raise _bad(kind)
    dimensions, _, element_oid = _ARRAY.unpack_from(data)
    element = KIND_OF.get(element_oid)
    if element is None or not _may_hold(kind, element):
        raise _bad(kind)
    if dimensions == 0 and len(data) == _ARRAY.size:
        return ()
    if dimensions != 1:
        raise Rejected("arrays of more than one dimension are not supported here", sqlstate=NOT_SUPPORTED)
    return _elements(data, kind, _DECODERS[element])


def _elements(data: bytes, kind: Kind, decode: Callable[[bytes], Value]) -> tuple[Value, ...]:
    at = _ARRAY.size + _DIMENSION.size
    count = _LENGTH.unpack_from(data, _ARRAY.size)[0] if len(data) >= at else -1
    if not 0 <= count <= (len(data) - at) // _LENGTH.size:
        raise _bad(kind)
    items: list[Value] = []
    for _ in range(count):
        length = _LENGTH.unpack_from(data, at)[0] if at + _LENGTH.size <= len(data) else -2
        at += _LENGTH.size
        if length < -1 or at + length > len(data):
            raise _bad(kind)
        items.append(None if length == -1 else decode(data[at : at + length]))
        at += max(length, 0)
    if at != len(data):
        raise _bad(kind)
    return tuple(items)
