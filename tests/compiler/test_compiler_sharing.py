"""Aggregates of one column are read from shared measurements, and only where what they share is what they ask for."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import pytest
from compiler_mini import opened

from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.compiler.emit import DUCKDB, emit
from dpsql.dp.mechanisms import Mechanism
from dpsql.estimates import released_relation
from dpsql.release import release
from dpsql.remainder import Pool
from dpsql.types import Reservation

DATA = """
CREATE TABLE t AS SELECT i AS uid, CAST(i % 3 AS INTEGER) AS k, CASE WHEN i % 5 > 0 THEN i % 101 END AS x,
CASE WHEN i % 7 = 0 THEN CAST('NaN' AS DOUBLE) WHEN i % 4 > 0 THEN i % 50 END AS f FROM range(3000) AS r(i)
"""
TABLES = """
  t:
    unit: uid
    max_rows: 1
    columns:
      k: {type: integer, lower: 0, upper: 2}
      x: {type: bigint, lower: 0, upper: 100}
      f: {type: double, lower: 0, upper: 100}
"""
PRIVACY = "max_groups: 1, max_rows_per_group: 1"


def compiled(statement: str) -> Compiled:
    return compile_statement(
        statement, opened(DATA, TABLES, "person", "UTC", PRIVACY)[1], Terms(Decimal(1), Decimal("1e-7"))
    )


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        ("COUNT(x), SUM(x), AVG(x) FROM t", ["moment COUNT(x)", "moment SUM(x)"]),
        ("COUNT(x), SUM(x) FROM t", ["moment COUNT(x)", "moment SUM(x)"]),
        ("SUM(x) FROM t", ["SUM(x)"]),
        ("COUNT(*), SUM(x) FROM t", ["COUNT(*)", "SUM(x)"]),
        ("COUNT(*), AVG(x) FROM t", ["COUNT(*)", "moment COUNT(x)", "moment SUM(x)"]),
        ("COUNT(*), AVG(x) FROM t WHERE x > 3", ["moment COUNT(*)", "moment SUM(x)"]),
        ("COUNT(*), AVG(f) FROM t WHERE f > 3", ["COUNT(*)", "moment COUNT(f)", "moment SUM(f)"]),
        ("COUNT(*), AVG(COALESCE(f, 0)) FROM t", ["moment COUNT(*)", "moment SUM(coalesce(f, 0))"]),
        ("SUM(x), AVG(x) FROM t WHERE x BETWEEN -10 AND 10", ["moment COUNT(*)", "moment SUM(x)"]),
        ("COUNT(*), COUNT(x) FROM t WHERE x IS NULL OR x > 3", ["COUNT(*)", "COUNT(x)"]),
        ("COUNT(*), COUNT(uid) FROM t", ["COUNT(*)"]),
        (
            "COUNT(*), SUM(x), AVG(k), CORR(x, k), COVAR_POP(k, x) FROM t WHERE x > 3 AND k >= 0",
            [
                "moment COUNT(*)",
                "moment SUM(x)",
                "moment SUM(k)",
                "moment SUM(x * x)",
                "moment SUM(k * k)",
                "moment SUM(k * x)",
            ],
        ),
        (
            "AVG(x), COVAR_POP(x, k) FROM t WHERE k >= 0",
            [
                "moment COUNT(x)",
                "moment SUM(x)",
                "moment COUNT(x, k)",
                "moment SUM(x)",
                "moment SUM(k)",
                "moment SUM(x * k)",
            ],
        ),
        (
            "COUNT(*), COVAR_POP(x, x) FROM t WHERE x > 3",
            ["COUNT(*)", "moment COUNT(x, x)", "moment SUM(x)", "moment SUM(x)", "moment SUM(x * x)"],
        ),
    ],
)
def test_what_is_measured(asked: str, measured: list[str]) -> None:
    (planned,) = compiled(f"SELECT {asked}").releases
    assert [m.name for m in planned.measurements] == measured


@pytest.mark.parametrize(
    "asked",
    [
        "COUNT(*), COUNT(x), SUM(x), AVG(x) FROM t",
        "COUNT(*), COUNT(x), SUM(x), AVG(x) FROM t WHERE x <> 7",
        "COUNT(*), COUNT(f), SUM(COALESCE(f, 0)), AVG(COALESCE(f, 0)) FROM t WHERE x IN (1, 2, 3) OR x > 50",
        "COUNT(*) FILTER (WHERE x > 20), SUM(x) FILTER (WHERE x > 20), AVG(x) FILTER (WHERE x > 20) FROM t",
        "COUNT(*), AVG(x), SUM(x % 7), CORR(x, x % 7), COVAR_SAMP(x % 7, x), VAR_POP(x % 7) FROM t WHERE x > 3",
        "COUNT(*), AVG(x), COVAR_POP(x, CASE WHEN x > 50 THEN 1 ELSE 5 END) FROM t",
        "COUNT(*) FILTER (WHERE x > 20), COVAR_POP(x, x % 7), COVAR_POP(x, x % 7) FILTER (WHERE x > 20) FROM t",
        "SUM(x), COUNT(x), SUM(CASE WHEN x < 10 THEN x END), COUNT(uid) FROM t",
    ],
)
def test_without_noise_all_are_exact(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NULL and NaN, of which the policy says nothing, in a fifth and a seventh of the rows."""

    def none(mechanism: Mechanism, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.zeros(n, dtype=np.int64)

    monkeypatch.setattr("dpsql.release.draw", none)
    backend = opened(DATA, TABLES, "person", "UTC", PRIVACY)[0]
    made = compiled(f"SELECT k, {asked} GROUP BY k ORDER BY k")
    (planned,) = made.releases
    cells = backend.fetch(emit(planned, DUCKDB, {}), len(planned.keys), 60.0)
    given = released_relation(planned, release(planned, cells, Reservation(1, "ann", "k", planned.cost)))
    with closing(Pool({})) as pool:
        found = pool.run(made.remainder, {f"_{planned.id}": given}, 60.0).rows
        plain = asked.replace(" f ", " ff ").replace("(f", "(NULLIF(f, CAST('NaN' AS DOUBLE))")

    with duckdb.connect() as raw:
        raw.execute(DATA)
        exact = raw.execute(f"SELECT k, {plain} GROUP BY k ORDER BY k").fetchall()
    assert [[float(str(v)) for v in row] for row in found] == [
        pytest.approx([float(str(v)) for v in row], rel=1e-5) for row in exact
    ]


def test_the_error_of_a_sum_is_that_of_its_parts() -> None:
    (planned,) = compiled("SELECT SUM(x), COUNT(x) FROM t").releases
    count, total = planned.measurements
    expected = 1.96 * (total.stddev**2 + (50 * count.stddev) ** 2) ** 0.5
    assert planned.error95(planned.outputs[0]) == pytest.approx(expected)
    (alone,) = compiled("SELECT SUM(x), COUNT(*) FROM t").releases
    assert expected < 0.75 * (alone.error95(alone.outputs[0]) or 0)
