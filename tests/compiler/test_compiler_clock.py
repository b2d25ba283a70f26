"""The clock over private rows is a constant of the plan: pure, and a measurement of its own at another time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from compiler_mini import BOUNDS, TERMS, mini_engine, opened

from dpsql.compiler import Compiled, compile_statement, reads_clock
from dpsql.compiler.clock import hour_of
from dpsql.engine import Engine
from dpsql.errors import Rejected
from dpsql.session.ports import CancelToken
from dpsql.types import Settings

DATA = "CREATE TABLE t AS SELECT i AS uid, TIMESTAMP '2020-02-14' - INTERVAL 1 HOUR * i AS at FROM range(500) AS r(i)"
TABLES = """
  t:
    unit: uid
    max_rows: 1
    columns: {at: {type: timestamp, lower: 2020-01-01, upper: 2020-12-31}}
"""
TEN, ELEVEN = datetime(2020, 2, 14, 10), datetime(2020, 2, 14, 11)
TEXTS = (
    "SELECT COUNT(*) FROM t WHERE at > now() - INTERVAL '7 days'",
    "SELECT COUNT(*) FROM t WHERE at > LOCALTIMESTAMP - 7 * INTERVAL '1 day'",
    "SELECT COUNT(*) FROM t WHERE at > (SELECT CURRENT_TIMESTAMP - INTERVAL '7 days')",
    "SELECT SUM(EXTRACT(epoch FROM at - CURRENT_TIMESTAMP)) FROM t",
)


def compiled(text: str, now: datetime | None) -> Compiled:
    return compile_statement(text, opened(DATA, TABLES, "person", "UTC", BOUNDS)[1], TERMS, now=now)


def measured(made: Compiled) -> list[tuple[str, list[str]]]:
    """What tells measurements apart: the plan, and what inner relations are computed by."""
    return [(r.canonical, [made.derived[i].sql for i in r.aggregation.depends_on]) for r in made.releases]


@pytest.mark.parametrize("text", TEXTS)
def test_another_hour_is_another_measurement(text: str) -> None:
    assert measured(compiled(text, TEN)) == measured(compiled(text, TEN))
    assert measured(compiled(text, TEN)) != measured(compiled(text, ELEVEN))
    assert not any("pg_now" in r.sql for r in compiled(text, TEN).derived)


def test_a_day_is_one_measurement() -> None:
    for text in (
        "SELECT COUNT(*) FROM t WHERE at >= CURRENT_DATE - 30",
        "SELECT COUNT(*) FROM t WHERE at >= date_trunc('month', now())",
        "SELECT COUNT(*) FROM t WHERE EXTRACT(year FROM at) = date_part('year', now())",
    ):
        assert measured(compiled(text, TEN)) == measured(compiled(text, ELEVEN))


def test_it_means_what_the_constant_means() -> None:
    asked = "SELECT COUNT(*) FROM t WHERE at > {} - INTERVAL '7 days'"
    assert measured(compiled(asked.format("localtimestamp"), TEN)) == measured(
        compiled(asked.format("TIMESTAMP '2020-02-14 10:00'"), None)
    )


@pytest.mark.parametrize("text", TEXTS)
def test_without_a_clock_it_cannot_be_read(text: str) -> None:
    assert reads_clock(text, opened(DATA, TABLES, "person", "UTC", BOUNDS)[1])
    with pytest.raises(Rejected, match="clock"):
        compiled(text, None)


def test_the_hour_is_the_policys() -> None:
    moment = datetime(2020, 6, 30, 22, 59, 59, tzinfo=UTC)
    assert hour_of(moment, ZoneInfo("Europe/Rome")) == datetime(2020, 7, 1)
    assert hour_of(moment, ZoneInfo("Asia/Kolkata")) == datetime(2020, 7, 1, 4)


# End to end -----------------------------------------------------------------------------------------------------


class Clock(datetime):
    """A clock that stands still where the test puts it."""

    at = datetime(2020, 2, 14, 10, 20, tzinfo=UTC)

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return cls.at


VIEW = "views: {recent: SELECT uid FROM t WHERE at > now() - INTERVAL '7 days'}"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr("dpsql.prepare.datetime", Clock)
    with mini_engine(tmp_path, DATA, TABLES, VIEW) as made:
        yield made


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[2], "SELECT COUNT(*) FROM recent"])
def test_within_the_hour_it_is_a_replay_and_later_it_is_asked_anew(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def asked() -> tuple[object, int]:
        answer = engine.answer("ann", text, 0, Settings(), (), CancelToken())
        assert answer.again is None, "the reply's bytes would outlive the hour"
        return answer.relation.rows, engine.ledger.dataset_spent().rho

    first, spent = asked()
    monkeypatch.setattr(Clock, "at", datetime(2020, 2, 14, 10, 59, tzinfo=UTC))
    assert asked() == (first, spent)
    monkeypatch.setattr(Clock, "at", datetime(2020, 2, 14, 11, 0, tzinfo=UTC))
    assert asked()[1] == 2 * spent
