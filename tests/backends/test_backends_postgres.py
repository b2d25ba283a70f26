"""Postgres: what its catalog is trusted for, what is refused, and how statements run and stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal

import psycopg
import pytest

from dpsql.backends.postgres import MAX_CONNECTIONS, PostgresBackend
from dpsql.errors import Failed, Rejected
from dpsql.types import Kind, SqlType, TableFacts, TableName

_SETUP = """
CREATE TABLE people (uid int PRIMARY KEY, age int2, salary numeric(12,2), score float8, city varchar(20),
    code char(3), joined date, seen timestamptz, odd point, tags text[], amount numeric);
INSERT INTO people VALUES (1, 30, 100.50, 1.5, 'Rome', 'a', '2020-01-31', '2020-01-31 12:00+02', NULL, NULL, 1),
    (2, NULL, NULL, 'NaN', 'secret-sentinel', 'b', 'infinity', NULL, NULL, NULL, 'NaN');
CREATE TABLE shops (shop text PRIMARY KEY, opened timestamptz);
INSERT INTO shops VALUES ('b', '2020-01-01 00:00+02'), ('B', NULL), ('a', NULL);
CREATE VIEW a_view AS SELECT * FROM people;
CREATE MATERIALIZED VIEW a_matview AS SELECT 1 AS uid;
CREATE TABLE secured (uid int);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
CREATE TABLE ruled (uid int);
CREATE RULE r AS ON INSERT TO ruled DO ALSO NOTHING;
CREATE TABLE parent (uid int PRIMARY KEY);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE parted (uid int) PARTITION BY RANGE (uid);
CREATE COLLATION nocase (provider = libc, locale = 'C');
CREATE DOMAIN small AS int;
CREATE TABLE keys (a int NOT NULL, b int NOT NULL, c int, d int NOT NULL, e int NOT NULL, f int NOT NULL,
    g text COLLATE nocase NOT NULL, h small, i int GENERATED ALWAYS AS (a + 1) VIRTUAL, j int);
CREATE UNIQUE INDEX ON keys (a, b);
CREATE UNIQUE INDEX ON keys (c);
CREATE UNIQUE INDEX ON keys (d) WHERE d > 0;
CREATE UNIQUE INDEX ON keys ((e + 1));
ALTER TABLE keys ADD UNIQUE (f) DEFERRABLE;
ALTER TABLE keys ADD UNIQUE (j);
ALTER TABLE keys ADD CONSTRAINT j_there NOT NULL j NOT VALID;
UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'nocase'; -- the wheel has no ICU
CREATE SCHEMA hidden;
CREATE TABLE hidden.elsewhere (uid int);
CREATE TYPE hidden.mood AS ENUM ('sad', 'it''s');
CREATE TYPE hidden.odd AS ENUM ('a');
CREATE FUNCTION hidden.odd_text(hidden.odd) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT 1 / 0';
CREATE CAST (hidden.odd AS text) WITH FUNCTION hidden.odd_text;
CREATE TABLE hidden.declared (m hidden.mood, ms hidden.mood[], n int CHECK (n > 3), o hidden.odd);
INSERT INTO hidden.declared VALUES ('sad', NULL, 777, 'a');
CREATE FUNCTION public.floor(double precision) RETURNS double precision LANGUAGE sql AS 'SELECT 42.0::float8';
"""


@pytest.fixture(scope="module")
def url(postgres_uri: str) -> Iterator[str]:
    """A database of this file's own: others leave tables in theirs."""
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        outside = connection.info.dbname
        own = f"{outside}_facts"
        connection.execute(f"CREATE DATABASE {own}".encode())
        uri = postgres_uri.replace(f"/{outside}?", f"/{own}?")
        with psycopg.connect(uri, autocommit=True) as inside:
            inside.execute(_SETUP)
            inside.execute("INSERT INTO keys (a, b, d, e, f, g, j) VALUES (1, 1, 1, 1, 1, 'x', 1)")
        yield uri
        connection.execute(f"DROP DATABASE {own} WITH (FORCE)".encode())


@pytest.fixture
def backend(url: str) -> Iterator[PostgresBackend]:
    opened = PostgresBackend(url, "Europe/Rome")
    yield opened
    opened.close()


def facts(backend: PostgresBackend, table: str, schema: str | None = None) -> TableFacts:
    name = TableName(table, schema)
    return backend.facts([name])[name]


