"""Small statements that would grow: refused, or compiled, in little time and memory, since compiling is free."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import suppress
from decimal import Decimal

import pytest
from test_compiler_error_bars import SCHEMA

from dpsql.compiler import Terms, compile_statement
from dpsql.compiler.bind import context
from dpsql.compiler.tokens import MAX_TOKENS
from dpsql.errors import Rejected
from dpsql.types import TEXT

TERMS = Terms(Decimal(1), Decimal("1e-7"))
TABLE = next(t for t in SCHEMA.tables.values() if not t.public and any(c.values and c.type == TEXT for c in t.columns))
WORD = next(c for c in TABLE.columns if c.values and c.type == TEXT)
LISTED = f"{TABLE.name}.{WORD.name}"
LONG = "a" * 20_000

NESTED = (
    "replace({}, 'e', '" + "e" * 100 + "')",
    "repeat({}, 20)",
    "reverse({})",
    "initcap({})",
    "overlay({} PLACING 'x' FROM 2 FOR 1)",
    "concat_ws('-', {}, 'x')",
    "lpad({}, 1000)",
    "regexp_replace({}, '[ae]', 'c', 'g')",
    "({0} || {1})",
    "CASE {} WHEN 'a' THEN 'b' WHEN 'c' THEN 'd' END",
    "CASE WHEN {} BETWEEN 'a' AND 'b' THEN 'x' END",
    "CASE WHEN ({}, 'a') IN (('a', 'b'), ('c', 'd')) THEN 'x' END",
    "NULLIF({}, 'a')",
)


def compiled(text: str) -> None:
    """Within seconds, though memory is watched, and a few hundred megabytes; what is refused is too large."""
    refused: Rejected | None = None
    tracemalloc.start()
    start = time.monotonic()
    try:
        compile_statement(text, SCHEMA, TERMS)
    except Rejected as error:
        refused = error
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.monotonic() - start < 30
    assert most < 200 << 20
    assert refused is None or refused.sqlstate in ("54001", "0A000")


def test_the_limit_is_beyond_what_tokens_need() -> None:
    assert 2 * MAX_TOKENS <= context.MOST_BOUND <= 4 * MAX_TOKENS


@pytest.mark.parametrize("form", NESTED)
@pytest.mark.parametrize("depth", [4, 20])
def test_nested_expressions(form: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "MOST_BOUND", 1000)
    for made in (LISTED, "'e'"):
        first = made
        for _ in range(depth):
            made = form.format(made, first)
        compiled(f"SELECT COUNT(*) FROM {TABLE.name} WHERE {made} = 'x'")


@pytest.mark.parametrize(
    "column",
    ["a || a", "CASE WHEN a = 'x' THEN a ELSE a END", "coalesce(a, a)", "repeat(a, 20)", "lower(a || 'b' || a)"],
)
@pytest.mark.parametrize("first", [LISTED, "'e'"])
def test_columns_of_subqueries(column: str, first: str) -> None:
    """Each names those of the query inside it more than once."""
    steps = "".join(f", c{i + 1} AS (SELECT {column} AS a FROM c{i})" for i in range(40))
    compiled(f"WITH c0 AS (SELECT {first} AS a FROM {TABLE.name}){steps} SELECT COUNT(*) FROM c40 WHERE a = 'x'")


@pytest.mark.parametrize(
    "text",
    [
        f"regexp_replace('{LONG}', '.*.*.*.*.*x', 'y')",
        f"regexp_replace('{LONG}', 'a', '{LONG}', 'g')",
        f"regexp_replace({LISTED}, 'a', '{LONG}', 'g')",
    ],
)
def test_regular_expressions(text: str) -> None:
    """None is searched that could take long, and none writes more in one place of a text than `replace` may."""
    with pytest.raises(Rejected):
        compile_statement(f"SELECT COUNT(*) FROM {TABLE.name} WHERE {text} = 'x'", SCHEMA, TERMS)


@pytest.mark.parametrize(
    "series",
    [
        "generate_series(1, 1000000000000)",
        "generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '9000-01-01', '1 second'::interval)",
        "generate_series(TIMESTAMP '2000-01-31', TIMESTAMP '1999-01-01', INTERVAL '1 month' * 1)",
        "generate_series(TIMESTAMP '2000-01-31', TIMESTAMP '1999-01-01', make_interval(months => 1, days => -30))",
        ", ".join(f"generate_series(1, 100) AS g{i}" for i in range(30)),
        ", ".join(f"generate_series(DATE '2000-01-01', DATE '2000-03-01', '1 day') AS g{i}" for i in range(40)),
    ],
)
def test_series(series: str) -> None:
    """The fourth comes back to the 30th of January for ever."""
    start = time.monotonic()
    with pytest.raises(Rejected):
        compile_statement(f"SELECT COUNT(*) FROM {series}", SCHEMA, TERMS)
    assert time.monotonic() - start < 10


COUNTS = [f"COUNT(*) FILTER (WHERE {WORD.name} = '{i}')" for i in range(8)]
TOTAL = " + ".join(COUNTS)
MANY = f"GREATEST(COUNT(*){', 1' * 900})"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) FROM {{0}} HAVING {' OR '.join(['COUNT(*) > 1'] * 700)}",
        f"SELECT {{1}}, COUNT(*) AS n FROM {{0}} GROUP BY {{1}} QUALIFY {' OR '.join(['n > 1'] * 900)}",
        f"SELECT {{1}}, {MANY} AS n FROM {{0}} GROUP BY {{1}} QUALIFY {' OR '.join(['n > 1'] * 300)}",
        f"SELECT {{1}}, {MANY} AS n FROM {{0}} GROUP BY {{1}} HAVING ({MANY} > 1) AND {MANY} IN (1, 2)",
        f"SELECT dp_stddev(GREATEST({', '.join([*COUNTS, *['1'] * 1500])})) FROM {{0}}",
        f"SELECT {', '.join(f'dp_stddev(({TOTAL}) / {i})' for i in range(1, 40))} FROM {{0}}",
    ],
)
def test_conditions_on_aggregates(text: str) -> None:
    """In time that grows with the text: seven hundred alternatives took most of a minute, names in QUALIFY far more."""
    start = time.monotonic()
    with suppress(Rejected, RecursionError):
        compile_statement(text.format(TABLE.name, WORD.name), SCHEMA, TERMS)
    assert time.monotonic() - start < 10
