"""What workloads cost: ranges that follow a Zipf law, and a dashboard. With `-s`, the ratios are printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from replay_cases import Shop, opened, write
from workload_cases import ASKS, Clips, paid, zipf

from dpsql.ledger import Kind


def test_zipf_of_ranges() -> None:
    """One row a unit, as in a table of people: at most a third of what distinct ranges cost."""
    _check(100, "never")


@pytest.mark.parametrize("values", [24, pytest.param(50, marks=pytest.mark.slow)])
def test_zipf_where_clipping_may_bind(values: int) -> None:
    """Of totals of one group, by ranges side by side and by exchange: at most a third too."""
    _check(values, "totals")


def _check(values: int, clips: Clips) -> None:
    workload = zipf(ASKS, values)
    distinct, (cost, _) = len(set(workload)), paid(workload, values, clips)
    print(f"{ASKS} ranges of {values}, {distinct} distinct: {cost} measured, {cost / distinct:.3f} of exact matches")
    assert cost <= distinct / 3


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with opened(write(tmp_path)) as shop:
        yield shop


def test_zipf_end_to_end(shop: Shop) -> None:
    """The same over the engine: the ledger's debits are those measured, and announced errors hold the true counts."""
    ages = [i * 7 % 100 for i in range(300)]
    workload = [(5 * a, 5 * b) for a, b in zipf(150, 20)]
    within = 0
    for low, high in workload:
        text = f"SELECT COUNT(*), dp_stddev(COUNT(*)) FROM people WHERE age >= {low} AND age < {high}"
        count, stddev = shop.ask(text).relation.rows[0]
        assert isinstance(count, int)
        assert isinstance(stddev, float)
        within += abs(count - sum(low <= age < high for age in ages)) <= 6 * stddev + 1
    assert within == len(workload)
    debits, distinct = len(shop.entries(Kind.DEBIT)), len(set(workload))
    print(f"{len(workload)} ranges, {distinct} distinct: {debits} debits, {debits / distinct:.3f}")
    assert debits <= distinct / 2


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
