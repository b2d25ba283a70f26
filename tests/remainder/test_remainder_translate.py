"""What translation lets through, what its text is made of, and that it never explodes."""

from __future__ import annotations

import re
import time

import pytest
import sqlglot
from remainder_oracle import RELATIONS, statements, translated

from dpsql.compiler.public import translate
from dpsql.compiler.public.term import LONGEST
from dpsql.errors import Rejected
from dpsql.types import INT8, TEXT, Column

REFUSALS = {"0A000", "42883", "42P01", "42703", "42846"}


@pytest.mark.parametrize("statement", statements("refused"))
def test_refused(statement: str) -> None:
    with pytest.raises(Rejected) as caught:
        translated(statement)
    assert caught.value.sqlstate in REFUSALS


@pytest.mark.parametrize("statement", [*statements("expressions"), *statements("queries"), *statements("zones")])
def test_translation_reads_its_tree_and_leaves_it_alone(statement: str) -> None:
    tree = sqlglot.parse_one(statement, read="postgres")
    before, parents = repr(tree), [id(node.parent) for node in tree.walk()]
    columns = {name: relation.columns for name, relation in RELATIONS.items()}
    first = translate(tree, columns)
    assert (repr(tree), [id(node.parent) for node in tree.walk()]) == (before, parents)
    assert translate(tree, columns) == first


@pytest.mark.parametrize("statement", [*statements("expressions"), *statements("queries")])
def test_text_is_made_of_fixed_words_and_declared_names(statement: str) -> None:
    """Aliases and other identifiers of the client are never text for the engine."""
    tree = sqlglot.parse_one(statement, read="postgres")
    written = {str(i.this) for i in tree.find_all(sqlglot.exp.Identifier)}
    declared = set(RELATIONS) | {c.name for r in RELATIONS.values() for c in r.columns}
    bare = re.sub(r"'(?:[^']|'')*'", "", translated(statement).sql)
    quoted = set(re.findall(r'"((?:[^"]|"")*)"', bare))
    assert quoted <= declared
    for name in written - declared:
        assert f'"{name}"' not in bare


def test_aliases_do_not_reach_the_engine() -> None:
    made = translated("""SELECT a0 AS "x""; DROP TABLE r1; --", t."k0" AS zzz FROM r1 AS "t" ORDER BY zzz""")
    assert made.sql == 'SELECT t1."a0" AS c1, t1."k0" AS c2 FROM "r1" AS t1 ORDER BY 2 ASC NULLS LAST'
    assert [c.name for c in made.columns] == ['x"; DROP TABLE r1; --', "zzz"]


def test_strings_are_quoted() -> None:
    assert translated("SELECT 'x''; DROP TABLE r1; --'").sql == "SELECT 'x''; DROP TABLE r1; --' AS c1"


def test_relations_read() -> None:
    made = translated(
        "WITH q AS (SELECT k0 FROM r2) SELECT 1 FROM q WHERE EXISTS (SELECT 1 FROM r1 WHERE r1.k0 = q.k0)"
    )
    assert made.relations == ("r2", "r1")


def test_hidden_columns_are_read_by_name_only() -> None:
    columns = {"r": (Column("k0", TEXT), Column("_n", INT8), Column("a0", INT8))}
    assert [c.name for c in translate(sqlglot.parse_one("SELECT * FROM r"), columns).columns] == ["k0", "a0"]
    assert [c.name for c in translate(sqlglot.parse_one("SELECT r.*, _n FROM r"), columns).columns] == [
        "k0",
        "a0",
        "_n",
    ]
    inner = "SELECT * FROM (SELECT k0, _n FROM r) AS t"
    assert [c.name for c in translate(sqlglot.parse_one(inner), columns).columns] == ["k0", "_n"]


def test_other_time_zones_are_written_into_the_text() -> None:
    assert "'Europe/Rome'" in translated("SELECT atz::date FROM cal", "Europe/Rome").sql
    assert "pg_local" not in translated("SELECT atz::date FROM cal", "UTC").sql


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT " + "(SELECT avg(" * 40 + "a0" + ") FROM r1)" * 40,
        "SELECT " + "(SELECT " * 90 + "1" + ")" * 90,
        "SELECT " + "nullif(" * 90 + "a0" + ", 1)" * 90 + " FROM r1",
        "SELECT " + "(" * 40 + "a0" + " BETWEEN SYMMETRIC 1 AND 2)::int" * 40 + " FROM r1",
        "SELECT " + "CASE (" * 40 + "a0" + ") WHEN 1 THEN 2 WHEN 2 THEN 3 END" * 40 + " FROM r1",
        "SELECT " + "(" * 40 + "a0" + " IN (1, 2, 3))::int" * 40 + " FROM r1",
        "SELECT " + "(SELECT " * 40 + "1 AS x" + " GROUP BY 1)" * 40,
        "SELECT 1 FROM r1 WHERE " + " OR ".join(f"a0 = {i}" for i in range(1200)),
        "SELECT 1 FROM r1 WHERE a0 IN (" + ", ".join(map(str, range(2400))) + ")",
        "SELECT " + "+".join(["a0"] * 1200) + " FROM r1",
        "SELECT " + "abs(" * 95 + "a0" + ")" * 95 + " FROM r1",
        "WITH "
        + ", ".join(f"q{i} AS (SELECT a.n FROM q{i - 1} a, q{i - 1} b)" for i in range(1, 60)).join(
            ["q0 AS (SELECT a0 AS n FROM r1), ", " SELECT count(*) FROM q59"]
        ),
    ],
    ids=lambda text: text[:30],
)
def test_nothing_explodes(statement: str) -> None:
    """Either the text stays short, or the statement is refused as too complex; both at once."""
    tree = sqlglot.parse_one(statement, read="postgres")
    started = time.process_time()
    assert outcome(tree) in ("short", "54001")
    assert time.process_time() - started < 2


def outcome(tree: sqlglot.exp.Expr) -> str:
    try:
        made = translate(tree, {name: relation.columns for name, relation in RELATIONS.items()})
    except Rejected as error:
        return error.sqlstate
    return "short" if len(made.sql) <= LONGEST else "long"


@pytest.mark.parametrize(
    ("statement", "sqlstate", "position"),
    [
        ("SELECT a0, nope FROM r1", "42703", 12),
        ("SELECT a0 FROM r1 WHERE r1.nope = 1", "42703", 25),
        ("SELECT x.a0 FROM r1", "42P01", 8),
        ("SELECT a0 FROM r1, nope", "42P01", 20),
        ("SELECT k0, sum(a0) FROM r1", "42803", 8),
        ("SELECT nofunc(a0) FROM r1", "42883", 8),
        ("SELECT 1, 'abc'::int", "22P02", 11),
        ("SELECT a0 FROM r1 ORDER BY 7", "42P10", 28),
    ],
)
def test_errors_point_at_their_cause(statement: str, sqlstate: str, position: int) -> None:
    with pytest.raises(Rejected) as caught:
        translated(statement)
    assert (caught.value.sqlstate, caught.value.position) == (sqlstate, position)
