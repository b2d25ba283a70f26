"""Splitting and classifying texts, honest and hostile."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.compiler import kinds as k
from dpsql.compiler.statements import split
from dpsql.compiler.tokens import MAX_BYTES, TokenKind, scan
from dpsql.errors import Rejected

TRACES = Path(__file__).parent / "client_queries.sql"


def one(text: str) -> k.Statement:
    (statement,) = split(text)
    return statement


# --- tokens --------------------------------------------------------------------------------------------------------


def meanings(text: str) -> list[str]:
    return [token.text for token in scan(text).tokens]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("SELECT a.B, 'It''s'", ["select", "a", ".", "b", ",", "It's"]),
        (r"E'a\'b\n' 'a\'", ["a'b\n", "a\\"]),
        ("U&'d\\0061t' U&\"x\" N'n' B'01' X'ff'", ["d\\0061t", "x", "n", "01", "ff"]),
        ('"A ""b""" a$1 $1', ['A "b"', "a$1", "$1"]),
        ("$$a'b$$ $t$ $$ ; -- $t$", ["a'b", " $$ ; -- "]),
        ("1.5e-3 .5 1. 12::int4", ["1.5e-3", ".5", "1.", "12", "::", "int4"]),
        ("/* a /* b */ ' */ 1 -- ' /* \n+2", ["1", "+", "2"]),
        ("a--b\r\n*/**/c", ["a", "*", "c"]),
        ("\u212a \u0130 gr\u00f6\u00dfe", ["\u212a", "\u0130", "gr\u00f6\u00dfe"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert meanings(text) == tokens


def test_comments_become_blanks_of_equal_length() -> None:
    text = "SELECT /* ' ; */ 1 -- aa */ SELECT ... --\n , 2"
    plain = scan(text).plain
    assert plain == f"SELECT {' ' * 10}1 {' ' * 22}\n , 2"
    assert len(plain) == len(text)
    assert one(text) == k.Select(plain, 0)


@pytest.mark.parametrize("character", "\u00a0\u3000\ufeff\u200b\u200d\u2028\u00ad\u202e\x07\x1b\\`{}\u2019\uff11")
def test_characters_that_hide_something(character: str) -> None:
    with pytest.raises(Rejected, match="invalid character") as caught:
        split(f"SELECT {character}1")
    assert (caught.value.sqlstate, caught.value.position) == ("42601", 8)
    assert isinstance(one(f"SELECT '{character}', \"{character}\" /* {character} */"), k.Select)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 'a",
        'SELECT "a',
        'SELECT ""',
        "SELECT E'a\\'",
        "SELECT $x$ $y$",
        "SELECT /* /* */",
        "SELECT (1",
        "SELECT 1)",
        "SELECT (1]",
        "SELECT (CASE WHEN 1 )",
        "SELECT (1; SELECT 2)",
        "SELECT 1\x00",
        "SELECT \ud800",
    ],
)
def test_texts_without_structure(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        split(text)
    assert caught.value.sqlstate == "42601"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000_000,
        "SELECT " + "(" * 101 + "1" + ")" * 101,
        "SELECT " + "(" * 60_000,
        "SELECT " + "[" * 200,
        "SELECT " + "CASE WHEN " * 500,
        "SELECT " + "NOT " * 500 + "TRUE",
        "SELECT " + "(NOT " * 60 + "TRUE" + ")" * 60,
        "SELECT " + "- " * 500 + "1",
        "SELECT 1 IN (" + "1," * 200_000 + "1)",
        "SELECT " + "a OR " * 10_000 + "a",
        "SELECT '" + "x" * 5_000_000 + "'",
        "SELECT '" + "\u20ac" * (MAX_BYTES // 2) + "'",
        "SELECT 1" + "/**/" * 16_000,
        "SELECT " + "$a$$a$" * 10_000,
        "SELECT 1;" * 7_000,
        "EXPLAIN " * 8_000,
        "SELECT 1 FROM a" + " JOIN b" * 22,
        "SELECT 1 FROM a" + " LEFT JOIN (b JOIN (c" * 6 + "))" * 6,
        "SELECT 1 WHERE" + " NATURAL JOIN" * 24,
        "SELECT " + "ARRAY[" * 24 + "1" + "]" * 24,
        "SELECT " + "numeric(" * 24 + "1" + ")" * 24,
        "SELECT " + "a BETWEEN if " * 24 + "1",
    ],
)
def test_limits_are_answered_at_once(text: str) -> None:
    started = time.thread_time()
    with pytest.raises(Rejected) as caught:
        split(text)
    assert caught.value.sqlstate == "54001"
    assert time.thread_time() - started < 1.0 * _slack(), "a text within the limits may not take quadratic time"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 FROM a" + " JOIN b ON TRUE" * 300,
        "SELECT 1 FROM a" + " NATURAL LEFT OUTER JOIN b" * 100 + " CROSS JOIN c" * 100,
        "SELECT 1 FROM a JOIN b JOIN c JOIN d ON TRUE ON TRUE ON TRUE",
        "SELECT ARRAY[ARRAY[1, 2], ARRAY[3]], a[1][2], " + ", ".join(["date(x)::numeric(10, 2)"] * 100),
        "SELECT " + "(" * 99 + "1" + ")" * 99,
        "SELECT " + "CASE WHEN NOT x THEN -1 END, " * 200 + "1",
    ],
)
def test_ordinary_nesting_is_allowed(text: str) -> None:
    assert isinstance(one(text), k.Select)


