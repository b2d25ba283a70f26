"""Postgres's forms."""

from __future__ import annotations

from dpsql.compiler.emit.dialect import Dialect, local_timestamp
from dpsql.types import Kind, SqlType


def _read(name: str, type_: SqlType) -> str:
    """Text in binary collation; timestamps with time zone as local ones, clamped so that the conversion cannot fail."""
    match type_.kind:
        case Kind.TEXT:
            return f'CAST({name} AS TEXT) COLLATE "C"'
        case Kind.FLOAT4:
            return f"CAST({name} AS DOUBLE PRECISION)"
        case Kind.TIMESTAMPTZ:
            return local_timestamp(name)
        case _:
            return name


def _canonical_number(sql: str, type_: SqlType) -> str:
    """One representative for equal keys: -0 as 0, decimals without trailing zeros."""
    if type_.is_float:
        return f"CASE WHEN {sql} = 0 THEN 0 ELSE {sql} END"
    return f"TRIM_SCALE(CAST({sql} AS NUMERIC))" if type_.kind is Kind.NUMERIC and type_.precision is None else sql


POSTGRES = Dialect(
    name="postgres",
    double="DOUBLE PRECISION",
    wide="NUMERIC",
    row_id="ctid",
    schema="public",
    is_nan=lambda x: f"({x} = 'NaN')",
    read=_read,
    whole_division=lambda a, b: f"DIV(CAST({a} AS NUMERIC), CAST({b} AS NUMERIC))",
    binned=lambda width, at, origin: f"DATE_BIN({width}, {at}, {origin})",
    rounded=lambda x: f"ROUND({x})",
    seconds_after=lambda start, seconds: f"({start} + {seconds} * INTERVAL '1 second')",
    canonical_number=_canonical_number,
)
