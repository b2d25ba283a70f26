"""The catalog: what is visible, and what clients ask at start and in \\d."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from catalog_fakes import CONTEXT, SCHEMA, rows

from dpsql.catalog import routing
from dpsql.catalog.catalog import Catalog, Catalogs
from dpsql.catalog.functions import DEFINITIONS
from dpsql.catalog.routing import Route
from dpsql.catalog.rows import oid_of, rows_for, table_oid
from dpsql.catalog.snapshot import snapshot
from dpsql.compiler import kinds
from dpsql.compiler.statements import split
from dpsql.errors import Rejected
from dpsql.pgwire import values as wire
from dpsql.policy.model import User
from dpsql.policy.schema import SchemaColumn, SchemaTable
from dpsql.public import comments
from dpsql.public.declared import MOST_VALUES, column_rows
from dpsql.types import BOOL, INT8, NUMERIC, TEXT, Column, Interval, Kind, Relation, SqlType

TRACES = Path(__file__).with_name("client_queries.sql")


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    made = Catalog(SCHEMA, "alice")
    yield made
    made.close()


def test_intervals_keep_their_months(catalog: Catalog) -> None:
    found = rows(catalog, "SELECT interval '1 month -2 days' AS a, relname, NULL::interval AS b FROM pg_class LIMIT 1")
    assert found[0][::2] == (Interval(1, -2), None)


# --- what is visible -----------------------------------------------------------------------------------------------


def test_only_the_roles_tables_are_visible(catalog: Catalog) -> None:
    text = "SELECT table_name FROM information_schema.tables ORDER BY 1"
    assert rows(catalog, text) == [("countries",), ("customers",), ("orders",)]
    everything = {
        str(value)
        for schema, name in snapshot().relations
        for row in rows(catalog, f'SELECT * FROM {schema}."{name}"')
        for value in row
    }
    assert "orders" in everything
    assert not any("salaries" in value or "secret" in value or "carol" in value for value in everything)


def test_another_user_has_another_catalog() -> None:
    assert ("pg_catalog", "pg_class") in rows_for(SCHEMA, "carol")
    names = {row["relname"] for row in rows_for(SCHEMA, "carol")["pg_catalog", "pg_class"]}
    assert "salaries" in names
    strangers = {row["relname"] for row in rows_for(SCHEMA, "mallory")["pg_catalog", "pg_class"]}
    assert not strangers & {"orders", "salaries", "customers", "countries"}


def test_nothing_tells_of_the_data(catalog: Catalog) -> None:
    assert rows(catalog, "SELECT DISTINCT reltuples, relpages FROM pg_class") == [(-1.0, 0)]
    assert rows(catalog, "SELECT * FROM pg_stats") == []
    assert rows(catalog, "SELECT * FROM pg_stat_activity") == []
    assert rows(catalog, "SELECT pg_total_relation_size('orders'::regclass), pg_database_size('shop')") == [(0, 0)]


def test_oids_are_stable_and_distinct() -> None:
    assert table_oid("orders") == 578018159
    found = [oid_of(kind, name) for kind in ("table", "index", "role") for name in ("a", "b", "orders")]
    assert len(set(found)) == len(found)
    assert all(16_384 <= oid < 2**31 for oid in found)


def test_comments_tell_bounds_and_unit(catalog: Catalog) -> None:
    found = rows(
        catalog,
        "SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute a "
        "WHERE a.attrelid IN ('orders'::regclass, 'customers'::regclass) ORDER BY 1",
    )
    assert {str(name): comment for name, comment in found} == {
        "age": "From 0 to 120, or NULL",
        "amount": "From 0 to 500.00",
        "country": "A key of countries.code",
        "customer": "No bounds: for filters, COUNT and as a private key",
        "id": "Privacy unit (customer): usable in COUNT(DISTINCT) and joins",
        "note": "No bounds: for filters, COUNT and as a private key",
        "ordered": "No bounds: for filters, COUNT and as a private key",
        "state": "One of new, paid, sent",
    }
    orders = SCHEMA.tables["orders"]
    assert comments.of_column(SCHEMA, orders, SchemaColumn("gift", BOOL)) == "True or false"
    text = "SELECT relname, obj_description(oid, 'pg_class') FROM pg_class WHERE relkind = 'r'"
    tables = {str(name): comment for name, comment in rows(catalog, text)}
    assert tables["countries"] == "Public: answered exactly and free."
    assert "at most 3 groups, 10 rows in each" in str(tables["orders"])


# --- what clients ask ----------------------------------------------------------------------------------------------


def test_session_functions(catalog: Catalog) -> None:
    text = "SELECT version(), current_user, session_user, current_database(), current_schema(), pg_backend_pid()"
    answer = catalog.answer(text, (), CONTEXT)
    assert answer.rows == (("PostgreSQL 15.14 (dpsql)", "alice", "alice", "shop", "public", 42),)
    names = [column.name for column in answer.columns]
    assert names == ["version", "current_user", "session_user", "current_database", "current_schema", "pg_backend_pid"]
    assert rows(catalog, "SELECT current_setting('TimeZone'), current_setting('nosuch', true)") == [("UTC", None)]
    assert rows(catalog, "SELECT current_setting('jit') AS cur, set_config('jit', 'off', false) AS new") == [
        ("on", "off")
    ]
    assert rows(catalog, "SELECT * FROM unnest(current_schemas(true))") == [("pg_catalog",), ("public",)]
    assert rows(catalog, "SELECT (pg_catalog.current_schemas(true))[1]") == [("pg_catalog",)]


def test_psql_d(catalog: Catalog) -> None:
    oid = rows(
        catalog,
        "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c "
        "LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relname OPERATOR(pg_catalog.~) '^(orders)$' COLLATE pg_catalog.default "
        "AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3",
    )
    assert oid == [(table_oid("orders"), "public", "orders")]
    columns = rows(
        catalog,
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull "
        f"FROM pg_catalog.pg_attribute a WHERE a.attrelid = '{table_oid('orders')}' AND a.attnum > 0 "
        "AND NOT a.attisdropped ORDER BY a.attnum",
    )
    assert columns[:3] == [("customer", "bigint", False), ("state", "text", False), ("amount", "numeric(10,2)", False)]


def test_constraints(catalog: Catalog) -> None:
    found = rows(
        catalog,
        "SELECT conrelid::pg_catalog.regclass::text, pg_catalog.pg_get_constraintdef(oid, true) "
        "FROM pg_catalog.pg_constraint ORDER BY 1, 2",
    )
    assert found == [
        ("countries", "PRIMARY KEY (code)"),
        ("customers", "FOREIGN KEY (country) REFERENCES countries(code)"),
        ("customers", "PRIMARY KEY (id)"),
        ("orders", "FOREIGN KEY (customer) REFERENCES customers(id)"),
    ]
    index = "SELECT pg_get_indexdef(indexrelid, 0, true) FROM pg_index WHERE indrelid = 'customers'::regclass"
    assert rows(catalog, index) == [("CREATE UNIQUE INDEX customers_pkey ON public.customers USING btree (id)",)]


def test_types_are_postgres_types(catalog: Catalog) -> None:
    items = "oid, relname, relkind, relnatts, reltuples, reloptions, relhasindex, oid::int8, relname || ''"
    text = f"SELECT {items} FROM pg_class"
    described = catalog.describe(text, (), CONTEXT)
    kinds_ = [column.type.kind for column in described.columns]
    assert kinds_ == [
        Kind.OID,
        Kind.NAME,
        Kind.CHAR,
        Kind.INT2,
        Kind.FLOAT4,
        Kind.TEXT_ARRAY,
        Kind.BOOL,
        Kind.INT8,
        Kind.TEXT,
    ]
    assert catalog.answer(text, (), CONTEXT).columns == described.columns


def test_parameters(catalog: Catalog) -> None:
    text = "SELECT relname FROM pg_class WHERE relkind = ANY($1) AND oid = $2 AND relnatts > $3 AND relname LIKE $4"
    types = catalog.describe(text, (None, None, None, None), CONTEXT).parameter_types
    assert [type.kind for type in types] == [Kind.TEXT_ARRAY, Kind.OID, Kind.INT2, Kind.TEXT]
    assert rows(catalog, text, ("r", "v"), table_oid("orders"), 2, "ord%") == [("orders",)]
    quoted = "SELECT relname FROM pg_class WHERE relname = $1"
    assert rows(catalog, quoted, "' OR 1=1 --") == []
    with pytest.raises(Rejected):
        rows(catalog, "SELECT relname FROM pg_class WHERE relname = $2", "x")


def test_every_value_can_be_encoded(catalog: Catalog) -> None:
    for schema, name in snapshot().relations:
        answer = catalog.answer(f'SELECT * FROM {schema}."{name}"', (), CONTEXT)
        for row in answer.rows[:50]:
            for value, column in zip(row, answer.columns, strict=True):
                wire.encode_value(value, column.type, 0)
                wire.encode_value(value, column.type, 1)


def traced() -> list[kinds.Select]:
    texts = TRACES.read_text(encoding="utf-8").split("\n;;\n")
    lines = ["\n".join(line for line in text.splitlines() if not line.startswith("-- =====")) for text in texts]
    found = [getattr(statement, "query", statement) for text in lines for statement in split(text)]
    return [query for query in found if isinstance(query, kinds.Select)]


def test_words_alone_decide_as_names_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text without any word of the catalog's is not parsed: it would not be the catalog's."""
    texts = [statement.text for statement in traced()]
    by_words = [decided(text) for text in texts]
    monkeypatch.setattr(routing, "_telling", lambda: frozenset({"select", "from"}))
    assert [decided(text) for text in texts] == by_words
    assert {Route.CATALOG, Route.ENGINE} <= set(by_words)


