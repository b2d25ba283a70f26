"""The rows that depend on the policy: what one user may see, as rows of pg_catalog and information_schema.

Decides how they are written as Postgres's rows; what is visible is decided in `shape`. Every number here is a constant
or an OID; sizes, row counts and statistics of the backend's tables must never get in.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import cache

from dpsql.catalog import own
from dpsql.catalog.information import information_rows
from dpsql.catalog.shape import Key, Reference, View, keys, references, views, visible
from dpsql.catalog.snapshot import INFORMATION_SCHEMA, OWN_SCHEMA, PG_CATALOG, snapshot, types_by_oid
from dpsql.pgwire import values as wire
from dpsql.pgwire.parameters import FIXED, PRESET
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.public import comments
from dpsql.public.declared import column_rows

Row = Mapping[str, object]
Rows = dict[tuple[str, str], list[Row]]

_PG_CATALOG, _PUBLIC, _INFORMATION_SCHEMA, _PG_CLASS = 11, 2200, 13207, 1259
_NAMESPACES = {PG_CATALOG: _PG_CATALOG, "public": _PUBLIC, INFORMATION_SCHEMA: _INFORMATION_SCHEMA, OWN_SCHEMA: 16_382}
_OWNER = 10
_OWNER_NAME = "dpsql"
_FIRST_OID, _OIDS = 16_384, 2**30
_HEAP, _BTREE, _DEFAULT_TABLESPACE, _UTF8 = 2, 403, 1663, 6

_CONSTANT_SETTINGS = {
    **PRESET,
    "server_version": FIXED["server_version"],
    "server_version_num": FIXED["server_version_num"],
    "server_encoding": FIXED["server_encoding"],
    "standard_conforming_strings": FIXED["standard_conforming_strings"],
}


PERSONAL = {(PG_CATALOG, "pg_roles"): ("oid", "rolname"), (PG_CATALOG, "pg_user"): ("usesysid", "usename")}
"""Relations with one row for the user who asks, and its columns for the user's OID, 0 here, and name."""


def oid_of(kind: str, name: str) -> int:
    """An OID that stays the same across restarts and policies."""
    return _FIRST_OID + zlib.crc32(f"{kind}:{name}".encode()) % _OIDS


def table_oid(name: str) -> int:
    return oid_of("table", name)


def rows_for(schema: Schema, user: str) -> Rows:
    """All rows, by (schema, relation)."""
    tables, shown = visible(schema, user), views(schema, user)
    tied = {table.name for reference in references(tables) for table in (reference.table, reference.parent)}
    database = schema.policy.dataset
    rows: Rows = {key: list(found) for key, found in snapshot().rows.items()}
    parts = (
        _system_rows(),
        _server_rows(database),
        *(_table_rows(schema, table, table.name in tied) for table in tables),
        *(_key_rows(key) for key in keys(tables)),
        *(_reference_rows(reference) for reference in references(tables)),
        *(_view_rows(view) for view in shown),
        information_rows(database, tables, shown),
        ((f"{OWN_SCHEMA}.columns", row) for row in column_rows(schema, tables)),
    )
    for part in parts:
        for relation, row in part:
            schema_name, _, name = relation.rpartition(".")
            rows.setdefault((schema_name or PG_CATALOG, name), []).append(row)
    return rows


# --- the server ----------------------------------------------------------------------------------------------------

Named = Iterator[tuple[str, Row]]


@cache
def _system_rows() -> tuple[tuple[str, Row], ...]:
    """The catalog's own relations, as Postgres lists them among the others."""
    return tuple(_relation_rows())


def _relation_rows() -> Named:
    for relation in (*snapshot().relations.values(), own.COLUMNS):
        namespace = _NAMESPACES[relation.schema]
        yield "pg_class", _class(relation.oid, relation.name, namespace, relation.kind, len(relation.columns))
        for number, column in enumerate(relation.columns, 1):
            yield "pg_attribute", _attribute(relation.oid, number, column.name, column.type_oid, -1, column.required)


def _server_rows(database: str) -> Named:
    for name, oid in _NAMESPACES.items():
        yield "pg_namespace", {"oid": oid, "nspname": name, "nspowner": _OWNER}
        yield (
            f"{INFORMATION_SCHEMA}.schemata",
            {"catalog_name": database, "schema_name": name, "schema_owner": _OWNER_NAME},
        )
    for oid, name, owner in ((_OWNER, _OWNER_NAME, True), (0, "", False)):
        role = {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": True, "rolconnlimit": -1}
        flags = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
        yield "pg_roles", {**role, **dict.fromkeys(flags, owner)}
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
        "relreplident": "d" if kind == "r" else "n",
        "relhasrules": kind == "v",
        "relispopulated": True,
        "reltuples": -1.0,
    }


def _attribute(table: int, number: int, name: str, type_oid: int, modifier: int, required: bool) -> Row:
    type_row = types_by_oid().get(type_oid, {})
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


# --- tables --------------------------------------------------------------------------------------------------------


def _table_rows(schema: Schema, table: SchemaTable, tied: bool) -> Named:
    """`tied`: by a foreign key to another table, which Postgres has triggers for, and psql looks for them first."""
    oid = table_oid(table.name)
    yield (
        "pg_class",
        {
            **_class(oid, table.name, _PUBLIC, "r", len(table.columns)),
            "relhasindex": bool(table.key),
            "relhastriggers": tied,
        },
    )
    yield (
        "pg_tables",
        {
            "schemaname": "public",
            "tablename": table.name,
            "tableowner": _OWNER_NAME,
            "hasindexes": bool(table.key),
            "hasrules": False,
            "hastriggers": tied,
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


def _view_rows(view: View) -> Named:
    oid = table_oid(view.name)
    yield "pg_class", _class(oid, view.name, _PUBLIC, "v", len(view.columns))
    yield (
        "pg_views",
        {"schemaname": "public", "viewname": view.name, "viewowner": _OWNER_NAME, "definition": view.definition},
    )
    yield "pg_description", _description(oid, 0, "A view of the policy: ask it like the tables that it reads.")
    for number, column in enumerate(view.columns, 1):
        modifier = wire.modifier(column.type)
        yield "pg_attribute", _attribute(oid, number, column.name, wire.oid(column.type), modifier, False)


def _description(oid: int, number: int, text: str) -> Row:
    return {"objoid": oid, "classoid": _PG_CLASS, "objsubid": number, "description": text}


def _numbers(table: SchemaTable, columns: tuple[str, ...]) -> list[int]:
    names = [column.name for column in table.columns]
    return [names.index(column) + 1 for column in columns if column in names]


def _key_rows(key: Key) -> Named:
    table, index = table_oid(key.table.name), oid_of("index", key.name)
    numbers = _numbers(key.table, key.columns)
    yield "pg_class", _class(index, key.name, _PUBLIC, "i", len(numbers))
    for position, number in enumerate(numbers, 1):
        column = key.table.columns[number - 1]
        type = column.type
        yield "pg_attribute", _attribute(index, position, column.name, wire.oid(type), wire.modifier(type), False)
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
    parent = reference.parent
    yield (
        "pg_constraint",
        {
            **_constraint(reference.name, "f", table_oid(reference.table.name)),
            "confrelid": table_oid(parent.name),
            "conindid": oid_of("index", Key(parent, ()).name),
            "conkey": _numbers(reference.table, reference.columns),
            "confkey": _numbers(parent, reference.parent_columns),
        },
    )
