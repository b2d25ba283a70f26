"""What the text is, word by word: parameters, error bars, inner queries, names; and what is never guessed."""

from __future__ import annotations

import pytest
from rewrite_world import compiled

from dpsql.compiler import rewrite
from dpsql.compiler.parse import parse
from dpsql.compiler.rewrite import spans, writer
from dpsql.compiler.rewrite.check import says
from dpsql.compiler.rewrite.spans import NoSpan, clauses, listed, placed
from dpsql.errors import Rejected
from dpsql.types import INT4, UNKNOWN, Kind, Parameters, SqlType

R0 = '"<relation 0>" AS "_r0"'

TEXTS = {
    "SELECT  COUNT( * )  FROM facts": f'SELECT "_r0"."a0" AS "count" FROM {R0}',
    "select count(*) /* all */ as n, interval '-1 days +02:03' from facts -- end": (
        f'select "_r0"."a0" /* all */ as n, interval \'-1 days +02:03\' FROM {R0}'
    ),
    "SELECT VARIANCE(i), stddev(i) FROM facts": f'SELECT "_r0"."a0" AS "variance", "_r0"."a1" AS "stddev" FROM {R0}',
    "SELECT var_samp(i), STDDEV_SAMP(i) FILTER (WHERE ok) FROM facts": (
        f'SELECT "_r0"."a0" AS "var_samp", "_r0"."a1" AS "stddev_samp" FROM {R0}'
    ),
    "SELECT kind, COUNT(*) FILTER (WHERE i IS DISTINCT FROM 3) AS n FROM facts GROUP BY 1 HAVING COUNT(*)>2": (
        f'SELECT "_r0"."k0" AS "kind", "_r0"."a0" AS n FROM {R0} WHERE "_r0"."a1">2'
    ),
    "SELECT to_hex(COUNT(*)) FROM facts": (f'SELECT to_hex("_r0"."a0") AS "to_hex" FROM {R0}'),
    "SELECT k.* FROM (SELECT kind, COUNT(*) FROM facts GROUP BY kind) AS k": (
        f'SELECT k.* FROM (SELECT "_r0"."k0" AS "kind", "_r0"."a0" AS "count" FROM {R0}) AS k'
    ),
    "WITH a AS (SELECT i FROM facts), b(s) AS MATERIALIZED (SELECT SUM(i) FROM a) SELECT s, s FROM b": (
        f'WITH b(s) AS MATERIALIZED (SELECT "_r0"."a0" AS "sum" FROM {R0}) SELECT s, s FROM b'
    ),
    "SELECT mean FROM by_kind WHERE n > 2": (
        f'SELECT mean FROM (SELECT "_r0"."k0" AS "kind", "_r0"."a0" AS n, "_r0"."a1" AS mean FROM {R0}) AS by_kind '
        "WHERE n > 2"
    ),
    "SELECT COUNT(*) FROM facts UNION ALL SELECT COUNT(*) FROM r2 ORDER BY 1": (
        f'SELECT "_r0"."a0" AS "count" FROM {R0} UNION ALL SELECT COUNT(*) FROM r2 ORDER BY 1'
    ),
}


@pytest.mark.parametrize("statement", TEXTS)
def test_text(statement: str) -> None:
    made = compiled(statement)
    assert made.text.text == TEXTS[statement]
    assert made.text.spliced


def test_parameters_stay_where_their_text_stays() -> None:
    statement = "SELECT kind, COUNT(*)*$1 AS x FROM facts WHERE i > $2 GROUP BY kind HAVING COUNT(*) > $3 LIMIT $4"
    made = compiled(statement, parameters=((INT4, 2), (INT4, 3), (INT4, 4), (INT4, 5)))
    wanted = f'SELECT "_r0"."k0" AS "kind", "_r0"."a0"*$1 AS x FROM {R0} WHERE "_r0"."a0" > $3 LIMIT $4'
    assert made.text.text == wanted
    assert compiled(statement, parameters=((UNKNOWN, None),) * 4).text.text == wanted


@pytest.mark.parametrize("given", [("a", "b"), (), None])
def test_lists_stay_lists(given: tuple[str, ...] | None) -> None:
    parameters: Parameters = ((SqlType(Kind.TEXT_ARRAY), given),)
    statement = "SELECT kind, COUNT(*) FROM facts GROUP BY kind HAVING kind = ANY($1) AND COUNT(*) > 2"
    made = compiled(statement, parameters=parameters)
    assert "$2" not in made.text.text
    if given:
        assert made.text.text.endswith('WHERE "_r0"."k0" = ANY($1) AND "_r0"."a0" > 2')
    public = compiled("SELECT (SELECT COUNT(*) FROM facts), k0 FROM r2 WHERE k0 <> ALL ($1)", parameters=parameters)
    assert "$2" not in public.text.text


def test_error_bars_are_printed_behind_the_text() -> None:
    made = compiled("SELECT  kind, COUNT(*)  AS n FROM facts GROUP BY kind", error_bars=True)
    assert made.text.spliced
    assert made.text.text.startswith('SELECT "_r0"."k0" AS "kind", "_r0"."a0"  AS n, ')
    assert [c.name for c in made.columns] == ["kind", "n", "n_low", "n_high"]