def test_types_are_read_from_the_catalog(backend: PostgresBackend) -> None:
    columns = {column.name: column.type for column in facts(backend, "people").columns}
    assert columns["uid"].kind is Kind.INT4
    assert columns["age"].kind is Kind.INT2
    assert columns["salary"] == SqlType(Kind.NUMERIC, 12, 2)
    assert columns["amount"] == SqlType(Kind.NUMERIC)
    assert columns["city"].kind is columns["code"].kind is Kind.TEXT
    assert columns["seen"].kind is Kind.TIMESTAMPTZ
    assert columns["odd"].kind is columns["tags"].kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("a_view", "is a view"),
        ("a_matview", "is a materialized view"),
        ("secured", "has row security"),
        ("ruled", "has rules"),
        ("parent", "has inheritance children"),
        ("parted", "is a partitioned table"),
    ],
)
def test_what_is_no_plain_table_has_a_problem(backend: PostgresBackend, table: str, problem: str) -> None:
    assert facts(backend, table).problems == (problem,)


def test_a_plain_table_has_no_problem(backend: PostgresBackend) -> None:
    assert facts(backend, "people").problems == ()


def test_a_table_that_the_login_may_not_read_has_a_problem(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE weak LOGIN")
    weak = PostgresBackend(url.replace("//postgres:@", "//weak@").replace("//postgres@", "//weak@"), "UTC")
    try:
        assert facts(weak, "people").problems == ("may not be read by the proxy's login",)
    finally:
        weak.close()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP ROLE weak")


def test_tables_of_other_schemas_and_missing_ones_do_not_exist(backend: PostgresBackend) -> None:
    assert backend.facts([TableName(name) for name in ["elsewhere", "nothing", "People"]]) == {}


def test_tables_of_other_schemas_are_found_by_their_schema(backend: PostgresBackend) -> None:
    assert facts(backend, "elsewhere", "hidden").problems == ()
    assert facts(backend, "people", "public") == facts(backend, "people")
    assert TableName("elsewhere", "hidden") in backend.listing().tables
    assert all((table.schema or "")[:3] not in ("pg_", "inf") for table in backend.listing().tables)
    assert backend.facts([TableName("pg_class", "pg_catalog"), TableName("tables", "information_schema")]) == {}


def test_what_a_schema_declares_is_told_without_the_rows(backend: PostgresBackend) -> None:
    """Not the labels of an enum with a cast of its own, which would run in the proxy's SQL."""
    found = facts(backend, "declared", "hidden")
    assert found.enums == (("m", ("sad", "it's")),)
    kinds = {column.name: column.type.kind for column in found.columns}
    assert kinds == {"m": Kind.TEXT, "ms": Kind.UNKNOWN, "n": Kind.INT4, "o": Kind.UNKNOWN}
    assert found.checks == ("(n > 3)",)
    assert backend.public_rows(TableName("declared", "hidden")).rows == (("sad", 777),)


def test_only_enforced_total_not_null_indexes_verify_uniqueness(backend: PostgresBackend) -> None:
    assert facts(backend, "keys").unique == (frozenset({"a", "b"}),)
    assert facts(backend, "people").unique == (frozenset({"uid"}),)


def test_columns_that_compare_or_compute_in_odd_ways_are_unknown(backend: PostgresBackend) -> None:
    columns = {column.name: column.type.kind for column in facts(backend, "keys").columns}
    assert columns["g"] is columns["h"] is columns["i"] is Kind.UNKNOWN


def test_columns_may_be_null_unless_a_valid_constraint_says_otherwise(backend: PostgresBackend) -> None:
    assert facts(backend, "keys").nullable == {"c", "h", "i", "j"}
    assert "uid" not in facts(backend, "people").nullable
    assert "age" in facts(backend, "people").nullable


def test_uniqueness_is_never_verified_by_looking_at_rows(backend: PostgresBackend) -> None:
    assert not backend.immutable
    assert not backend.verify_unique(TableName("people"), ["uid"])


def test_public_rows_are_ordered_and_in_utc(backend: PostgresBackend) -> None:
    relation = backend.public_rows(TableName("shops"))
    assert [column.name for column in relation.columns] == ["shop", "opened"]
    assert relation.rows == (("B", None), ("a", None), ("b", datetime(2019, 12, 31, 22, tzinfo=UTC)))


def test_public_rows_that_no_client_could_see_are_refused(backend: PostgresBackend) -> None:
    with pytest.raises(Rejected, match="public table people cannot be read"):
        backend.public_rows(TableName("people"))


def test_fetch_splits_keys_and_cells(backend: PostgresBackend) -> None:
    cells = backend.fetch("SELECT city, salary, count(*) FROM public.people WHERE uid = 1 GROUP BY 1, 2", 2, 10)
    assert cells.keys == (("Rome", Decimal("100.50")),)
    assert cells.cells == ((1,),)


def test_only_catalog_functions_are_found(backend: PostgresBackend) -> None:
    assert backend.fetch("SELECT floor(1.5::float8)::int8", 0, 10).cells == ((1,),)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT city::int, 1::int8 FROM public.people",
        "SELECT 1/0::int8",
        "SELECT 1::int4",
        "SELECT NULL::int8",
        "SELECT (2::numeric ^ 63 - 1)::int8",
        "SELECT 1::int8; SELECT 2::int8",
        "CREATE TABLE public.x (a int)",
        "INSERT INTO public.shops VALUES ('c')",
        "SELECT * FROM people",
    ],
)
def test_any_failure_has_one_sentence_and_no_value(backend: PostgresBackend, statement: str) -> None:
    with pytest.raises(Failed) as failure:
        backend.fetch(statement, 0, 10)
    assert "sentinel" not in failure.value.cause + failure.value.message
    assert failure.value.__cause__ is None
    assert backend.fetch("SELECT 1::int8", 0, 10).cells == ((1,),)