def _slack() -> float:
    """How much slower than an idle machine this one is now; only the thread's own time is counted."""
    started = time.thread_time()
    sum(range(200_000))
    return max(1.0, (time.thread_time() - started) / 0.005)


@pytest.mark.parametrize(
    "text", ["'" * 65_000, '"' * 65_000, "/*" * 30_000, "-" * 65_000, "$a" * 30_000, "E'\\" * 20_000]
)
def test_no_text_is_slow(text: str) -> None:
    started = time.thread_time()
    with contextlib.suppress(Rejected):
        split(text)
    assert time.thread_time() - started < 1.0 * _slack(), "a text within the limits may not take quadratic time"


@given(st.text(alphabet="abE$'\"\\-/*;()[]., \n1\u00a0\u00e9U&:=|", max_size=60))
def test_any_text_is_split_or_rejected(text: str) -> None:
    try:
        statements = split(text)
    except Rejected:
        return
    for statement in statements:
        if isinstance(statement, k.Select):
            assert "--" not in scan(statement.text).plain.replace("'", "")
            end = statement.offset + len(statement.text)
            assert 0 <= statement.offset <= end <= len(text)


def test_positions_survive() -> None:
    text = "-- first\nSELECT 1; /* x */ (SELECT 2)"
    first, second = split(text)
    assert isinstance(first, k.Select)
    assert isinstance(second, k.Select)
    assert text[first.offset :].startswith("SELECT 1;")
    assert text[second.offset :] == second.text == "(SELECT 2)"


# --- statements ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", k.Empty()),
        (";;", k.Empty()),
        ("BEGIN", k.Begin("BEGIN")),
        ("begin work", k.Begin("BEGIN")),
        ("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", k.Begin("BEGIN")),
        ("BEGIN READ WRITE, NOT DEFERRABLE", k.Begin("BEGIN")),
        ("START TRANSACTION READ ONLY", k.Begin("START TRANSACTION")),
        ("END", k.Commit()),
        ("COMMIT AND NO CHAIN", k.Commit()),
        ("ABORT", k.Rollback()),
        ("ROLLBACK TO SAVEPOINT a", k.RollbackTo("a")),
        ('SAVEPOINT "_pg3_1"', k.Savepoint("_pg3_1")),
        ('RELEASE "_pg3_1"', k.ReleaseSavepoint("_pg3_1")),
        ("RELEASE SAVEPOINT x", k.ReleaseSavepoint("x")),
        ("SET dpsql.epsilon = 0.2", k.Set("dpsql.epsilon", "0.2")),
        ("SET LOCAL a.b TO 'x', y", k.Set("a.b", "x, y", local=True)),
        ("SET SESSION search_path TO 'public'", k.Set("search_path", "public")),
        ("SET x TO DEFAULT", k.Set("x", None)),
        ("SET x = -1", k.Set("x", "-1")),
        ("SET NAMES 'utf8'", k.Set("client_encoding", "utf8")),
        ("SET TIME ZONE LOCAL", k.Set("timezone", "local")),
        ("SET ROLE bob", k.Set("role", "bob")),
        ("SET role = bob", k.Set("role", "bob")),
        ("SET SESSION AUTHORIZATION DEFAULT", k.Set("session_authorization", None)),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", k.SetCharacteristics()),
        ("SET CONSTRAINTS ALL DEFERRED", k.SetCharacteristics()),
        ("SHOW dpsql.budget", k.Show("dpsql.budget")),
        ("SHOW ALL", k.Show("all")),
        ("RESET SESSION AUTHORIZATION", k.Reset("session_authorization")),
        ("DISCARD TEMPORARY", k.Discard("TEMP")),
        ("DEALLOCATE PREPARE ALL", k.Deallocate(None)),
        ('DEALLOCATE "_PLAN0x55"', k.Deallocate("_PLAN0x55")),
        ("NOTIFY a, 'b'", k.Listening("NOTIFY")),
        ("UNLISTEN *", k.Listening("UNLISTEN")),
        ("CLOSE ALL", k.CloseCursor(None)),
        ("FETCH c", k.Fetch("c", "forward", 1)),
        ("FETCH next", k.Fetch("next", "forward", 1)),
        ("FETCH ALL IN c", k.Fetch("c", "forward", None)),
        ("FETCH FORWARD FROM c", k.Fetch("c", "forward", 1)),
        ("FETCH BACKWARD ALL c", k.Fetch("c", "backward", None)),
        ("FETCH -2 FROM c", k.Fetch("c", "forward", -2)),
        ("MOVE ABSOLUTE -1 FROM c", k.Fetch("c", "absolute", -1, move=True)),
        ("EXECUTE p", k.ExecutePrepared("p", ())),
        ("EXECUTE p(1, NULL, 'a'::text, true, -2.5)", k.ExecutePrepared("p", ("1", None, "a", "true", "-2.5"))),
    ],
)
def test_commands(text: str, expected: k.Statement) -> None:
    assert one(text) == expected
    assert one(f"/* x */ {text} -- y") == expected


