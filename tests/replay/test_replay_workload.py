"""What workloads cost: the ranges of a histogram, and a dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from replay_cases import Shop, opened, write

from dpsql.ledger import Kind


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(write(tmp_path)) as shop:
        yield shop


def test_ranges_of_one_histogram(shop: Shop) -> None:
    """One debit answers all ranges that are worth it, and announced errors hold the true counts."""
    ages = [i * 7 % 100 for i in range(300)]
    shop.ask("SELECT FLOOR(age / 5), COUNT(*) FROM people GROUP BY 1")
    for low, high in [(5 * a, 5 * b) for a in range(20) for b in range(a + 1, min(a + 9, 20))]:
        text = f"SELECT COUNT(*), dp_stddev(COUNT(*)) FROM people WHERE age >= {low} AND age < {high}"
        count, stddev = shop.ask(text).relation.rows[0]
        assert isinstance(count, int)
        assert isinstance(stddev, float)
        assert abs(count - sum(low <= age < high for age in ages)) <= 6 * stddev + 1
    assert len(shop.entries(Kind.DEBIT)) == 1


def test_a_dashboard(shop: Shop) -> None:
    """20 charts of 5 users: the dataset pays each measurement once, and each user pays no more than that."""
    charts = [f"SELECT shop, SUM(price) FROM visits WHERE tag <> 't{i}' GROUP BY shop" for i in range(20)]
    users = ("alice", "bob", "carol", "dora", "erik")
    for _ in range(2):
        for user in users:
            for chart in charts:
                shop.ask(chart, user)
    ledger = shop.engine.ledger
    assert len(shop.entries(Kind.DEBIT)) == 20
    assert len(shop.entries(Kind.VIEW)) == 80
    assert {ledger.spent(user) for user in users} == {ledger.dataset_spent()}
