"""What Postgres's catalog says of tables: columns, verified unique sets, declared values, and reasons to refuse one.

Decides what counts as a plain table (no view, partition tree, foreign table, row security, rules or children) and as
verified unique (an enforced, valid, immediate, total btree index over columns that are NOT NULL). Never looks at rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import psycopg
from psycopg.rows import TupleRow

from dpsql.policy.outline import Listing
from dpsql.types import Column, Kind, SqlType, TableFacts, TableName

SCHEMA = "public"

_TABLES = """
SELECT c.oid, c.relname, c.relkind::text, c.relrowsecurity OR c.relforcerowsecurity,
       EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid),
       EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid),
       pg_catalog.has_table_privilege(c.oid, 'SELECT') AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND n.nspname !~ '^(pg_|information_schema$)' AND c.relname = %s
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_COLUMNS = """
SELECT a.attname,
       CASE WHEN a.attndims > 0 OR a.attgenerated = 'v' OR NOT coalesce(l.collisdeterministic, true) THEN ''
            WHEN n.nspname = 'pg_catalog' THEN t.typname
            WHEN t.typtype = 'e' AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast x WHERE x.castsource = t.oid)
            THEN 'enum' ELSE '' END,
       a.atttypmod,
       (SELECT pg_catalog.array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
        FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid),
       NOT a.attnotnull OR EXISTS (SELECT FROM pg_catalog.pg_constraint x WHERE x.conrelid = a.attrelid
                                   AND x.contype = 'n' AND NOT x.convalidated AND a.attnum = ANY (x.conkey))
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE = """
SELECT (SELECT pg_catalog.array_agg(a.attname::text ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = i.indrelid AND a.attnum = ANY (k.keys))
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_am m ON m.oid = c.relam AND m.amname = 'btree'
CROSS JOIN LATERAL (SELECT (i.indkey::int2[])[0:i.indnkeyatts - 1] AS keys) k
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate
  AND NOT i.indisexclusion AND i.indpred IS NULL AND i.indexprs IS NULL
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_opclass o JOIN pg_catalog.pg_namespace n ON n.oid = o.opcnamespace
                  WHERE o.oid = ANY (i.indclass::oid[]) AND n.nspname <> 'pg_catalog')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a
                  WHERE a.attrelid = i.indrelid AND a.attnum = ANY (k.keys) AND NOT a.attnotnull)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint x
                  WHERE x.conrelid = i.indrelid AND x.contype = 'n' AND NOT x.convalidated AND x.conkey && k.keys)
"""
_CHECKS = """
SELECT pg_catalog.pg_get_expr(x.conbin, x.conrelid) FROM pg_catalog.pg_constraint x
WHERE x.conrelid = %s AND x.contype = 'c' AND x.convalidated ORDER BY x.oid
"""
_NAMES = """
SELECT n.nspname::text, c.relname::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname !~ '^(pg_|information_schema$)' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY c.oid
"""
_FOREIGN_KEYS = """
SELECT n.nspname::text, c.relname::text,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY k.place)
        FROM pg_catalog.unnest(x.conkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = x.conrelid AND a.attnum = k.number),
       m.nspname::text, p.relname::text,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY k.place)
        FROM pg_catalog.unnest(x.confkey) WITH ORDINALITY AS k (number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = x.confrelid AND a.attnum = k.number)
FROM pg_catalog.pg_constraint x
JOIN pg_catalog.pg_class c ON c.oid = x.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_class p ON p.oid = x.confrelid JOIN pg_catalog.pg_namespace m ON m.oid = p.relnamespace
WHERE x.contype = 'f' ORDER BY c.oid, x.oid
"""
_KINDS = {"v": "is a view", "m": "is a materialized view", "f": "is a foreign table", "p": "is a partitioned table"}
_TYPES: Mapping[str, Kind] = {
    "bool": Kind.BOOL,
    "int2": Kind.INT2,
    "int4": Kind.INT4,
    "int8": Kind.INT8,
    "float4": Kind.FLOAT4,
    "float8": Kind.FLOAT8,
    "text": Kind.TEXT,
    "varchar": Kind.TEXT,
    "bpchar": Kind.TEXT,
    "enum": Kind.TEXT,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.TIMESTAMPTZ,
    "uuid": Kind.UUID,
}


def listing(connection: psycopg.Connection[TupleRow]) -> Listing:
    """All tables and views outside the system's schemas, and the foreign keys between them."""
    tables = tuple(_name(*row) for row in connection.execute(_NAMES).fetchall())
    keys = connection.execute(_FOREIGN_KEYS).fetchall()
    return Listing(
        tables,
        tuple(
            (_name(schema, table), tuple(columns), _name(parent_schema, parent), tuple(parents))
            for schema, table, columns, parent_schema, parent, parents in keys
        ),
    )


def _name(schema: object, table: object) -> TableName:
    return TableName(str(table), None if schema == SCHEMA else str(schema))


def table_facts(
    connection: psycopg.Connection[TupleRow], tables: Sequence[TableName]
) -> Mapping[TableName, TableFacts]:
    """Facts by table; one that does not exist has no entry."""
    found = {table: connection.execute(_TABLES, [table.schema or SCHEMA, table.name]).fetchone() for table in tables}
    return {table: _facts(connection, row) for table, row in found.items() if row is not None}


def _facts(connection: psycopg.Connection[TupleRow], row: TupleRow) -> TableFacts:
    oid, name, kind, secured, ruled, parent, readable = row
    columns = connection.execute(_COLUMNS, [oid]).fetchall()
    unique = connection.execute(_UNIQUE, [oid]).fetchall()
    checks = connection.execute(_CHECKS, [oid]).fetchall()
    reasons = {
        _KINDS.get(kind, ""): kind in _KINDS,
        "has row security": secured,
        "has rules": ruled and kind == "r",
        "has inheritance children": parent and kind == "r",
        "may not be read by the proxy's login": not readable,
    }
    return TableFacts(
        name=str(name),
        columns=tuple(Column(str(column), _type(str(of), int(modifier))) for column, of, modifier, _, _ in columns),
        unique=tuple(frozenset(names) for (names,) in unique),
        problems=tuple(reason for reason, holds in reasons.items() if holds),
        enums=tuple((str(column), tuple(labels)) for column, of, _, labels, _ in columns if of == "enum"),
        checks=tuple(str(text) for (text,) in checks),
        nullable=frozenset(str(column) for column, *_, nullable in columns if nullable),
    )


def _type(name: str, modifier: int) -> SqlType:
    if name != "numeric":
        return SqlType(_TYPES.get(name, Kind.UNKNOWN))
    if modifier < 4:
        return SqlType(Kind.NUMERIC)
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    return SqlType(Kind.NUMERIC, precision, scale) if scale <= precision else SqlType(Kind.UNKNOWN)
