"""psycopg 3 through libpq: cursors of both sides, pipeline mode, binary, prepared statements, COPY, cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from clients_world import Served

Client = psycopg.Connection[tuple[Any, ...]]

BY_STATE = "SELECT state, COUNT(*) AS n, SUM(amount) AS s, AVG(qty) AS a FROM orders GROUP BY state"
OF_USERS = "SELECT state, COUNT(*) FROM orders WHERE user_id > %s AND product = %s GROUP BY state"


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    with psycopg.connect(served.dsn, autocommit=True) as connection:
        yield connection


def test_logs_in_by_scram_bound_to_tls(client: Client, served: Served) -> None:
    assert client.pgconn.ssl_in_use
    assert client.info.server_version >= 150000
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(f"{served.unproved} password=wrong")


@pytest.mark.parametrize("binary", [False, True])
def test_types_are_the_announced_ones(client: Client, binary: bool) -> None:
    cursor = client.cursor(binary=binary)
    rows = cursor.execute(BY_STATE).fetchall()
    assert [row[0] for row in rows] == ["new", "paid", "sent"]
    state, count, total, average = rows[0]
    assert (type(state), type(count), type(total), type(average)) == (str, int, Decimal, Decimal)
    assert 500 <= count <= 700
    assert cursor.description is not None
    assert [column.type_code for column in cursor.description] == [25, 20, 1700, 1700]


def test_a_prepared_aggregate_gives_the_same_each_time(client: Client) -> None:
    """From the fifth on psycopg prepares it; binary parameters and results included."""
    answers = [client.execute(OF_USERS, (100, "pen"), binary=True).fetchall() for _ in range(9)]
    assert len(answers[0]) == 3
    assert all(answer == answers[0] for answer in answers)
    assert client.execute(OF_USERS, (100, "cup"), prepare=True).fetchall() != answers[0]


def test_replay_is_free(client: Client) -> None:
    client.execute("SELECT COUNT(*) FROM orders WHERE qty > 1")
    left = client.execute("SELECT epsilon_left FROM dpsql.budget WHERE whose = 'you'").fetchone()
    first = client.execute("SELECT COUNT(*) FROM orders WHERE qty > 1").fetchone()
    assert client.execute("SELECT COUNT(*) FROM orders WHERE qty > 1").fetchone() == first
    assert client.execute("SELECT epsilon_left FROM dpsql.budget WHERE whose = 'you'").fetchone() == left


def test_server_cursors(client: Client) -> None:
    with client.transaction(), client.cursor("one", scrollable=True) as cursor:
        cursor.execute(BY_STATE)
        assert [row[0] for row in cursor.fetchmany(2)] == ["new", "paid"]
        assert [row[0] for row in cursor.fetchall()] == ["sent"]
        cursor.scroll(0, mode="absolute")
        assert len(cursor.fetchall()) == 3
    with client.cursor("two", withhold=True) as held:
        held.execute(BY_STATE)
        assert len(held.fetchall()) == 3
    with client.transaction(), client.cursor("three", binary=True) as binary:
        binary.execute(BY_STATE)
        assert [row[0] for row in binary] == ["new", "paid", "sent"]


def test_pipeline(client: Client) -> None:
    with client.pipeline():
        cursors = [client.execute(OF_USERS, (number, "pen")) for number in range(10)]
        names = client.execute("SELECT relname FROM pg_class WHERE relname = %s", ("orders",))
    assert [len(cursor.fetchall()) for cursor in cursors] == [3] * 10
    assert names.fetchall() == [("orders",)]


def test_a_pipeline_goes_on_after_an_error(client: Client) -> None:
    def ask() -> None:
        with client.pipeline() as pipeline:
            client.execute("SELECT COUNT(nosuch) FROM orders")
            client.execute(BY_STATE)
            pipeline.sync()

    with pytest.raises(psycopg.errors.UndefinedColumn):
        ask()
    assert len(client.execute(BY_STATE).fetchall()) == 3


def test_transactions_and_savepoints(client: Client) -> None:
    with client.transaction():
        with pytest.raises(psycopg.errors.InsufficientPrivilege), client.transaction():
            client.execute("SELECT * FROM orders")
        assert len(client.execute(BY_STATE).fetchall()) == 3


@pytest.mark.parametrize("binary", [False, True])
def test_copy(client: Client, binary: bool) -> None:
    form = "WITH BINARY" if binary else ""
    with client.cursor() as cursor, cursor.copy(f"COPY ({BY_STATE}) TO STDOUT {form}") as copy:
        copy.set_types(["text", "int8", "numeric", "numeric"])
        assert [row[0] for row in copy.rows()] == ["new", "paid", "sent"]


def test_lists_as_parameters(client: Client) -> None:
    text = "SELECT COUNT(*) FROM orders WHERE state = ANY(%s)"
    one = client.execute(text, (["new", "paid"],)).fetchall()
    assert client.execute("SELECT COUNT(*) FROM orders WHERE state IN ('new', 'paid')").fetchall() == one
    assert client.execute(text, (["new", "paid"],), binary=True).fetchall() == one


def test_cancel(client: Client) -> None:
    slow = "SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c"
    timer = threading.Timer(0.3, client.cancel_safe)
    timer.start()
    started = time.monotonic()
    with pytest.raises(psycopg.errors.QueryCanceled):
        client.execute(slow)
    timer.join()
    assert time.monotonic() - started < 3
    assert client.execute("SELECT 1").fetchone() == (1,)


def test_several_statements_in_one(client: Client) -> None:
    cursor = client.execute("SET TimeZone = 'UTC'; SELECT 1; SELECT COUNT(*) FROM countries; SHOW TimeZone")
    found = [cursor.fetchall() for _ in range(4) if cursor.nextset() or cursor.description]
    assert found[:3] == [[(1,)], [(3,)], [("UTC",)]]