def decided(text: str) -> Route | str:
    try:
        return routing.route.__wrapped__(text).route
    except Rejected as error:
        return error.message


def test_traced_catalog_statements_are_answered(catalog: Catalog) -> None:
    refused, seconds = [], []
    for query in traced():
        if not catalog.is_catalog(query.text):
            continue
        started = time.perf_counter()
        try:
            types = catalog.describe(query.text, (), CONTEXT).parameter_types
            catalog.answer(query.text, tuple((type, None) for type in types), CONTEXT)
        except Rejected as error:
            refused.append(error.message)
        seconds.append(time.perf_counter() - started)
    assert len(seconds) > 170
    assert refused == []


def test_dpsql_columns(catalog: Catalog) -> None:
    text = "SELECT column_name, data_type, is_unit, lower, upper FROM dpsql.columns WHERE table_name = 'customers'"
    assert rows(catalog, text) == [
        ("id", "bigint", True, None, None),
        ("age", "integer", False, "0", "120"),
        ("country", "text", False, None, None),
    ]


def test_dpsql_columns_cut_long_lists() -> None:
    stations = SchemaColumn("station", TEXT, values=tuple(f"s{n}" for n in range(MOST_VALUES + 1)))
    days = replace(stations, name="day", values=("Mon", "Tue"))
    table = SchemaTable("stations", True, (stations, days))
    shown = [row["value_list"] for row in column_rows(SCHEMA, (table,))]
    assert shown == [", ".join([*(f"s{n}" for n in range(MOST_VALUES)), "..."]), "Mon, Tue"]


