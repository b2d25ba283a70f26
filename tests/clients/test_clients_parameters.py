"""Parameters that a client leaves untyped: what Describe says of them, and lists, as drivers send both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from clients_world import Served

Client = psycopg.Connection[tuple[Any, ...]]
BOOL, INT8, INT4, TEXT, DATE = 16, 20, 23, 25, 1082


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    with psycopg.connect(served.dsn, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(
    ("condition", "types"),
    [
        ("state IN ($1,$2)", [TEXT, TEXT]),
        ("qty IN ($1,$2)", [INT4, INT4]),
        ("qty > $1::INTEGER AND state = $2::VARCHAR", [INT4, TEXT]),
        ("qty > $1 AND d >= $2 AND flag = $3", [INT4, DATE, BOOL]),
        ("user_id = $2 AND state = $1", [TEXT, INT8]),
        ("state = ANY($1)", [1009]),
        ("qty = ANY($1)", [1007]),
        ("user_id = ANY($1) AND d = ANY($2)", [1016, 1182]),
        ("state <> ALL($1::text[])", [1009]),
        ("state = ANY('{new,paid}') AND qty = $1", [INT4]),
    ],
)
def test_types_of_parameters(client: Client, condition: str, types: list[int]) -> None:
    prepared = client.pgconn.prepare(b"", f"SELECT COUNT(*) FROM orders WHERE {condition}".encode())
    assert prepared.error_message == b""
    described = client.pgconn.describe_prepared(b"")
    assert [described.param_type(at) for at in range(described.nparams)] == types


@pytest.mark.parametrize(
    ("listed", "values", "plain"),
    [
        ("state = ANY($1)", [b"{new,paid}"], "state IN ('new', 'paid')"),
        ("state = ANY($1::text[])", [b'{"sent"}'], "state IN ('sent')"),
        ("state <> ALL($1)", [b"{new}"], "state NOT IN ('new')"),
        ("qty = ANY($1)", [b"{1,2}"], "qty IN (1, 2)"),
        ("qty <> ALL($1)", [b"{}"], "TRUE"),
        ("qty = ANY('{3,4}'::int[])", [], "qty IN (3, 4)"),
        ("qty = ANY($1) AND state IN ($2,$3)", [b"{5}", b"new", b"paid"], "qty IN (5) AND state IN ('new', 'paid')"),
    ],
)
def test_a_list_is_asked_like_its_elements(client: Client, listed: str, values: list[bytes], plain: str) -> None:
    """The same question, so the second one is a replay."""
    given = client.pgconn.exec_params(f"SELECT COUNT(*) FROM orders WHERE {listed}".encode(), values)
    assert given.error_message == b""
    expected = client.execute(f"SELECT COUNT(*) FROM orders WHERE {plain}".encode()).fetchone()
    assert expected is not None
    assert given.get_value(0, 0) == str(expected[0]).encode()


def test_long_lists_are_refused(client: Client) -> None:
    with pytest.raises(psycopg.errors.StatementTooComplex, match="1000 elements"):
        client.execute("SELECT COUNT(*) FROM orders WHERE qty = ANY(%s)", (list(range(1001)),))
