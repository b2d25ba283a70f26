"""A policy against a real backend: what is verified, and that everything that does not fit is said at once."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.policy.load import parse
from dpsql.policy.model import Policy
from dpsql.policy.problems import PolicyError
from dpsql.policy.schema import Schema
from dpsql.types import INT8

_TABLES = """
CREATE TABLE customer (c_id integer NOT NULL, name varchar);
CREATE TABLE orders (o_id integer NOT NULL, c_id bigint, price numeric(15,2));
CREATE TABLE lineitem (o_id integer, quantity double precision);
CREATE TABLE nation (code varchar, label varchar);
INSERT INTO customer VALUES (1, 'a'), (2, 'b');
INSERT INTO orders VALUES (10, 1, 5.00), (11, 1, 6.00), (12, 2, 7.00);
INSERT INTO nation VALUES ('IT', 'Italy'), ('NO', 'Norway');
"""
_CONSTRAINTS = """
ALTER TABLE customer ADD PRIMARY KEY (c_id);
ALTER TABLE orders ADD UNIQUE (o_id);
"""
_POLICY = """
dpsql: 1
dataset: shop
backend: BACKEND
privacy: {unit: customer, units: 100, max_groups: 3, max_rows_per_group: 4, budget: {epsilon: 1, delta: 1e-6}}
tables:
  customer: {unit: c_id, max_rows: 1, columns: {name: {type: text, references: nation.code}}}
  orders: {unit: c_id, key: o_id, columns: {price: {type: "numeric(15,2)", lower: 0, upper: 100}}}
  lineitem: {unit: {through: orders, on: {o_id: o_id}}, max_groups: 2, columns: {quantity: {type: double}}}
  nation: {public: true, key: code}
"""


def _policy(backend: str, text: str = _POLICY) -> Policy:
    return parse(text.replace("BACKEND", backend), Path("shop.yaml"))


def _inspect(policy: Policy) -> Schema:
    with closing(open_backend(policy.backend, policy.timezone)) as backend:
        return inspect(backend, policy)


@pytest.fixture
def duckdb_url(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute(_TABLES)
    return f"duckdb:{tmp_path}/shop.duckdb"


@pytest.fixture
def postgres_url(postgres_uri: str) -> str:
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS customer, orders, lineitem, nation CASCADE")
        connection.execute(_TABLES)
    return postgres_uri


def _assert_resolved(schema: Schema) -> None:
    customer, orders, lineitem, nation = (schema.tables[name] for name in ("customer", "orders", "lineitem", "nation"))
    assert schema.unit_type == INT8
    assert [column.name for column in customer.columns] == ["c_id", "name"]
    assert customer.one_row_per_unit
    assert (customer.max_groups, customer.max_rows_per_group) == (1, 1)
    assert [column.name for column in orders.columns] == ["o_id", "c_id", "price"]
    assert frozenset({"o_id"}) in orders.unique
    assert not orders.one_row_per_unit
    assert (lineitem.max_groups, lineitem.max_rows_per_group) == (2, 4)
    assert nation.rows is not None
    assert nation.rows.rows == (("IT", "Italy"), ("NO", "Norway"))


def test_duckdb_verifies_in_the_data(duckdb_url: str) -> None:
    schema = _inspect(_policy(duckdb_url))
    _assert_resolved(schema)
    assert schema.tables["nation"].unique == (frozenset({"code"}),)


def test_postgres_verifies_by_constraints(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(_CONSTRAINTS)
    schema = _inspect(_policy(postgres_url))
    _assert_resolved(schema)
    assert schema.tables["nation"].unique == (), "a snapshot's uniqueness does not last where the data may change"


def test_postgres_without_constraints_is_refused(postgres_url: str) -> None:
    with pytest.raises(PolicyError) as refusal:
        _inspect(_policy(postgres_url))
    assert [(problem.line, problem.key) for problem in refusal.value.problems] == [
        (8, "tables.orders.key"),
        (9, "tables.lineitem.unit.on"),
    ]


@pytest.mark.parametrize("row", ["(12, 1, 0)", "(NULL, 1, 0)"])
def test_declarations_that_are_false_in_the_data_are_refused(duckdb_url: str, row: str) -> None:
    with duckdb.connect(duckdb_url.removeprefix("duckdb:")) as connection:
        connection.execute("ALTER TABLE orders ALTER o_id DROP NOT NULL")
        connection.execute(f"INSERT INTO orders VALUES {row}")
    with pytest.raises(PolicyError) as refusal:
        _inspect(_policy(duckdb_url))
    assert {problem.key for problem in refusal.value.problems} == {"tables.orders.key", "tables.lineitem.unit.on"}


def test_a_false_max_rows_is_not_believed(duckdb_url: str) -> None:
    with duckdb.connect(duckdb_url.removeprefix("duckdb:")) as connection:
        connection.execute("INSERT INTO customer VALUES (1, 'again')")
    customer = _inspect(_policy(duckdb_url)).tables["customer"]
    assert not customer.one_row_per_unit
    assert customer.unique == ()


def test_all_misfits_are_reported_with_place_and_fix(duckdb_url: str) -> None:
    with duckdb.connect(duckdb_url.removeprefix("duckdb:")) as connection:
        connection.execute("CREATE VIEW seen AS SELECT * FROM customer")
    text = """
