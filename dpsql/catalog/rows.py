"""The rows that depend on the policy: what one user may see, as rows of pg_catalog and information_schema.

Decides visibility: only tables of the user's role appear. Every number here is a constant or an OID; sizes, row counts
and statistics of the backend's tables must never get in.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dpsql.catalog import comments, own
from dpsql.catalog.snapshot import INFORMATION_SCHEMA, OWN_SCHEMA, PG_CATALOG, snapshot
from dpsql.pgwire import values as wire
from dpsql.policy.model import UnitPath
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import Kind

Row = Mapping[str, object]
Rows = dict[tuple[str, str], list[Row]]

_PG_CATALOG, _PUBLIC, _INFORMATION_SCHEMA, _PG_CLASS = 11, 2200, 13207, 1259
_NAMESPACES = {PG_CATALOG: _PG_CATALOG, "public": _PUBLIC, INFORMATION_SCHEMA: _INFORMATION_SCHEMA, OWN_SCHEMA: 16_382}
_OWNER = 10
_OWNER_NAME = "dpsql"
_FIRST_OID, _OIDS = 16_384, 2**30
_HEAP, _BTREE, _DEFAULT_TABLESPACE, _UTF8 = 2, 403, 1663, 6

_CONSTANT_SETTINGS = {
    "block_size": "8192",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "server_version": "15.8",
    "server_version_num": "150008",
}


@dataclass(frozen=True, slots=True)
class Key:
    """A verified key as a primary key constraint with its index."""

    table: SchemaTable
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.table.name}_pkey"


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared reference as a foreign key."""

    table: SchemaTable
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.table.name}_{'_'.join(self.columns)}_fkey"


def oid_of(kind: str, name: str) -> int:
    """An OID that stays the same across restarts and policies."""
    return _FIRST_OID + zlib.crc32(f"{kind}:{name}".encode()) % _OIDS


def table_oid(name: str) -> int:
    return oid_of("table", name)


def visible(schema: Schema, user: str) -> tuple[SchemaTable, ...]:
    """The tables of the user's role, by name. A user without a role sees none."""
    found = schema.policy.users.get(user)
    role = schema.policy.roles.get(found.role) if found is not None else None
    if role is None:
        return ()
    names = sorted(schema.tables) if role.tables is None else sorted(set(role.tables) & set(schema.tables))
    return tuple(schema.tables[name] for name in names)


def rows_for(schema: Schema, user: str) -> Rows:
    """All rows, by (schema, relation)."""
    tables = visible(schema, user)
    database = schema.policy.dataset
    rows: Rows = {key: list(found) for key, found in snapshot().rows.items()}
    parts = (
        _system_rows(),
        _server_rows(database, user),
        *(_table_rows(schema, table) for table in tables),
        *(_key_rows(key) for key in keys(tables)),
        *(_reference_rows(reference) for reference in references(tables)),
        _information_rows(database, tables),
        ((f"{OWN_SCHEMA}.columns", row) for row in own.column_rows(schema, tables)),
    )
    for part in parts:
        for relation, row in part:
            schema_name, _, name = relation.rpartition(".")
            rows.setdefault((schema_name or PG_CATALOG, name), []).append(row)
    return rows


def keys(tables: tuple[SchemaTable, ...]) -> tuple[Key, ...]:
    return tuple(Key(table, table.key) for table in tables if table.key)


def references(tables: tuple[SchemaTable, ...]) -> tuple[Reference, ...]:
    """Foreign keys whose parent the user sees too."""
    names = {table.name for table in tables}
    found: list[Reference] = []
    for table in tables:
        if isinstance(table.unit, UnitPath):
            on = table.unit.on
            found.append(Reference(table, tuple(on), table.unit.through, tuple(on.values())))
        for column in table.columns:
            if column.references is not None:
                parent, key = column.references
                found.append(Reference(table, (column.name,), parent, (key,)))
    return tuple(reference for reference in found if reference.parent in names)


# --- the server ----------------------------------------------------------------------------------------------------

Named = Iterator[tuple[str, Row]]


