"""Tables of several schemas, and what a schema declares: drafted, checked and answered on DuckDB and Postgres."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner, Result

from dpsql.backends.outline import called
from dpsql.cli import dpsql
from dpsql.errors import Rejected
from dpsql.policy.draft_checks import Limits, limits, understood, words_of
from dpsql.policy.draft_text import source_word
from dpsql.policy.load import parse
from dpsql.policy.problems import PolicyError
from dpsql.types import DATE, FLOAT8, INT4, TEXT, TIMESTAMP, Column, SqlType, TableFacts, TableName

SOURCE = """
CREATE SCHEMA crm;
CREATE SCHEMA sales;
CREATE TYPE crm.mood AS ENUM ('sad', 'it''s ok', 'good');
CREATE TABLE crm.customers (id integer PRIMARY KEY, mood crm.mood, active boolean,
    age integer CHECK (age BETWEEN 18 AND 110), gender varchar CHECK (gender IN ('f', 'm')),
    rating integer CHECK (rating IN (1, 2, 3)), balance decimal(8, 2) CHECK (balance >= -50));
CREATE TABLE sales.orders (id integer PRIMARY KEY, customer_id integer NOT NULL, shop integer, pieces integer,
    total double precision CHECK (total >= 0 AND total <= 500), ordered date CHECK (ordered > '2020-01-01'));
CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer, note varchar);
CREATE TABLE sales.shops (id integer PRIMARY KEY, town varchar);
INSERT INTO crm.customers SELECT i, CASE i % 2 WHEN 0 THEN 'sad' ELSE 'good' END::crm.mood, true, 20 + i % 50, 'f', 2, 1
    FROM generate_series(1, 400) AS t (i);
INSERT INTO sales.shops VALUES (1, 'Bern'), (2, 'Chur');
INSERT INTO sales.orders SELECT i, 1 + i % 400, 1 + i % 2, 1 + i % 7, 100, '2024-01-01'
    FROM generate_series(1, 800) AS t (i);
