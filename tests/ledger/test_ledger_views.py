"""The ledger as relations: own rows for users, all for the owner, and nothing of others' spending for the former."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from ledger_cases import answer, debit, made
from test_ledger_commands import written

from dpsql.ledger import Ledger, open_ledger
from dpsql.ledger.views import COLUMNS, system_relations
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.types import Cost, Kind, Value

PYTHON = {Kind.INT8: int, Kind.TEXT: str, Kind.NUMERIC: Decimal, Kind.TIMESTAMPTZ: datetime}
TENTH = Cost(0, 10**14, 7)


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return load(written(tmp_path))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(made(tmp_path), "flights")
    for key in ("one", "two"):
        answer(ledger, "alice", key, TENTH)
    answer(ledger, "bob", "one", TENTH)
    debit(ledger, "bob", "never recorded", TENTH)
    ledger.grant("alice", Decimal("0.5"))
    yield ledger
    ledger.close()


def rows(policy: Policy, ledger: Ledger, user: str, name: str) -> list[dict[str, Value]]:
    relation = system_relations(policy, ledger, user)[name]()
    assert relation.columns == COLUMNS[name]
    for row in relation.rows:
        for column, value in zip(relation.columns, row, strict=True):
            assert value is None or type(value) is PYTHON[column.type.kind], column
    names = [column.name for column in relation.columns]
    return [dict(zip(names, row, strict=True)) for row in relation.rows]


def test_own_entries(policy: Policy, ledger: Ledger) -> None:
    entries = rows(policy, ledger, "alice", "dpsql.ledger")
    assert [entry["kind"] for entry in entries] == ["debit", "record", "debit", "record", "grant"]
    assert {entry["user"] for entry in entries} == {"alice"}
    assert {entry["dataset_rho"] for entry in entries} == {None}
    assert [entry["account_rho"] for entry in entries][-1] == Decimal("0.2")
    assert [entry["kind"] for entry in rows(policy, ledger, "bob", "dpsql.ledger")] == ["view", "debit"]


def test_the_owner_sees_all(policy: Policy, ledger: Ledger) -> None:
    entries = rows(policy, ledger, "olga", "dpsql.ledger")
    assert len(entries) == ledger.head().count
    assert entries[-1]["dataset_rho"] == Decimal("0.3")
    whose = [row["whose"] for row in rows(policy, ledger, "olga", "dpsql.budget")]
    assert whose == ["alice", "bob", "dataset"]


def test_own_budget(policy: Policy, ledger: Ledger) -> None:
    mine, dataset = rows(policy, ledger, "alice", "dpsql.budget")
    assert (mine["whose"], mine["epsilon"], mine["granted"]) == ("alice", Decimal("1.5"), Decimal("0.5"))
    assert (mine["rho_spent"], dataset["rho_spent"]) == (Decimal("0.2"), Decimal("0.3"))


def test_own_releases(policy: Policy, ledger: Ledger) -> None:
    seen = rows(policy, ledger, "alice", "dpsql.releases")
    assert [(row["key"], row["first"]) for row in seen] == [("one", "made"), ("two", "made")]
    (only,) = rows(policy, ledger, "bob", "dpsql.releases")
    assert (only["key"], only["first"], only["rho"]) == ("one", "viewed", Decimal("0.1"))


def test_nobody_sees_nothing(policy: Policy, ledger: Ledger) -> None:
    assert rows(policy, ledger, "mallory", "dpsql.ledger") == []
    assert [row["whose"] for row in rows(policy, ledger, "mallory", "dpsql.budget")] == ["dataset"]


def test_the_newest_of_many(policy: Policy, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsql.ledger.views.MAX_ROWS", 3)
    assert [row["id"] for row in rows(policy, ledger, "olga", "dpsql.ledger")] == [6, 7, 8]
