"""The rows of information_schema that depend on the policy. Decides nothing on visibility: it is given what is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsql.catalog.shape import Key, Reference, View, keys, references
from dpsql.catalog.snapshot import INFORMATION_SCHEMA, PG_CATALOG, types_by_oid
from dpsql.pgwire import values as wire
from dpsql.policy.schema import SchemaTable
from dpsql.types import Kind, SqlType

Row = Mapping[str, object]
Named = Iterator[tuple[str, Row]]


def information_rows(database: str, tables: tuple[SchemaTable, ...], views: tuple[View, ...]) -> Named:
    for table in tables:
        columns = tuple((column.name, column.type) for column in table.columns)
        yield from _relation(database, table.name, "BASE TABLE", columns)
    for view in views:
        yield from _relation(database, view.name, "VIEW", tuple((column.name, column.type) for column in view.columns))
        more = {"view_definition": view.definition, "check_option": "NONE", "is_updatable": "NO"}
        yield f"{INFORMATION_SCHEMA}.views", {**_named(database, view.name), **more}
    for key in keys(tables):
        yield from _constraint(database, key.table, key.name, "PRIMARY KEY", key.columns)
    for reference in references(tables):
        yield from _constraint(database, reference.table, reference.name, "FOREIGN KEY", reference.columns)
        if reference.parent.key == reference.parent_columns:
            yield f"{INFORMATION_SCHEMA}.referential_constraints", _reference(database, reference)
    yield f"{INFORMATION_SCHEMA}.character_sets", _character_set(database)


def _named(database: str, name: str) -> Row:
    return {"table_catalog": database, "table_schema": "public", "table_name": name}


def _relation(database: str, name: str, kind: str, columns: tuple[tuple[str, SqlType], ...]) -> Named:
    named = _named(database, name)
    yield f"{INFORMATION_SCHEMA}.tables", {**named, "table_type": kind, "is_insertable_into": "NO", "is_typed": "NO"}
    for number, (column, type) in enumerate(columns, 1):
        yield f"{INFORMATION_SCHEMA}.columns", {**named, **_column(database, number, column, type)}


def _column(database: str, number: int, name: str, type: SqlType) -> Row:
    type_row = types_by_oid().get(wire.oid(type), {})
    precision, scale = _precision(type)
    return {
        "column_name": name,
        "ordinal_position": number,
        "is_nullable": "YES",
        "data_type": _DATA_TYPES.get(type.kind, type.kind.value),
        "numeric_precision": precision,
        "numeric_scale": scale,
        "numeric_precision_radix": None if precision is None else 10 if type.kind is Kind.NUMERIC else 2,
        "datetime_precision": 6 if type.kind in _DATA_TYPES else 0 if type.kind is Kind.DATE else None,
        "udt_catalog": database,
        "udt_schema": PG_CATALOG,
        "udt_name": type_row.get("typname"),
        "is_identity": "NO",
        "is_generated": "NEVER",
        "is_updatable": "NO",
        "is_self_referencing": "NO",
        "dtd_identifier": str(number),
    }


_DATA_TYPES = {
    Kind.TIMESTAMP: "timestamp without time zone",
    Kind.TIMESTAMPTZ: "timestamp with time zone",
    Kind.TIME: "time without time zone",
}
_BINARY_PRECISION = {Kind.INT2: 16, Kind.INT4: 32, Kind.INT8: 64, Kind.FLOAT4: 24, Kind.FLOAT8: 53}


def _precision(type: SqlType) -> tuple[int | None, int | None]:
    if type.kind is Kind.NUMERIC:
        return type.precision, type.scale
    return _BINARY_PRECISION.get(type.kind), 0 if type.is_integer else None


def _reference(database: str, reference: Reference) -> Row:
    return {
        "constraint_catalog": database,
        "constraint_schema": "public",
        "constraint_name": reference.name,
        "unique_constraint_catalog": database,
        "unique_constraint_schema": "public",
        "unique_constraint_name": Key(reference.parent, reference.parent_columns).name,
        "match_option": "NONE",
        "update_rule": "NO ACTION",
        "delete_rule": "NO ACTION",
    }


def _character_set(database: str) -> Row:
    return {
        "character_set_name": "UTF8",
        "character_repertoire": "UCS",
        "form_of_use": "UTF8",
        "default_collate_catalog": database,
        "default_collate_schema": PG_CATALOG,
        "default_collate_name": "C.UTF-8",
    }


def _constraint(database: str, table: SchemaTable, name: str, kind: str, columns: tuple[str, ...]) -> Named:
    named = {
        "constraint_catalog": database,
        "constraint_schema": "public",
        "constraint_name": name,
        **_named(database, table.name),
    }
    yield (
        f"{INFORMATION_SCHEMA}.table_constraints",
        {**named, "constraint_type": kind, "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES"},
    )
    for position, column in enumerate(columns, 1):
        yield (
            f"{INFORMATION_SCHEMA}.key_column_usage",
            {**named, "column_name": column, "ordinal_position": position},
        )
