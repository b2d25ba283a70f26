"""Grains of time as BI tools write them: bins with a public list, the same ones that the words mean."""

from __future__ import annotations

from contextlib import closing

import duckdb
import pytest
from compiler_mini import BOUNDS, TERMS, exact, opened

from dpsql.compiler import compile_statement
from dpsql.errors import Rejected

ROWS = 700
DATA = f"""
CREATE TABLE t AS SELECT
    i AS uid,
    CASE WHEN i % 50 = 7 THEN NULL ELSE TIMESTAMP '1999-12-31 22:00:00' + INTERVAL 37 SECOND * i END AS at,
    CAST(TIMESTAMP '1999-12-31 22:00:00' + INTERVAL 2999 MILLISECOND * i AS TIMESTAMP) AS soon
FROM range({ROWS}) AS r(i);
INSERT INTO t VALUES (9001, '1999-12-31 23:59:59.999999', '1999-12-31 22:00:59.999999')
"""
TABLES = """
  t:
    unit: uid
    max_rows: 1
    columns:
      at: {type: timestamp, lower: 1999-12-31 22:00:00, upper: 2000-01-01 05:59:59.999999, nullable: true}
      soon: {type: timestamp, lower: 1999-12-31 22:00:00, upper: 1999-12-31 22:59:59}
"""
ONE = 1024


def superset(unit: str, part: str, size: int, column: str = "at") -> str:
    shown = f"EXTRACT({part.upper()} FROM {column})"
    return f"DATE_TRUNC('{unit}', {column}) + INTERVAL '{size} {part}s' * FLOOR({shown} / {size})"


GRAINS = {
    **{superset("hour", "minute", size): size * 60 for size in (1, 5, 10, 15, 30, 60)},
    **{superset("minute", "second", size, "soon"): size for size in (1, 5, 30)},
    "date_trunc('hour', at) + EXTRACT(minute FROM at)::int / 15 * INTERVAL '15 min'": 900,
    "date_trunc('hour', at) + INTERVAL '1 min' * (EXTRACT(minute FROM at)::int / 5 * 5)": 300,
    "date_trunc('hour', at) + (date_part('minute', at)::int / 10 * 10 || ' minutes')::interval": 600,
    "date_trunc('hour', at) + concat(FLOOR(EXTRACT(minute FROM at) / 20) * 20, ' minutes')::interval": 1200,
    "date_trunc('hour', at) + make_interval(mins => EXTRACT(minute FROM at)::int / 15 * 15)": 900,
    "date_trunc('minute', at) - EXTRACT(minute FROM at)::int % 10 * INTERVAL '1 minute'": 600,
    "date_trunc('minute', at) - (MOD(EXTRACT(minute FROM at)::int, 12) || 'min')::interval": 720,
    "date_trunc('hour', at) - (EXTRACT(hour FROM at)::int % 3) * INTERVAL '1 hour'": 10_800,
    "date_trunc('day', at) + FLOOR(EXTRACT(hour FROM at) / 6) * INTERVAL '6 hours'": 21_600,
    "date_trunc('minute', at) - (-1) * INTERVAL '20 s' * FLOOR(EXTRACT(second FROM at) / 20.0)": 20,
    "CAST(date_trunc('hour', at) AS timestamp) + TRUNC(EXTRACT(minute FROM at) / 30) * INTERVAL '30 minutes'": 1800,
    "date_trunc('hour', at) + INTERVAL '5 minutes' * (EXTRACT(minute FROM at) / 5)": 60,
    "time_bucket('300.000s', at)": 300,
}  # fmt: skip


@pytest.mark.parametrize("key", GRAINS)
def test_bins_are_what_the_words_mean(key: str) -> None:
    width, column = GRAINS[key], "soon" if "soon" in key else "at"
    statement = f"SELECT {key}, COUNT(*) FROM t GROUP BY 1"
    (release,) = compile_statement(statement, opened(DATA, TABLES, "person", "UTC", BOUNDS)[1], TERMS).releases
    assert release.public
    with closing(duckdb.connect()) as connection:
        connection.execute(DATA)
        seconds = f'epoch_us("{column}") // 1000000 // {width} * {width}'
        raw = f"SELECT make_timestamp(({seconds}) * 1000000), COUNT(*) FROM t GROUP BY 1"
        counted = dict(connection.execute(raw).fetchall())
    found = exact(DATA, TABLES, statement)
    assert {at: cells[0] / ONE for (at,), cells in found.items() if cells[0]} == counted


@pytest.mark.parametrize(
    "key",
    [
        superset("hour", "minute", 7),
        superset("day", "minute", 5),
        superset("minute", "minute", 5),
        "date_trunc('hour', at) + INTERVAL '5 minutes' * FLOOR(EXTRACT(minute FROM soon) / 5)",
        "date_trunc('hour', at) + INTERVAL '5 minutes' * FLOOR(EXTRACT(minute FROM at) / 10)",
        "date_trunc('hour', at) + INTERVAL '1 month' * FLOOR(EXTRACT(minute FROM at) / 10)",
        "date_trunc('hour', at) - INTERVAL '5 minutes' * FLOOR(EXTRACT(minute FROM at) / 5)",
        "date_trunc('hour', at) + INTERVAL '5 minutes' * CEIL(EXTRACT(minute FROM at) / 5)",
        "date_trunc('minute', at) + INTERVAL '5 seconds' * ROUND(EXTRACT(second FROM at) / 5)",
        "date_trunc('minute', at) + INTERVAL '5 seconds' * FLOOR(EXTRACT(second FROM at) / 5, 1)",
        "date_trunc('minute', at) + INTERVAL '1 second' * FLOOR(EXTRACT(second FROM at) * 5 / 5)",
        "date_trunc('minute', at) + INTERVAL '1 second' * EXTRACT(second FROM at)",
    ],
)
def test_what_is_no_bin_is_refused(key: str) -> None:
    with pytest.raises(Rejected):
        compile_statement(
            f"SELECT {key}, COUNT(*) FROM t GROUP BY 1", opened(DATA, TABLES, "person", "UTC", BOUNDS)[1], TERMS
        )


def test_the_seconds_of_a_minute() -> None:
    found = exact(DATA, TABLES, "SELECT FLOOR(EXTRACT(second FROM at)), COUNT(*) FROM t GROUP BY 1")
    assert sum(cells[0] for cells in found.values()) == (ROWS + 1) * ONE
    assert found[(59.0,)][0] > 0
