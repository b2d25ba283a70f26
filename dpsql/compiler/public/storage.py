"""How a Postgres value is kept in the remainder's DuckDB: the only place where the two type systems meet.

Numerics have two forms. Where precision and scale are known and fit, DECIMAL(p, s); else the text that Postgres would
print, which has any length and its own scale and is computed on by the functions of `dpsql.remainder`. Timestamps
with time zone are kept as TIMESTAMP in UTC. Must never choose a form that could lose a digit.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.types import Kind, SqlType

WIDEST = 38
"""Digits of DuckDB's widest DECIMAL."""


@dataclass(frozen=True, slots=True)
class Digits:
    """A numeric kept as DECIMAL(precision, scale)."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        return self.precision - self.scale

    @property
    def fits(self) -> bool:
        return self.precision <= WIDEST


INTEGER_DIGITS = {Kind.INT2: Digits(5, 0), Kind.INT4: Digits(10, 0), Kind.INT8: Digits(19, 0), Kind.OID: Digits(10, 0)}

_DUCKDB: dict[Kind, str] = {
    Kind.BOOL: "BOOLEAN",
    Kind.INT2: "SMALLINT",
    Kind.INT4: "INTEGER",
    Kind.INT8: "BIGINT",
    Kind.FLOAT4: "FLOAT",
    Kind.FLOAT8: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMP",
    Kind.INTERVAL: "INTERVAL",
    Kind.UUID: "UUID",
    Kind.JSON: "VARCHAR",
    Kind.BYTEA: "BLOB",
    Kind.OID: "BIGINT",
    Kind.NAME: "VARCHAR",
    Kind.CHAR: "VARCHAR",
    Kind.REGTYPE: "VARCHAR",
    Kind.TEXT_ARRAY: "VARCHAR[]",
    Kind.INT8_ARRAY: "BIGINT[]",
    Kind.FLOAT8_ARRAY: "DOUBLE[]",
    Kind.UNKNOWN: "VARCHAR",
}


def digits_of(type_: SqlType) -> Digits | None:
    """The DECIMAL form of a column of this type; None for other types and for numerics kept as text."""
    if type_.kind is not Kind.NUMERIC or type_.precision is None:
        return None
    digits = Digits(type_.precision, type_.scale or 0)
    return digits if digits.fits and 0 <= digits.scale <= digits.precision else None


def duckdb_type(type_: SqlType, digits: Digits | None = None) -> str:
    """The DuckDB type that keeps `type_`; `digits` of an expression of type numeric."""
    if type_.kind is not Kind.NUMERIC:
        return _DUCKDB[type_.kind]
    return "VARCHAR" if digits is None else f"DECIMAL({digits.precision},{digits.scale})"
