"""A user's own sessions in the catalog: they are seen, and stopped, and nobody else's are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from catalog_fakes import CONTEXT, SCHEMA

from dpsql.catalog.catalog import Catalog
from dpsql.catalog.context import Context, OpenSession
from dpsql.errors import Rejected
from dpsql.types import INT4, TEXT, Kind

BEGUN = datetime(2026, 3, 1, 10, 30)


@dataclass
class Two:
    """Two sessions, 7 and 8; what was asked of them."""

    asked: list[tuple[int, bool]] = field(default_factory=list)

    def seen(self) -> tuple[OpenSession, ...]:
        return (OpenSession(7, "psql", BEGUN, active=True), OpenSession(8, "it's", BEGUN, active=False))

    def stop(self, pid: int, *, end: bool) -> bool:
        self.asked.append((pid, end))
        return pid in (7, 8)


@pytest.fixture(scope="module")
def catalog() -> Iterator[Catalog]:
    made = Catalog(SCHEMA, "alice")
    yield made
    made.close()


@pytest.fixture
def two() -> Two:
    return Two()


@pytest.fixture
def context(two: Two) -> Context:
    return replace(CONTEXT, pid=7, sessions=two)


def test_sessions_are_seen(catalog: Catalog, context: Context) -> None:
    text = "SELECT pid, usename, datname, application_name, state, backend_start FROM pg_stat_activity ORDER BY pid"
    assert catalog.is_catalog(text)
    found = catalog.answer(text, (), context)
    assert [row[:5] for row in found.rows] == [
        (7, "alice", "shop", "psql", "active"),
        (8, "alice", "shop", "it's", "idle"),
    ]
    assert str(found.rows[0][5]).startswith("2026-03-01 10:30")
    assert [c.type.kind for c in found.columns][:2] == [Kind.INT4, Kind.NAME]
    assert catalog.describe(text, (), context).columns == found.columns
    everything = catalog.answer(
        "SELECT * FROM pg_catalog.pg_stat_activity a WHERE pid <> pg_backend_pid()", (), context
    )
    assert len(everything.columns) == 22
    assert [row[2] for row in everything.rows] == [8]


def test_what_was_seen_is_not_kept(catalog: Catalog, context: Context) -> None:
    text = "SELECT COUNT(*) FROM pg_stat_activity"
    assert catalog.answer(text, (), context).rows == ((2,),)
    assert catalog.answer(text, (), CONTEXT).rows == ((0,),)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("SELECT pg_cancel_backend(8)", [(8, False)]),
        ("SELECT pg_catalog.pg_terminate_backend(8)", [(8, True)]),
        ("SELECT pg_terminate_backend(8, 1000) AS done", [(8, True)]),
        ("SELECT pg_cancel_backend(pg_backend_pid())", [(7, False)]),
        ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='8'", [(8, True)]),
        ("SELECT *, pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()", [(8, False)]),
        ("SELECT pg_cancel_backend(pid), pid FROM pg_stat_activity ORDER BY pid DESC", [(8, False), (7, False)]),
        ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bob'", []),
        ("SELECT pg_terminate_backend(NULL)", []),
    ],
)
def test_sessions_are_stopped(catalog: Catalog, context: Context, two: Two, text: str, asked: list[object]) -> None:
    assert catalog.is_catalog(text)
    (column,) = (c for c in catalog.describe(text, (), context).columns or () if c.type.kind is Kind.BOOL)
    assert two.asked == []
    found = catalog.answer(text, (), context)
    assert two.asked == asked
    at = [c.name for c in found.columns].index(column.name)
    assert [row[at] for row in found.rows] == ([None] if "NULL" in text else [True] * len(asked))


def test_a_parameter(catalog: Catalog, context: Context, two: Two) -> None:
    for type_, value in ((INT4, 8), (TEXT, "7")):
        assert catalog.answer("SELECT pg_terminate_backend($1)", ((type_, value),), context).rows == ((True,),)
    assert two.asked == [(8, True), (7, True)]


def test_a_session_is_stopped_once(catalog: Catalog, context: Context, two: Two) -> None:
    """However many rows name it: each asks another process, and nothing stops a statement between them."""
    text = "SELECT pg_cancel_backend(8), pg_terminate_backend(7) FROM generate_series(1, 50000) AS g"
    assert catalog.answer(text, (), context).rows == ((True, True),) * 50_000
    assert two.asked == [(8, False), (7, True)]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT pg_terminate_backend(9)", "42501"),
        ("SELECT pg_cancel_backend(-1)", "42501"),
        ("SELECT pg_cancel_backend(0) FROM pg_class LIMIT 1", "42501"),
        ("SELECT COUNT(*) FROM pg_stat_activity WHERE pg_terminate_backend(pid)", "0A000"),
        ("SELECT NOT pg_terminate_backend(8)", "0A000"),
        ("SELECT * FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity) AS x", "0A000"),
        ("SELECT pg_terminate_backend(8) UNION ALL SELECT pg_terminate_backend(7)", "0A000"),
        ("SELECT pg_cancel_backend(pid), * FROM pg_stat_activity", "0A000"),
        ("SELECT pg_cancel_backend(8, 7)", "42883"),
        ("SELECT pg_terminate_backend()", "42883"),
    ],
)
def test_others_are_not(catalog: Catalog, context: Context, two: Two, text: str, sqlstate: str) -> None:
    with pytest.raises(Rejected) as refused:
        catalog.answer(text, (), context)
    assert refused.value.sqlstate == sqlstate
    assert refused.value.hint
    assert not {pid for pid, _ in two.asked} & {7, 8}
