"""DuckDB's postgres extension: what it asks through is answered, what it would compute by itself is refused.

It scans a table with COPY and computes on the rows, so that aggregates over an attached table cannot work; questions
are passed on as they are with postgres_query.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from clients_world import Served

HERE = Path(__file__).parent
INTERPRETER = Path(os.environ.get("NODE_CLIENTS", "/opt/dpsql-clients")) / "duckdb" / "bin" / "python"
QUESTION = "SELECT state, count(*) AS n, sum(amount) AS s, avg(qty) AS a FROM orders GROUP BY state"

pytestmark = pytest.mark.skipif(not INTERPRETER.exists(), reason="DuckDB's postgres extension is not installed")


def asked(served: Served, *statements: str) -> list[Any]:
    dsn = served.dsn.replace(" channel_binding=require", "")  # its libpq has no channel binding over OpenSSL 3
    command = [str(INTERPRETER), str(HERE / "attach.py"), dsn]
    done = subprocess.run(command, input=json.dumps(statements), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_questions(served: Served) -> None:
    """In binary and text COPY, and in a transaction; the same each time."""
    question = f"SELECT * FROM postgres_query('shop', '{QUESTION}')"
    found = asked(served, *[question] * 7, "SET pg_use_text_protocol = true", question, "BEGIN", question, "COMMIT")
    assert [row[0] for row in found[0]] == ["new", "paid", "sent"]
    assert all(rows == found[0] for rows in (*found[:7], found[-2]))
    counted = asked(served, f"SELECT sum(n) FROM postgres_query('shop', '{QUESTION}') WHERE state <> 'new'")
    assert counted[0][0][0] > 0


def test_browses(served: Served) -> None:
    tables, columns, public, filtered = asked(
        served,
        "SELECT schema, name FROM (SHOW ALL TABLES) WHERE schema = 'public' ORDER BY name",
        "SELECT column_name, column_type FROM (DESCRIBE shop.orders)",
        "SELECT * FROM shop.countries ORDER BY code",
        "SELECT name FROM shop.countries WHERE code = 'DE'",
    )
    assert tables == [["public", name] for name in ("countries", "orders", "users", "v_orders")]
    assert ["amount", "DECIMAL(10,2)"] in columns
    assert [row[0] for row in public] == ["DE", "FR", "IT"]
    assert filtered == [["Germany"]]


def test_scans_are_refused(served: Served) -> None:
    """The message says what works, and the connection goes on."""
    *refused, after = asked(
        served,
        "SELECT * FROM shop.orders",
        "SELECT count(*) FROM shop.orders",
        "SELECT state, sum(amount) FROM shop.orders WHERE qty > 1 GROUP BY state",
        "SELECT * FROM shop.v_orders",
        "SELECT * FROM postgres_query('shop', 'SELECT * FROM orders')",
        "SELECT count(*) FROM shop.countries",
    )
    for text in refused:
        assert "never returned" in text
        assert "Ask for aggregates" in text
    assert after == [[3]]
    (changed,) = asked(served, "CALL postgres_execute('shop', 'DELETE FROM orders')")
    assert "DELETE is not permitted" in changed
