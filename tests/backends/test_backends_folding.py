"""Letters change case alike in both backends, by the table of `folding`, as Postgres maps them one to one."""

from __future__ import annotations

import duckdb
import psycopg
import pytest

from dpsql.compiler import folding
from dpsql.compiler.algebra import Call, Col, Expr, Lit
from dpsql.compiler.emit import DIALECTS
from dpsql.compiler.emit import text as texts
from dpsql.compiler.emit.common import Emitter
from dpsql.types import BOOL, TEXT

X = Col("x", TEXT)
LETTERS = [chr(i) for i in range(1, 0x3000) if not 0xD800 <= i < 0xE000]
WORDS = [
    "Straße",
    "ΟΔΟΣ",
    "οδος",
    "İstanbul",
    "ǅemal",
    "naïve CAFÉ",
    "Иван",
    "ქ",
    "Éric – №1",
    "日本 É",
    "e\u0301É",
    None,
]


def answers(uri: str, expr: Expr, values: list[str]) -> tuple[dict[str, object], dict[str, object]]:
    """What each backend makes of every text."""
    made = Emitter(DIALECTS["postgres"], {}).value(expr).replace("%", "%%")
    there = f'SELECT x, {made} FROM (SELECT x COLLATE "C" FROM unnest(%s::text[]) AS u(x)) AS t("x")'
    here = f'SELECT x, {Emitter(DIALECTS["duckdb"], {}).value(expr)} FROM unnest(?::VARCHAR[]) AS t("x")'
    with psycopg.connect(uri) as connection:
        found: dict[str, object] = dict(connection.execute(there.encode(), [values]).fetchall())
    with duckdb.connect() as raw:
        return found, dict(raw.execute(here, [values]).fetchall())


def _values() -> list[str]:
    return [*LETTERS, *(word for word in WORDS if word is not None), *(f"É{letter}z" for letter in LETTERS)]


def _call(op: str) -> Call:
    return Call("lower" if op == "lower" else "upper", (X,), TEXT)


def agree(uri: str, op: str) -> bool:
    there, here = answers(uri, _call(op), _values())
    change = folding.lower if op == "lower" else folding.upper
    return there == here == {x: change(x) for x in _values()}


@pytest.mark.parametrize("op", ["lower", "upper"])
def test_letters_change_case_alike(postgres_uri: str, op: str) -> None:
    assert agree(postgres_uri, op)


@pytest.mark.parametrize("op", ["lower", "upper"])
def test_letters_of_the_table_are_those_of_postgres(postgres_uri: str, op: str) -> None:
    letters = sorted({*folding.UPPER, *folding.LOWER, *"ßŉǰΐΰև", *map(chr, range(1, 128))})
    with psycopg.connect(postgres_uri) as connection:
        if connection.info.server_version < 170_000:
            pytest.skip("the collation pg_c_utf8 came with Postgres 17")
        there = f'SELECT x, {op}(x COLLATE "pg_c_utf8") FROM unnest(%s::text[]) AS t(x)'
        said: dict[str, str] = dict(connection.execute(there.encode(), [letters]).fetchall())
    assert said == {x: folding.lower(x) if op == "lower" else folding.upper(x) for x in letters}


@pytest.mark.parametrize("pattern", ["%k%", "a_", "%s", "i", "É%", "%ß%", "оλ", "ἀ"])
def test_patterns_match_alike(postgres_uri: str, pattern: str) -> None:
    expr = Call("ilike", (Call("concat", (X, Lit("", TEXT)), TEXT), Lit(pattern, TEXT)), BOOL)
    there, here = answers(postgres_uri, expr, _values())
    assert there == here


def test_what_was_changed_is_in_binary_order_again(postgres_uri: str) -> None:
    lowered = Emitter(DIALECTS["postgres"], {}).value(_call("lower"))
    with psycopg.connect(postgres_uri) as connection:
        text = f"SELECT pg_collation_for({lowered}) FROM (SELECT 'Ä'::text AS x) AS t"
        assert connection.execute(text.encode()).fetchone() == ('"C"',)


def test_mutant_the_backends_own_folding(postgres_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "folded", lambda emitter, op, sql: f"{op.upper()}({sql})")
    assert not agree(postgres_uri, "upper")


def test_mutant_duckdb_agrees_on_sharp_s(postgres_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "_AGREED", "[\\x{1}-\\x{1FFF}]*")
    assert not agree(postgres_uri, "upper")


def test_words_begin_with_a_capital() -> None:
    assert folding.initials("ähre straße ΟΔΟΣ it's 3rd naïve-café") == "Ähre Straße Οδοσ It'S 3rd Naïve-Café"
    assert folding.initials("ა") is None