def test_inner_queries_are_the_clients_text_too() -> None:
    public = "(SELECT  MAX(length(k0)) AS x FROM r2)"
    made = compiled(f"SELECT COUNT(*) FROM facts WHERE n > (SELECT  AVG(n) FROM facts) AND i < {public}")
    assert [d.text for d in made.derived_texts] == [
        f'SELECT  "_r0"."a0" AS "avg" FROM {R0}'.replace("  ", " "),
        public[1:-1],
    ]
    joined = compiled(
        "SELECT region, COUNT(*) FROM facts JOIN (SELECT  k0, region FROM r2) AS r ON kind = k0 GROUP BY 1"
    )
    assert [d.text for d in joined.derived_texts] == ["SELECT  k0, region FROM r2"]
    named = compiled("WITH r AS (SELECT  k0 FROM r2) SELECT COUNT(*) FROM facts JOIN r ON kind = k0")
    assert [d.text for d in named.derived_texts] == ["SELECT  k0 FROM r2"]
    member = compiled("SELECT COUNT(*) FROM facts WHERE kind IN (SELECT  k0 FROM r2 WHERE  region < 'x')")
    assert [d.text for d in member.derived_texts] == ["SELECT  k0 FROM r2 WHERE  region < 'x'"]


def test_over_fills_in_the_relations() -> None:
    made = compiled("SELECT COUNT(*), (SELECT SUM(i) FROM facts WHERE ok) FROM facts")
    assert made.text.relations == (0, 1)
    text = made.text.over({0: "SELECT 1 AS a0", 1: "SELECT 2 AS a0"})
    assert (
        text == 'SELECT "_r0"."a0" AS "count", (SELECT "_r1"."a0" AS "sum" FROM (SELECT 2 AS a0) AS "_r1") AS "sum" '
        'FROM (SELECT 1 AS a0) AS "_r0"'
    )


@pytest.mark.parametrize(
    "where", ["""'"<relation 0>" AS '""", """1 AS "<relation 0>\"""", """1 -- "<relation 0>" AS"""]
)
def test_no_text_holds_the_mark_of_a_relation(where: str) -> None:
    with pytest.raises(Rejected, match="stands for released rows"):
        compiled(f"SELECT COUNT(*), {where}\nFROM facts")


def test_clauses_and_lists() -> None:
    text = placed(
        "SELECT a AS from, x IS DISTINCT FROM y, extract(year FROM d) FROM t WHERE (SELECT 1 FROM u) = 1 ORDER BY 1, 2"
    )
    found = clauses(text, text.whole)
    assert {word: text.slice(span) for word, span in found.items()} == {
        "select": "SELECT a AS from, x IS DISTINCT FROM y, extract(year FROM d)",
        "from": "FROM t",
        "where": "WHERE (SELECT 1 FROM u) = 1",
        "order": "ORDER BY 1, 2",
    }
    start, end = found["select"]
    assert [text.slice(s) for s in listed(text, (start + 1, end))] == [
        "a AS from", "x IS DISTINCT FROM y", "extract(year FROM d)",
    ]  # fmt: skip


def test_a_span_is_what_reads_as_the_part() -> None:
    text = placed("SELECT f(a) + f(a) * sum(f(a)) FILTER (WHERE b) FROM t")
    tree = parse(text.text).expressions[0]
    right = tree.expression
    assert text.slice(text.find(tree.this, text.whole)) == "f(a)"
    assert text.slice(text.find(right, text.whole)) == "f(a) * sum(f(a)) FILTER (WHERE b)"
    with pytest.raises(NoSpan):
        text.find(parse("SELECT g(a)").expressions[0], text.whole)


@pytest.mark.parametrize(
    "other", ["SELECT a + b FROM t", "SELECT a - b AS c FROM t", "SELECT a - b FROM u", "SELECT a - b FROM t LIMIT 1"]
)
def test_other_texts_do_not_say_the_same(other: str) -> None:
    assert says('SELECT "a" - (b) AS "?column?" FROM t AS t', parse("SELECT a - b FROM t"))
    assert not says(other, parse("SELECT a - b FROM t"))


def test_mutant_a_span_that_is_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without reading spans again, texts go wrong, and are printed instead: never sent."""
    monkeypatch.setattr(spans, "_reads", lambda text, node, read: True)
    statement = "SELECT COUNT(*) FILTER (WHERE ok) AS n, SUM(i) FROM facts"
    assert not compiled(statement).text.spliced


def test_mutant_a_printer_that_changes_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "as_part", lambda tree: '"_r0"."a0"')
    assert not compiled("SELECT COUNT(*), SUM(i) FROM facts").text.spliced


def test_mutant_a_printer_that_changes_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is left then: the statement is refused before it costs anything."""
    for module in (rewrite, writer):
        monkeypatch.setattr(module, "printed", lambda tree: "SELECT 1")
    window = "ROW_NUMBER() OVER (ORDER BY COUNT(*)) = 1"
    with pytest.raises(Rejected, match="cannot be written"):
        compiled(f"SELECT kind FROM facts GROUP BY kind QUALIFY {window}")
