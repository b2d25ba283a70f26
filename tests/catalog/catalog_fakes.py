"""A small policy as the catalog sees it: private tables with a path, a public one, one that analysts may not see."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from dpsql.catalog.catalog import Catalog
from dpsql.catalog.context import Context
from dpsql.pgwire.values import WireValue
from dpsql.policy.model import Budget, Policy, Privacy, Role, UnitPath, User
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import DATE, INT4, INT8, TEXT, Kind, SqlType

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
)
ORDERS = SchemaTable(
    "orders",
    False,
    (
        SchemaColumn("customer", INT8),
        SchemaColumn("state", TEXT, values=("new", "paid", "sent")),
        SchemaColumn("amount", NUMERIC_10_2, lower=Decimal("0"), upper=Decimal("500.00")),
        SchemaColumn("ordered", DATE),
        SchemaColumn("note", TEXT),
    ),
    unit=UnitPath("customers", {"customer": "id"}),
    max_groups=3,
    max_rows_per_group=10,
)
COUNTRIES = SchemaTable("countries", True, (SchemaColumn("code", TEXT), SchemaColumn("name", TEXT)), key=("code",))
SALARIES = SchemaTable("salaries", False, (SchemaColumn("id", INT8), SchemaColumn("secret", TEXT)), unit="id")

POLICY = Policy(
    dataset="shop",
    backend="duckdb:shop.duckdb",
    ledger="sqlite:shop.ledger",
    privacy=Privacy("customer", 10_000, Budget(Decimal(10), Decimal("1e-6"))),
    tables={},
    path=Path("shop.yaml"),
    roles={"analyst": Role(tables=("customers", "orders", "countries")), "chief": Role()},
    users={"alice": User("analyst"), "carol": User("chief")},
)
SCHEMA = Schema(POLICY, {table.name: table for table in (CUSTOMERS, ORDERS, COUNTRIES, SALARIES)}, INT8)

SETTINGS = {"server_version": "15.14", "timezone": "UTC", "jit": "on", "default_table_access_method": "heap"}
CONTEXT = Context("alice", "shop", 42, SETTINGS)


def rows(catalog: Catalog, text: str, *parameters: WireValue) -> list[tuple[object, ...]]:
    """What the catalog answers."""
    assert catalog.is_catalog(text)
    return list(catalog.answer(text, tuple((TEXT, value) for value in parameters), CONTEXT).rows)
