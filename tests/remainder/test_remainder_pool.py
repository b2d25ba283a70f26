"""Engines: what they return, what they cannot do, and their limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from datetime import time as clock
from decimal import Decimal
from uuid import UUID

import duckdb
import pytest
from remainder_oracle import RELATIONS, answer, translated

from dpsql.compiler.parse import parse
from dpsql.compiler.public import translate
from dpsql.errors import Rejected
from dpsql.remainder import Pool
from dpsql.remainder.deadlines import Watchdog
from dpsql.types import BOOL, FLOAT8, INT4, INT8, NUMERIC, TEXT, Column, Interval, Kind, Relation, SqlType, Value

VALUES: list[tuple[SqlType, Value]] = [
    (BOOL, True),
    (SqlType(Kind.INT2), -32768),
    (INT4, 2147483647),
    (INT8, -(2**63)),
    (NUMERIC, Decimal("123456789012345678901234567890.1230")),
    (NUMERIC, Decimal("NaN")),
    (SqlType(Kind.NUMERIC, 10, 2), Decimal("1.50")),
    (SqlType(Kind.FLOAT4), 0.1),
    (FLOAT8, 0.1),
    (FLOAT8, float("inf")),
    (TEXT, 'it\'s "é" \\ 日本'),
    (SqlType(Kind.DATE), date(2020, 2, 29)),
    (SqlType(Kind.TIME), clock(1, 2, 3, 400)),
    (SqlType(Kind.TIMESTAMP), datetime(2020, 1, 1, 2, 3, 4, 5)),
    (SqlType(Kind.TIMESTAMPTZ), datetime(2020, 1, 1, 2, 3, 4, 5, UTC)),
    (SqlType(Kind.INTERVAL), Interval(-14, 3, 5_000_000)),
    (SqlType(Kind.UUID), UUID(int=7)),
    (SqlType(Kind.JSON), '{"a": 1}'),
    (SqlType(Kind.BYTEA), b"\x00\xff"),
    (SqlType(Kind.OID), 4294967295),
    (SqlType(Kind.NAME), "a name"),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(memory="128MB", max_rows=1000)
    yield made
    made.close()


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=lambda v: str(v))
def test_values_come_back_as_they_went_in(pool: Pool, type_: SqlType, value: Value) -> None:
    columns = (Column("v", type_),)
    remainder = translate(parse("SELECT v FROM r WHERE 1 = 1"), {"r": columns})
    made = pool.run(remainder, {"r": Relation(columns, ((value,), (None,)))}, 5)
    assert made.columns == columns
    assert repr(made.rows) == repr(((value,), (None,)))


def test_relation_without_rows(pool: Pool) -> None:
    empty = {"r1": Relation(RELATIONS["r1"].columns, ())}
    assert pool.run(translated("SELECT k0, a0 FROM r1"), empty, 5).rows == ()
    assert pool.run(translated("SELECT count(*), sum(a0) FROM r1"), empty, 5).rows == ((0, None),)


def test_public_relations_are_loaded_where_they_are_read_and_inputs_come_first() -> None:
    pool = Pool(RELATIONS)
    try:
        assert pool.run(translated("SELECT count(*) FROM r1"), {}, 5).rows == ((8,),)
        assert pool.run(translated("SELECT count(*) FROM r1 JOIN r2 USING (k0)"), {}, 5).rows == ((7,),)
        shadow = {"r1": Relation(RELATIONS["r1"].columns, RELATIONS["r1"].rows[:2])}
        assert pool.run(translated("SELECT count(*) FROM r1"), shadow, 5).rows == ((2,),)
        assert pool.run(translated("SELECT count(*) FROM r1"), {}, 5).rows == ((8,),)
    finally:
        pool.close()


def test_statements_leave_nothing_behind(pool: Pool) -> None:
    columns = (Column("secret", INT8),)
    pool.run(translate(parse("SELECT secret FROM r9"), {"r9": columns}), {"r9": Relation(columns, ((42,),))}, 5)
    with pool._engine() as engine:
        assert engine.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []


def test_timeout_then_the_pool_goes_on(pool: Pool) -> None:
    crossed = "SELECT count(*) FROM " + ", ".join(f"r1 AS x{i}" for i in range(12))
    started = time.monotonic()
    with pytest.raises(Rejected) as caught:
        pool.run(translated(crossed), RELATIONS, 0.3)
    assert caught.value.sqlstate == "57014"
    assert time.monotonic() - started < 5
    assert answer(pool, "SELECT 1").rows == ((1,),)


def test_memory_has_a_limit(pool: Pool) -> None:
    crossed = ", ".join(f"r1 AS x{i}" for i in range(7))
    with pytest.raises(Rejected) as caught:
        pool.run(translated(f"SELECT string_agg(repeat(x0.k0, 100000), '') FROM {crossed}"), RELATIONS, 30)
    assert caught.value.sqlstate == "53200"
    assert answer(pool, "SELECT 1").rows == ((1,),)


def test_rows_have_a_limit(pool: Pool) -> None:
    with pytest.raises(Rejected) as caught:
        answer(pool, "SELECT 1 FROM r1 a, r1 b, r1 c, r1 d")
    assert caught.value.sqlstate == "54000"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/*')",
        "ATTACH '/tmp/x.duckdb' AS x",
        "COPY (SELECT 1) TO '/tmp/x.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 4",
        "SET enable_external_access = true",
        "SET memory_limit = '10GB'",
        "RESET lock_configuration",
    ],
)
def test_a_locked_engine_refuses_even_raw_sql(pool: Pool, statement: str) -> None:
    with pool._engine() as engine:
        failed = False
        try:
            engine.connection.execute(statement)
        except duckdb.Error:
            failed = True
    assert failed


def test_python_variables_are_not_tables(pool: Pool) -> None:
    sentinel = [1, 2, 3]
    with pool._engine() as engine, pytest.raises(duckdb.Error, match="does not exist"):
        engine.connection.execute("SELECT * FROM sentinel")
    assert sentinel


def test_statements_run_at_the_same_time(pool: Pool) -> None:
    def run(number: int) -> tuple[tuple[Value, ...], ...]:
        return answer(pool, f"SELECT sum(a0) * {number}, {number}.5 / 2 FROM r1").rows

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(run, range(40)))
    assert [rows[0][0] for rows in made] == [Decimal(147 * n) for n in range(40)]


def test_errors_hold_no_text_of_the_engine(pool: Pool) -> None:
    with pytest.raises(Rejected) as caught:
        answer(pool, "SELECT a0 + 9223372036854775807 FROM r1")
    assert caught.value.message == "bigint out of range"


def test_watchdog_calls_once_after_the_deadline_and_never_after_the_end() -> None:
    watchdog, called = Watchdog(), threading.Event()
    with watchdog.watch(0.05, lambda: pytest.fail("called after the end")):
        pass
    with watchdog.watch(60, lambda: pytest.fail("not yet")), watchdog.watch(0.02, called.set):
        assert called.wait(5)
    time.sleep(0.1)
    watchdog.close()


THIRTY = "(VALUES " + ", ".join(f"({i})" for i in range(30)) + ")"
LONG = f"SELECT repeat('x', 10000) AS t FROM {THIRTY} AS a(i), {THIRTY} AS b(j)"


def test_long_texts_end_a_result() -> None:
    """Bytes are limited as rows are, before all of them are there."""
    made = Pool(memory="128MB", max_rows=1000, max_text=1 << 20)
    with pytest.raises(Rejected, match="texts are longer than 1048576 bytes") as refusal:
        made.run(translate(parse(LONG), {}), {}, 10)
    assert refusal.value.sqlstate == "54000"
    assert len(made.run(translate(parse(f"SELECT * FROM ({LONG}) q LIMIT 50"), {}), {}, 10).rows) == 50
    made.close()


def test_mutant_only_rows_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.remainder.pool._LONG", frozenset())
    made = Pool(memory="128MB", max_rows=1000, max_text=1 << 20)
    assert len(made.run(translate(parse(LONG), {}), {}, 10).rows) == 900
    made.close()
