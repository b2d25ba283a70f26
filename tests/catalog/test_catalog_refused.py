"""The catalog: which statements are its own, and which it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from catalog_fakes import CONTEXT, SCHEMA, rows

from dpsql.catalog.catalog import Catalog
from dpsql.errors import Rejected


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    with closing(Catalog(SCHEMA, "alice")) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM pg_catalog.pg_class", True),
        ("SELECT * FROM pg_class", True),
        ('SELECT * FROM "pg_catalog"."pg_class"', True),
        ("SELECT * FROM shop.information_schema.tables", True),
        ("SELECT * FROM PG_CATALOG.PG_CLASS", True),
        ("WITH x AS (SELECT oid FROM pg_type) SELECT * FROM x", True),
        ("SELECT version()", True),
        ("SELECT pg_catalog.version()", True),
        ("SELECT current_user, session_user", True),
        ("SELECT current_schema()", True),
        ("SELECT * FROM current_database()", True),
        ("SELECT * FROM unnest(current_schemas(true))", True),
        ("SELECT 'orders'::regclass::oid", True),
        ("SELECT * FROM pg_catalog.pg_nosuch", True),
        ("SELECT COUNT(*) FROM orders", False),
        ("SELECT 1", False),
        ("SELECT 1 + 1 AS version", False),
        ("SELECT 'pg_class', \"pg_class\" FROM orders", False),
        ("SELECT * FROM public.pg_class", False),
        ('SELECT * FROM "PG_CLASS"', False),
        ("SELECT * FROM tables", False),
        ("WITH pg_class AS (SELECT COUNT(*) FROM orders) SELECT * FROM pg_class", False),
        ("SELECT COUNT(*) FROM orders WHERE state = current_user", False),
        ("SELECT FROM FROM", False),
    ],
)
def test_routing_by_resolved_names(catalog: Catalog, text: str, expected: bool) -> None:
    assert catalog.is_catalog(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM pg_class, orders",
        "SELECT * FROM orders WHERE EXISTS (SELECT 1 FROM pg_class)",
        "SELECT (SELECT COUNT(*) FROM orders) FROM pg_namespace",
        "WITH x AS (SELECT * FROM orders) SELECT * FROM x, pg_type",
    ],
)
def test_mixtures_are_refused(catalog: Catalog, text: str) -> None:
    with pytest.raises(Rejected) as caught:
        catalog.is_catalog(text)
    assert caught.value.sqlstate == "42501"


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT * FROM pg_catalog.pg_nosuch", "42P01"),
        ("SELECT * FROM pg_catalog.pg_authid", "42P01"),
        ("SELECT * FROM information_schema.nosuch", "42P01"),
        ("SELECT * FROM dpsql.nosuch", "42P01"),
        ("SELECT nosuch FROM pg_class", "42703"),
        ("SELECT nosuch(oid) FROM pg_class", "42883"),
        ("SELECT pg_sleep(10) FROM pg_class", "42883"),
        ("SELECT pg_read_file('/etc/passwd'), version()", "42883"),
        ("SELECT lo_import('/etc/passwd') FROM pg_class", "42883"),
        ("SELECT read_text('/etc/passwd') FROM pg_class", "42883"),
        ("SELECT * FROM pg_class, read_csv('/etc/passwd')", "42883"),
        ("SELECT * FROM pg_class, duckdb_settings()", "42883"),
        ("SELECT getvariable('x') FROM pg_class", "42883"),
        ("SELECT query('SELECT 1') FROM pg_class", "42883"),
        ("SELECT repeat('x', 1000000000) FROM pg_class", "42883"),
        ("SELECT set_config('dpsql.epsilon', '9', false)", "0A000"),
        ("SELECT set_config('role', 'bob', false)", "0A000"),
        ("SELECT current_setting('nosuch')", "42704"),
        ("SELECT 'x'::nosuch, version()", "42704"),
        ("WITH RECURSIVE x AS (SELECT 1 FROM pg_class UNION ALL SELECT 1 FROM x) SELECT * FROM x", "54001"),
        ("SELECT COUNT(*) FROM pg_attribute, pg_type, pg_attribute a, pg_type b, pg_attribute c", "57014"),
        ("SELECT a.oid FROM pg_type a, pg_type b, pg_range c", "54001"),
        ("SELECT oid + 1 / 0 FROM pg_class WHERE oid = $1", "42P02"),
    ],
)
def test_refusals_are_clean(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, text: str, sqlstate: str) -> None:
    monkeypatch.setattr("dpsql.catalog.database.MAX_SECONDS", 3.0)
    assert catalog.is_catalog(text)
    with pytest.raises(Rejected) as caught:
        catalog.answer(text, (), CONTEXT)
    assert caught.value.sqlstate == sqlstate
    assert rows(catalog, "SELECT current_user") == [("alice",)]


@pytest.mark.parametrize("name", ["duckdb_tables", "sqlite_master", "/etc/passwd", "x.csv", "z_class", "pgc"])
def test_no_other_relation_has_a_way_in(catalog: Catalog, name: str) -> None:
    text = f'SELECT * FROM pg_class WHERE EXISTS (SELECT 1 FROM "{name}")'
    with pytest.raises(Rejected):
        catalog.is_catalog(text)
    with pytest.raises(Rejected) as caught:
        catalog.answer(f'SELECT * FROM pg_catalog."{name}"', (), CONTEXT)
    assert caught.value.sqlstate == "42P01"