def test_dpsql_budget_is_asked_each_time(catalog: Catalog) -> None:
    columns = (Column("whose", TEXT), Column("left", NUMERIC), Column("none", INT8))
    asked = []

    def budget() -> Relation:
        asked.append(1)
        return Relation(columns, (("you", Decimal("14.5"), None), ("it's", Decimal("0.00000005"), 3)))

    context = replace(CONTEXT, views={"budget": budget})
    answer = catalog.answer('SELECT b.*, "left" * 2 AS twice FROM dpsql.budget b ORDER BY whose DESC', (), context)
    assert answer.rows == (
        ("you", Decimal("14.5"), None, Decimal(29)),
        ("it's", Decimal("5E-8"), 3, Decimal("1E-7")),
    )
    assert answer.columns[:3] == columns
    assert catalog.describe("SELECT * FROM dpsql.budget", (), context).columns == columns
    assert len(asked) == 2


def test_users_of_a_role_share_a_database_and_see_themselves() -> None:
    users = {"alice": User("analyst"), "bob": User("analyst"), "o'neil": User("analyst"), "carol": User("chief")}
    schema = replace(SCHEMA, policy=replace(SCHEMA.policy, users=users))
    catalogs = Catalogs(schema)
    asked = "SELECT rolname, oid, oid::regrole, pg_get_userbyid(oid) FROM pg_roles WHERE rolname <> 'dpsql'"
    for _ in range(2):
        for user in users:
            catalog, context = catalogs.of(user), replace(CONTEXT, user=user)
            assert catalog.answer(asked, (), context).rows == ((user, oid_of("role", user), user, user),)
            assert catalog.answer("SELECT usename FROM pg_user", (), context).rows == (("dpsql",), (user,))
            assert catalog.answer("SELECT pg_get_userbyid(relowner) FROM pg_class LIMIT 1", (), context).rows == (
                ("dpsql",),
            )
    databases = {user: catalogs.of(user)._visible.database() for user in users}
    assert databases["alice"] is databases["bob"]
    assert databases["alice"] is not databases["carol"]
    catalogs.close()


