"""The catalog statements that real clients send: the public server, a Postgres, answers them itself."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
from clients_world import Served

from dpsql.compiler import kinds
from dpsql.compiler.statements import split

TRACES = Path(__file__).parents[1] / "session" / "client_queries.sql"
OF_ANOTHER_VERSION = {psycopg.errors.UndefinedColumn: 2, psycopg.errors.UndefinedFunction: 0}
"""How many statements ask for what only the Postgres 15 had that they were traced on."""


def statements() -> list[str]:
    """Each once, without those that take a driver's own values."""
    parts = TRACES.read_text(encoding="utf-8").split("\n;;\n")
    texts = ["\n".join(line for line in part.splitlines() if not line.startswith("-- =====")) for part in parts]
    asked = (getattr(each, "query", each) for text in texts for each in split(text))
    found = {
        each.text
        for each in asked
        if isinstance(each, kinds.Select) and "$1" not in each.text and "pg_sleep" not in each.text
    }
    return sorted(text for text in found if re.search(r"\bpg_\w+|information_schema", text))


def test_traced_statements_are_answered(served: Served) -> None:
    texts, failed = statements(), list[psycopg.Error]()
    assert len(texts) > 110
    with psycopg.connect(served.dsn, autocommit=True) as client:
        for text in texts:
            try:
                client.execute(text.encode())
            except psycopg.Error as error:
                failed.append(error)
    counts = {kind: sum(isinstance(each, kind) for each in failed) for kind in OF_ANOTHER_VERSION}
    assert counts == OF_ANOTHER_VERSION, [str(error) for error in failed]
    assert len(failed) == sum(counts.values()), [str(error) for error in failed]
