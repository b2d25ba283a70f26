"""Writes dpsql/catalog/snapshot.json and library.json.gz from a freshly initialised PostgreSQL 15.

    python tests/catalog/make_snapshot.py "host=... user=postgres dbname=template1"

The snapshot holds the shape of every relation of pg_catalog and information_schema, and the rows of those that never
depend on a database's contents; the library holds the longer relations, which few clients ask for. Run it against an
empty server in UTC with `C.UTF-8`; the result is sorted, so that a second run gives the same files.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import psycopg

FOLDER = Path(__file__).parents[2] / "dpsql" / "catalog"

RELATIONS = """
SELECT n.nspname, c.relname, c.oid::int8, c.relkind, json_agg(json_build_array(a.attname, a.atttypid::int8,
    a.attnotnull) ORDER BY a.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0
    AND c.relname NOT LIKE '\\_pg\\_%'
    AND c.relname NOT IN ('pg_authid', 'pg_shadow', 'pg_statistic', 'pg_user_mapping')
GROUP BY 1, 2, 3, 4 ORDER BY 1 DESC, 2
"""

# Of the types, those of the catalogs' own rows are left out, with their arrays.
STATIC = {
    "pg_type": """SELECT * FROM pg_type t WHERE typrelid = 0 AND NOT EXISTS
        (SELECT FROM pg_type e WHERE e.oid = t.typelem AND e.typrelid <> 0) ORDER BY oid""",
    "pg_range": "SELECT * FROM pg_range ORDER BY rngtypid",
    "pg_am": "SELECT * FROM pg_am ORDER BY oid",
    "pg_language": "SELECT * FROM pg_language WHERE lanname IN ('internal', 'sql') ORDER BY oid",
    "pg_tablespace": "SELECT * FROM pg_tablespace ORDER BY oid",
    "pg_collation": "SELECT * FROM pg_collation WHERE collname IN ('default', 'C', 'POSIX', 'ucs_basic') ORDER BY oid",
}

# Trees of expressions are left out. z_function and z_keyword are what Postgres's functions say.
LIBRARY = {
    "pg_proc": """SELECT oid, proname, pronamespace, proowner, prolang, procost, prorows, provariadic, prosupport,
        prokind, prosecdef, proleakproof, proisstrict, proretset, provolatile, proparallel, pronargs, pronargdefaults,
        prorettype, proargtypes, proallargtypes, proargmodes, proargnames, prosrc FROM pg_proc ORDER BY oid""",
    "z_function": """SELECT oid AS z_oid, pg_get_function_result(oid) AS z_result,
        pg_get_function_arguments(oid) AS z_arguments, pg_get_function_identity_arguments(oid) AS z_identity
        FROM pg_proc ORDER BY oid""",
    "z_keyword": "SELECT word, catcode, barelabel, catdesc, baredesc FROM pg_get_keywords() ORDER BY word",
    "pg_operator": "SELECT * FROM pg_operator ORDER BY oid",
    "pg_cast": "SELECT * FROM pg_cast ORDER BY oid",
    "pg_aggregate": "SELECT * FROM pg_aggregate ORDER BY aggfnoid::oid",
    "pg_opclass": "SELECT * FROM pg_opclass ORDER BY oid",
    "pg_opfamily": "SELECT * FROM pg_opfamily ORDER BY oid",
    "pg_conversion": "SELECT * FROM pg_conversion ORDER BY oid",
}


def library(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    return {f"pg_catalog.{name}": _rows(connection, query) for name, query in LIBRARY.items()}


def snapshot(connection: psycopg.Connection[Any]) -> dict[str, Any]:
    relations = {
        f"{schema}.{name}": {"oid": oid, "kind": kind, "columns": columns}
        for schema, name, oid, kind, columns in connection.execute(RELATIONS)
    }
    rows = {f"pg_catalog.{name}": _rows(connection, query) for name, query in STATIC.items()}
    return {"relations": relations, "rows": rows}


def _rows(connection: psycopg.Connection[Any], query: str) -> dict[str, Any]:
    """Only the columns that are not the same in every row are stored row by row."""
    as_json = connection.execute(f"SELECT to_json(x) FROM ({query}) x").fetchall()
    rows = [row for (row,) in as_json]
    constant = {name: value for name, value in rows[0].items() if all(row[name] == value for row in rows)}
    varying = [name for name in rows[0] if name not in constant]
    return {"constant": constant, "columns": varying, "rows": [[row[name] for name in varying] for row in rows]}


def main() -> None:
    with psycopg.connect(sys.argv[1]) as connection:
        data, more = snapshot(connection), library(connection)
    lines = ",\n".join(f"{json.dumps(key)}: {_lines(value)}" for key, value in data.items())
    (FOLDER / "snapshot.json").write_text("{" + lines + "}\n", encoding="utf-8")
    packed = gzip.compress(json.dumps(more, separators=(",", ":")).encode(), mtime=0)
    (FOLDER / "library.json.gz").write_bytes(packed)


def _lines(part: dict[str, Any]) -> str:
    """One relation a line, so that a change can be read."""
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in part.items()) + "}"


if __name__ == "__main__":
    main()