def test_what_is_made_ahead_is_what_is_asked() -> None:
    catalogs = Catalogs(SCHEMA)
    catalogs.warm_soon()
    assert catalogs.of("alice").answer("SELECT 1 FROM pg_class LIMIT 1", (), CONTEXT).rows == ((1,),)
    catalogs.close()
    catalogs = Catalogs(SCHEMA)
    catalogs.warm()
    made = catalogs.of("alice")._visible.database()
    assert set(made._defined) == set(DEFINITIONS)
    assert made._defined["pgf_pg_get_userbyid"]
    assert not made._defined["pgf_obj_description"]
    catalogs.close()


def test_declared_parameter_types_win(catalog: Catalog) -> None:
    described = catalog.describe("SELECT 1 FROM pg_class WHERE oid = $1", (SqlType(Kind.INT8),), CONTEXT)
    assert described.parameter_types == (SqlType(Kind.INT8),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2 + count(*) / 1 * 0", -3),
        ("7 / 2.0", Decimal("3.5")),
        ("(7 / 2)::text", "3"),
        ("max(oid) / max(oid)", 1),
        ("NULL / 2", None),
    ],
)
def test_division(catalog: Catalog, text: str, value: object) -> None:
    (found,), *_ = rows(catalog, f"SELECT {text} FROM pg_class")
    assert found == value


@pytest.mark.parametrize(
    "text",
    ["1 / 0", "1.5 / 0", "1 / 0.0", "1 % 0", "mod(1, 0)", "count(*) / 0", "max(oid) / min(0)", "1.5::float8 / 0"],
)
def test_division_by_zero(catalog: Catalog, text: str) -> None:
    with pytest.raises(Rejected) as error:
        rows(catalog, f"SELECT {text} FROM pg_class")
    assert error.value.sqlstate == "22012"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("format('%s', relname)", "pg_class"),
        ("format('%I.%I', 'a', 'b c')", 'a."b c"'),
        ("format('%L of 100%%', 'it''s')", "'it''s' of 100%"),
        ("parse_ident('Shop.\"My Orders\"')", ("shop", "My Orders")),
        ("string_to_array('a,b', ',')", ("a", "b")),
        ("pg_stat_get_numscans(oid)", 0),
    ],
)
def test_functions_of_bi_tools(catalog: Catalog, expression: str, value: object) -> None:
    assert rows(catalog, f"SELECT {expression} FROM pg_class WHERE relname = 'pg_class'") == [(value,)]


def test_key_columns(catalog: Catalog) -> None:
    """As psqlODBC looks for them: an index has columns of its own, and indkey is counted from 0."""
    text = (
        "SELECT tc.relname, ta.attname FROM pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, "
        "pg_catalog.pg_class tc, pg_catalog.pg_index i WHERE tc.oid = i.indrelid AND ia.attrelid = i.indexrelid "
        "AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum-1] ORDER BY 1"
    )
    assert rows(catalog, text) == [("countries", "code"), ("customers", "id")]
    assert rows(catalog, "SELECT DISTINCT indkey[0] FROM pg_index") == [(1,)]


def test_functions_of_types(catalog: Catalog) -> None:
    """Npgsql joins pg_proc by the number of a function; here such columns hold names."""
    text = "SELECT p.proname FROM pg_type t JOIN pg_proc AS p ON p.oid = t.typreceive WHERE t.typname = '_text'"
    assert rows(catalog, text) == [("array_recv",)]


def test_columns_named_by_keywords(catalog: Catalog) -> None:
    text = "SELECT relname AS select, true AS update, ' AS insert,' AS delete FROM pg_class WHERE relname = 'pg_class'"
    assert rows(catalog, text) == [("pg_class", True, " AS insert,")]


def test_references(catalog: Catalog) -> None:
    text = "SELECT constraint_name, unique_constraint_name FROM information_schema.referential_constraints ORDER BY 1"
    assert rows(catalog, text)[0] == ("customers_country_fkey", "countries_pkey")
