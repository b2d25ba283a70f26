"""Remainders that are answered without an engine: the engine gives the same."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from dpsql.compiler.parse import parse
from dpsql.compiler.public import Remainder, translate
from dpsql.remainder import Pool
from dpsql.remainder.plain import passed_on
from dpsql.types import BOOL, DATE, FLOAT8, INT4, INT8, NUMERIC, TEXT, TIMESTAMP, Column, Relation, SqlType, Value

COLUMNS = (
    Column("k0", TEXT),
    Column("k1", INT4),
    Column("k2", DATE),
    Column("k3", BOOL),
    Column("a0", INT8),
    Column("_a0_sd", FLOAT8),
)
ROWS: tuple[tuple[Value, ...], ...] = (
    ("a", 2**31 - 1, date(1, 1, 1), True, 2**63 - 1, 0.1),
    (None, None, None, None, None, None),
    ('it\'s "é" \\ 日本 \0', -(2**31), date(9999, 12, 31), False, -(2**63), float("-inf")),
    ("", 0, date(2024, 2, 29), None, 0, float("nan")),
    ("a", 0, date(2024, 2, 29), None, 0, -0.0),
)


def translated(text: str, columns: tuple[Column, ...] = COLUMNS) -> Remainder:
    return translate(parse(text), {"_r0": columns})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM _r0",
        "SELECT a0 FROM _r0",
        'SELECT k1 AS "from", k0, k1 FROM _r0',
        "SELECT _a0_sd, x.k3, k2 FROM _r0 AS x",
    ],
)
@pytest.mark.parametrize("rows", [ROWS, ()])
def test_the_engine_gives_the_same(text: str, rows: tuple[tuple[Value, ...], ...]) -> None:
    inputs = {"_r0": Relation(COLUMNS, rows)}
    known = passed_on(translated(text), inputs)
    pool = Pool()
    try:
        made = pool.run(translated(f"{text} WHERE 1 = 1"), inputs, 5)
        assert repr(known) == repr(pool.run(translated(text), inputs, 5)) == repr(made)
    finally:
        pool.close()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a0 FROM _r0 LIMIT 1",
        "SELECT a0 FROM _r0 ORDER BY a0",
        "SELECT a0 FROM _r0 WHERE k3",
        "SELECT DISTINCT a0 FROM _r0",
        "SELECT a0 + 1 AS a0 FROM _r0",
        "SELECT a0, 1 AS one FROM _r0",
        "SELECT count(*) FROM _r0",
        "SELECT x.a0 FROM _r0 AS x, _r0 AS y",
        "SELECT a0 FROM _r0 UNION ALL SELECT a0 FROM _r0",
        'SELECT \'t1."a0" AS c1 FROM "_r0" AS t1\' AS x FROM _r0',
        "SELECT a0 FROM (SELECT a0 FROM _r0) AS x",
    ],
)
def test_whatever_does_more_is_asked(text: str) -> None:
    assert passed_on(translated(text), {"_r0": Relation(COLUMNS, ROWS)}) is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INT4, 2**31),
        (INT8, 2**63),
        (INT4, True),
        (INT8, Decimal(1)),
        (FLOAT8, 1),
        (DATE, datetime(2024, 1, 1)),
        (TIMESTAMP, datetime(2024, 1, 1)),
        (NUMERIC, Decimal("1E+2")),
    ],
)
def test_values_that_may_come_back_as_others_are_asked(type_: SqlType, value: Value) -> None:
    columns = (Column("a0", type_),)
    assert passed_on(translated("SELECT a0 FROM _r0", columns), {"_r0": Relation(columns, ((value,),))}) is None


def test_public_tables_are_asked() -> None:
    assert passed_on(translated("SELECT a0 FROM _r0"), {}) is None


def test_rows_have_a_limit() -> None:
    pool = Pool(max_rows=len(ROWS) - 1)
    try:
        with pytest.raises(Exception, match="more than 4 rows"):
            pool.run(translated("SELECT a0 FROM _r0"), {"_r0": Relation(COLUMNS, ROWS)}, 5)
    finally:
        pool.close()
