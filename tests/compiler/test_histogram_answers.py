"""What the choices answer: near the truth where there are rows enough, inside the bounds always, and typed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from compiler_mini import BOUNDS, mini_engine, opened

from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.compiler.bins import DayBins, ListedBins, NumberBins, SecondBins
from dpsql.compiler.emit import DUCKDB, emit, emit_histogram
from dpsql.compiler.explain import as_json, as_text
from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.privacy import cost_of
from dpsql.engine import Engine
from dpsql.errors import Failed, Rejected
from dpsql.estimates import released_relation
from dpsql.ledger.events import events_of
from dpsql.release import release
from dpsql.session.ports import CancelToken
from dpsql.types import Cost, ExactCells, Release, Reservation, Settings, Value

TERMS = Terms(Decimal(1), Decimal("1e-7"))
ROWS = 10_000

DATA = f"""
CREATE TABLE t AS SELECT
    i AS uid, CAST(i % 1000 AS INTEGER) AS num,
    CAST((i % 1000) / 10.0 AS DECIMAL(6,1)) AS dec, CAST(i % 1000 AS DOUBLE) / 8 AS flt,
    DATE '2020-01-01' + CAST(i % 1000 AS INTEGER) AS day,
    TIMESTAMP '2020-01-01' + INTERVAL 1 HOUR * (i % 1000) AS at,
    CASE WHEN i % 10 < 6 THEN 'b' WHEN i % 10 < 9 THEN 'a' ELSE 'c' END AS word,
    CASE WHEN i % 10 < 8 THEN 5 ELSE i % 5 END AS rating,
    CASE WHEN i % 2 = 0 THEN 'NaN' ELSE '1.5' END::DOUBLE AS odd
FROM range({ROWS}) AS r(i)
"""
TABLES = """
  t:
    unit: uid
    max_rows: 1
    columns:
      num: {type: integer, lower: 0, upper: 2000}
      dec: {type: "numeric(6,1)", lower: 0, upper: 200}
      flt: {type: double, lower: 0, upper: 200}
      day: {type: date, lower: 2020-01-01, upper: 2024-12-31}
      at: {type: timestamp, lower: 2020-01-01, upper: 2020-12-31}
      word: {type: text, values: [c, b, a, d]}
      rating: {type: integer, lower: 1, upper: 10}
      odd: {type: double}
