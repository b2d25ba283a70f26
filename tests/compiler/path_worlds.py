"""Databases whose units are reached over paths of two columns, made so that a path taken wrongly meets strangers.

`orders` holds the unit, `lines` and `pays` are its children by (store, no), `notes` children of lines by three columns.
Unit `u` owns the orders (u, 0) and (N-u, N-u), and the victim owns (u, N-u) for every u, with lines. So whoever takes
the store of one row of a unit and the number of another meets a row of the victim, once for each unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from uuid import UUID

import duckdb
import psycopg
from compiler_sites import Site
from compiler_worlds import World

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.policy.load import parse

UNITS = 25
"""An odd number, so that no two orders have one key."""
VICTIM = "1000"
STRANGER = "3"

KEYS: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "integer": ("BIGINT", str),
    "decimal": ("NUMERIC(20,2)", lambda i: f"{2**53 + i}.25"),
    "text": ("TEXT", lambda i: ("k", "K", "k ", "ß", "ss")[i % 5] + str(i // 5)),
    "uuid": ("UUID", lambda i: str(UUID(int=i))),
    "date": ("DATE", lambda i: str(date(9999, 1, 1) + timedelta(days=i) if i else date(1, 1, 1))),
    "timestamp": ("TIMESTAMP", lambda i: f"9995-01-01 00:00:00.{i:06}"),
}
"""Of each kind of key, the type and the values: such as would be merged by a cast, a folding or a clamp."""

REFUSED: Mapping[str, tuple[str, Callable[[int], str]]] = {
    "two decimals": ("NUMERIC(18,0)", lambda i: str(2**59 + i)),
    "timestamptz": ("TIMESTAMPTZ", lambda i: f"9995-01-01 00:00:00.{i:06}+00"),
}
"""Kinds that are refused, for the mutants that take them: of the first, children have a wider type than parents."""

TABLES: Mapping[str, tuple[str, ...]] = {
    "orders": ("uid", "store", "no", "amt", "v", "cat"),
    "lines": ("l_store", "l_no", "l_ln", "l_v"),
    "pays": ("p_store", "p_no", "p_v"),
    "notes": ("n_store", "n_no", "n_ln", "n_v"),
}
_PRIMARY = {"orders": "store, no", "lines": "l_store, l_no, l_ln"}
_KEYED = ("store", "no", "amt")

POLICY = """
dpsql: 1
dataset: paths
backend: duckdb:paths.duckdb
privacy: {unit: person, units: 1000, budget: {epsilon: 10, delta: 1e-6}, max_groups: 2, max_rows_per_group: 2}
tables:
  orders:
    unit: uid
    key: [store, no]
    columns: {amt: {}, v: {type: bigint, lower: 0, upper: 10}, cat: {type: text, values: [a, b]}}
  lines:
    unit: {through: orders, on: {l_store: store, l_no: no}}
    key: [l_store, l_no, l_ln]
    columns: {l_v: {type: bigint, lower: 0, upper: 10}}
  pays:
    unit: {through: orders, on: {p_store: store, p_no: no}}
    columns: {p_v: {type: bigint, lower: 0, upper: 10}}
  notes:
    unit: {through: lines, on: {n_store: l_store, n_no: l_no, n_ln: l_ln}}
    columns: {n_v: {type: bigint, lower: 0, upper: 10}}
views:
  bought: >-
    SELECT o.uid, o.store AS b_store, o.no AS b_no, l.l_ln
    FROM orders o JOIN lines l ON l.l_store = o.store AND l.l_no = o.no
"""

Order = tuple[str, int, int, int]


def _orders() -> list[Order]:
    """(unit, store, no, amt): two of each unit, and of the victim one where any two of these would meet."""
    n = UNITS
    made = [o for u in range(1, n) for o in ((str(u), u, 0, n - u), (str(u), n - u, n - u, n - u))]
    return [*made, *((VICTIM, u, n - u, u) for u in range(1, n))]


def rows(kind: str, without: str | None = None) -> dict[str, list[tuple[str, ...]]]:
    """All rows, or those that stay where a unit goes."""
    key = {**KEYS, **REFUSED}[kind][1]
    orders = [o for o in _orders() if o[0] != without]
    mine = [(key(store), key(no), unit) for unit, store, no, _ in orders if unit == VICTIM or store % 3 == 0]
    lines = [(store, no, str(ln)) for store, no, _ in mine for ln in (0, 1)]
    return {
        "orders": [(u, key(s), key(n), key(a), str(s % 10), "ab"[s % 2]) for u, s, n, a in orders],
        "lines": [(*line, str(1 + int(line[2]))) for line in lines],
        "pays": [(store, no, "7" if unit == VICTIM else "3") for store, no, unit in mine for _ in range(2)],
        "notes": [(*line, "4") for line in lines for _ in range(2)],
    }


def _type(column: str, kind: str) -> str:
    name = column.split("_")[-1]
    if name == "cat":
        return "TEXT"
    if kind == "two decimals" and column.startswith(("l_", "p_")) and name in _KEYED:
        return "NUMERIC(19,0)"
    return {**KEYS, **REFUSED}[kind][0] if name in _KEYED else "BIGINT"


def statements(kind: str, schema: str, without: str | None = None) -> list[str]:
    """The whole database, or its neighbour, in a schema of its own."""
    made = [f"CREATE SCHEMA IF NOT EXISTS {schema}"]
    found = rows(kind, without)
    for table, columns in TABLES.items():
        parts = [f"{column} {_type(column, kind)} NOT NULL" for column in columns]
        parts += [f"PRIMARY KEY ({_PRIMARY[table]})"] if table in _PRIMARY else []
        values = ", ".join("(" + ", ".join(f"'{value}'" for value in row) + ")" for row in found[table])
        made += [f"CREATE TABLE {schema}.{table} ({', '.join(parts)})", f"INSERT INTO {schema}.{table} VALUES {values}"]
    return made


AROUND = {"victim": VICTIM, "stranger": STRANGER}


def duckdb_paths(kind: str, path: Path) -> Site:
    with closing(duckdb.connect(str(path))) as connection:
        for schema, without in (("main", None), *AROUND.items()):
            connection.execute("; ".join(statements(kind, schema, without)))
    return _site(kind, f"duckdb:{path}", "main")


def postgres_paths(kind: str, uri: str) -> Site:
    with psycopg.connect(uri, autocommit=True) as connection:
        for schema, without in (("public", None), *AROUND.items()):
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE".encode())
            connection.execute("; ".join(statements(kind, schema, without)).encode())
    return _site(kind, uri, "public")


def _site(kind: str, url: str, main: str) -> Site:
    policy = parse(POLICY, Path("paths.yaml"))
    backend = open_backend(url, policy.timezone)
    world = World(kind, "integer", POLICY, rows(kind))
    return Site(world, backend, inspect(backend, policy), main, AROUND)
