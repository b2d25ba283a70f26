"""Clients that fill data frames: SQLAlchemy's reflection, pandas, ADBC, connectorx."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any

import pytest
from clients_world import Served

BY_STATE = "SELECT state, COUNT(*) AS n, SUM(amount) AS s, AVG(qty) AS a FROM orders GROUP BY state"


@pytest.fixture(params=["psycopg", "psycopg2", "pg8000"])
def engine(served: Served, request: pytest.FixtureRequest) -> Iterator[Any]:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip(request.param)
    options: dict[str, object] = {"sslmode": "verify-full", "sslrootcert": str(served.ca)}
    if request.param == "pg8000":
        options = {"ssl_context": ssl.create_default_context(cafile=str(served.ca))}
    made = sqlalchemy.create_engine(
        served.url.replace("postgresql", f"postgresql+{request.param}"), connect_args=options
    )
    yield made
    made.dispose()


def test_sqlalchemy_reflects(engine: Any) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["countries", "orders", "users"]
    assert inspector.get_view_names() == ["v_orders"]
    assert inspector.get_pk_constraint("users")["constrained_columns"] == ["id"]
    (reference,) = inspector.get_foreign_keys("users")
    assert (reference["referred_table"], reference["referred_columns"]) == ("countries", ["code"])
    columns = {column["name"]: column for column in inspector.get_columns("orders")}
    assert str(columns["amount"]["type"]) == "NUMERIC(10, 2)"
    assert columns["amount"]["comment"] == "From 0.00 to 100.00"
    assert inspector.get_indexes("users") == inspector.get_unique_constraints("users") == []
    assert "Private" in inspector.get_table_comment("orders")["text"]
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine, views=True)
    assert set(metadata.tables) == {"countries", "orders", "users", "v_orders"}


def test_sqlalchemy_asks(engine: Any) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    orders = sqlalchemy.Table("orders", sqlalchemy.MetaData(), autoload_with=engine)
    query = (
        sqlalchemy.select(orders.c.state, sqlalchemy.func.count().label("n"))
        .where(orders.c.qty > 1, orders.c.state.in_(["new", "paid"]))
        .group_by(orders.c.state)
    )
    with engine.connect() as connection:
        answers = [connection.execute(query).all() for _ in range(7)]
        assert [row.state for row in answers[0]] == ["new", "paid"]
        assert all(answer == answers[0] for answer in answers)
        with pytest.raises(sqlalchemy.exc.ProgrammingError):
            connection.execute(sqlalchemy.select(orders))
        connection.rollback()
        assert connection.execute(sqlalchemy.text("SELECT 1")).scalar() == 1


def test_pandas(served: Served) -> None:
    pandas, sqlalchemy = pytest.importorskip("pandas"), pytest.importorskip("sqlalchemy")
    options = {"sslmode": "verify-full", "sslrootcert": str(served.ca)}
    engine = sqlalchemy.create_engine(served.url.replace("postgresql", "postgresql+psycopg"), connect_args=options)
    frame = pandas.read_sql(BY_STATE, engine)
    assert list(frame.columns) == ["state", "n", "s", "a"]
    assert frame["n"].dtype == "int64"
    again = pandas.read_sql(sqlalchemy.text(BY_STATE), engine)
    assert again.equals(frame)
    assert len(pandas.read_sql_table("countries", engine)) == 3
    with pytest.raises(pandas.errors.DatabaseError, match="Ask for aggregates"):
        pandas.read_sql_table("orders", engine)
    engine.dispose()


def test_adbc(served: Served) -> None:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    pytest.importorskip("pyarrow")
    with dbapi.connect(served.libpq_url) as connection, connection.cursor() as cursor:
        cursor.execute(BY_STATE)
        table = cursor.fetch_arrow_table()
        assert table.column("state").to_pylist() == ["new", "paid", "sent"]
        assert str(table.schema.field("n").type) == "int64"
        answers = []
        for _ in range(7):
            cursor.execute("SELECT COUNT(*) AS n FROM orders WHERE state = $1", ("new",))
            answers.append(cursor.fetch_arrow_table().to_pylist())
        assert all(answer == answers[0] for answer in answers)
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        names = {
            table["table_name"]
            for found in objects
            if found["catalog_name"] == "shop"
            for schema in found["catalog_db_schemas"]
            if schema["db_schema_name"] == "public"
            for table in schema["db_schema_tables"]
        }
        assert {"orders", "users", "countries", "v_orders"} <= names
        assert connection.adbc_get_table_schema("orders").names[:2] == ["user_id", "state"]
        with pytest.raises(dbapi.ProgrammingError, match="SELECT"):
            cursor.execute("SELECT * FROM orders")
        connection.rollback()
        cursor.execute("SELECT 1 AS one")
        assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor", "simple"])
def test_connectorx(served: Served, protocol: str) -> None:
    connectorx = pytest.importorskip("connectorx")
    pytest.importorskip("pyarrow")
    url = f"{served.url}?sslmode=require&sslrootcert={served.ca}"
    text = "SELECT state, COUNT(*) AS n FROM orders GROUP BY state"
    table = connectorx.read_sql(url, text, return_type="arrow", protocol=protocol)
    assert table.column("state").to_pylist() == ["new", "paid", "sent"]
    again = connectorx.read_sql(url, text, return_type="arrow", protocol=protocol)
    assert again.column("n").to_pylist() == table.column("n").to_pylist()
    with pytest.raises(RuntimeError):
        connectorx.read_sql(url, "SELECT * FROM orders", return_type="arrow", protocol=protocol)
