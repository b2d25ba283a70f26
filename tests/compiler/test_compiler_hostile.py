"""Hostile statements: refused from the text alone, or total on poison rows; and what backend SQL is made of."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from compiler_cases import TERMS, cases
from compiler_replay import compiled_on, runnable, violations
from compiler_sites import Site, duckdb_site
from compiler_statements import Statement, Writer
from compiler_worlds import COLUMNS, WORLDS

from dpsql.compiler import compile_statement
from dpsql.compiler.emit import DIALECTS
from dpsql.compiler.statements import split
from dpsql.errors import Rejected
from dpsql.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Interval,
    SqlType,
    Value,
)

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = duckdb_site(WORLDS["integer"](), tmp_path_factory.mktemp("hostile") / "w.duckdb")
    yield made
    made.backend.close()


def corpus(section: str) -> list[str]:
    """The statements of one section of hostile.sql, one a line."""
    text = HERE.joinpath("hostile.sql").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^-- (\w+)[^\n]*\n(.*?)(?=^-- |\Z)", text, re.MULTILINE | re.DOTALL))
    return [line for line in parts[section].splitlines() if line]


@pytest.mark.parametrize("text", corpus("REFUSE"))
def test_is_refused_with_a_reason(site: Site, text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        compile_statement(text, site.schema, TERMS)
    assert re.fullmatch(r"[0-9A-Z]{5}", refusal.value.sqlstate)
    assert refusal.value.position is None or 1 <= refusal.value.position <= len(text) + 1


@pytest.mark.parametrize("text", corpus("TOTAL"))
def test_is_total_on_poison_rows(site: Site, text: str) -> None:
    assert not list(violations(site, compile_statement(text, site.schema, TERMS), ("n0",)))


@pytest.mark.parametrize("text", corpus("EITHER"))
def test_is_refused_or_total(site: Site, text: str) -> None:
    """What other versions of the surface may accept: then no row makes it fail."""
    try:
        compiled = compile_statement(text, site.schema, TERMS)
    except Rejected:
        return
    assert not list(violations(site, compiled, ("n0",)))


@pytest.mark.parametrize("text", corpus("SAME"))
def test_unknown_columns_of_all_kinds_get_the_same_words(site: Site, text: str) -> None:
    """An undeclared, a system and a missing column cannot be told apart."""
    with pytest.raises(Rejected) as refusal:
        compile_statement(text, site.schema, TERMS)
    assert re.sub('"[^"]+"', "X", refusal.value.message) == "column X does not exist"
    assert refusal.value.sqlstate == "42703"


PARAMETERS: list[tuple[SqlType, Value]] = [
    (FLOAT8, math.nan), (FLOAT8, math.inf), (FLOAT8, -math.inf), (FLOAT8, 5e-324), (FLOAT8, 1e308), (FLOAT8, -0.0),
    (NUMERIC, Decimal("NaN")), (NUMERIC, Decimal("Infinity")), (NUMERIC, Decimal("1e400")),
    (NUMERIC, Decimal("1e-400")),
    (INT8, 2**63 - 1), (INT8, -(2**63)), (INT4, 0), (TEXT, "a\x00b"), (TEXT, "'; DROP TABLE people; --"), (TEXT, "\\"),
    (TEXT, "\ud800"), (TEXT, "x" * 100_000), (DATE, date.min), (DATE, date.max), (TIMESTAMP, datetime.min),
    (TIMESTAMP, datetime.max), (TIMESTAMPTZ, datetime(2020, 1, 1, tzinfo=UTC)), (BOOL, True), (UNKNOWN, None),
    (UNKNOWN, "NaN"), (UNKNOWN, "1e999"), (UNKNOWN, "infinity"), (INT8, None), (BOOL, None), (UNKNOWN, Interval(1)),
    (INTERVAL, Interval(1, -2, 3)), (INTERVAL, Interval(2**31 - 1, 2**31 - 1, 2**63 - 1)), (INTERVAL, None),
]  # fmt: skip
PLACES = (
    "SELECT COUNT(*) FROM visits WHERE amount > $1",
    "SELECT COUNT(*) FROM visits WHERE qty = $1",
    "SELECT COUNT(*) FROM visits WHERE tag = $1",
    "SELECT COUNT(*) FROM visits WHERE at < $1",
    "SELECT COUNT(*) FROM visits WHERE tag LIKE $1",
    "SELECT COUNT(*) FROM visits WHERE $1",
    "SELECT SUM(LEAST(amount, $1)) FROM visits",
    "SELECT SUM(amount * $1) FROM visits",
    "SELECT COALESCE(tag, $1), COUNT(*) FROM visits GROUP BY 1",
    "SELECT price, COUNT(*) FROM visits WHERE price IN ($1, 20) GROUP BY price",
)


@pytest.mark.parametrize("text", PLACES)
def test_parameters_are_refused_or_total(site: Site, text: str) -> None:
    for parameter in PARAMETERS:
        try:
            compiled = compile_statement(text, site.schema, TERMS, parameters=(parameter,))
        except Rejected:
            continue
        assert not list(violations(site, compiled, ("n0",))), parameter


DEEP = [
    "SELECT COUNT(*) FROM people WHERE " + "(" * n + "age > 1" + ")" * n for n in (50, 500, 5_000)
] + [
    "SELECT COUNT(*) FROM people WHERE " + "NOT " * n + "active" for n in (50, 500, 5_000)
] + [
    "SELECT SUM(" + "CASE WHEN age > 1 THEN " * n + "1" + " END" * n + ") FROM people" for n in (50, 500, 2_000)
] + [
    "SELECT SUM(" + "age + " * n + "1) FROM people" for n in (50, 500, 5_000)
] + [
    "SELECT COUNT(*) FROM people WHERE " + " OR ".join(f"age = {i}" for i in range(n)) for n in (100, 10_000)
] + [
    "SELECT COUNT(*) FROM people WHERE age IN (" + ", ".join(map(str, range(n))) + ")" for n in (1_000, 200_000)
] + [
    "SELECT COUNT(*) FROM people WHERE note = '" + "x" * 5_000_000 + "'", "(" * 1_000_000,
    "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 60 + "people" + ") AS x" * 60,
    "SELECT " + ", ".join(f"SUM(age + {i})" for i in range(400)) + " FROM people",
]  # fmt: skip


def _doubled(steps: int, first: str, step: str, last: str) -> str:
    """Each WITH name reads the one before it twice."""
    made = [f"c0 AS ({first})", *(f"c{i} AS ({step.format(i - 1)})" for i in range(1, steps))]
    return f"WITH {', '.join(made)} {last.format(steps - 1)}"


DEEP += [
    _doubled(
        14, "SELECT shop FROM shops", "SELECT a.shop FROM c{0} a JOIN c{0} b ON a.shop = b.shop", "SELECT 1 FROM c{0}"
    ),
    _doubled(
        14,
        "SELECT uid, age FROM people",
        "SELECT a.uid, a.age FROM c{0} a JOIN c{0} b ON a.uid = b.uid",
        "SELECT COUNT(*) FROM c{0}",
    ),
    "SELECT COUNT(*) FROM visits WHERE at" + " + interval '1 day'" * 60 + " > '2020-01-01'",
    "SELECT SUM(" + "ROUND(" * 60 + "age" + ")" * 60 + ") FROM people",
    "SELECT COUNT(*) FROM people WHERE " + " AND ".join(f"age + {i} > {i}" for i in range(2_000)),
]


@pytest.mark.parametrize("index", range(len(DEEP)))
def test_size_and_depth_end_in_a_refusal_or_a_plan(site: Site, index: int) -> None:
    """No RecursionError, and no long wait: the limits come first."""
    start = time.perf_counter()
    try:
        for _ in split(DEEP[index]):
            compiled = compile_statement(DEEP[index], site.schema, TERMS)
            assert list(runnable(compiled, DIALECTS["duckdb"])) or not compiled.releases
    except Rejected:
        pass
    assert time.perf_counter() - start < 5.0


WORDS = frozenset(HERE.joinpath("vocabulary.txt").read_text(encoding="utf-8").split())
"""All that the emitters write outside of quotes."""

_INTERNAL = re.compile(r"[dkqsnemtfxw]\d+y?|s_\w+|[dq]\d+y?")
_DECLARED = frozenset({"main", "public", *COLUMNS, *(name for columns in COLUMNS.values() for name in columns)})
_NUMBERED = re.compile(r"[a-z]+\d+_\w+|x\d+")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_backend_sql_is_made_of_fixed_words_declared_names_and_literals(site: Site, dialect: str) -> None:
    """Whatever the client wrote: no alias, no function name, no text of theirs but inside quoted literals."""
    statements = [*cases().values(), *_random(site, 40)]
    for statement in statements:
        for _, sql in runnable(compiled_on(site, statement), DIALECTS[dialect]):
            assert not list(_foreign(sql)), statement.text


def _random(site: Site, wanted: int) -> Iterator[Statement]:
    writer = Writer(5)
    while wanted:
        statement = writer.statement()
        try:
            compiled_on(site, statement)
        except Rejected:
            continue
        wanted -= 1
        yield statement


def _foreign(sql: str) -> Iterator[str]:
    """Words and quoted names that are not of the emitter's vocabulary."""
    without = re.sub(r"'(?:[^']|'')*'", " ", sql)
    for name in re.findall(r'"((?:[^"]|"")*)"', without):
        if name not in _DECLARED and name != "C" and not _NUMBERED.fullmatch(name):
            yield name
    rest = re.sub(r'"(?:[^"]|"")*"', " ", without)
    rest = re.sub(r"\b\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\b", " ", rest)
    for word in re.findall(r":?[A-Za-z_]\w*", rest):
        if word not in WORDS and not _INTERNAL.fullmatch(word) and not re.fullmatch(r":d\d+", word):
            yield word
