"""psycopg2, asyncpg and pg8000: each logs in over TLS, asks the same often, fetches by cursor, and recovers."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from clients_world import PASSWORD, Served

BY_STATE = "SELECT state, COUNT(*) AS n, SUM(amount) AS s, AVG(qty) AS a FROM orders GROUP BY state"
SLOW = "SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c"


# --- psycopg2 ------------------------------------------------------------------------------------------------------


@pytest.fixture
def psycopg2_client(served: Served) -> Iterator[Any]:
    psycopg2 = pytest.importorskip("psycopg2")
    client = psycopg2.connect(served.dsn)
    yield client
    client.close()


def test_psycopg2_answers(psycopg2_client: Any) -> None:
    with psycopg2_client.cursor() as cursor:
        cursor.execute(BY_STATE)
        assert [row[0] for row in cursor.fetchall()] == ["new", "paid", "sent"]
        assert [column.type_code for column in cursor.description] == [25, 20, 1700, 1700]
        answers = []
        for _ in range(7):
            cursor.execute("SELECT COUNT(*) FROM orders WHERE state = %s AND qty > %s", ("new", 1))
            answers.append(cursor.fetchone())
        assert len(set(answers)) == 1
    psycopg2_client.commit()


def test_psycopg2_named_cursor(psycopg2_client: Any) -> None:
    with psycopg2_client.cursor("named") as cursor:
        cursor.itersize = 2
        cursor.execute(BY_STATE)
        assert [row[0] for row in cursor] == ["new", "paid", "sent"]
    psycopg2_client.rollback()


def test_psycopg2_recovers(psycopg2_client: Any) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    with psycopg2_client.cursor() as cursor:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute("SELECT * FROM users")
        with pytest.raises(psycopg2.errors.InFailedSqlTransaction):
            cursor.execute("SELECT 1")
        psycopg2_client.rollback()
        timer = threading.Timer(0.3, psycopg2_client.cancel)
        timer.start()
        with pytest.raises(psycopg2.errors.QueryCanceled):
            cursor.execute(SLOW)
        timer.join()
        psycopg2_client.rollback()
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


# --- asyncpg -------------------------------------------------------------------------------------------------------


def test_asyncpg(served: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def converse() -> None:
        client = await asyncpg.connect(served.url, ssl=_tls(served))
        try:
            await _asyncpg_answers(client)
            await _asyncpg_cursors(client)
            await _asyncpg_recovers(client, asyncpg)
        finally:
            await client.close()

    asyncio.run(converse())


def _tls(served: Served) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(served.ca))


async def _asyncpg_answers(client: Any) -> None:
    rows = await client.fetch(BY_STATE)
    assert [row["state"] for row in rows] == ["new", "paid", "sent"]
    assert [type(value) for value in rows[0].values()] == [str, int, Decimal, Decimal]
    text = "SELECT state, COUNT(*) FROM orders WHERE user_id > $1 AND qty <= $2 GROUP BY state"
    answers = [await client.fetch(text, 10, 4) for _ in range(7)]
    assert all(answer == answers[0] for answer in answers)
    names = await client.fetch(
        "SELECT oid, relname, relkind, relacl FROM pg_class WHERE relname = ANY($1::text[])", ["orders"]
    )
    assert [(row["relname"], row["relkind"]) for row in names] == [("orders", b"r")]
    assert await client.fetchval("SELECT current_schemas(true)") == ["pg_catalog", "public"]
    assert set((await client.fetchrow("SELECT indoption FROM pg_index LIMIT 1"))["indoption"]) <= {0, 1, 2, 3}


async def _asyncpg_cursors(client: Any) -> None:
    async with client.transaction():
        assert [row["state"] async for row in client.cursor(BY_STATE, prefetch=1)] == ["new", "paid", "sent"]
        cursor = await client.cursor(BY_STATE)
        assert len(await cursor.fetch(2)) == 2
        assert len(await cursor.fetch(2)) == 1


async def _asyncpg_recovers(client: Any, asyncpg: Any) -> None:
    for text in ("SELECT * FROM orders", "COPY orders TO STDOUT"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await client.execute(text)
    with pytest.raises(asyncpg.UndefinedColumnError):
        await client.fetch("SELECT COUNT(nosuch) FROM orders WHERE qty > $1", 1)
    with pytest.raises(asyncio.TimeoutError):
        await client.fetch(SLOW, timeout=0.3)
    assert await client.fetchval("SELECT 1") == 1


def test_asyncpg_pool(served: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def converse() -> None:
        async with asyncpg.create_pool(served.url, ssl=_tls(served), min_size=2, max_size=4) as pool:
            first = await pool.fetchval("SELECT COUNT(*) FROM orders")
            answers = await asyncio.gather(*(pool.fetchval("SELECT COUNT(*) FROM orders") for _ in range(12)))
            assert set(answers) == {first}

    asyncio.run(converse())


# --- pg8000 --------------------------------------------------------------------------------------------------------


def test_pg8000(served: Served) -> None:
    native = pytest.importorskip("pg8000.native")
    tls = _tls(served)
    with native.Connection("alice", "localhost", "shop", served.port, PASSWORD, ssl_context=tls) as client:
        assert [row[0] for row in client.run(BY_STATE)] == ["new", "paid", "sent"]
        text = "SELECT COUNT(*) FROM orders WHERE state = :state AND user_id > :lowest"
        answers = [client.run(text, state="new", lowest=7) for _ in range(7)]
        assert all(answer == answers[0] for answer in answers)
        prepared = client.prepare(text)
        assert prepared.run(state="new", lowest=7) == answers[0]
        with pytest.raises(native.DatabaseError, match="42501"):
            client.run("SELECT id FROM users")
        client.run("BEGIN")
        client.run(f"DECLARE c CURSOR FOR {BY_STATE}")
        assert len(client.run("FETCH 2 FROM c")) == 2
        client.run("COMMIT")
        assert client.run("SELECT relname FROM pg_class WHERE relname = :name", name="users") == [["users"]]
