"""No statement reaches the ledger without certificates: what is not derived ends as an internal fault, for nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from dpsql import prepare
from dpsql.certify import Certificate, Unproven, check
from dpsql.compiler.plan import PlannedRelease
from dpsql.dp.sensitivity import L2
from dpsql.engine import Engine, open_engine
from dpsql.errors import Failed
from dpsql.ledger import Ask, Kind, init_ledger
from dpsql.policy.load import load
from dpsql.policy.schema import Schema
from dpsql.session.ports import CancelToken
from dpsql.types import Answer, Cost, Settings

POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:shop.duckdb
ledger: sqlite:shop.ledger
privacy: {unit: person, units: 1000, budget: {epsilon: 50, delta: 1e-6}, max_groups: 3, max_rows_per_group: 5}
tables:
  visits:
    unit: uid
    columns: {price: {type: integer, lower: 0, upper: 50}, shop: {type: text, values: [books, zoo]}}
roles: {analyst: {budget: {epsilon: 50, delta: 1e-7}}}
users: {alice: {role: analyst}}
"""
GROUPED = "SELECT shop, COUNT(*), SUM(price) FROM visits GROUP BY shop"
Patch = pytest.MonkeyPatch


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "shop.yaml").write_text(POLICY, encoding="utf-8")
    with closing(duckdb.connect(str(tmp_path / "shop.duckdb"))) as connection:
        connection.execute(
            "CREATE TABLE visits AS SELECT i % 100 AS uid, (i % 50)::INTEGER AS price, 'books' AS shop "
            "FROM range(400) AS r(i)"
        )
    policy = load(tmp_path / "shop.yaml")
    init_ledger(policy.ledger, policy.dataset)
    with closing(open_engine(policy)) as opened:
        yield opened


def ask(engine: Engine, text: str) -> Answer:
    return engine.answer("alice", text, 0, Settings(), (), CancelToken())


def test_the_debit_is_the_certificates_price(engine: Engine, monkeypatch: Patch) -> None:
    seen: list[Certificate] = []
    certify = check.certify

    def told(release: PlannedRelease, schema: Schema) -> Certificate | Unproven:
        found = certify(release, schema)
        assert isinstance(found, Certificate)
        seen.append(found)
        return found

    monkeypatch.setattr(prepare, "certify", told)
    ask(engine, GROUPED)
    ask(engine, GROUPED)
    assert len(seen) == 1, "certified once, however often it is asked"
    (debit,) = [entry for entry in engine.ledger.entries() if entry.kind is Kind.DEBIT]
    assert debit.cost == seen[0].price


def test_what_is_not_proven_is_an_internal_fault_before_any_debit(engine: Engine, monkeypatch: Patch) -> None:
    monkeypatch.setattr(prepare, "certify", lambda release, schema: Unproven(release.id, "no rule for this"))
    before = len(engine.ledger.entries())
    with pytest.raises(Failed) as caught:
        ask(engine, GROUPED)
    assert "r0: no rule for this" in caught.value.cause
    assert "no rule" not in caught.value.message
    assert caught.value.incident in caught.value.message
    assert len(engine.ledger.entries()) == before
    assert engine.ledger.dataset_spent() == Cost()


def test_a_broken_planner_never_reaches_the_ledger(engine: Engine, monkeypatch: Patch) -> None:
    plan = sys.modules["dpsql.compiler.plan"]
    monkeypatch.setattr(plan, "clip_l2", lambda bound, b: L2(max(bound.l2_squared * b**2 // 4, 1)))
    with pytest.raises(Failed, match="incident"):
        ask(engine, GROUPED)
    assert engine.ledger.dataset_spent() == Cost()


def test_a_price_beside_the_certificates_is_a_fault(engine: Engine, monkeypatch: Patch) -> None:
    certify = check.certify

    def another(release: PlannedRelease, schema: Schema) -> Certificate | Unproven:
        found = certify(release, schema)
        assert isinstance(found, Certificate)
        return Certificate(found.release, Cost(rho=found.price.rho - 1))

    monkeypatch.setattr(prepare, "certify", another)
    with pytest.raises(Failed):
        ask(engine, GROUPED)
    assert engine.ledger.dataset_spent() == Cost()


def test_free_statements_need_no_price(engine: Engine) -> None:
    ask(engine, "SELECT 1 + 1")
    ask(engine, "SELECT shop FROM visits GROUP BY shop")
    assert engine.ledger.dataset_spent() == Cost()


def test_an_amount_is_no_certificate() -> None:
    """A type error first; and nothing that could be debited."""
    asked = Ask("key", Cost(rho=1))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        _ = asked.cost
