"""Intervals of quantiles: what is measured for them, what it costs, how they are shown, and what has none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from compiler_mini import BOUNDS, opened
from test_histogram_answers import DATA, TABLES, compiled, released

from dpsql.compiler import Terms, compile_statement
from dpsql.compiler.bins import DayBins, NumberBins, SecondBins, edge
from dpsql.compiler.explain import as_text
from dpsql.dp.privacy import cost_of
from dpsql.engine import Engine, open_engine
from dpsql.errors import Rejected
from dpsql.estimates import Estimated, released_relation
from dpsql.ledger import init_ledger
from dpsql.notices import empty_answers
from dpsql.policy.load import parse
from dpsql.remainder import Pool
from dpsql.session.ports import CancelToken
from dpsql.types import Relation, Settings, Value


def both(call: str) -> str:
    return f"dp_interval_low({call}), dp_interval_high({call})"


def rows(statement: str) -> tuple[tuple[Value, ...], ...]:
    made = compiled(statement)
    (planned,) = made.releases
    with closing(Pool({})) as pool:
        return pool.run(made.remainder, {f"_{planned.id}": released_relation(planned, released(planned))}, 60.0).rows


def chosen(statement: str) -> list[str]:
    (planned,) = compiled(statement).releases
    return [h.name for h in planned.histograms]


# What is measured -----------------------------------------------------------------------------------------------


def test_each_end_is_a_choice_of_its_own_that_shares_the_price() -> None:
    (plain,) = compiled("SELECT MEDIAN(num) FROM t").releases
    (barred,) = compiled(f"SELECT MEDIAN(num), {both('MEDIAN(num)')} FROM t").releases
    assert [h.name for h in barred.histograms] == [
        f"{end}quantile 0.5(num)" for end in ("", "low end of ", "high end of ")
    ]
    assert math.isclose(plain.cost.rho, barred.cost.rho, rel_tol=1e-6)
    for histogram in barred.histograms:
        assert histogram.scores == plain.histograms[0].scores
        assert math.isclose(3 * cost_of(histogram.mechanism, histogram.scores).rho, barred.cost.rho, rel_tol=1e-6)
        assert math.isclose(histogram.mechanism.scale, math.sqrt(3) * plain.histograms[0].mechanism.scale, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("items", "count"),
    [
        ("dp_interval_low(MEDIAN(num))", 2),
        (f"{both('MEDIAN(num)')}", 3),
        (f"MEDIAN(num), {both('MEDIAN(num)')}, {both('QUANTILE_CONT(num, 0.5)')}", 3),
        (f"MEDIAN(num), {both('MEDIAN(num) / 60')}, {both('ROUND(MEDIAN(num)::numeric, 1)')}", 3),
        (f"{both('MEDIAN(num)')}, {both('QUANTILE_CONT(num, 0.1)')}", 6),
        (f"{both('MEDIAN(num)')}, {both('MEDIAN(num) FILTER (WHERE num > 3)')}", 6),
    ],
)
def test_nothing_is_measured_twice(items: str, count: int) -> None:
    assert len(chosen(f"SELECT {items} FROM t")) == count


def test_the_key_of_a_measurement_tells_ends_apart() -> None:
    low, high = (f"dp_interval_{end}(MEDIAN(num))" for end in ("low", "high"))
    texts = ("MEDIAN(num)", low, high, f"{low}, {high}", "dp_interval_low(QUANTILE_CONT(num, 0.4))")
    made = {compiled(f"SELECT {text} FROM t").releases[0].canonical for text in texts}
    assert len(made) == len(texts)


def test_the_plan_says_where_ends_are_looked_for() -> None:
    lines = as_text(compiled(f"SELECT MEDIAN(num), {both('MEDIAN(num)')} FROM t"), "1", "zcdp")
    assert any("Choose low end of quantile 0.5(num): one of 2001 values" in line for line in lines)
    assert sum("rows below the quantile's rank" in line or "rows above" in line for line in lines) == 2


# What is shown --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "MEDIAN(num)",
        "QUANTILE_CONT(dec, 0.1)",
        "QUANTILE(flt, 0.99)",
        "MEDIAN(day)",
        "MEDIAN(at)",
        "PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY word)",
        "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY num DESC)",
        "MEDIAN(num) FILTER (WHERE num < 3) * -2 + 1",
        "ROUND(CAST(MEDIAN(num) AS numeric) / 7, 1)",
    ],
)
def test_a_value_lies_within_its_interval_in_every_group(call: str) -> None:
    found = rows(f"SELECT word, {call}, {both(call)} FROM t GROUP BY word")
    assert len(found) == 4
    for _, value, low, high in found:
        assert low <= value <= high  # type: ignore[operator]


@pytest.mark.parametrize(
    ("call", "type_"),
    [
        ("MEDIAN(num)", "double precision"),
        ("QUANTILE(num, 0.5)", "integer"),
        ("QUANTILE(dec, 0.5)", "numeric(6,1)"),
        ("MEDIAN(day)", "date"),
        ("MEDIAN(at)", "timestamp"),
        ("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY word)", "text"),
    ],
)
def test_ends_have_the_type_of_the_value(call: str, type_: str) -> None:
    assert [str(c.type) for c in compiled(f"SELECT {both(call)} FROM t").columns] == [type_] * 2


def test_ends_hold_all_values_that_count_in_their_bin() -> None:
    """Half a step to either side, inside the bounds; the natural points of whole numbers and days are the values."""
    numbers = NumberBins(Fraction(1, 4), 0, 40, Fraction(0), Fraction(10))
    assert [edge(numbers, 3, end) for end in ("low", "high")] == [Fraction(5, 8), Fraction(7, 8)]
    assert (edge(numbers, 0, "low"), edge(numbers, 40, "high")) == (0, 10)
    days = DayBins(date(2020, 1, 1), date(2020, 1, 31), 4)
    assert [edge(days, 1, end) for end in ("low", "high")] == [date(2020, 1, 3), date(2020, 1, 7)]
    assert edge(days, 0, "low") == date(2020, 1, 1)
    seconds = SecondBins(datetime(2020, 1, 1), datetime(2020, 1, 2), 1)
    assert edge(seconds, 7, "high") == datetime(2020, 1, 1) + timedelta(seconds=7.5)
    edges = {
        call: compiled(f"SELECT dp_interval_low({call}) FROM t").releases[0].outputs[1].edge  # type: ignore[union-attr]
        for call in ("MEDIAN(num)", "MEDIAN(dec)", "MEDIAN(day)", "MEDIAN(flt)", "MEDIAN(at)", "MEDIAN(num * 5)")
    }
    assert [call for call, end in edges.items() if end] == ["MEDIAN(flt)", "MEDIAN(at)", "MEDIAN(num * 5)"]


def test_a_null_rank_has_null_ends_and_measures_nothing() -> None:
    call = "PERCENTILE_CONT(NULL) WITHIN GROUP (ORDER BY num)"
    assert not chosen(f"SELECT {both(call)}, COUNT(*) FROM t")
    assert rows(f"SELECT {both(call)}, COUNT(*) FROM t")[0][:2] == (None, None)


# What has none --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("MEDIAN(num) / AVG(num)", "dp_interval_low(PERCENTILE_CONT"),
        ("MEDIAN(num) * MEDIAN(num)", "dp_interval_low(PERCENTILE_CONT"),
        ("1 / MEDIAN(num)", "dp_interval_low(PERCENTILE_CONT"),
        ("ABS(MEDIAN(num) - 500)", "dp_interval_low(PERCENTILE_CONT"),
        ("CAST(MEDIAN(num) AS text)", "dp_interval_low(PERCENTILE_CONT"),
        ("CAST(MEDIAN(at) AS time)", "dp_interval_low(PERCENTILE_CONT"),
        ("MEDIAN(num) - MEDIAN(dec)", "dp_interval_low(PERCENTILE_CONT"),
        ("MAX(num) * 2", "MIN, MAX and MODE have no interval"),
    ],
)
def test_what_does_not_rise_or_fall_with_one_quantile_is_refused(call: str, hint: str) -> None:
    with pytest.raises(Rejected) as error:
        compiled(f"SELECT dp_interval_low({call}) FROM t")
    assert error.value.hint is not None
    assert hint in error.value.hint
    with pytest.raises(Rejected):
        compiled(f"SELECT dp_stddev({call}) FROM t")


def test_extremes_and_modes_have_none_and_no_choice_a_deviation() -> None:
    text = f"SELECT {both('MAX(num)')}, {both('MODE(word)')}, dp_stddev(MEDIAN(num)) FROM t"
    assert rows(text) == ((None,) * 5,)
    assert not any("end of" in name for name in chosen(text))


def test_coarser_groups_have_no_quantiles() -> None:
    with pytest.raises(Rejected, match="ROLLUP"):
        compiled("SELECT word, dp_interval_low(MEDIAN(num)) FROM t GROUP BY ROLLUP (word)")


def test_bars_that_are_not_asked_for_are_not_measured() -> None:
    """The setting gives counts and averages theirs, and leaves what is measured, and so its noise, as it is."""
    text = "SELECT COUNT(*), MEDIAN(num), MEDIAN(num) / 60 AS hours, MAX(num), AVG(num) FROM t"
    schema = opened(DATA, TABLES, "person", "UTC", BOUNDS)[1]
    terms = Terms(Decimal(1), Decimal("1e-7"), error_bars=True)
    barred = compile_statement(text, schema, terms)
    assert [c.name for c in barred.columns][5:] == ["count_low", "count_high", "avg_low", "avg_high"]
    assert [r.canonical for r in barred.releases] == [r.canonical for r in compiled(text).releases]


# End to end -----------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    file = tmp_path / "mini.duckdb"
    with closing(duckdb.connect(str(file))) as connection:
        connection.execute(DATA)
    head = f"""