dpsql: 1
dataset: shop
backend: BACKEND
privacy: {unit: customer, units: 100, max_groups: 3, max_rows_per_group: 4, budget: {epsilon: 1, delta: 1e-6}}
tables:
  customer: {unit: c_di, columns: {name: {type: integer}}}
  orders: {unit: price, columns: {price: {type: numeric, lower: 0.001, upper: 1}}}
  seen: {unit: c_id}
  gone: {unit: c_id}
  nation: {public: true, key: label, columns: {extra: {type: text}}}
"""
    with pytest.raises(PolicyError) as refusal:
        _inspect(_policy(duckdb_url, text))
    found = {problem.key: (problem.line, problem.what, problem.fix) for problem in refusal.value.problems}
    assert found == {
        "tables.customer.unit": (
            7,
            "names `c_di`, no column of customer in the backend",
            "did you mean `c_id`?",
        ),
        "tables.customer.columns.name.type": (7, "is integer, but text in the backend", "write `type: text`"),
        "tables.orders.columns.price": (
            8,
            "holds 0.001, which a numeric(15,2) column cannot",
            "write a value that it can hold",
        ),
        "tables.orders.unit": (
            8,
            "is of type numeric(15,2), by which units cannot be told apart safely",
            "use an integer, text, uuid or date column",
        ),
        "tables.seen": (9, "is a view", "declare a plain table instead"),
        "tables.gone": (
            10,
            "is no table in the backend",
            "create it, say where it is by `source: SCHEMA.TABLE`, or remove it",
        ),
        "tables.nation.columns.extra": (
            11,
            "names `extra`, no column of nation in the backend",
            "use one of code, label",
        ),
    }


def test_units_of_two_types_are_refused(duckdb_url: str) -> None:
    text = """
dpsql: 1
dataset: shop
backend: BACKEND
privacy: {unit: customer, units: 100, max_groups: 3, max_rows_per_group: 4, budget: {epsilon: 1, delta: 1e-6}}
tables: {customer: {unit: name}, orders: {unit: c_id}}
"""
    with pytest.raises(PolicyError, match="has different types"):
        _inspect(_policy(duckdb_url, text))


def test_rows_as_units_need_no_unit_column(duckdb_url: str) -> None:
    text = """
dpsql: 1
dataset: shop
backend: BACKEND
privacy: {unit: row, units: 100, budget: {epsilon: 1, delta: 1e-6}}
tables: {orders: {columns: {price: {type: numeric}}}}
"""
    schema = _inspect(_policy(duckdb_url, text))
    orders = schema.tables["orders"]
    assert schema.unit_type is None
    assert [column.name for column in orders.columns] == ["price"]
    assert orders.one_row_per_unit
    assert (orders.max_groups, orders.max_rows_per_group) == (1, 1)
