"""DuckDB's forms."""

from __future__ import annotations

from dpsql.compiler.emit.dialect import Dialect, local_timestamp
from dpsql.types import Kind, SqlType


def _read(name: str, type_: SqlType) -> str:
    """ENUMs as text, floats as DOUBLE; timestamps with time zone as local ones, clamped so that this cannot fail."""
    match type_.kind:
        case Kind.TEXT:
            return f"CAST({name} AS VARCHAR)"
        case Kind.FLOAT4:
            return f"CAST({name} AS DOUBLE)"
        case Kind.TIMESTAMPTZ:
            return local_timestamp(name)
        case _:
            return name


def _canonical_number(sql: str, type_: SqlType) -> str:
    return f"CASE WHEN {sql} = 0 THEN 0 ELSE {sql} END" if type_.is_float else sql


DUCKDB = Dialect(
    name="duckdb",
    double="DOUBLE",
    wide="HUGEINT",
    row_id="rowid",
    schema="main",
    is_nan=lambda x: f"isnan({x})",
    read=_read,
    whole_division=lambda a, b: f"({a} // {b})",
    binned=lambda width, at, origin: f"TIME_BUCKET({width}, {at}, {origin})",
    rounded=lambda x: f"ROUND_EVEN({x}, 0)",
    seconds_after=lambda start, seconds: f"({start} + TO_SECONDS({seconds}))",
    canonical_number=_canonical_number,
)
