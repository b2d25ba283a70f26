"""Paths to the unit: which pairs of types are compared as exactly as the parent's key was verified."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.policy.load import parse
from dpsql.policy.problems import PolicyError
from dpsql.policy.schema import Schema

_POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:shop.duckdb
privacy: {unit: customer, units: 100, max_groups: 3, max_rows_per_group: 4, budget: {epsilon: 1, delta: 1e-6}}
tables:
  ord: {unit: uid}
  item: {unit: {through: ord, on: {shop: shop, oid: oid}}}
"""

EXACT = [
    ("BIGINT", "SMALLINT"),
    ("NUMERIC(18,0)", "NUMERIC(18,0)"),
    ("NUMERIC(38,6)", "NUMERIC(38,6)"),
    ("TEXT", "VARCHAR(20)"),
    ("UUID", "UUID"),
    ("DATE", "DATE"),
    ("TIMESTAMP", "TIMESTAMP"),
]
COARSE = [
    ("NUMERIC(18,0)", "NUMERIC(19,0)"),
    ("NUMERIC(18,2)", "NUMERIC(18,0)"),
    ("BIGINT", "NUMERIC(18,0)"),
    ("NUMERIC(20,0)", "INTEGER"),
    ("DOUBLE PRECISION", "DOUBLE PRECISION"),
    ("REAL", "DOUBLE PRECISION"),
    ("BIGINT", "DOUBLE PRECISION"),
    ("TIMESTAMPTZ", "TIMESTAMPTZ"),
    ("TIMESTAMP", "TIMESTAMPTZ"),
    ("TIMESTAMP", "DATE"),
    ("UUID", "TEXT"),
    ("TIME", "TIME"),
]


def _tables(parent: str, child: str) -> str:
    return (
        f"CREATE TABLE ord (shop INTEGER, oid {parent}, uid BIGINT, PRIMARY KEY (shop, oid)); "
        f"CREATE TABLE item (shop BIGINT, oid {child})"
    )


def _inspected(url: str) -> Schema:
    policy = parse(_POLICY, Path("shop.yaml"))
    with closing(open_backend(url, policy.timezone)) as backend:
        return inspect(backend, policy)


def _on_duckdb(path: Path, parent: str, child: str) -> Schema:
    with duckdb.connect(str(path)) as connection:
        connection.execute(_tables(parent, child))
    return _inspected(f"duckdb:{path}")


def _on_postgres(uri: str, parent: str, child: str) -> Schema:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(b"DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
        connection.execute(_tables(parent, child).encode())
    return _inspected(uri)


def _assert_refused(error: PolicyError) -> None:
    (problem,) = error.problems
    assert problem.key == "tables.item.unit.on"
    assert "compares oid (" in problem.what
    assert "ord.oid (" in problem.what
    assert "one type" in problem.fix or "store both as" in problem.fix


@pytest.mark.parametrize(("parent", "child"), EXACT)
def test_types_that_are_compared_exactly_are_taken(tmp_path: Path, postgres_uri: str, parent: str, child: str) -> None:
    assert "item" in _on_duckdb(tmp_path / "shop.duckdb", parent, child).tables
    assert "item" in _on_postgres(postgres_uri, parent, child).tables


@pytest.mark.parametrize(("parent", "child"), COARSE)
def test_types_that_merge_values_are_refused(tmp_path: Path, postgres_uri: str, parent: str, child: str) -> None:
    with pytest.raises(PolicyError) as on_duckdb:
        _on_duckdb(tmp_path / "shop.duckdb", parent, child)
    _assert_refused(on_duckdb.value)
    with pytest.raises(PolicyError) as on_postgres:
        _on_postgres(postgres_uri, parent, child)
    _assert_refused(on_postgres.value)


@pytest.mark.parametrize(("parent", "child"), [("NUMERIC", "NUMERIC"), ("CHAR(4)", "TEXT")])
def test_postgres_compares_its_own_types_exactly(postgres_uri: str, parent: str, child: str) -> None:
    assert "item" in _on_postgres(postgres_uri, parent, child).tables


def test_collations_that_fold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as refusal:
        _on_duckdb(tmp_path / "shop.duckdb", "TEXT COLLATE NOCASE", "TEXT")
    assert "collation" in str(refusal.value)
