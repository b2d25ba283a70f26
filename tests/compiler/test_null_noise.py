"""Averages and extremes that are no more than noise are NULL: which they are, whoever reads them, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiler_mini import BOUNDS, TERMS, mini_engine, opened

from dpsql import chosen
from dpsql.compiler import compile_statement
from dpsql.compiler.cells import ONE
from dpsql.compiler.plan import PlannedRelease
from dpsql.engine import Engine
from dpsql.estimates import estimated
from dpsql.replay.recent import Recent
from dpsql.session.ports import CancelToken
from dpsql.types import Release, Settings, Value

DATA = """
CREATE TABLE t (uid INTEGER PRIMARY KEY, word TEXT, num INTEGER, flag INTEGER);
INSERT INTO t SELECT i, 'a', 40 + i % 21, 0 FROM range(4000) r(i);
"""
TABLES = """
  t:
    unit: uid
    max_rows: 1
    columns:
      word: {type: text, values: [a, b, c, d, e, f, g]}
      num: {type: integer, lower: 0, upper: 100}
      flag: {type: integer, lower: 0, upper: 1}
"""
ON, OFF = Settings(), Settings(null_noise=False)
Rows = tuple[tuple[Value, ...], ...]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with mini_engine(tmp_path, DATA, TABLES) as made:
        yield made


def ask(engine: Engine, text: str, settings: Settings = ON, user: str = "ann") -> tuple[Rows, tuple[str, ...]]:
    answer = engine.answer(user, text, 0, settings, (), CancelToken())
    return answer.relation.rows, answer.notices


# What is no more than noise ------------------------------------------------------------------------------------------


def planned_of(text: str) -> PlannedRelease:
    (planned,) = compile_statement(text, opened(DATA, TABLES, "person", "UTC", BOUNDS)[1], TERMS).releases
    return planned


def judged(text: str, *cells: float) -> frozenset[int]:
    """The aggregates that are told to be noise, of a group with these cells: in units, bins as they are."""
    planned = planned_of(text)
    scaled = [round(cell / float(m.resolution)) for cell, m in zip(cells, planned.measurements, strict=False)]
    bins = [int(cell) for cell in cells[len(planned.measurements) :]]
    (noise,) = estimated(planned, Release("k", ((),), ((*scaled, *bins),))).noise
    return noise


def test_an_average_is_noise_where_its_group_may_be_empty() -> None:
    (rows, _) = planned_of("SELECT AVG(num) FROM t").measurements
    for n, told in ((-50.0, True), (0.0, True), (rows.error95 * 0.9, True), (rows.error95 * 10, False)):
        assert bool(judged("SELECT AVG(num) FROM t", n, 0.0)) is told


def test_an_average_is_noise_where_the_middle_of_its_bounds_is_as_good() -> None:
    """Its 95 % error is half of what the bounds allow, as it is where the count is about its own error."""
    (rows, total) = planned_of("SELECT AVG(num) FROM t").measurements
    least = total.error95 / 50
    assert judged("SELECT AVG(num) FROM t", max(least, rows.error95) * 1.2, 0.0) == frozenset()
    assert judged("SELECT AVG(num) FROM t", max(least, rows.error95) * 0.99, 0.0) == {0}


def test_an_average_at_its_bound_is_noise_unless_its_error_is_small() -> None:
    """A share of nearly nothing among many is shown; what noise alone drove to the bound of a small group is not."""
    small, large = (planned_of("SELECT AVG(flag) FROM t").measurements[0].error95 * times for times in (5, 200))
    assert judged("SELECT AVG(flag) FROM t", small, -0.01 * small) == {0}
    assert judged("SELECT AVG(flag) FROM t", small, 0.1 * small) == frozenset()
    assert judged("SELECT AVG(flag) FROM t", large, -0.0001 * large) == frozenset()


@pytest.mark.parametrize("call", ["VAR_SAMP(num)", "STDDEV_POP(num)", "COVAR_POP(num, flag)", "CORR(num, flag)"])
def test_other_statistics_of_no_rows_are_noise(call: str) -> None:
    planned = planned_of(f"SELECT {call} FROM t")
    assert judged(f"SELECT {call} FROM t", *(0.0 for _ in planned.measurements)) == {0}
    assert all(o.kind != "avg" for o in planned.outputs)  # type: ignore[union-attr]


def test_counts_and_sums_are_never_noise() -> None:
    assert judged("SELECT COUNT(*), SUM(num), COUNT(DISTINCT uid) FROM t", 0.0, 0.0, 0.0) == frozenset()


@pytest.mark.parametrize("call", ["MIN(num)", "MAX(num)", "MEDIAN(num)", "MODE() WITHIN GROUP (ORDER BY word)"])
def test_a_choice_is_noise_where_a_count_beside_it_says_that_there_are_too_few_rows(call: str) -> None:
    text = f"SELECT {call}, COUNT(*) FROM t"
    needed = planned_of(text).histograms[0].needed_rows
    assert needed > 0
    assert judged(text, needed * 0.9, 3) == {0}
    assert judged(text, needed * 20, 3) == frozenset()
    assert judged(f"SELECT {call} FROM t", 3) == frozenset()
    assert judged(f"SELECT {call}, COUNT(*) FILTER (WHERE flag = 1) FROM t", 0.0, 3) == frozenset()


def test_extremes_in_the_wrong_order_are_noise() -> None:
    text = "SELECT MIN(num), MEDIAN(num), MAX(num), MIN(flag) FROM t"
    assert judged(text, 10, 20, 30, 0) == frozenset()
    assert judged(text, 10, 10, 10, 0) == frozenset()
    assert judged(text, 31, 20, 30, 0) == {0, 1, 2}
    assert judged(text, 10, 35, 30, 0) == {1, 2}
    assert judged("SELECT MIN(num), MAX(num) FILTER (WHERE flag = 1) FROM t", 31, 30) == frozenset()


def test_a_quantile_whose_interval_is_all_there_is_is_noise() -> None:
    text = "SELECT MEDIAN(num), dp_interval_low(MEDIAN(num)), dp_interval_high(MEDIAN(num)) FROM t"
    assert judged(text, 50, 0, 100) == {0}
    assert judged(text, 50, 1, 100) == frozenset()


def test_null_stands_for_values_alone() -> None:
    """Keys, error bars and what says something stay."""
    planned = planned_of("SELECT word, AVG(num), COUNT(num) FROM t GROUP BY word")
    made = estimated(planned, Release("k", (("a",), ("b",)), ((4000 * ONE, 10), (0, 0))))
    assert made.noise == (frozenset(), frozenset({0}))
    (a, b), (full, empty) = made.relation.rows, made.without_noise().rows
    assert full == a
    assert empty == (b[0], None, *b[2:])


# Answers --------------------------------------------------------------------------------------------------------------

BY_WORD = "SELECT word, AVG(num), MIN(num), MAX(num), COUNT(*) FROM t GROUP BY word ORDER BY word"


def check_answers(engine: Engine) -> None:
    shown, told = ask(engine, BY_WORD)
    every, said = ask(engine, BY_WORD, OFF)
    assert all(value is not None for row in every for value in row)
    assert all(value is not None for value in shown[0])
    assert sum(row[1:4] == (None, None, None) for row in shown[1:]) >= 4
    for (_, *some), (_, *all_) in zip(shown, every, strict=True):
        assert all(a in (None, b) for a, b in zip(some, all_, strict=True))
    missing = sum(value is None for row in shown for value in row)
    assert any(words.startswith(f"{missing} values are no more than noise, so NULL stand") for words in told)
    assert not any("so NULL stand" in words for words in said)
    assert ask(engine, BY_WORD)[0] == shown
    assert ask(engine, BY_WORD, OFF)[0] == every
    assert ask(engine, BY_WORD)[1][-1].startswith("Replay of a stored release")


def test_answers_and_their_replays_under_both_settings(engine: Engine) -> None:
    check_answers(engine)


def test_a_replay_under_the_other_setting_is_noticed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    key = Recent._key
    monkeypatch.setattr(Recent, "_key", lambda self, compiled, granted, nulls: key(self, compiled, granted, True))
    with pytest.raises(AssertionError):
        check_answers(engine)


def test_extremes_that_count_nothing_are_noticed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "_counts", lambda *_: False)
    with pytest.raises(AssertionError):
        check_answers(engine)


EXTREMES = "SELECT num + 0 * flag AS n, MIN(flag * 100 + num), MAX(flag * 100 + num) FROM t GROUP BY 1"


def out_of_order(rows: Rows) -> int:
    return sum(low is not None and high is not None and low > high for _, low, high in rows)  # type: ignore[operator]


def check_order(engine: Engine) -> None:
    """Most of a hundred groups are empty: of about half of these the minimum is above the maximum."""
    assert out_of_order(ask(engine, EXTREMES, OFF)[0]) > 10
    assert out_of_order(ask(engine, EXTREMES)[0]) == 0


def test_no_minimum_is_above_its_maximum(engine: Engine) -> None:
    check_order(engine)


def test_extremes_out_of_order_are_noticed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "_disagree", lambda *_: False)
    with pytest.raises(AssertionError):
        check_order(engine)


def test_averages_of_nothing_are_nearly_always_seen_for_what_they_are(engine: Engine) -> None:
    """Of 79 empty groups about two averages pass: the count's error is of 95 %. Of 21 filled ones none is lost."""
    rows, _ = ask(engine, "SELECT num, AVG(num) FROM t GROUP BY num", Settings(epsilon=TERMS.epsilon * 3))
    filled = [value for key, value in rows if 40 <= int(str(key)) <= 60]
    empty = [value for key, value in rows if not 40 <= int(str(key)) <= 60]
    assert all(value is not None for value in filled)
    assert sum(value is None for value in empty) >= len(empty) - 15


