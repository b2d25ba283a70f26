"""The words of `dpsql check`: warnings, numbers, and every form of table."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dpsql.policy.load import parse
from dpsql.policy.promise import promise, ratio, small, warnings

_POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:x
privacy: {unit: customer, units: 100, max_groups: 3, max_rows_per_group: 4, budget: {epsilon: 5, delta: 1e-6}}
tables:
  orders: {unit: c_id, key: o_id, max_rows: 1000, max_groups: 9}
  items: {unit: {through: orders, on: {o_id: o_id}}, columns: {kind: {type: text, values: [a]}, gift: {type: boolean}}}
roles: {analyst: {budget: {epsilon: 2, delta: 1e-7}, window: month, shared: true, tables: [items]}}
users: {alice: {role: analyst}}
"""


def _changed(old: str, new: str) -> list[str]:
    assert old in _POLICY
    return list(warnings(parse(_POLICY.replace(old, new), Path("shop.yaml"))))


def test_tables_and_roles_are_put_in_words() -> None:
    text = "\n".join(promise(parse(_POLICY, Path("shop.yaml"))))
    for words in (
        "orders: unit in c_id, at most 1,000 rows a unit, 9 groups of 4 rows, key o_id",
        "items: unit through orders (o_id = o_id)",
        "kind text, one of 1 value",
        "gift boolean, true or false",
        "all its users together: epsilon 2, delta 1e-7 a month; e^2 = 7.39",
        "tables: items",
        "tables answered exactly and free: none",
        "more than 12 private keys",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{epsilon: 5, ", "{epsilon: 10.5, ", "the dataset's budget has epsilon 10.5, above 10"),
        ("{epsilon: 2, ", "{epsilon: 11, ", "the budget of role analyst has epsilon 11, above 10"),
        ("{epsilon: 2, ", "{epsilon: 6, ", "role analyst may spend more than the dataset's budget"),
        ("max_groups: 3,", "max_groups: 3, replay: shared,", "what one user learns is bounded by the dataset's"),
        ("users:", "server: {listen: '0.0.0.0:6432'}\nusers:", "other machines are refused"),
        ("{alice: {role: analyst}}", "{bob: {role: analyst}}", "user bob has no password"),
    ],
)
def test_risky_choices_are_warned_of(old: str, new: str, said: str) -> None:
    assert any(said in warning for warning in _changed(old, new))


def test_a_modest_policy_warns_of_nothing_else() -> None:
    assert _changed("{alice: {role: analyst}}", "{}") == []


@pytest.mark.parametrize(
    ("epsilon", "text"), [("1", "2.72"), ("10", "22,026"), ("20", "485,165,195"), ("100", "2.7e43")]
)
def test_the_privacy_loss_ratio_reads_well(epsilon: str, text: str) -> None:
    assert ratio(Decimal(epsilon)) == text


@pytest.mark.parametrize(("delta", "text"), [("0", "0"), ("1E-7", "1e-7"), ("0.00025", "2.5e-4"), ("0.000010", "1e-5")])
def test_a_delta_reads_well(delta: str, text: str) -> None:
    assert small(Decimal(delta)) == text
