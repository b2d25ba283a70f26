"""The fixed part of the catalog, as an empty PostgreSQL 15 has it: shapes of relations, and rows of a few of them.

Decides how Postgres's types are stored in DuckDB. The data, snapshot.json and library.json.gz, is made by
tests/catalog/make_snapshot.py.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

PG_CATALOG = "pg_catalog"
INFORMATION_SCHEMA = "information_schema"
OWN_SCHEMA = "dpsql"
SCHEMAS = {PG_CATALOG: "pgc", INFORMATION_SCHEMA: "isc", OWN_SCHEMA: "dps"}
"""Schemas, and what they are called in DuckDB, whose own pg_catalog is another one."""

_DUCKDB_TYPES = {
    16: "BOOLEAN",
    20: "BIGINT",
    21: "SMALLINT",
    23: "INTEGER",
    26: "UINTEGER",
    28: "UINTEGER",
    29: "UINTEGER",
    700: "FLOAT",
    701: "DOUBLE",
    1700: "DOUBLE",
    1114: "TIMESTAMP",
    1184: "TIMESTAMP",
    2206: "UINTEGER",
    22: "SMALLINT[]",
    1005: "SMALLINT[]",
    30: "UINTEGER[]",
    1028: "UINTEGER[]",
    2211: "UINTEGER[]",
    1000: "BOOLEAN[]",
    1002: "VARCHAR[]",
    1003: "VARCHAR[]",
    1009: "VARCHAR[]",
    1034: "VARCHAR[]",
    1021: "FLOAT[]",
    1022: "DOUBLE[]",
    13221: "INTEGER",
    13232: "TIMESTAMP",
}
_ZEROS = {"BOOLEAN": False, "VARCHAR": "", "TIMESTAMP": None}


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    name: str
    type_oid: int
    required: bool

    @property
    def duckdb_type(self) -> str:
        return _DUCKDB_TYPES.get(self.type_oid, "VARCHAR")

    @property
    def default(self) -> object:
        """What a row that says nothing of the column holds."""
        if not self.required:
            return None
        return [] if self.duckdb_type.endswith("[]") else _ZEROS.get(self.duckdb_type, 0)


@dataclass(frozen=True, slots=True)
class CatalogRelation:
    schema: str
    name: str
    oid: int
    kind: str
    columns: tuple[CatalogColumn, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`relations` by (schema, name); `rows` are full rows, by the same key.

    `column_types` are OIDs by column name alone: the names in pg_catalog say to which relation they belong.
    """

    relations: Mapping[tuple[str, str], CatalogRelation]
    rows: Mapping[tuple[str, str], tuple[Mapping[str, object], ...]]
    column_types: Mapping[str, int]


FUNCTION_TEXTS = CatalogRelation(
    PG_CATALOG,
    "z_function",
    0,
    "r",
    (
        CatalogColumn("z_oid", 26, True),
        *(CatalogColumn(name, 25, False) for name in ("z_result", "z_arguments", "z_identity")),
    ),
)
"""What the functions that describe functions say; no query can name it."""

KEYWORDS = CatalogRelation(
    PG_CATALOG,
    "z_keyword",
    0,
    "r",
    tuple(CatalogColumn(name, 25, False) for name in ("word", "catcode", "barelabel", "catdesc", "baredesc")),
)
"""The rows of pg_get_keywords()."""


@cache
def snapshot() -> Snapshot:
    data = json.loads(files("dpsql.catalog").joinpath("snapshot.json").read_text(encoding="utf-8"))
    relations = {_key(name): _relation(_key(name), found) for name, found in data["relations"].items()}
    rows = {_key(name): _rows(found) for name, found in data["rows"].items()}
    pg_catalog = (relation for (schema, _), relation in relations.items() if schema == PG_CATALOG)
    types = {column.name: column.type_oid for relation in pg_catalog for column in relation.columns}
    return Snapshot(relations, rows, types)


@cache
def _library() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    packed = files("dpsql.catalog").joinpath("library.json.gz").read_bytes()
    return {_key(name): found for name, found in json.loads(gzip.decompress(packed)).items()}


def library(name: tuple[str, str]) -> tuple[Mapping[str, object], ...]:
    """The rows of a relation that is long, and the same in every database: functions, operators, casts. Else none."""
    found = _library().get(name)
    return () if found is None else _rows(found)


@cache
def types_by_oid() -> Mapping[int, Mapping[str, object]]:
    """The rows of pg_type."""
    return {int(str(row["oid"])): row for row in snapshot().rows[PG_CATALOG, "pg_type"]}


def _key(name: str) -> tuple[str, str]:
    schema, _, relation = name.partition(".")
    return schema, relation


def _relation(key: tuple[str, str], found: Mapping[str, Any]) -> CatalogRelation:
    columns = tuple(CatalogColumn(name, oid, required) for name, oid, required in found["columns"])
    return CatalogRelation(*key, found["oid"], found["kind"], columns)


def _rows(found: Mapping[str, Any]) -> tuple[Mapping[str, object], ...]:
    return tuple({**found["constant"], **dict(zip(found["columns"], row, strict=True))} for row in found["rows"])