def test_a_statement_that_takes_too_long_fails(backend: PostgresBackend) -> None:
    started = time.monotonic()
    with pytest.raises(Failed) as failure:
        backend.fetch("SELECT 1::int8 FROM pg_sleep(20)", 0, 0.3)
    assert failure.value.sqlstate == "57014"
    assert time.monotonic() - started < 5


class _Cancel:
    """Cancels a moment after the statement has begun."""

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        timer = threading.Timer(0.2, interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.join()


def test_a_cancelled_statement_stops(backend: PostgresBackend) -> None:
    started = time.monotonic()
    with pytest.raises(Rejected) as cancelled:
        backend.fetch("SELECT 1::int8 FROM pg_sleep(20)", 0, 60, _Cancel())
    assert cancelled.value.sqlstate == "57014"
    assert time.monotonic() - started < 5


def test_more_statements_than_connections_wait_their_turn(backend: PostgresBackend) -> None:
    results: list[int] = []

    def ask() -> None:
        results.append(backend.fetch("SELECT 1::int8 FROM pg_sleep(0.05)", 0, 10).cells[0][0])

    threads = [threading.Thread(target=ask) for _ in range(2 * MAX_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * (2 * MAX_CONNECTIONS)


def test_a_lost_connection_fails_one_statement_only(backend: PostgresBackend, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'dpsql' AND datname = current_database()"
        )
    with pytest.raises(Failed):
        backend.fetch("SELECT 1::int8", 0, 10)
    assert backend.fetch("SELECT 1::int8", 0, 10).cells == ((1,),)


def test_a_wrong_address_is_refused_without_the_password() -> None:
    with pytest.raises(Rejected) as refusal:
        PostgresBackend("postgresql://user:hunter2@127.0.0.1:1/none", "UTC")
    assert "hunter2" not in f"{refusal.value.message}{refusal.value.detail}"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JIS_2004"])
def test_texts_of_other_encodings_are_refused_at_the_start(url: str, encoding: str) -> None:
    """Of these a row may hold what cannot be sent as UTF8, or case cannot be changed: a statement would fail by it."""
    name = f"in_{encoding.lower()}"
    with psycopg.connect(url, autocommit=True) as connection:
        made = f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.execute(made.encode())
        own = connection.info.dbname
    try:
        with pytest.raises(Rejected, match=f"encoding {encoding}, not UTF8"):
            PostgresBackend(url.replace(f"/{own}?", f"/{name}?"), "UTC")
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_the_session_is_read_only_and_fixed(backend: PostgresBackend) -> None:
    settings = (
        "SELECT (current_setting('transaction_read_only') = 'on' AND current_setting('TimeZone') = 'Europe/Rome'"
        " AND current_setting('transaction_isolation') = 'repeatable read'"
        " AND current_setting('row_security') = 'off')::int::int8"
    )
    assert backend.fetch(settings, 0, 10).cells == ((1,),)
