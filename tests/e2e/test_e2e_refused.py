"""Statements that must be refused: from text and policy alone, without a debit, and with the session going on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from e2e.proxy import Client, Proxy, ask, client

ROWS = (
    "SELECT * FROM people",
    "TABLE people",
    "SELECT people.* FROM people",
    "SELECT age FROM people",
    "SELECT age + 1 FROM people",
    "SELECT 1 FROM people",
    "SELECT * FROM (SELECT * FROM people) q",
    "WITH q AS (SELECT * FROM people) SELECT * FROM q",
    "PREPARE p AS SELECT * FROM people",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM people",
    "COPY people TO STDOUT",
    "COPY (SELECT note FROM people) TO STDOUT",
    "COPY people (note) TO STDOUT WITH CSV",
    "EXPLAIN SELECT * FROM people",
    "SELECT * FROM adults",
    "SELECT 1 FROM people WHERE uid = 5 LIMIT 1",
    "SELECT age FROM people ORDER BY age LIMIT 2",
    "SELECT age FROM people QUALIFY ROW_NUMBER() OVER () = 1",
    "SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 5) q",
    "SELECT salary INTO x FROM people",
    "SELECT COUNT(*) FROM people FOR UPDATE",
    "SELECT COUNT(*) FROM people FOR SHARE",
)
"""42501: rows, or a way to choose them."""

COMMANDS = (
    "WITH d AS (DELETE FROM people RETURNING *) SELECT COUNT(*) FROM d",
    "DO $$ BEGIN END $$",
    "CALL foo()",
    "LOCK TABLE people",
    "CREATE TABLE x (a int)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "DROP TABLE people",
    "INSERT INTO people VALUES (1)",
    "UPDATE people SET age = 1",
    "DELETE FROM people",
    "TRUNCATE people",
    "VACUUM",
    "GRANT ALL ON people TO bob",
    "ATTACH 'x.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "SUMMARIZE people",
    "DESCRIBE people",
    "IMPORT x",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM people",
    "EXPLAIN (ANALYZE) SELECT COUNT(*) FROM people",
    "EXPLAIN (VERBOSE, ANALYZE true) SELECT COUNT(*) FROM people",
    "EXPLAIN DELETE FROM people",
    "COPY (SELECT COUNT(*) FROM people) TO PROGRAM 'cat'",
    "COPY (SELECT COUNT(*) FROM people) TO '/tmp/x'",
    "COPY people FROM STDIN",
    "SET ROLE bob",
    "SET SESSION AUTHORIZATION bob",
    "VALUES ((SELECT salary FROM people LIMIT 1))",
)
"""42501 or 0A000: nothing is run but questions."""

NAMES = (
    "SELECT COUNT(hidden) FROM people",
    "SELECT COUNT(nonesuch) FROM people",
    "SELECT COUNT(ctid) FROM people",
    "SELECT COUNT(xmin) FROM people",
    "SELECT COUNT(rowid) FROM people",
    "SELECT COUNT(tableoid) FROM people",
    "SELECT COUNT(people) FROM people",
    "SELECT people::text FROM people",
    "SELECT SUM(salary(people)) FROM people",
    "SELECT COUNT(*) FROM pg_temp.people",
    "SELECT COUNT(*) FROM information_schema.people",
    "SELECT COUNT(*) FROM secret",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM sqlite_master",
    "SELECT * FROM duckdb_tables",
)
"""42703, 42P01 or 42883: the same for what is not declared and what is not there."""

FUNCTIONS = (
    "SELECT pg_sleep(5)",
    "SELECT COUNT(*) FROM people WHERE pg_sleep(1) IS NULL",
    "SELECT nextval('x')",
    "SELECT dblink('x', 'y')",
    "SELECT query_to_xml('select * from people', true, true, '')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/x')",
    "SELECT * FROM generate_series(1, 1000000000)",
    "SELECT COUNT(*) FROM people, generate_series(1, 1000000000)",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM parquet_scan('x')",
    "SELECT * FROM query('select 1')",
    "SELECT * FROM duckdb_settings()",
    "SELECT getvariable('x')",
    "SELECT error('x')",
    "SELECT COUNT(*) FROM people WHERE random() < 0.5",
    "SELECT repeat('x', 1000000000)",
    "SELECT lpad('x', 1000000000)",
    "SELECT COUNT(*) FROM people WHERE note ~ '(a+)+$'",
    "SELECT COUNT(*) FROM people WHERE note SIMILAR TO '(a+b)*'",
    "SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (10)",
    "SELECT COUNT(COLUMNS('a.*')) FROM people",
    "SELECT string_agg(note, ',') FROM people",
    "SELECT array_agg(note) FROM people",
    "SELECT any_value(note) FROM people",
    "SELECT bool_or(age > 1) FROM people",
    "SELECT json_agg(note) FROM people",
    "SELECT first_value(age) OVER (ORDER BY age) FROM people",
    "SELECT SUM(age) OVER (PARTITION BY city) FROM people",
    "SELECT COUNT(*) FROM people, LATERAL (SELECT 1) x",
    "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT * FROM r",
    "SELECT current_setting('dpsql.epsilon') FROM people",
)
"""By allow-list."""

PARTIAL = (
    "SELECT SUM(1 / (age - 30)) FROM people",
    "SELECT COUNT(*) FROM people WHERE CAST(note AS INT) = 12",
    "SELECT COUNT(*) FROM people WHERE note::date = '2020-01-01'",
    "SELECT SUM(ln(age)) FROM people",
    "SELECT SUM(score / (score - 50)) FROM people",
    "SELECT COUNT(*) FROM people WHERE joined + INTERVAL '9999999 years' > '2020-01-01'",
    "SELECT COUNT(*) FROM people WHERE substr(note, -1, -1) = ''",
    "SELECT COUNT(*) FROM people WHERE age = 'abc'",
    "SELECT COUNT(*) FROM people WHERE joined = '2020-13-45'",
    "SELECT SUM(age * 1e300 * 1e300) FROM people",
    "SELECT SUM(" + "*".join(["age"] * 30) + ") FROM people",
    "SELECT COUNT(*) FROM people WHERE note LIKE 'a\\'",
    "SELECT SUM(note) FROM people",
    "SELECT AVG(city) FROM people",
    "SELECT SUM(uid) FROM people",
)
"""What could fail on some row, has no bounds, or has no meaning."""

JOINS = (
    "SELECT COUNT(*) FROM people a JOIN people b ON a.age = b.age",
    "SELECT COUNT(*) FROM people a, people b",
    "SELECT COUNT(*) FROM people a CROSS JOIN visits b",
    "SELECT COUNT(*) FROM people a FULL JOIN visits b USING (uid)",
    "SELECT COUNT(*) FROM shops LEFT JOIN visits USING (shop)",
    "SELECT COUNT(*) FROM visits RIGHT JOIN shops USING (shop)",
    "SELECT COUNT(*) FROM shops s FULL JOIN visits v ON s.shop = v.shop",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.uid = b.uid",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.uid = b.uid AND a.shop = b.shop",
    "SELECT COUNT(*) FROM visits a JOIN visits b USING (shop)",
    "SELECT shop FROM shops WHERE EXISTS (SELECT 1 FROM visits v WHERE v.shop = shops.shop)",
    "SELECT shop FROM shops WHERE shop IN (SELECT shop FROM visits)",
    "SELECT COUNT(*) FROM people p WHERE age > (SELECT AVG(age) FROM people q WHERE q.city = p.city)",
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM people q WHERE q.age > p.age)",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.uid = v.uid OR TRUE",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.uid <= v.uid",
    "SELECT COUNT(*) FROM people p JOIN visits v ON p.uid + 0 = v.uid + 0",
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.age = v.uid",
    "SELECT COUNT(*) FROM people p JOIN (SELECT uid + 1 AS uid, amount FROM visits) v USING (uid)",
)
"""Rows of different units would meet, or a public table would tell who is there."""

GROUPING = (
    "SELECT age FROM people GROUP BY city",
    "SELECT city, COUNT(*) FROM people GROUP BY city ORDER BY age",
    "SELECT city, COUNT(*) FROM people GROUP BY city HAVING age > 1",
    "SELECT COUNT(*) FROM people GROUP BY 7",
    "SELECT COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FROM people WHERE COUNT(*) > 1",
    "SELECT SUM(COUNT(*)) FROM people",
    "SELECT COUNT(*) OVER () FROM people",
    "SELECT ROW_NUMBER() OVER () FROM people",
    "SELECT city, COUNT(*) FROM people",
)

CATALOG = (
    "SELECT (SELECT COUNT(*) FROM people) FROM pg_class",
    "SELECT COUNT(*) FROM people p JOIN pg_class c ON c.oid = p.uid",
    "SELECT rolpassword FROM pg_authid",
    "SELECT pg_reload_conf()",
    "SELECT pg_ls_dir('.')",
)

NESTED = (
    "(" * 50_000,
    "SELECT " + "(" * 500 + "1" + ")" * 500,
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "SELECT COUNT(*) FROM people WHERE " + "NOT " * 500 + "TRUE",
    "SELECT " + "CASE WHEN 1=1 THEN " * 300 + "1" + " END" * 300,
    "SELECT " + "(" * 1_000_000,
    "SELECT '" + "x" * 5_000_000 + "'",
    "SELECT " + "-" * 3000 + "1",
    "SELECT " + "- " * 3000 + "1",
    "SELECT COUNT(*) FROM people WHERE age IN (" + ",".join(map(str, range(200_000))) + ")",
    "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"age={i}" for i in range(10_000)),
    "SELECT 1" + " UNION SELECT 1" * 1500,
    "SELECT " + "[" * 400 + "1" + "]" * 400,
    "SELECT 1" + "::int" * 2000,
    "WITH a0 AS (SELECT COUNT(*) AS x FROM people), "
    + ", ".join(f"a{i} AS (SELECT a.x FROM a{i - 1} a, a{i - 1} b)" for i in range(1, 21))
    + " SELECT * FROM a20",
    "SELECT " + ", ".join(f"(SELECT COUNT(*) FROM people WHERE age = {i})" for i in range(250)),
    "SELECT " + "f(" * 99 + "1" + ")" * 99,
    "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 99 + "people" + ") q" * 99 + " WHERE FALSE +",
)
"""Too large, too deep: of private tables refused at once, without a RecursionError; the others are Postgres's own."""

