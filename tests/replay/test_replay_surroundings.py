"""What keys and families hang on beside the plans: the same in every process."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

from dpsql.policy.load import parse
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.replay.ready import Surroundings
from dpsql.types import INT8

POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:shop.duckdb
privacy: {unit: uid, units: 100000, max_groups: 1, max_rows_per_group: 1, budget: {epsilon: 1, delta: 1e-9}}
tables: {sales: {unit: uid, columns: {uid: {type: bigint}}}}
roles: {analyst: {budget: {epsilon: 1, delta: 1e-9}}}
users: {}
"""
NAMES = "abcdefg"


def told(table: SchemaTable) -> str:
    policy = parse(POLICY, Path("shop.yaml"))
    return Surroundings(Schema(policy, {"sales": table}))._print("sales", True)


def test_declarations_read_alike_in_whatever_order_a_set_has_them() -> None:
    """The order of a set hangs on the process, and what a family hangs on must not."""
    columns = tuple(SchemaColumn(name, INT8) for name in NAMES)
    table = SchemaTable("sales", False, columns, unit="a", unique=(frozenset(NAMES),))
    orders = (frozenset(order) for order in permutations(NAMES))
    other = next((order for order in orders if repr(order) != repr(table.unique[0])), table.unique[0])
    assert told(replace(table, unique=(other,))) == told(table)
    assert told(replace(table, unique=(frozenset("ab"),))) != told(table)
    assert told(replace(table, max_groups=2)) != told(table)
