"""SQL types and values on the wire: OIDs, and which codec writes and reads a type in which format.

Decides forms only; must never evaluate, coerce between types, or quote SQL. Decoding is strict, because a parameter
is as hostile as a literal. The codecs are in `text` and `binary`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsql.errors import BAD_PARAMETER, PROTOCOL, UNDEFINED_OBJECT, Rejected
from dpsql.pgwire import binary, text
from dpsql.pgwire.messages import BINARY_FORMAT, TEXT_FORMAT, Field
from dpsql.pgwire.oids import JSONB, KIND_OF, OID_OF, SIZE_OF, WireValue
from dpsql.types import Column, Kind, SqlType

Encoder = Callable[[WireValue], bytes | None]


def oid(type: SqlType) -> int:
    """Postgres's OID of a type."""
    return OID_OF[type.kind]


def type_of(oid: int) -> SqlType:
    """The type that a parameter's declared OID means here (varchar is TEXT, jsonb is JSON, 0 is UNKNOWN).

    Raises Rejected 42704 for an OID that does not exist here.
    """
    if oid not in KIND_OF:
        raise Rejected(f"type with OID {oid} does not exist", sqlstate=UNDEFINED_OBJECT)
    return SqlType(KIND_OF[oid])


def size(type: SqlType) -> int:
    """`typlen`: bytes of the binary form, -1 where it varies, -2 for a C string."""
    return SIZE_OF.get(type.kind, -1)


def modifier(type: SqlType) -> int:
    """`atttypmod`: precision and scale of numeric(p,s), else -1."""
    if type.kind is not Kind.NUMERIC or type.precision is None:
        return -1
    return (type.precision << 16 | ((type.scale or 0) & 0x7FF)) + 4


def field(column: Column, format: int = TEXT_FORMAT) -> Field:
    """A column as RowDescription announces it."""
    return Field(column.name, oid(column.type), size(column.type), modifier(column.type), format)


def formats(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """One format code per column from none, one or `count` codes.

    Raises Rejected: 08P01 for any other number of codes, 22023 for a code that is neither text nor binary.
    """
    for code in codes:
        if code not in (TEXT_FORMAT, BINARY_FORMAT):
            raise Rejected(f"unsupported format code: {code}", sqlstate=BAD_PARAMETER)
    if len(codes) <= 1:
        return (codes[0] if codes else TEXT_FORMAT,) * count
    if len(codes) != count:
        raise Rejected(f"message has {len(codes)} formats but there are {count} values", sqlstate=PROTOCOL)
    return tuple(codes)


def encoder(type: SqlType, format: int = TEXT_FORMAT) -> Encoder:
    """The function that encodes values of `type`; look it up once a column, not once a value."""
    encode = binary.encoder(type.kind) if format == BINARY_FORMAT else text.encoder(type.kind)

    def encode_nullable(value: WireValue) -> bytes | None:
        return None if value is None else encode(value)

    return encode_nullable


def encode_value(value: WireValue, type: SqlType, format: int = TEXT_FORMAT) -> bytes | None:
    """One value in its text or binary form; None for NULL."""
    return encoder(type, format)(value)


def decode_value(data: bytes | None, type: SqlType | int, format: int = TEXT_FORMAT) -> WireValue:
    """The value of a parameter of a type, or of a declared OID (needed for jsonb, whose binary form has a version).

    Raises Rejected: 22P02, 22007 text that is no such value, 22P03 bytes that are not, 22003, 22008 out of range,
    22021 not UTF-8.
    """
    if data is None:
        return None
    kind = type.kind if isinstance(type, SqlType) else type_of(type).kind
    if format == TEXT_FORMAT:
        return text.decode(data, kind)
    if type == JSONB:
        data = binary.without_jsonb_version(data)
    return binary.decode(data, kind)


__all__ = [
    "Encoder",
    "WireValue",
    "decode_value",
    "encode_value",
    "encoder",
    "field",
    "formats",
    "modifier",
    "oid",
    "size",
    "type_of",
]