INSERT INTO orders SELECT i, 1 + i % 400, 'x' FROM generate_series(1, 80) AS t (i);
"""
DRAFTED = (
    "  customers:\n    source: crm.customers\n    unit: id",
    "  sales_orders:\n    source: sales.orders\n    unit: customer_id",
    "  orders:\n    unit: customer_id",
    """mood: {type: text, values: [sad, "it's ok", good], nullable: true} # by ENUM type: the schema, not the data""",
    "gender: {type: text, values: [f, m], nullable: true} # by CHECK: the schema, not the data",
    "age: {type: integer, lower: 18, upper: 110, nullable: true} # by CHECK: the schema, not the data",
    "rating: {type: integer, values: [1, 2, 3], nullable: true} # by CHECK: the schema, not the data",
    "balance: {type: numeric, lower: -50, upper: DECIDE, nullable: true} # lower by CHECK: the schema, not the data",
    "active: {type: boolean, nullable: true}",
    "total: {type: double, lower: 0, upper: 500, nullable: true} # by CHECK: the schema, not the data",
    "ordered: {type: date, lower: 2020-01-01, upper: DECIDE, nullable: true} # lower by CHECK: the schema",
    "# shops: {public: true, source: sales.shops, key: id}",
)
STATEMENTS: dict[str, dict[str, int | str]] = {
    "SELECT mood, count(*) FROM customers GROUP BY mood": {"sad": 200, "it's ok": 0, "good": 200, "": 0},
    "SELECT town, count(*) FROM sales_orders o JOIN shops s ON s.id = o.shop GROUP BY town": {"Bern": 400, "Chur": 400},
    "SELECT 'all', count(*) FROM orders": {"all": 80},
    "SELECT mood, count(*) FROM customers c JOIN sales_orders o ON c.id = o.customer_id GROUP BY 1": {
        "sad": 400,
        "it's ok": 0,
        "good": 400,
        "": 0,
    },
    "SELECT 'all', count(*) FROM customers WHERE mood > 'good' AND mood <> 'no such label'": {"all": 200},
    "SELECT 'all', min(mood) FROM customers": {"all": "good"},
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(dpsql, [str(argument) for argument in arguments])


@pytest.fixture(params=["duckdb", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "duckdb":
        path = tmp_path / "firm.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute(SOURCE)
        yield str(path)
        return
    server = str(request.getfixturevalue("postgres_uri"))
    name = "dpsql_several_schemas"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        admin.execute(f"CREATE DATABASE {name}".encode())
    url = server.replace(f"/{psycopg.conninfo.conninfo_to_dict(server)['dbname']}?", f"/{name}?")
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(SOURCE.encode())
    yield url


def test_all_schemas_are_drafted_and_answer(source: str, tmp_path: Path) -> None:
    policy = tmp_path / "firm.yaml"
    drafted = run("init", source, "-o", policy, "--unit", "customers.id")
    assert drafted.exit_code == 0, drafted.exception
    text = policy.read_text("utf-8")
    for line in DRAFTED:
        assert line in re.sub(" +#", " #", text), text
    answers = {"units": 400, "max_groups": 2, "max_rows_per_group": 3, "epsilon": 4000}
    for key, answer in answers.items():
        text = text.replace(f"{key}: DECIDE", f"{key}: {answer}")
    text = text.replace("integer, lower: DECIDE, upper: DECIDE", "integer, lower: 0, upper: 10")
    text = text.replace("-50, upper: DECIDE", "-50, upper: 100").replace(
        "01-01, upper: DECIDE", "01-01, upper: 2025-01-01"
    )
    text = text.replace("# shops: {public", "shops: {public").replace(", password: DECIDE", "")
    text = text.replace(
        "{budget: {epsilon: 1, delta: 1e-9}, epsilon: 0.25}", "{budget: {epsilon: 4000, delta: 1e-9}, epsilon: 500}"
    )
    policy.write_text(text, "utf-8")
    for command in ("check", "ledger init"):
        done = run(*command.split(), policy)
        assert done.exit_code == 0, done.exception
    for statement, expected in STATEMENTS.items():
        answered = run("query", policy, "--user", "alice", "--format", "csv", statement)
        assert answered.exit_code == 0, f"{statement}: {answered.exception}"
        rows = dict(line.rsplit(",", 1) for line in answered.stdout.splitlines()[1:])
        assert set(rows) == set(expected), statement
        for key, value in expected.items():
            assert rows[key] == value if isinstance(value, str) else abs(float(rows[key]) - value) < 20, statement


def test_schemas_may_be_chosen(source: str) -> None:
    drafted = run("init", source, "--schema", "sales", "--schema", "crm").stdout
    assert "\n  orders:\n    source: sales.orders\n" in drafted
    assert "sales_orders" not in drafted
    missing = run("init", source, "--schema", "nowhere")
    assert isinstance(missing.exception, Rejected)
    assert "crm, " in str(missing.exception.hint)
    assert ", sales" in str(missing.exception.hint)


def test_a_profile_asks_the_right_tables_and_only_what_is_open(tmp_path: Path) -> None:
    path, policy = tmp_path / "firm.duckdb", tmp_path / "firm.yaml"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SOURCE)
    done = run("init", path, "-o", policy, "--unit", "customers.id", "--profile-with-epsilon", "2000")
    assert done.exit_code == 0, done.exception
    text = policy.read_text("utf-8")
    assert "units: 400" in text
    assert "age: {type: integer, lower: 18, upper: 110, nullable: true} " in text
    assert "pieces: {type: integer, lower: 1, upper: 10, nullable: true}" in text


def test_names_that_collide_get_their_schema() -> None:
    tables = (
        TableName("orders", "b"),
        TableName("Orders"),
        TableName("people", "b"),
        TableName("b_orders"),
        TableName("orders", "c"),
    )
    assert called(tables) == {
        TableName("orders", "b"): "b_orders_2",
        TableName("Orders"): "Orders",
        TableName("people", "b"): "people",
        TableName("b_orders"): "b_orders",
        TableName("orders", "c"): "c_orders",
    }


def test_a_source_is_one_table_with_its_schema() -> None:
    assert source_word(TableName("orders", "sales")) == "sales.orders"
    assert source_word(TableName("a.b", "my schema")) == '["my schema", "a.b"]'
    for name in (TableName("orders", "sales"), TableName("a.b", "my schema"), TableName("Other")):
        policy = parse(POLICY.replace("SOURCE", source_word(name)), Path("p.yaml"))
        assert policy.tables["orders"].source == name


@pytest.mark.parametrize(
    ("word", "what"),
    [
        ("a.b.c", "is not the name of a table"),
        ("a.", "is not the name of a table"),
        ("[]", "is not the name of a table"),
        ("{a: b}", "must be text"),
        ("people", "names the same table as tables.people"),
        ("public.People", "names the same table as tables.people"),
    ],
)
def test_a_wrong_source_is_refused(word: str, what: str) -> None:
    with pytest.raises(PolicyError) as refused:
        parse(POLICY.replace("SOURCE", word), Path("p.yaml"))
    assert what in str(refused.value)


POLICY = """
dpsql: 1
dataset: d
backend: duckdb:d.duckdb
privacy: {unit: person, units: 1000, max_groups: 1, max_rows_per_group: 1, budget: {epsilon: 1, delta: 1e-8}}
tables:
  people: {unit: id}
  orders: {unit: id, source: SOURCE}
"""


@pytest.mark.parametrize(
    ("text", "column", "lower", "upper", "values", "of"),
    [
        ("((age >= 0) AND (age <= 120))", "age", "0", "120", None, INT4),
        ("(age BETWEEN 0 AND 120)", "age", "0", "120", None, INT4),
        ("((age > 0) AND (120 > age))", "age", "1", "119", None, INT4),
        ("((age > 0.5) AND (age < 2.5))", "age", "1", "2", None, INT4),
        (
            "((x >= ('-1.5'::numeric)::double precision) AND (x < (3)::double precision))",
            "x",
            "-1.5",
            "3",
            None,
            FLOAT8,
        ),
        ("((x >= -1.5) AND ((x)::numeric(10,2) <= 1e3))", "x", "-1.5", "1000", None, FLOAT8),
        (
            "((s)::text = ANY ((ARRAY['f'::character varying, 'o''k'::character varying])::text[]))",
            "s",
            None,
            None,
            ("f", "o'k"),
            TEXT,
        ),
        ("(s = ANY (ARRAY['a'::text, 'b'::text]))", "s", None, None, ("a", "b"), TEXT),
        ("((s = 'f'::bpchar) OR (s = 'm'::bpchar) OR (s IS NULL))", "s", None, None, ("f", "m"), TEXT),
        ("((s IS NULL) OR (s IN ('x', 'y')))", "s", None, None, ("x", "y"), TEXT),
        ("(d >= CAST('2020-01-31' AS date))", "d", "2020-01-31", None, None, DATE),
        ("((d >= '2020-01-31'::date) AND (d IS NOT NULL))", "d", "2020-01-31", None, None, DATE),
        (
            "(d <= '2020-01-31 10:00:00'::timestamp without time zone)",
            "d",
            None,
            '"2020-01-31 10:00:00"',
            None,
            TIMESTAMP,
        ),
        ('("a b" > 3)', "a b", "4", None, None, INT4),
        ("(d >= 'infinity'::date)", "d", None, None, None, DATE),
        ("(s >= 'a'::text)", "s", None, None, None, TEXT),
        ("(n IN (1, 2.5))", "n", None, None, None, INT4),
    ],
)
def test_constraints_as_both_engines_print_them(
    text: str, column: str, lower: str | None, upper: str | None, values: tuple[str, ...] | None, of: SqlType
) -> None:
    assert words_of(understood(text)[column], of) == (lower, upper, values)


@pytest.mark.parametrize(
    "text",
    [
        "(char_length(s) > 3)",
        "(a > b)",
        "((a > 0) OR (a < -5))",
        "((a > 0) OR (b > 0))",
        "(((a IS NULL) AND (b > 5)) OR ((b >= 0) AND (b <= 3)))",
        "(NOT (a > 0))",
        "((a + 1) > 3)",
        "(a <> 3)",
        "(s ~ '^x'::text)",
        "(a = ANY (ARRAY[b, 3]))",
        "(a > s.b)",
        "(a IS NULL)",
        "(a >",
        "",
        "(" * 3000 + "a > 1" + ")" * 3000,
    ],
)
def test_whatever_else_a_constraint_says_is_not_guessed(text: str) -> None:
    assert understood(text) == {}


def test_several_constraints_hold_together() -> None:
    facts = TableFacts("t", (Column("a", INT4),), checks=("(a > 0)", "(a <= 9)", "(a <> 5)"), enums=(("e", ("x",)),))
    found = limits(facts)
    assert words_of(found["a"], INT4) == ("1", "9", None)
    assert found["e"] == Limits(values=("x",), origin="ENUM type")