"""


def compiled(statement: str, terms: Terms = TERMS) -> Compiled:
    return compile_statement(statement, opened(DATA, TABLES, "person", "UTC", BOUNDS)[1], terms)


def exact(planned: PlannedRelease) -> tuple[ExactCells, tuple[ExactCells, ...]]:
    backend, width = opened(DATA, TABLES, "person", "UTC", BOUNDS)[0], len(planned.keys)
    cells = backend.fetch(emit(planned, DUCKDB, {}), width, 10.0) if planned.has_cells else ExactCells((), ())
    return cells, tuple(
        backend.fetch(emit_histogram(planned, h, DUCKDB, {}), width + 1, 10.0) for h in planned.histograms
    )


def released(planned: PlannedRelease) -> Release:
    cells, weights = exact(planned)
    return release(planned, cells, Reservation(1, "ann", "k", planned.cost), weights)


def answer(statement: str) -> list[tuple[Value, ...]]:
    """Keys and aggregates of a statement with one release."""
    (planned,) = compiled(statement).releases
    width = len(planned.keys) + len(planned.outputs)
    return [row[:width] for row in released_relation(planned, released(planned)).rows]


def rank_error(statement: str) -> float:
    """Of a quantile, in rows: beyond it lies no choice but with probability 1e-7."""
    (planned,) = compiled(statement).releases
    (histogram,) = planned.histograms
    steps = histogram.mechanism.scale * math.log(histogram.choice.bins.size * 1e7)
    return steps / histogram.choice.rank.denominator / 1024


# Accuracy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "rank"),
    [
        ("MEDIAN({})", 0.5),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {})", 0.9),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {} DESC)", 0.1),
        ("QUANTILE_CONT({}, 0.25)", 0.25),
    ],
)
@pytest.mark.parametrize(("column", "unit"), [("num", 1.0), ("dec", 0.1), ("flt", 0.125)])
def test_quantiles_are_within_their_rank_error(call: str, rank: float, column: str, unit: float) -> None:
    """Each of the thousand values stands for ten rows."""
    statement = f"SELECT {call.format(column)} FROM t"
    ((value,),) = answer(statement)
    error = rank_error(statement)
    assert isinstance(value, float)
    assert error < ROWS / 20
    assert abs(value / unit * 10 - rank * ROWS) <= error + 20


def test_dates_and_timestamps_are_chosen_too() -> None:
    ((middle, last, noon, first),) = answer("SELECT MEDIAN(day), MAX(day), MEDIAN(at), MIN(at) FROM t")
    assert isinstance(middle, date)
    assert date(2021, 3, 1) < middle < date(2021, 7, 15)
    assert isinstance(noon, datetime)
    assert datetime(2020, 1, 17) < noon < datetime(2020, 1, 26)
    assert isinstance(last, date)
    assert date(2020, 1, 1) <= last <= date(2024, 12, 31)
    assert isinstance(first, datetime)
    assert datetime(2020, 1, 1) <= first <= datetime(2020, 12, 31)


def test_extremes_leave_the_rank_error_beyond() -> None:
    """Between the true extreme and twice the rank error in 9 of 10 answers: fewer than half of 20 never."""
    statement = "SELECT MAX(num) FROM t"
    (planned,) = compiled(statement).releases
    (histogram,) = planned.histograms
    assert histogram.rank_error is not None
    rows = histogram.rank_error / 1024
    found = [answer(statement)[0][0] for _ in range(20)]
    near = [v for v in found if isinstance(v, int) and 1000 - (2 * rows + 20) / 10 <= v <= 1000]
    assert len(near) >= 10


def test_an_extreme_that_many_rows_share_is_found() -> None:
    """Eight rows in ten hold the largest rating; the empty ones above it win in at most 1 of 40."""
    found = [answer("SELECT MAX(rating), MODE(rating) FROM t")[0] for _ in range(10)]
    assert found.count((5, 5)) >= 5


def test_the_most_frequent_word_and_ordered_words() -> None:
    assert answer("SELECT MODE(word), MODE() WITHIN GROUP (ORDER BY word) FROM t") == [("b",)]
    assert answer("SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY word) FROM t") == [("b",)]
    assert answer("SELECT PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY word) FROM t") == [("a",)]


def test_filter_and_keys() -> None:
    found = {
        row[0]: row[1] for row in answer("SELECT word, MODE(rating) FILTER (WHERE rating < 5) FROM t GROUP BY word")
    }
    assert set(found) == {"a", "b", "c", "d"}
    assert found["c"] == 4


# Empty groups, types --------------------------------------------------------------------------------------------


def test_an_empty_group_gives_a_value_inside_the_bounds() -> None:
    """Never NULL: there is no telling that it is empty."""
    statement = "SELECT MEDIAN(num), MIN(num), MAX(dec), MODE(word), MAX(day) FROM t WHERE uid < 0 AND num > 7"
    for _ in range(5):
        ((middle, least, most, word, day),) = answer(statement)
        assert isinstance(middle, float)
        assert isinstance(least, int)
        assert isinstance(most, Decimal)
        assert 7 <= middle <= 2000
        assert 7 <= least <= 2000
        assert 0 <= most <= 200
        assert word in ("a", "b", "c", "d")
        assert isinstance(day, date)


@pytest.mark.parametrize(
    ("call", "type_"),
    [
        ("MIN(num)", "integer"),
        ("MAX(dec)", "numeric(6,1)"),
        ("MEDIAN(num)", "double precision"),
        ("MEDIAN(dec)", "double precision"),
        ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY num)", "integer"),
        ("QUANTILE(dec, 0.5)", "numeric(6,1)"),
        ("APPROX_QUANTILE(flt, 0.5)", "double precision"),
        ("MEDIAN(day)", "date"),
        ("MAX(at)", "timestamp"),
        ("MODE(word)", "text"),
    ],
)
def test_types_are_those_of_postgres(call: str, type_: str) -> None:
    assert [str(c.type) for c in compiled(f"SELECT {call} FROM t").columns] == [type_]


def test_bins_come_from_the_policy() -> None:
    (planned,) = compiled(
        "SELECT MIN(num), MIN(dec), MIN(flt), MIN(day), MIN(at), MIN(word), MIN(uid % 3) FROM t"
    ).releases
    bins = [h.choice.bins for h in planned.histograms]
    assert [type(b) for b in bins] == [NumberBins] * 3 + [DayBins, SecondBins, ListedBins, NumberBins]
    assert [b.size for b in bins[:4]] == [2001, 2001, 3201, 1827]
    assert isinstance(bins[4], SecondBins)
    assert bins[4].step == 2**13
    assert all(b.size <= 4096 for b in bins)
    assert isinstance(bins[2], NumberBins)
    assert bins[2].resolution == Fraction(1, 16)


def test_filters_narrow_the_bins() -> None:
    (planned,) = compiled("SELECT MAX(num), MAX(day) FROM t WHERE num BETWEEN 5 AND 9 AND day < '2020-02-01'").releases
    assert [h.choice.bins.size for h in planned.histograms] == [5, 31]


# Refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("MAX(odd)", "0A000"),
        ("PERCENTILE_CONT(1.5) WITHIN GROUP (ORDER BY num)", "22023"),
        ("PERCENTILE_CONT(-0.1) WITHIN GROUP (ORDER BY num)", "22023"),
        ("PERCENTILE_CONT(num / 2000.0) WITHIN GROUP (ORDER BY num)", "22023"),
        ("QUANTILE_CONT(num, 'NaN')", "22P02"),
        ("PERCENTILE_CONT(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY num)", "0A000"),
        ("MEDIAN(word)", "42804"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY num, dec)", "0A000"),
        ("QUANTILE_CONT(num)", "0A000"),
        ("MEDIAN(DISTINCT num)", "0A000"),
    ],
)
def test_refusals(call: str, sqlstate: str) -> None:
    with pytest.raises(Rejected) as error:
        compiled(f"SELECT {call} FROM t")
    assert error.value.sqlstate == sqlstate
    assert error.value.position is not None


def test_a_null_rank_gives_null_and_measures_nothing_for_it() -> None:
    found = compiled("SELECT PERCENTILE_CONT(NULL) WITHIN GROUP (ORDER BY num), COUNT(*) FROM t")
    assert not found.releases[0].histograms
    assert str(found.columns[0].type) == "double precision"


# Price, release, explain ----------------------------------------------------------------------------------------


def test_each_histogram_takes_a_share_and_equal_ones_are_made_once() -> None:
    (one,) = compiled("SELECT MEDIAN(num) FROM t").releases
    text = "SELECT MEDIAN(num), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY num), MAX(num), COUNT(*) FROM t"
    (many,) = compiled(text).releases
    assert (len(many.histograms), len(many.measurements)) == (2, 1)
    assert math.isclose(one.cost.rho, many.cost.rho, rel_tol=1e-6)
    shares = [cost_of(h.mechanism, h.scores).rho for h in many.histograms]
    assert all(math.isclose(3 * share, many.cost.rho, rel_tol=1e-6) for share in shares)
    assert len(events_of(many)) == 3


def test_the_key_of_a_measurement_tells_choices_apart() -> None:
    texts = ("MIN(num)", "MAX(num)", "MEDIAN(num)", "QUANTILE_CONT(num, 0.1)", "MAX(num) FILTER (WHERE num > 3)")
    made = {compiled(f"SELECT {text} FROM t").releases[0].canonical for text in texts}
    assert len(made) == len(texts)


def test_a_release_keeps_cells_then_bins_and_reads_the_same_again() -> None:
    (planned,) = compiled("SELECT word, COUNT(*), MEDIAN(num), MODE(rating) FROM t GROUP BY word").releases
    made = released(planned)
    assert [len(row) for row in made.cells] == [3] * 4
    assert all(0 <= row[1] <= 2000 and 0 <= row[2] < 10 for row in made.cells)
    assert released_relation(planned, made) == released_relation(planned, made)
    (row, *_) = released_relation(planned, made).rows
    assert [c.name for c in planned.columns[-6:]] == [f"_a{i}_{s}" for i in (1, 2) for s in ("sd", "low", "high")]
    assert row[-6:] == (None,) * 6


def test_only_shown_private_keys_keep_their_weights() -> None:
    (planned,) = compiled("SELECT odd, MODE(rating), MAX(num) FROM t GROUP BY odd").releases
    cells, weights = exact(planned)
    alone = ExactCells((*cells.keys, (7.25,)), (*cells.cells, (1,)))
    more = tuple(ExactCells((*w.keys, (7.25, 3)), (*w.cells, (1024,))) for w in weights)
    made = release(planned, alone, Reservation(1, "ann", "k", planned.cost), more)
    assert [str(key[0]) for key in made.keys] == ["1.5", "nan"]
    assert [row[0] for row in made.cells] == [4, 4]


@pytest.mark.parametrize("key", [(9, 0), (0, 10), (0, -1), (0, None)])
def test_a_bin_or_key_outside_its_domain_is_a_fault(key: tuple[Any, ...]) -> None:
    (planned,) = compiled("SELECT word, MODE(rating) FROM t GROUP BY word").releases
    bad = ExactCells((key,), ((1024,),))
    with pytest.raises(Failed, match="could not"):
        release(planned, ExactCells((), ()), Reservation(1, "ann", "k", planned.cost), (bad,))


def test_missing_weights_are_a_fault() -> None:
    (planned,) = compiled("SELECT MODE(rating) FROM t").releases
    with pytest.raises(ValueError, match="shorter"):
        release(planned, ExactCells((), ()), Reservation(1, "ann", "k", planned.cost))


def test_explain_shows_histograms() -> None:
    found = compiled("SELECT word, COUNT(*), MEDIAN(num), MAX(num) FROM t GROUP BY word")
    cells, median, largest = as_json(found, "1", DUCKDB)["releases"]
    assert [(e["id"], e["kind"]) for e in (cells, median, largest)] == [
        ("r0", "cells"),
        ("r0h0", "histogram"),
        ("r0h1", "histogram"),
    ]
    (measured,) = median["measurements"]
    assert measured["norm"] == "l1"
    assert measured["sensitivity"] == 1024
    assert measured["mechanism"] == "noisy_max"
    assert measured["error95"] is None
    assert median["keys"] == {"names": ["word", "bin"], "kind": "public", "size": 4 * 2001}
    backend = opened(DATA, TABLES, "person", "UTC", BOUNDS)[0]
    assert sum(c[0] for c in backend.fetch(median["backend_sql"], 2, 10.0).cells) == ROWS * 1024
    total = sum(entry["cost"]["rho"] for entry in (cells, median, largest))
    assert math.isclose(total, found.cost.rho / 1e15, rel_tol=1e-6)
    assert any("noisy max" in line for line in as_text(found, "1", "zcdp"))
    json.dumps([cells, median, largest])


def test_explain_of_histograms_alone_has_no_cells() -> None:
    (entry,) = as_json(compiled("SELECT MEDIAN(num) FROM t"), "1", DUCKDB)["releases"]
    assert entry["id"] == "r0h0"


# End to end -----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with mini_engine(tmp_path, DATA, TABLES) as made:
        yield made


def test_an_answer_is_paid_once_and_replayed_exactly(engine: Engine) -> None:
    text = "SELECT word, MAX(num), MEDIAN(day), COUNT(*), dp_stddev(MAX(num)) FROM t GROUP BY word ORDER BY word"

    def asked() -> tuple[tuple[Value, ...], ...]:
        return engine.answer("ann", text, 0, Settings(), (), CancelToken()).relation.rows

    first, spent = asked(), engine.ledger.dataset_spent()
    assert spent == sum((p.cost for p in compiled(text).releases), Cost())
    assert asked() == first
    assert engine.ledger.dataset_spent() == spent
    assert [row[0] for row in first] == ["a", "b", "c", "d"]
    assert all(row[4] is None for row in first)


def test_the_error_in_rank_is_told(engine: Engine) -> None:
    """In place of an error bar; a replay tells it again, MODE has none."""
    text = "SELECT MAX(num), MEDIAN(num), MODE() WITHIN GROUP (ORDER BY word) FROM t"
    histograms = [h for p in compiled(text).releases for h in p.histograms]
    told = [f"{h.rank_rows:,.0f}" for h in histograms if h.rank_rows is not None]
    assert len(told) == 2
    for _ in range(2):
        notices = engine.answer("ann", text, 0, Settings(), (), CancelToken()).notices
        assert notices[0].startswith("Off in rank")
        assert all(rows in notices[0] for rows in told)
        assert "mode" not in notices[0]


@pytest.mark.parametrize(("medians", "most"), [(250, 33), pytest.param(1000, 90, marks=pytest.mark.slow)])
def test_few_quantiles_are_further_off_than_told(medians: int, most: int) -> None:
    """At most one in twenty of independent medians; more than `most` have a probability below 1e-6."""
    (planned,) = compiled("SELECT MEDIAN(num) FROM t").releases
    (histogram,) = planned.histograms
    assert histogram.rank_rows is not None
    (cells, weights), wrong = exact(planned), 0
    for _ in range(medians):
        made = release(planned, cells, Reservation(1, "ann", "k", planned.cost), weights)
        (value, *_), *_ = released_relation(planned, made).rows
        assert isinstance(value, int | float | Decimal)
        below = ROWS * (float(value) + 1) / 1000
        wrong += abs(below - ROWS / 2) > histogram.rank_rows + ROWS / 1000
    assert wrong <= most
