"""A small policy for the public server: private tables with a path, public ones, views, two schemas, odd names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import psycopg
from psycopg.rows import TupleRow

from dpsql.policy.model import Budget, Policy, Privacy, Role, Table, UnitPath, User
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Column,
    Kind,
    Relation,
    SqlType,
    TableName,
    Value,
)  # fmt: skip

Connect = Callable[..., psycopg.Connection[TupleRow]]
"""Connects as a user, as the proxy does."""
NUMERIC_10_2 = SqlType(Kind.NUMERIC, 10, 2)

CUSTOMERS = SchemaTable(
    "customers",
    False,
    (
        SchemaColumn("id", INT8),
        SchemaColumn("age", INT4, lower=0, upper=120, nullable=True),
        SchemaColumn("country", TEXT, references=("countries", "code")),
    ),
    unit="id",
    key=("id",),
    max_rows=1,
    one_row_per_unit=True,
)
ORDERS = SchemaTable(
    "orders",
    False,
    (
        SchemaColumn("customer", INT8),
        SchemaColumn("state", TEXT, values=("new", "paid", "sent")),
        SchemaColumn("amount", NUMERIC_10_2, lower=Decimal("0"), upper=Decimal("500.00")),
        SchemaColumn("ordered", DATE),
    ),
    unit=UnitPath("customers", {"customer": "id"}),
    max_groups=3,
    max_rows_per_group=10,
    source=TableName("orders", "sales"),
)
OLD_ORDERS = SchemaTable(
    "archive.orders", False, (SchemaColumn("customer", INT8),), unit="customer", source=TableName("orders", "archive")
)
FOLDED = SchemaTable("Hits", False, (SchemaColumn("UserID", INT8), SchemaColumn('odd "name"', TEXT)), unit="UserID")
SALARIES = SchemaTable("salaries", False, (SchemaColumn("id", INT8), SchemaColumn("secret", TEXT)), unit="id")


def public_table(name: str, columns: Sequence[SchemaColumn], rows: Sequence[tuple[Value, ...]]) -> SchemaTable:
    held = Relation(tuple(Column(column.name, column.type) for column in columns), tuple(rows))
    return SchemaTable(name, True, tuple(columns), rows=held)


COUNTRIES = replace(
    public_table(
        "countries", (SchemaColumn("code", TEXT), SchemaColumn("name", TEXT)), (("de", "Deutschland"), ("fr", None))
    ),
    key=("code",),
)
VALUES = public_table(
    "values",
    (
        SchemaColumn("n", INT4),
        SchemaColumn("t", TEXT),
        SchemaColumn("f", FLOAT8),
        SchemaColumn("d", NUMERIC_10_2),
        SchemaColumn("b", BOOL),
        SchemaColumn("at", TIMESTAMP),
        SchemaColumn("tz", TIMESTAMPTZ),
        SchemaColumn("day", DATE),
    ),
    (
        (1, 'a\tb\nc\\d"', 0.1, Decimal("1.50"), True, datetime(2020, 1, 2, 3, 4, 5, 6), None, date(1, 1, 1)),
        (2, "", float("inf"), None, False, None, datetime(2020, 1, 1, tzinfo=UTC), date(9999, 12, 31)),
        (3, "\\N", 1e-300, Decimal("-0.01"), None, None, None, None),
    ),
)
VIEWS = {
    "grown": "SELECT id, country FROM customers WHERE age >= 18",
    "over_view": "SELECT country FROM grown",
    "names": "SELECT upper(name) AS name FROM countries",
    "odd": "SELECT SUM(amount) AS total FROM orders WHERE date_diff('day', ordered, DATE '2020-01-01') > 3",
}


def schema_at(folder: Path, **changes: object) -> Schema:
    """The policy, its ledger in `folder`."""
    policy = Policy(
        dataset="shop",
        backend="duckdb:shop.duckdb",
        ledger=f"sqlite:{folder / 'shop.ledger'}",
        privacy=Privacy("customer", 10_000, Budget(Decimal(10), Decimal("1e-6"))),
        tables={},
        path=folder / "shop.yaml",
        views=VIEWS,
        roles={"analyst": Role(), "clerk": Role(tables=("customers", "countries", "grown")), "chief": Role()},
        users={"alice": User("analyst"), "carol": User("chief"), "clerk": User("clerk"), "pg_odd": User("clerk")},
    )
    tables = (CUSTOMERS, ORDERS, OLD_ORDERS, FOLDED, SALARIES, COUNTRIES, VALUES)
    known = {table.name: table for table in tables}
    declared = {t.name: Table(public=t.public, unit=t.unit, key=t.key, source=t.source) for t in tables}
    nullable = {"customers": frozenset({"age"}), "countries": frozenset({"name"}), "values": frozenset("tfdb") | _LATE}
    return Schema(replace(policy, tables=declared, **changes), known, INT8, nullable=nullable)  # type: ignore[arg-type]


_LATE = frozenset({"at", "tz", "day"})