def _system_rows() -> Named:
    """The catalog's own relations, as Postgres lists them among the others."""
    for relation in (*snapshot().relations.values(), own.COLUMNS):
        namespace = _NAMESPACES[relation.schema]
        yield "pg_class", _class(relation.oid, relation.name, namespace, relation.kind, len(relation.columns))
        for number, column in enumerate(relation.columns, 1):
            yield "pg_attribute", _attribute(relation.oid, number, column.name, column.type_oid, -1, column.required)


def _server_rows(database: str, user: str) -> Named:
    for name, oid in _NAMESPACES.items():
        yield "pg_namespace", {"oid": oid, "nspname": name, "nspowner": _OWNER}
        yield (
            f"{INFORMATION_SCHEMA}.schemata",
            {"catalog_name": database, "schema_name": name, "schema_owner": _OWNER_NAME},
        )
    for oid, name, owner in ((_OWNER, _OWNER_NAME, True), (oid_of("role", user), user, False)):
        role = {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": not owner, "rolconnlimit": -1}
        yield "pg_roles", {**role, "rolsuper": owner}
        yield "pg_user", {"usename": name, "usesysid": oid, "usesuper": owner}
    yield (
        "pg_database",
        {
            "oid": oid_of("database", database),
            "datname": database,
            "datdba": _OWNER,
            "encoding": _UTF8,
            "datlocprovider": "c",
            "datallowconn": True,
            "datconnlimit": -1,
            "dattablespace": _DEFAULT_TABLESPACE,
            "datcollate": "C.UTF-8",
            "datctype": "C.UTF-8",
        },
    )
    yield f"{INFORMATION_SCHEMA}.information_schema_catalog_name", {"catalog_name": database}
    for name, setting in _CONSTANT_SETTINGS.items():
        yield "pg_settings", {"name": name, "setting": setting, "context": "internal", "vartype": "string"}


def _class(oid: int, name: str, namespace: int, kind: str, columns: int) -> Row:
    return {
        "oid": oid,
        "relname": name,
        "relnamespace": namespace,
        "relowner": _OWNER,
        "relam": {"r": _HEAP, "i": _BTREE}.get(kind, 0),
        "relkind": kind,
        "relnatts": columns,
        "relpersistence": "p",
        "relreplident": "n" if kind == "i" else "d",
        "relispopulated": True,
        "reltuples": -1.0,
    }


def _attribute(table: int, number: int, name: str, type_oid: int, modifier: int, required: bool) -> Row:
    type_row = _types().get(type_oid, {})
    return {
        "attrelid": table,
        "attname": name,
        "atttypid": type_oid,
        "attnum": number,
        "atttypmod": modifier,
        "attnotnull": required,
        "attstattarget": -1,
        "attcacheoff": -1,
        "attislocal": True,
        "attlen": type_row.get("typlen", -1),
        "attbyval": type_row.get("typbyval", False),
        "attalign": type_row.get("typalign", "i"),
        "attstorage": type_row.get("typstorage", "x"),
        "attcollation": type_row.get("typcollation", 0),
    }


@cache
def _types() -> Mapping[int, Row]:
    return {int(str(row["oid"])): row for row in snapshot().rows[PG_CATALOG, "pg_type"]}


# --- tables --------------------------------------------------------------------------------------------------------


def _table_rows(schema: Schema, table: SchemaTable) -> Named:
    oid = table_oid(table.name)
    yield (
        "pg_class",
        {**_class(oid, table.name, _PUBLIC, "r", len(table.columns)), "relhasindex": bool(table.key)},
    )
    yield (
        "pg_tables",
        {
            "schemaname": "public",
            "tablename": table.name,
            "tableowner": _OWNER_NAME,
            "hasindexes": bool(table.key),
            "hasrules": False,
            "hastriggers": False,
            "rowsecurity": False,
        },
    )
    yield "pg_statio_all_tables", {"relid": oid, "schemaname": "public", "relname": table.name}
    yield "pg_description", _description(oid, 0, comments.of_table(schema, table))
    for number, column in enumerate(table.columns, 1):
        required = column.name in (table.key or ())
        yield (
            "pg_attribute",
            _attribute(oid, number, column.name, wire.oid(column.type), wire.modifier(column.type), required),
        )
        comment = comments.of_column(schema, table, column)
        if comment is not None:
            yield "pg_description", _description(oid, number, comment)


def _description(oid: int, number: int, text: str) -> Row:
    return {"objoid": oid, "classoid": _PG_CLASS, "objsubid": number, "description": text}


def _numbers(table: SchemaTable, columns: tuple[str, ...]) -> list[int]:
    names = [column.name for column in table.columns]
    return [names.index(column) + 1 for column in columns if column in names]


def _key_rows(key: Key) -> Named:
    table, index = table_oid(key.table.name), oid_of("index", key.name)
    numbers = _numbers(key.table, key.columns)
    yield "pg_class", _class(index, key.name, _PUBLIC, "i", len(numbers))
    yield (
        "pg_index",
        {
            "indexrelid": index,
            "indrelid": table,
            "indnatts": len(numbers),
            "indnkeyatts": len(numbers),
            "indisunique": True,
            "indisprimary": True,
            "indimmediate": True,
            "indisvalid": True,
            "indisready": True,
            "indislive": True,
            "indkey": numbers,
            "indoption": [0] * len(numbers),
        },
    )
    yield (
        "pg_constraint",
        {**_constraint(key.name, "p", table), "conindid": index, "conkey": numbers},
    )
    names = {"schemaname": "public", "tablename": key.table.name, "indexname": key.name}
    yield "pg_indexes", names


def _constraint(name: str, kind: str, table: int) -> Row:
    return {
        "oid": oid_of("constraint", name),
        "conname": name,
        "connamespace": _PUBLIC,
        "contype": kind,
        "conrelid": table,
        "convalidated": True,
        "conislocal": True,
        "confupdtype": "a" if kind == "f" else " ",
        "confdeltype": "a" if kind == "f" else " ",
        "confmatchtype": "s" if kind == "f" else " ",
    }


def _reference_rows(reference: Reference) -> Named:
    parent = SchemaTable(reference.parent, True, ())
    row = {
        **_constraint(reference.name, "f", table_oid(reference.table.name)),
        "confrelid": table_oid(parent.name),
        "conindid": oid_of("index", Key(parent, ()).name),
        "conkey": _numbers(reference.table, reference.columns),
    }
    yield "pg_constraint", {**row, "confkey": list(range(1, len(reference.parent_columns) + 1))}


# --- information_schema --------------------------------------------------------------------------------------------


def _information_rows(database: str, tables: tuple[SchemaTable, ...]) -> Named:
    for table in tables:
        named = {"table_catalog": database, "table_schema": "public", "table_name": table.name}
        yield (
            f"{INFORMATION_SCHEMA}.tables",
            {**named, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"},
        )
        for number, column in enumerate(table.columns, 1):
            yield f"{INFORMATION_SCHEMA}.columns", {**named, **_information_column(database, number, column)}
    for key in keys(tables):
        yield from _information_constraint(database, key.table, key.name, "PRIMARY KEY", key.columns)
    for reference in references(tables):
        yield from _information_constraint(database, reference.table, reference.name, "FOREIGN KEY", reference.columns)


def _information_column(database: str, number: int, column: SchemaColumn) -> Row:
    type_row = _types().get(wire.oid(column.type), {})
    precision, scale = _precision(column)
    return {
        "column_name": column.name,
        "ordinal_position": number,
        "is_nullable": "YES",
        "data_type": _DATA_TYPES.get(column.type.kind, column.type.kind.value),
        "numeric_precision": precision,
        "numeric_scale": scale,
        "numeric_precision_radix": None if precision is None else 10 if column.type.kind is Kind.NUMERIC else 2,
        "datetime_precision": 6 if column.type.kind in _DATA_TYPES else 0 if column.type.kind is Kind.DATE else None,
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


def _precision(column: SchemaColumn) -> tuple[int | None, int | None]:
    if column.type.kind is Kind.NUMERIC:
        return column.type.precision, column.type.scale
    return _BINARY_PRECISION.get(column.type.kind), 0 if column.type.is_integer else None


def _information_constraint(database: str, table: SchemaTable, name: str, kind: str, columns: tuple[str, ...]) -> Named:
    named = {
        "constraint_catalog": database,
        "constraint_schema": "public",
        "constraint_name": name,
        "table_catalog": database,
        "table_schema": "public",
        "table_name": table.name,
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
