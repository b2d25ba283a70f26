"""Postgres's numbers for the types that exist here. Facts only, from pg_type of a real Postgres 15."""

from __future__ import annotations

from dpsql.types import Kind, Value

WireValue = Value | tuple[Value, ...]
"""A value, or a one-dimensional array as a tuple."""

OID_OF: dict[Kind, int] = {
    Kind.BOOL: 16,
    Kind.BYTEA: 17,
    Kind.CHAR: 18,
    Kind.NAME: 19,
    Kind.INT8: 20,
    Kind.INT2: 21,
    Kind.INT2_VECTOR: 22,
    Kind.INT4: 23,
    Kind.TEXT: 25,
    Kind.OID: 26,
    Kind.OID_VECTOR: 30,
    Kind.JSON: 114,
    Kind.FLOAT4: 700,
    Kind.FLOAT8: 701,
    Kind.UNKNOWN: 705,
    Kind.BOOL_ARRAY: 1000,
    Kind.CHAR_ARRAY: 1002,
    Kind.NAME_ARRAY: 1003,
    Kind.INT2_ARRAY: 1005,
    Kind.INT4_ARRAY: 1007,
    Kind.TEXT_ARRAY: 1009,
    Kind.INT8_ARRAY: 1016,
    Kind.FLOAT4_ARRAY: 1021,
    Kind.FLOAT8_ARRAY: 1022,
    Kind.OID_ARRAY: 1028,
    Kind.VARCHAR: 1043,
    Kind.TIMESTAMP_ARRAY: 1115,
    Kind.DATE_ARRAY: 1182,
    Kind.TIMESTAMPTZ_ARRAY: 1185,
    Kind.INTERVAL_ARRAY: 1187,
    Kind.NUMERIC_ARRAY: 1231,
    Kind.UUID_ARRAY: 2951,
    Kind.DATE: 1082,
    Kind.TIME: 1083,
    Kind.TIMESTAMP: 1114,
    Kind.TIMESTAMPTZ: 1184,
    Kind.INTERVAL: 1186,
    Kind.NUMERIC: 1700,
    Kind.REGTYPE: 2206,
    Kind.UUID: 2950,
}

JSONB = 3802

KIND_OF: dict[int, Kind] = {oid: kind for kind, oid in OID_OF.items()} | {
    0: Kind.UNKNOWN,
    1042: Kind.TEXT,  # bpchar
    1043: Kind.TEXT,  # varchar
    JSONB: Kind.JSON,
    1014: Kind.TEXT_ARRAY,  # bpchar[]
    1015: Kind.TEXT_ARRAY,  # varchar[]
}
"""Also the types that a client may declare and that are read as one of ours."""

SIZE_OF: dict[Kind, int] = {
    Kind.BOOL: 1,
    Kind.CHAR: 1,
    Kind.NAME: 64,
    Kind.INT8: 8,
    Kind.INT2: 2,
    Kind.INT4: 4,
    Kind.OID: 4,
    Kind.FLOAT4: 4,
    Kind.FLOAT8: 8,
    Kind.UNKNOWN: -2,
    Kind.DATE: 4,
    Kind.TIME: 8,
    Kind.TIMESTAMP: 8,
    Kind.TIMESTAMPTZ: 8,
    Kind.INTERVAL: 16,
    Kind.REGTYPE: 4,
    Kind.UUID: 16,
}

ELEMENT: dict[Kind, Kind] = {
    Kind.TEXT_ARRAY: Kind.TEXT,
    Kind.INT8_ARRAY: Kind.INT8,
    Kind.FLOAT8_ARRAY: Kind.FLOAT8,
    Kind.BOOL_ARRAY: Kind.BOOL,
    Kind.INT2_ARRAY: Kind.INT2,
    Kind.INT4_ARRAY: Kind.INT4,
    Kind.FLOAT4_ARRAY: Kind.FLOAT4,
    Kind.NUMERIC_ARRAY: Kind.NUMERIC,
    Kind.INTERVAL_ARRAY: Kind.INTERVAL,
    Kind.DATE_ARRAY: Kind.DATE,
    Kind.TIMESTAMP_ARRAY: Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ_ARRAY: Kind.TIMESTAMPTZ,
    Kind.UUID_ARRAY: Kind.UUID,
    Kind.OID_ARRAY: Kind.OID,
    Kind.NAME_ARRAY: Kind.NAME,
    Kind.CHAR_ARRAY: Kind.CHAR,
    Kind.INT2_VECTOR: Kind.INT2,
    Kind.OID_VECTOR: Kind.OID,
}
"""The element's type of each array type."""

VECTORS = frozenset((Kind.INT2_VECTOR, Kind.OID_VECTOR))
"""Arrays that count from 0, and whose text is their elements with blanks between them."""

ARRAY_OF: dict[Kind, Kind] = {element: array for array, element in ELEMENT.items() if array not in VECTORS}
