"""95 % intervals hold the exact bounded value in 93 to 97 of 100 answers.

One statement over 5,000 public groups is 5,000 independent answers: the share seen differs from the true one by more
than 1.6 percent points with a probability below 1e-6. The true one is about 95 %; of a ratio under Laplace noise, whose
tails are longer, about 94 %, so those are asked four times. The exact value is what the same query says of the exact
cells. Clipping and clamping are in both: intervals speak of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from typing import Literal

import numpy as np
import pytest
from compiler_mini import opened

from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.compiler.emit import DUCKDB, emit
from dpsql.dp.mechanisms import Mechanism
from dpsql.errors import Rejected
from dpsql.estimates import released_relation
from dpsql.release import release
from dpsql.remainder import Pool
from dpsql.types import ExactCells, Reservation

GROUPS = 5_000
DATA = f"""
CREATE TABLE t AS SELECT i AS uid, CAST(i % {GROUPS} AS INTEGER) AS k, (i * 37) % 101 AS x, (i * 53) % 89 AS y,
CAST(i % {GROUPS} // 4 AS INTEGER) AS fours, CAST(i % 4 AS INTEGER) AS place
FROM range({GROUPS * 60}) AS r(i)
"""
TABLES = f"""
  t:
    unit: uid
    max_rows: 1
    columns:
      k: {{type: integer, lower: 0, upper: {GROUPS - 1}}}
      fours: {{type: integer, lower: 0, upper: {GROUPS // 4 - 1}}}
      place: {{type: integer, lower: 0, upper: 3}}
      x: {{type: integer, lower: 0, upper: 100}}
      y: {{type: integer, lower: 0, upper: 100}}
"""
PRIVACY = "max_groups: 1, max_rows_per_group: 1"
CASES = (
    "COUNT(*)",
    "SUM(x)",
    "AVG(x)",
    "VAR_POP(x)",
    "STDDEV(x)",
    "SUM(x) / COUNT(*)",
    "100.0 * COUNT(*) FILTER (WHERE x > 50) / COUNT(*)",
    "ROUND(CAST(SUM(x) AS numeric) / NULLIF(SUM(y), 0), 3)",
    "SUM(x) - SUM(y) + 2 * COUNT(*)",
    "AVG(x) / AVG(y)",
    "CASE WHEN COUNT(*) > 0 THEN SUM(x) / CAST(COUNT(*) AS double precision) END",
)
TOGETHER = (
    "COUNT(x)",
    "SUM(x)",
    "AVG(x)",
    "SUM(x) / CAST(COUNT(x) AS double precision)",
    "SUM(x) - 40 * COUNT(x)",
    "SUM(x) + 60 * AVG(x) + COUNT(*)",
    "STDDEV(x) / AVG(x)",
)
"""Of one column beside COUNT(*), SUM(x) and AVG(x), so that all are read from its moments."""
LAPLACE = ("AVG(x)", "SUM(x) / CAST(COUNT(*) AS double precision)")


def compiled(statement: str, mechanism: Literal["auto", "laplace", "gaussian"]) -> Compiled:
    terms = Terms(Decimal(4), Decimal("1e-7"), mechanism)
    return compile_statement(statement, opened(DATA, TABLES, "person", "UTC", PRIVACY)[1], terms)


def cells_of(made: Compiled) -> ExactCells:
    (planned,) = made.releases
    return opened(DATA, TABLES, "person", "UTC", PRIVACY)[0].fetch(emit(planned, DUCKDB, {}), len(planned.keys), 60.0)


def answers(made: Compiled, cells: ExactCells) -> Sequence[tuple[float, ...]]:
    """The statement's rows over freshly drawn noise."""
    (planned,) = made.releases
    given = release(planned, cells, Reservation(1, "ann", "k", planned.cost))
    with closing(Pool({})) as pool:
        rows = pool.run(made.remainder, {f"_{planned.id}": released_relation(planned, given)}, 60.0).rows
    return [tuple(float(str(value)) for value in row) for row in rows]


def coverage(
    call: str,
    mechanism: Literal["auto", "laplace"],
    rounds: int,
    monkeypatch: pytest.MonkeyPatch,
    keys: str = "GROUP BY k ORDER BY k",
    beside: str = "",
) -> float:
    bars = f"dp_interval_low({call}), dp_interval_high({call})"
    made = compiled(f"SELECT CAST({call} AS double precision), {bars}{beside} FROM t {keys}", mechanism)
    cells = cells_of(made)

    def none(mechanism: Mechanism, n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.zeros(n, dtype=np.int64)

    with monkeypatch.context() as without_noise:
        without_noise.setattr("dpsql.release.draw", none)
        truth = [row[0] for row in answers(made, cells)]
    inside = [
        low <= true <= high
        for _ in range(rounds)
        for true, (_, low, high, *_) in zip(truth, answers(made, cells), strict=True)
    ]
    return sum(inside) / len(inside)


@pytest.mark.parametrize("call", CASES)
def test_an_interval_holds_the_exact_value(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.93 <= coverage(call, "auto", 1, monkeypatch) <= 0.97


@pytest.mark.parametrize("call", LAPLACE)
def test_so_it_does_under_laplace_noise(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.93 <= coverage(call, "laplace", 4, monkeypatch) <= 0.97


@pytest.mark.parametrize("call", TOGETHER)
def test_so_it_does_of_what_is_read_from_shared_measurements(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.93 <= coverage(call, "auto", 1, monkeypatch, beside=", COUNT(*), SUM(x), AVG(x)") <= 0.97


@pytest.mark.parametrize("call", ["SUM(x)", "SUM(x) - 40 * COUNT(x)", "SUM(x) / CAST(COUNT(x) AS double precision)"])
def test_so_it_does_of_those_under_laplace_noise(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.93 <= coverage(call, "laplace", 4, monkeypatch, beside=", AVG(x)") <= 0.97


@pytest.mark.parametrize(
    "call", ["COUNT(*)", "SUM(x)", "AVG(x) FILTER (WHERE y < 70)", "AVG(x)", "SUM(x) - 40 * COUNT(x)"]
)
def test_a_coarser_group_has_an_interval_of_its_own(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "GROUP BY ROLLUP (fours, place) HAVING GROUPING(place) = 1 ORDER BY fours"
    assert 0.93 <= coverage(call, "auto", 4, monkeypatch, keys) <= 0.97


def test_noise_that_moves_together_adds_up_as_it_is() -> None:
    """SUM(x) is the centred sum and 50 times the count: less takes the count's noise out, more doubles it."""
    calls = ("SUM(x)", "COUNT(x)", "SUM(x) - 50 * COUNT(x)", "SUM(x) + 50 * COUNT(x)", "SUM(x) + SUM(y)", "SUM(y)")
    made = compiled(f"SELECT {', '.join(f'dp_stddev({call})' for call in calls)}, AVG(x) FROM t GROUP BY k", "auto")
    total, count, less, more, apart, other = answers(made, cells_of(made))[0][:6]
    centred = math.sqrt(total**2 - (50 * count) ** 2)
    assert less == pytest.approx(centred, rel=1e-6)
    assert more == pytest.approx(math.hypot(centred, 100 * count), rel=1e-6)
    assert apart == pytest.approx(math.hypot(total, other), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("COUNT(*) / SUM(COUNT(*)) OVER ()", "a window function"),
        ("COUNT(*) / (SELECT COUNT(*) FROM t)", "a subquery"),
        ("k", "an expression over aggregates"),
        (" + ".join(f"COUNT(*) FILTER (WHERE x > {i})" for i in range(9)), "at most 8"),
    ],
)
def test_what_it_cannot_tell_is_refused(call: str, words: str) -> None:
    with pytest.raises(Rejected, match=words):
        compiled(f"SELECT dp_stddev({call}) FROM t GROUP BY k", "auto")


@pytest.mark.parametrize("call", ["STDDEV(x)", "STDDEV_POP(x)", "VAR_POP(x)", "VARIANCE(x)"])
def test_noise_alone_does_not_look_exact(call: str) -> None:
    """Of no rows at all: the value may be 0, its error never is."""
    made = compiled(f"SELECT {call}, dp_stddev({call}), dp_interval_high({call}) FROM t WHERE y < 0 GROUP BY k", "auto")
    rows = answers(made, cells_of(made))
    assert any(value == 0 for value, _, _ in rows)
    assert all(deviation > 0 and high > value for value, deviation, high in rows if value == 0)
