"""Shadows: true to every catalog, closed to every statement."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg.rows import TupleRow
from public_fakes import COUNTRIES, VALUES, Connect

from dpsql.public.server import PublicServer

READING = [
    "SELECT * FROM customers",
    "SELECT count(*) FROM customers",
    "SELECT 1 FROM customers WHERE false",
    "SELECT age FROM customers WHERE id = 1",
    "SELECT c.age FROM public.customers AS c LIMIT 0",
    "WITH c AS (SELECT * FROM customers) SELECT count(*) FROM c",
    "WITH c AS MATERIALIZED (SELECT * FROM customers) SELECT 1 FROM c WHERE false",
    "SELECT (SELECT count(*) FROM customers)",
    "SELECT EXISTS (SELECT FROM customers)",
    "SELECT name FROM countries WHERE code IN (SELECT country FROM customers)",
    "SELECT count(*) FROM countries LEFT JOIN customers ON code = country",
    "SELECT 1 UNION ALL SELECT id FROM customers",
    "SELECT 1 WHERE false UNION ALL SELECT id FROM customers WHERE false",
    "SELECT count(*) FROM grown",
    "SELECT count(*) FROM over_view",
    "SELECT count(*) FROM odd",
    "SELECT count(*) FROM sales.orders",
    "SELECT count(*) FROM orders",
    "SELECT count(*) FROM archive.orders",
    'SELECT "UserID" FROM "Hits"',
    "TABLE customers",
    "SELECT c FROM customers c",
    "SELECT ctid FROM customers",
    "SELECT * FROM LATERAL (SELECT * FROM customers) a",
    "COPY customers TO STDOUT",
    "COPY (SELECT * FROM customers) TO STDOUT",
    "DECLARE c CURSOR FOR SELECT * FROM customers",
    "EXPLAIN SELECT * FROM customers",
    "EXPLAIN ANALYZE SELECT * FROM customers WHERE false",
    "SELECT * FROM dpsql.budget",
    "SELECT * FROM dpsql.ledger WHERE false",
    "SELECT count(*) FROM dpsql.releases",
    "SELECT * FROM customers TABLESAMPLE SYSTEM (1)",
    "SELECT * FROM ONLY customers",
    "SELECT ts_stat('SELECT to_tsvector(country) FROM customers')",
]


@pytest.mark.parametrize("text", READING)
def test_whatever_reads_a_shadow_is_refused(connect: Connect, text: str) -> None:
    connection = connect()
    with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
        connection.execute(text)


@pytest.mark.parametrize("text", [text for text in READING if text.startswith(("SELECT", "WITH"))])
def test_prepared_statements_are_parsed_and_not_run(connect: Connect, text: str) -> None:
    connection = connect()
    connection.execute(f"PREPARE p AS {text}")
    with pytest.raises(errors.InsufficientPrivilege):
        connection.execute("EXECUTE p")


def _types(connection: psycopg.Connection[TupleRow], text: str) -> tuple[list[int], list[tuple[str, int]]]:
    raw = connection.pgconn
    assert raw.prepare(b"p", text.encode()).error_message == b""
    found = raw.describe_prepared(b"p")
    columns = [((found.fname(at) or b"").decode(), found.ftype(at)) for at in range(found.nfields)]
    return [found.param_type(at) for at in range(found.nparams)], columns


@pytest.mark.parametrize(
    ("text", "parameters", "columns"),
    [
        ("SELECT age, sum(amount) AS s FROM customers, orders WHERE ordered > $1 GROUP BY age", [1082],
         [("age", 23), ("s", 1700)]),
        ("SELECT median(age), quantile_disc(country, 0.5), approx_count_distinct(id) FROM customers", [],
         [("median", 701), ("quantile_disc", 25), ("approx_count_distinct", 20)]),
        ("SELECT dp_stddev(count(*)), dp_interval_low(sum(amount)), dp_interval_high(median(ordered)) FROM orders", [],
         [("dp_stddev", 701), ("dp_interval_low", 701), ("dp_interval_high", 1082)]),
        ("SELECT epsilon_left, whose FROM dpsql.budget WHERE whose = $1", [25],
         [("epsilon_left", 1700), ("whose", 25)]),
    ],
)  # fmt: skip
def test_postgres_gives_the_types(
    connect: Connect, text: str, parameters: list[int], columns: list[tuple[str, int]]
) -> None:
    assert _types(connect(), text) == (parameters, columns)


def test_catalogs_tell_what_the_policy_declares(connect: Connect) -> None:
    connection = connect()
    tables = connection.execute(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables "
        "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"
    ).fetchall()
    assert [name for (name,) in tables] == [
        "archive.orders", "dpsql.budget", "dpsql.columns", "dpsql.ledger", "dpsql.releases",
        "public.Hits", "public.countries", "public.customers", "public.grown", "public.names", "public.odd",
        "public.over_view", "public.salaries", "public.values", "sales.orders",
    ]  # fmt: skip
    columns = connection.execute(
        "SELECT column_name, data_type, is_nullable, col_description('customers'::regclass, ordinal_position) "
        "FROM information_schema.columns WHERE table_name = 'customers' ORDER BY ordinal_position"
    ).fetchall()
    assert columns == [
        ("id", "bigint", "NO", "Privacy unit (customer): usable in COUNT(DISTINCT) and joins"),
        ("age", "integer", "YES", "From 0 to 120, or NULL"),
        ("country", "text", "NO", "A key of countries.code"),
    ]
    keys = connection.execute(
        "SELECT conrelid::regclass::text, contype::text, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contype IN ('p', 'f') AND connamespace::regnamespace::text <> 'pg_catalog' ORDER BY 1, 2"
    ).fetchall()
    assert keys == [
        ("countries", "p", "PRIMARY KEY (code)"),
        ("customers", "f", "FOREIGN KEY (country) REFERENCES countries(code)"),
        ("customers", "p", "PRIMARY KEY (id)"),
        ("orders", "f", "FOREIGN KEY (customer) REFERENCES customers(id)"),
    ]
    estimates = connection.execute(
        "SELECT oid::regclass::text, reltuples FROM pg_class WHERE relname IN ('customers', 'orders') ORDER BY 1"
    ).fetchall()
    assert estimates == [("archive.orders", 10_000.0), ("customers", 10_000.0), ("orders", 100_000.0)]
    assert connection.execute("SELECT has_table_privilege('customers', 'SELECT')").fetchall() == [(False,)]
    described = connection.execute("SELECT obj_description('sales.orders'::regclass)").fetchall()
    assert str(described[0][0]).startswith("Private: protects each customer.")


def test_two_tables_of_one_name_are_in_their_schemas(connect: Connect) -> None:
    connection = connect()
    found = connection.execute("SELECT 'orders'::regclass::oid = 'sales.orders'::regclass::oid").fetchall()
    assert found == [(True,)], "the policy calls this one orders, and the other archive.orders"
    assert connection.execute("SHOW search_path").fetchall() == [("public, sales, archive",)]


def test_public_tables_are_as_they_were(connect: Connect) -> None:
    connection = connect()
    connection.execute("SET TIME ZONE 'UTC'")
    for table in (COUNTRIES, VALUES):
        assert table.rows is not None
        found = connection.execute(f'SELECT * FROM "{table.name}" ORDER BY 1').fetchall()
        assert tuple(found) == table.rows.rows
    assert connection.execute("SELECT * FROM names ORDER BY 1").fetchall() == [("DEUTSCHLAND",), (None,)]
    listed = connection.execute("SELECT lower, upper FROM dpsql.columns WHERE column_name = 'age'").fetchall()
    assert listed == [("0", "120")]


def test_a_role_knows_of_its_tables_only(connect: Connect) -> None:
    clerk = connect("clerk")
    assert clerk.execute("SELECT current_database()::text, current_catalog::text").fetchall()[0][0] == "shop"
    assert clerk.execute("SELECT datname::text FROM pg_database").fetchall() == [("shop",)]
    assert clerk.execute("SELECT DISTINCT table_catalog::text FROM information_schema.tables").fetchall() == [("shop",)]
    names = clerk.execute(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') "
        "ORDER BY 1"
    ).fetchall()
    assert names == [("countries",), ("customers",), ("grown",)]
    assert clerk.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'sales'").fetchall() == [(0,)]
    text = clerk.execute("SELECT pg_get_viewdef('grown'::regclass)").fetchall()
    assert "customers" not in str(text), "its text might name what the role does not know of"
    with pytest.raises(errors.InsufficientPrivilege):
        clerk.execute("SELECT * FROM grown")


def test_a_user_enters_no_other_database(server: PublicServer) -> None:
    for user, database in (("clerk", server.database), ("alice", server.database_of("clerk")), ("alice", "template1")):
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(server.address, user=user, dbname=database)


def test_reserved_names_of_users_have_a_role(connect: Connect, server: PublicServer) -> None:
    assert server.role_of("pg_odd") == "_pg_odd"
    assert connect("pg_odd").execute("SELECT count(*) FROM countries").fetchall() == [(2,)]
