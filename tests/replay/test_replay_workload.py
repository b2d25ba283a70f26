"""What workloads cost: ranges that follow a Zipf law, and a dashboard. With `-s`, the ratios are printed."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from replay_cases import Shop, opened, write

from dpsql.ledger import Kind
from dpsql.replay.derive import choose
from dpsql.replay.recipe import Axis, Kin, Measured, Shape

VALUES, ASKS, REUSE = 100, 5_000, 3.0
COUNT = Measured("count", True, True, 1.0)


def zipf(asks: int, values: int) -> list[tuple[int, int]]:
    """Ranges [a, b), of which the i-th most frequent comes up in proportion to 1/i."""
    random = Random(20240)
    ranges = [(a, b) for a in range(values) for b in range(a + 1, values + 1)]
    random.shuffle(ranges)
    return random.choices(ranges, [1 / (i + 1) for i in range(len(ranges))], k=asks)


def paid(workload: list[tuple[int, int]], *, exact: bool) -> int:
    """How many of the ranges are measured, all at one price."""
    stored: list[tuple[int, Shape]] = []
    for low, high in dict.fromkeys(workload):  # the same one again is a replay
        axis = Axis("age", ((-1, VALUES + 1),), (((low, high),),))
        shape = Shape("family", (axis,), (COUNT,), exact, Decimal(1))
        if choose(Kin(shape, (REUSE**2,)), stored) is None:
            stored.append((len(stored), shape))
    return len(stored)


def test_zipf_of_ranges() -> None:
    """One row a unit, as in a table of people: at most a third of what distinct ranges cost."""
    workload = zipf(ASKS, VALUES)
    distinct, cost = len(set(workload)), paid(workload, exact=True)
    print(f"{ASKS} ranges, {distinct} distinct: {cost} measured, {cost / distinct:.3f} of exact-match caching")
    assert cost <= distinct / 3


def test_zipf_where_clipping_may_bind() -> None:
    """By unions alone it is less, but never more than each distinct range once."""
    workload = zipf(1_000, VALUES)
    distinct, cost = len(set(workload)), paid(workload, exact=False)
    print(f"1000 ranges by unions alone, {distinct} distinct: {cost} measured, {cost / distinct:.3f}")
    assert cost < distinct


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