TEXTS = (
    "SELECT\u00a01",
    "SELECT\u30001",
    "\ufeffSELECT 1",
    "SEL\u200bECT 1",
    "SELECT 1 /*",
    "SELECT 'a",
    'SELECT "a',
    "SELECT 1 +",
    "foo bar",
    "SELECT COUNT(*) FROM",
    "SELECT COUNT(* FROM people",
    "SELECT COUNT(*) FROM people WHERE",
    "SELECT (1",
    "SELECT 1)",
    "SELECT 'a' 'b' c d e",
    "SELECT COUNT(*) FROM people people people",
    "SELECT * FROM '/etc/passwd'",
)


@pytest.fixture(scope="module")
def alice(poison: Proxy) -> Iterator[Client]:
    with client(poison) as opened:
        yield opened


def refused(proxy: Proxy, alice: Client, statement: str) -> psycopg.Error:
    """The refusal, after which nothing is spent, and the session answers on."""
    before = ask(alice, "SHOW dpsql.budget")
    error = proxy.refusal(alice, statement)
    assert error.sqlstate is not None, repr(error)
    assert error.sqlstate != "58000", f"{statement[:100]}: {proxy.log.read_text()[-400:]}"
    assert error.diag.message_primary
    position = error.diag.statement_position
    assert position is None or 1 <= int(position) <= len(statement) + 1, position
    assert ask(alice, "SHOW dpsql.budget") == before
    return error


