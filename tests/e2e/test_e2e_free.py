"""Free statements without end harm nobody else: rows pass on unread, with back-pressure, in processes of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from e2e.proxy import Client, Proxy, ask, serving
from e2e.world import Terms

ENDLESS = (
    "SELECT a.shop FROM " + ", ".join(f"shops {name}" for name in "abcdefghijklm"),
    "SELECT repeat('x', 100000) FROM generate_series(1, 1000000)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000) b",
)
MOST = 100 << 20
"""Bytes that the proxy may grow."""


@pytest.fixture(scope="module")
def proxy(make_policy: Callable[[str, str, Terms], Path]) -> Iterator[Proxy]:
    with serving(make_policy("duckdb", "clean", Terms())) as proxy:
        yield proxy


def resident(proxy: Proxy) -> int:
    fields = Path(f"/proc/{proxy.process.pid}/statm").read_text().split()
    return int(fields[1]) * 4096


def reading(client: Client, statement: str, hurry: threading.Event, errors: list[str | None]) -> None:
    """Reads row by row, slowly until it is told to hurry: what is on its way comes before the error."""
    try:
        with client.cursor() as cursor:
            for _ in cursor.stream(statement.encode()):
                hurry.wait(0.01)
    except psycopg.Error as error:
        errors.append(error.sqlstate)


@pytest.mark.parametrize("statement", ENDLESS, ids=["product", "wide", "recursive", "count"])
def test_nobody_is_harmed(proxy: Proxy, statement: str) -> None:
    errors, hurry = list[str | None](), threading.Event()
    with proxy.connect("bob") as other, proxy.connect() as client:
        before = resident(proxy)
        thread = threading.Thread(target=reading, args=(client, statement, hurry, errors))
        thread.start()
        waits = []
        for _ in range(60):
            begun = time.monotonic()
            assert ask(other, "SELECT COUNT(*) FROM shops") == [(5,)]
            waits.append(time.monotonic() - begun)
            time.sleep(0.02)
        assert sorted(waits)[-3] < 2, waits
        assert resident(proxy) - before < MOST
        begun = time.monotonic()
        client.cancel()
        hurry.set()
        thread.join(20)
        assert errors == ["57014"]
        assert time.monotonic() - begun < 5


def test_one_value_too_wide_is_an_error_of_its_session_alone(proxy: Proxy) -> None:
    with proxy.connect("bob") as other, proxy.connect() as client:
        with pytest.raises(psycopg.Error):
            client.execute(b"SELECT length(repeat('x', 1000000000) || repeat('y', 1000000000))")
        assert ask(client, "SELECT 1") == [(1,)]
        assert ask(other, "SELECT 1") == [(1,)]
