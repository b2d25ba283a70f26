"""Letters beyond A to Z change case in Postgres as they do in DuckDB, where the server has a collation for it."""

from __future__ import annotations

import unicodedata
from contextlib import closing

import duckdb
import psycopg
import pytest

from dpsql.backends.postgres import PostgresBackend
from dpsql.compiler.algebra import Call, Col, Expr, Lit
from dpsql.compiler.emit import DIALECTS, Dialect, dialect_of
from dpsql.compiler.emit.common import Emitter
from dpsql.compiler.emit.dialect import LONGEST_FOLDED
from dpsql.types import BOOL, TEXT

LETTERS = [chr(i) for i in range(1, 0x2100) if unicodedata.category(chr(i)) in ("Lu", "Ll")]
OTHERS = {"upper": {"ß", "ƛ", "ɤ", "\u1c8a"}, "lower": {"\u1c89"}}
"""In upper case two letters, or letters of a newer Unicode."""
X = Col("x", TEXT)


@pytest.fixture
def folding(postgres_uri: str) -> str:
    with psycopg.connect(postgres_uri) as connection:
        if connection.info.server_version < 170_000:
            pytest.skip("a collation without a provider's data came with Postgres 17")
    with closing(PostgresBackend(postgres_uri, "UTC")) as backend:
        assert backend.folding == "pg_c_utf8"
        return backend.folding


def answers(uri: str, dialect: Dialect, expr: Expr) -> tuple[dict[str, object], dict[str, object]]:
    """What each backend makes of every letter."""
    made = Emitter(dialect, {}).value(expr).replace("%", "%%")
    there = f'SELECT x, {made} FROM (SELECT x COLLATE "C" FROM unnest(%s::text[]) AS u(x)) AS t("x")'
    here = f'SELECT x, {Emitter(DIALECTS["duckdb"], {}).value(expr)} FROM unnest(?::VARCHAR[]) AS t("x")'
    with psycopg.connect(uri) as connection:
        found: dict[str, object] = dict(connection.execute(there.encode(), [LETTERS]).fetchall())
    with duckdb.connect() as raw:
        return found, dict(raw.execute(here, [LETTERS]).fetchall())


@pytest.mark.parametrize("op", ["lower", "upper"])
def test_letters_change_case_alike(postgres_uri: str, folding: str, op: str) -> None:
    call = Call("lower" if op == "lower" else "upper", (X,), TEXT)
    there, here = answers(postgres_uri, dialect_of("postgres", folding), call)
    assert {x for x in LETTERS if there[x] != here[x]} <= OTHERS[op]
    assert there["Ä" if op == "lower" else "ж"] == ("ä" if op == "lower" else "Ж")
    plain, _ = answers(postgres_uri, dialect_of("postgres", None), call)
    assert plain["Ä"] == "Ä" if op == "lower" else plain["ж"] == "ж"


@pytest.mark.parametrize("pattern", ["%k%", "a_", "%s", "i"])
def test_patterns_match_alike(postgres_uri: str, folding: str, pattern: str) -> None:
    expr = Call("ilike", (Call("concat", (X, Lit("", TEXT)), TEXT), Lit(pattern, TEXT)), BOOL)
    there, here = answers(postgres_uri, dialect_of("postgres", folding), expr)
    assert there == here


def test_what_was_changed_is_in_binary_order_again(postgres_uri: str, folding: str) -> None:
    lowered = Emitter(dialect_of("postgres", folding), {}).value(Call("lower", (X,), TEXT))
    with psycopg.connect(postgres_uri) as connection:
        text = f"SELECT pg_collation_for({lowered}) FROM (SELECT 'Ä'::text AS x) AS t"
        assert connection.execute(text.encode()).fetchone() == ('"C"',)


def test_no_letter_outgrows_the_backend(folding: str) -> None:
    """Some letters take more bytes in the other case, and a result has a gigabyte at most: what is folded is cut."""
    dialect = dialect_of("postgres", folding)
    for call in (Call("upper", (X,), TEXT), Call("lower", (X,), TEXT), Call("ilike", (X, Lit("a%", TEXT)), BOOL)):
        assert f'(LEFT("x", {LONGEST_FOLDED}) COLLATE' in Emitter(dialect, {}).value(call)
    assert LONGEST_FOLDED * max(len(changed.encode()) for x in LETTERS for changed in (x.upper(), x.lower())) < 2**29