@pytest.mark.parametrize("statement", ROWS)
def test_rows(poison: Proxy, alice: Client, statement: str) -> None:
    error = refused(poison, alice, statement)
    assert error.sqlstate == "42501" or ("FOR" in statement and error.sqlstate == "0A000")
    assert error.diag.message_hint or error.sqlstate == "0A000"


@pytest.mark.parametrize("statement", COMMANDS)
def test_commands(poison: Proxy, alice: Client, statement: str) -> None:
    assert refused(poison, alice, statement).sqlstate in ("42501", "0A000", "42601")


@pytest.mark.parametrize("statement", NAMES)
def test_names(poison: Proxy, alice: Client, statement: str) -> None:
    assert refused(poison, alice, statement).sqlstate in ("42501", "42703", "42P01", "42883")


def test_undeclared_and_missing_columns_look_alike(poison: Proxy, alice: Client) -> None:
    texts = set()
    for name in ("hidden", "rumpel", "ctid42"):
        error = refused(poison, alice, f"SELECT AVG({name}) FROM people")
        texts.add(f"{error.sqlstate} {error.diag.message_primary} {error.diag.message_hint}".replace(name, "?"))
    assert len(texts) == 1


@pytest.mark.parametrize("statement", FUNCTIONS)
def test_functions(poison: Proxy, alice: Client, statement: str) -> None:
    refused(poison, alice, statement)