def test_queries_inside_statements() -> None:
    assert one("EXPLAIN SELECT 1") == k.Explain(k.Select("SELECT 1", 8), "text")
    assert one("EXPLAIN (FORMAT JSON, COSTS off) (SELECT 1)") == k.Explain(k.Select("(SELECT 1)", 33), "json")
    assert one("EXPLAIN VERBOSE WITH a AS (SELECT 1) SELECT 2") == k.Explain(
        k.Select("WITH a AS (SELECT 1) SELECT 2", 16), "text"
    )
    assert one("PREPARE p (numeric(3, 2), int[], pg_catalog.text, timestamp with time zone) AS SELECT 1") == k.Prepare(
        "p", ("numeric", "int[]", "text", "timestamp with time zone"), k.Select("SELECT 1", 79)
    )
    assert one("DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR\nSELECT 1") == k.Declare(
        "c", k.Select("SELECT 1", 44), scroll=False
    )
    assert one('COPY (SELECT 1) TO STDOUT (FORMAT "binary")') == k.CopyOut(k.Select("SELECT 1", 6), "binary")
    assert one("COPY public.t (a, b) TO STDOUT") == k.CopyOut(k.Select("SELECT a, b FROM public.t", -12), "text")
    assert one("TABLE public.people") == k.Select("SELECT * FROM public.people", -8)