def test_what_is_left_out_takes_part_in_nothing(engine: Engine) -> None:
    few = "SELECT word FROM t GROUP BY word HAVING AVG(num) >= 0 ORDER BY AVG(num)"
    assert len(ask(engine, few, OFF)[0]) == 7
    assert len(ask(engine, few)[0]) < 7


def test_measurements_do_not_hang_on_it(engine: Engine) -> None:
    """What an inner query releases is read with all values: the same release serves both settings."""
    text = "SELECT COUNT(*) FROM t WHERE num >= (SELECT AVG(num) FROM t WHERE word = 'b')"
    first, told = ask(engine, text)
    again, said = ask(engine, text, OFF)
    assert first == again
    assert told[-1].startswith("Price")
    assert said[-1].startswith("Replay")


def test_derived_answers_too(engine: Engine) -> None:
    ask(engine, "SELECT word, AVG(num) FROM t GROUP BY word")
    for word, told in (("a", False), ("b", True), ("c", True), ("d", True)):
        text = f"SELECT AVG(num) FROM t WHERE word = '{word}'"
        ((every,),), said = ask(engine, text, OFF)
        ((value,),), notices = ask(engine, text)
        assert any(words.startswith("Derived") for words in said)
        assert value in (None, every)
        assert (value is None) == any("so NULL stands there: AVG(num)" in words for words in notices)
        assert told or value is not None


def test_a_role_may_have_it_off(tmp_path: Path) -> None:
    with mini_engine(tmp_path, DATA, TABLES, role=", null_noise: false") as engine:
        assert all(value is not None for row in ask(engine, BY_WORD)[0] for value in row)
        assert any(value is None for row in ask(engine, BY_WORD, Settings(null_noise=True))[0] for value in row)