dpsql: 1
dataset: mini
backend: duckdb:{file}
ledger: sqlite:{tmp_path}/mini.ledger
privacy: {{unit: person, units: 1000, max_groups: 2, max_rows_per_group: 3, budget: {{epsilon: 50, delta: 1e-6}}}}
roles: {{analyst: {{budget: {{epsilon: 50, delta: 1e-7}}, epsilon: 1}}}}
users: {{ann: {{role: analyst}}}}
tables:
"""
    policy = parse(head + TABLES, tmp_path / "mini.yaml")
    init_ledger(policy.ledger, policy.dataset)
    made = open_engine(policy)
    yield made
    made.close()


def notices(engine: Engine, text: str, settings: Settings | None = None) -> tuple[str, ...]:
    return engine.answer("ann", text, 0, settings or Settings(), (), CancelToken()).notices


def test_an_interval_is_replayed_with_its_value(engine: Engine) -> None:
    text = f"SELECT word, MEDIAN(num), {both('MEDIAN(num)')} FROM t GROUP BY word ORDER BY word"
    answers = [engine.answer("ann", text, 0, Settings(), (), CancelToken()).relation.rows for _ in range(2)]
    assert answers[0] == answers[1]
    spent = engine.ledger.dataset_spent()
    other = f"SELECT {both('MEDIAN(num)')}, MEDIAN(num), word FROM t GROUP BY word"
    again = engine.answer("ann", other, 0, Settings(), (), CancelToken()).relation.rows
    assert engine.ledger.dataset_spent() == spent or set(again) == {(*r[2:], r[1], r[0]) for r in answers[0]}


def test_where_there_is_an_interval_the_rank_needs_no_word(engine: Engine) -> None:
    plain = notices(engine, "SELECT MEDIAN(num) FROM t")
    assert plain[0].startswith("Off in rank")
    assert "dp_interval_low" in plain[0]
    barred = notices(engine, f"SELECT MEDIAN(num), {both('MEDIAN(num)')}, MAX(num) FROM t")
    assert barred[0].startswith("Off in rank")
    assert "quantile" not in barred[0].replace("of a quantile", "")


def released_with(statement: str, bars: dict[str, tuple[object, object]]) -> tuple[str, ...]:
    """What is said of two groups, of which the first has these ends."""
    (planned,) = compiled(statement).releases
    names = [column.name for column in planned.columns]
    rows = []
    for group in range(2):
        row: list[object] = [0.0] * len(names)
        for name, (low, high) in bars.items() if group == 0 else ():
            for place, value in zip(name.split(), (low, high), strict=True):
                row[names.index(place)] = value
        rows.append(tuple(row))
    return empty_answers([Estimated(planned, Relation(planned.columns, tuple(rows)), ())])  # type: ignore[arg-type]


def test_an_interval_that_is_all_that_bounds_allow_is_told() -> None:
    """Once, with each aggregate and the number of its groups."""
    text = f"SELECT word, AVG(flt), CORR(flt, num), {both('MEDIAN(flt)')}, COUNT(*) FROM t GROUP BY word"
    avg, corr = ("_a0_low _a0_high", (0.0, 200.0)), ("_a1_low _a1_high", (-1.0, 1.0))
    ends = ("a3 a4", (0.0, 200.0))
    assert released_with(text, {}) == ()
    assert released_with(text, {"_a0_low _a0_high": (0.0, 199.0), "a3 a4": (0.5, 200.0)}) == ()
    (words,) = released_with(text, dict([avg, corr, ends]))
    assert words.startswith(
        "No more than noise: AVG(flt) in 1 of 2 groups, CORR(flt, num) in 1 of 2 groups, quantile 0.5(flt) in 1 of 2 "
        "groups: the 95 % interval is all that the bounds allow. Ask for coarser groups"
    )
    (words,) = released_with("SELECT AVG(flt) FROM t", dict([avg]))
    assert words.startswith("No more than noise: AVG(flt): the 95 %")


@pytest.mark.parametrize(("drowned", "told"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_counts_and_sums_below_their_error_in_most_groups_are_told(drowned: int, told: bool) -> None:
    """A few groups may well be empty; where most seem to be, the answer says nothing."""
    (planned,) = compiled("SELECT word, SUM(num), COUNT(*), AVG(flt) FROM t GROUP BY word").releases
    names = [column.name for column in planned.columns]
    rows = []
    for group in range(4):
        row: list[Value] = [100.0] * len(names)
        low, high = (-10.0, 30.0) if group < drowned else (80.0, 120.0)
        row[names.index("_a0_low")], row[names.index("_a0_high")] = low, high
        rows.append(tuple(row))
    said = empty_answers([Estimated(planned, Relation(planned.columns, tuple(rows)), ())])
    words = (
        f"No more than noise: SUM(num) in {drowned} of 4 groups: the error is larger than the value. Ask for coarser"
    )
    assert bool(said) is told
    assert not told or said[0].startswith(words)


def test_counts_and_averages_that_say_nothing_share_one_notice() -> None:
    (planned,) = compiled("SELECT COUNT(*), AVG(flt) FROM t").releases
    ends = {"_a0_low": -10.0, "_a0_high": 30.0, "_a1_low": 0.0, "_a1_high": 200.0}
    row: tuple[Value, ...] = tuple(ends.get(column.name, 1.0) for column in planned.columns)
    (words,) = empty_answers([Estimated(planned, Relation(planned.columns, (row,)), ())])
    assert words.startswith(
        "No more than noise: AVG(flt): the 95 % interval is all that the bounds allow; COUNT(*): the error is larger"
        " than the value. Ask for"
    )


def test_an_answer_that_says_nothing_says_so_again_when_it_is_replayed_or_derived(engine: Engine) -> None:
    """Of no rows an average's interval mostly spans its bounds."""
    for place in range(20):
        text = f"SELECT word, AVG(flt) FROM t WHERE num < 0 AND uid < {place} GROUP BY word"
        first, second = notices(engine, text), notices(engine, text)
        if first[0].startswith("4 values are no more than noise, so NULL stand there: AVG(flt) in 4 of 4 groups"):
            assert second[0] == first[0]
            one = notices(engine, f"SELECT AVG(flt) FROM t WHERE num < 0 AND uid < {place} AND word = 'd'")
            assert one[0].startswith("1 value is no more than noise, so NULL stands there: AVG(flt). ")
            return
    pytest.fail("none of 20 answers said so")


def test_an_answer_that_says_something_gets_no_such_notice(engine: Engine) -> None:
    for text in ("AVG(flt), STDDEV(flt), CORR(flt, num)", f"MEDIAN(flt), {both('MEDIAN(flt)')}", "COUNT(*), SUM(flt)"):
        assert not any("o more than noise" in words for words in notices(engine, f"SELECT {text} FROM t"))


def test_ends_read_the_rows_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fetch = engine.backend.fetch

    def counted(sql: str, *rest: object) -> object:
        asked.append(sql)
        return fetch(sql, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine.backend, "fetch", counted)
    notices(engine, f"SELECT MEDIAN(num), {both('MEDIAN(num)')}, {both('QUANTILE_CONT(num, 0.9)')} FROM t")
    assert len(asked) == 1