def test_options_of_differential_privacy() -> None:
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, Max_Groups_Contributed = 3, delta = NULL) x"
    statement = one(text)
    assert isinstance(statement, k.Select)
    assert statement.options == (("epsilon", "0.5"), ("max_groups_contributed", "3"))
    assert statement.text.split() == ["SELECT", "x"]
    assert len(statement.text) == len(text)
    inner = one("SELECT * FROM (SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t) AS s")
    assert isinstance(inner, k.Select)
    assert " ".join(inner.text.split()) == "SELECT * FROM (SELECT COUNT(*) FROM t) AS s"
    twice = one(f"{text} UNION ALL {text}")
    assert isinstance(twice, k.Unsupported)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("INSERT INTO people VALUES (1)", "42501"),
        ("UPDATE people SET age = 1", "42501"),
        ("DELETE FROM people", "42501"),
        ("MERGE INTO people USING x ON true WHEN MATCHED THEN DELETE", "42501"),
        ("TRUNCATE people", "42501"),
        ('CREATE LOCAL TEMPORARY TABLE "#Tableau_1" (a int)', "42501"),
        ("DROP TABLE people", "42501"),
        ("ALTER ROLE alice SUPERUSER", "42501"),
        ("GRANT ALL ON people TO alice", "42501"),
        ("DO $$ BEGIN END $$", "42501"),
        ("CALL f()", "42501"),
        ("LOCK TABLE people", "42501"),
        ("VACUUM people", "42501"),
        ("ANALYZE people", "42501"),
        ("LOAD 'x'", "42501"),
        ("COPY people TO PROGRAM 'sh'", "42501"),
        ("COPY people TO '/tmp/x'", "42501"),
        ("COPY people FROM STDIN", "42501"),
        ("COPY (UPDATE people SET age = 1 RETURNING *) TO STDOUT", "42501"),
        ("SELECT * INTO x FROM people", "42501"),
        ("SELECT * FROM people FOR UPDATE", "42501"),
        ("SELECT * FROM people FOR NO KEY UPDATE", "42501"),
        ("WITH x AS (DELETE FROM people RETURNING *) SELECT * FROM x", "42501"),
        ("WITH x AS MATERIALIZED (INSERT INTO p VALUES (1) RETURNING *) SELECT 1", "42501"),
        ("WITH x AS (SELECT 1) DELETE FROM people", "42501"),
        ("WITH x AS (SELECT 1) UPDATE people SET a = 1", "42501"),
        ("EXPLAIN ANALYZE SELECT 1", "42501"),
        ("EXPLAIN VERBOSE ANALYZE SELECT 1", "42501"),
        ("EXPLAIN (ANALYZE) SELECT 1", "42501"),
        ("EXPLAIN (VERBOSE, ANALYSE on) SELECT 1", "42501"),
        ("EXPLAIN (FORMAT XML) SELECT 1", "22023"),
        ("EXPLAIN DELETE FROM people", "0A000"),
        ("PREPARE p AS DELETE FROM people", "0A000"),
        ("DECLARE c CURSOR FOR DELETE FROM people", "0A000"),
        ("ATTACH ':memory:'", "0A000"),
        ("INSTALL httpfs", "0A000"),
        ("PRAGMA database_list", "0A000"),
        ("SUMMARIZE people", "0A000"),
        ("DESCRIBE people", "0A000"),
        ("USE x", "0A000"),
        ("FROM people", "0A000"),
        ("EXPORT DATABASE 'x'", "0A000"),
        ("SELEKT 1", "42601"),
        ("1", "42601"),
        ("'SELECT 1'", "42601"),
        ('"SELECT" 1', "42601"),
        ("\u017felect 1", "42601"),
        ("LISTEN a b", "42601"),
        ("FETCH 99999999999999999999999999 FROM c", "22003"),
        ("FETCH 1.5 FROM c", "42601"),
        ("BEGIN x", "42601"),
        ("SET", "42601"),
        ("SHOW", "42601"),
        ("SET x = 1 2", "42601"),
    ],
)
def test_statements_that_are_never_run(text: str, sqlstate: str) -> None:
    statement = one(text)
    assert isinstance(statement, k.Unsupported)
    assert statement.sqlstate == sqlstate
    assert statement.message
    assert statement.position is None or 1 <= statement.position <= len(text)
    hidden = one(f"-- x\n/* y */ {text}")
    assert isinstance(hidden, k.Unsupported)


@pytest.mark.parametrize(
    "text",
    [
        'SELECT "into", "update" FROM t',
        "SELECT a AS into, t.update, t.insert FROM t",
        "SELECT substring(x from 1 for 2), update FROM t",
        "SELECT delete, (insert) FROM t",
        "SELECT 'INTO', $$FOR UPDATE$$ FROM t -- INTO",
        "WITH a AS (SELECT 1) (SELECT * FROM a)",
        "VALUES (1), (2)",
        "((SELECT 1) UNION (SELECT 2))",
        "select/**/1",
    ],
)
def test_queries_that_only_look_like_writes(text: str) -> None:
    assert isinstance(one(text), k.Select)


def test_quoted_names_are_no_words() -> None:
    token = scan('"SELECT"').tokens[0]
    assert token.kind is TokenKind.QUOTED
    assert not token.is_word("select")


# --- what clients send ---------------------------------------------------------------------------------------------


def traced() -> list[str]:
    parts = TRACES.read_text(encoding="utf-8").split("\n;;\n")
    return ["\n".join(line for line in part.splitlines() if not line.startswith("-- =====")) for part in parts]


def test_every_traced_statement_is_recognised() -> None:
    refused = set()
    for text in traced():
        for statement in split(text):
            if isinstance(statement, k.Unsupported):
                refused.add((statement.verb, statement.sqlstate))
    assert refused <= {("CREATE", "42501"), ("INSERT", "42501"), ("DROP", "42501")}
