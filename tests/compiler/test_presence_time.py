"""Whether one person is there is not told by the time of answers, with `time_slot` set, at the least price.

Each kind of statement is as heavy as one person's row can make it; 1,000 answers about somebody who is there are
compared with 1,000 about nobody, in turn. The test is of ranks, so that any shift of the times counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import sqrt
from pathlib import Path

import pytest
from compiler_mini import mini_engine

from dpsql import asking
from dpsql.compiler import fanout
from dpsql.engine import Engine
from dpsql.session.ports import CancelToken
from dpsql.types import Settings

DATA = """
CREATE TABLE people AS SELECT i AS uid, i % 90 AS age FROM range(1000) r(i);
ALTER TABLE people ADD PRIMARY KEY (uid);
CREATE TABLE nums (n INTEGER PRIMARY KEY);
INSERT INTO nums SELECT i FROM range(100) r(i);
CREATE TABLE many (n INTEGER PRIMARY KEY);
INSERT INTO many SELECT i FROM range(9900) r(i);
"""
TABLES = """
  people: {unit: uid, max_rows: 1, columns: {age: {type: integer, lower: 0, upper: 100}}}
  nums: {public: true, key: n}
  many: {public: true, key: n}
"""
SUMS = ", ".join(f"SUM(age * {i} + n * {i} + {i})" for i in range(1, 60))
HEAVIEST = {
    "rows": f"SELECT {SUMS} FROM people, nums WHERE uid = {{who}} AND age > -{{i}}",
    "compared": "SELECT COUNT(*) FROM people WHERE uid = {who} AND age > -{i} "
    "AND age + 20000 NOT IN (SELECT n FROM many)",
}
CLOCK = "SELECT COUNT(*) FROM nums a, nums b, nums c, nums d, people WHERE uid = {who} AND age > -{i}"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with mini_engine(tmp_path, DATA, TABLES, "server: {time_slot: 25ms}") as made:
        yield made


def _took(engine: Engine, text: str, who: int, number: int) -> float:
    least = asking.least_of(engine.policy, asking.asker_of(engine.policy, "ann"))
    start = time.perf_counter()
    engine.answer("ann", text.format(who=who, i=number), 0, Settings(epsilon=least), (), CancelToken())
    return time.perf_counter() - start


def told(engine: Engine, text: str, tries: int) -> float:
    """How many standard deviations the ranks of times with and without the person lie apart (Mann and Whitney 1947)."""
    times = [(_took(engine, text, who, number), who) for number in range(1, tries + 1) for who in (7, 7_000_000)]
    ranks = sum(rank for rank, (_, who) in enumerate(sorted(times), 1) if who == 7)
    expected = tries * (2 * tries + 1) / 2
    return (ranks - expected) / sqrt(tries * tries * (2 * tries + 1) / 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVIEST)
def test_a_person_s_presence_is_not_told(engine: Engine, name: str) -> None:
    """5 deviations: by chance once in 1.7 million runs."""
    assert abs(told(engine, HEAVIEST[name], 1000)) < 5


@pytest.mark.slow
def test_mutant_without_the_limit_presence_is_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LEAST_MET", "MOST_MET", "MOST_WORK"):
        monkeypatch.setattr(fanout, limit, 10**9)
    assert told(engine, CLOCK, 25) > 5