@pytest.mark.parametrize("statement", PARTIAL)
def test_partial_expressions(poison: Proxy, alice: Client, statement: str) -> None:
    refused(poison, alice, statement)


@pytest.mark.parametrize("statement", JOINS)
def test_joins(poison: Proxy, alice: Client, statement: str) -> None:
    refused(poison, alice, statement)


@pytest.mark.parametrize("statement", GROUPING)
def test_grouping(poison: Proxy, alice: Client, statement: str) -> None:
    assert refused(poison, alice, statement).sqlstate in ("42803", "42P10", "0A000", "42501")


@pytest.mark.parametrize("statement", CATALOG)
def test_catalog_and_data_do_not_mix(poison: Proxy, alice: Client, statement: str) -> None:
    refused(poison, alice, statement)


@pytest.mark.parametrize("statement", NESTED, ids=lambda statement: statement[:24])
def test_too_much(poison: Proxy, alice: Client, statement: str) -> None:
    begun = time.monotonic()
    if "people" in statement:
        assert refused(poison, alice, statement).sqlstate in ("54001", "42601", "42883", "0A000")
    else:
        with suppress(psycopg.errors.StatementTooComplex, psycopg.errors.SyntaxError, psycopg.errors.UndefinedFunction):
            alice.execute(statement.encode())
        assert ask(alice, "SELECT 1") == [(1,)]
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize("statement", TEXTS)
def test_texts(poison: Proxy, alice: Client, statement: str) -> None:
    assert refused(poison, alice, statement).sqlstate == "42601"


def test_an_encoding_other_than_utf8(poison: Proxy) -> None:
    with pytest.raises(psycopg.Error):
        poison.connect(client_encoding="LATIN1")


@pytest.mark.parametrize(
    "amount", ["NaN", "inf", "-1", "0", "1e-400", "0x1", "\uff11", "1e10", "", " ", "1_0", "5;SELECT 1"]
)
def test_amounts(poison: Proxy, alice: Client, amount: str) -> None:
    assert refused(poison, alice, f"SET dpsql.epsilon = '{amount}'").sqlstate == "22023"


def test_settings_may_tighten_only(poison: Proxy) -> None:
    with client(poison) as alice:
        assert refused(poison, alice, "SET dpsql.max_groups = 100").sqlstate == "22023"
        assert refused(poison, alice, "SET dpsql.max_rows_per_group = 1000").sqlstate == "22023"
        assert refused(poison, alice, "SET dpsql.epsilon = 51").sqlstate == "22023"
        assert refused(poison, alice, "SET dpsql.delta = 1").sqlstate == "42704"
        options = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 51) COUNT(*) FROM visits"
        assert refused(poison, alice, options).sqlstate == "22023"


def test_a_role_sees_its_tables_only(poison: Proxy) -> None:
    with client(poison, "nina") as nina:
        for statement in (
            "SELECT COUNT(*) FROM people",
            "SELECT COUNT(*) FROM adults",
            "SELECT COUNT(*) FROM visits JOIN people USING (uid)",
        ):
            assert refused(poison, nina, statement).sqlstate == "42P01"
        listed = ask(nina, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1")
        assert listed == [("shops",), ("visits",)]
