"""The 22 statements of TPC-H in their original text, over customers as the privacy unit.

Customers, orders and lineitems are private, the rest is public. Public statements are answered exactly; private ones
within their announced error of the raw answer; those whose keys name one order or person lose all their groups; the two
correlated aggregates are refused with a statement that works.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from tpch_data import QUERIES, build, generator

from dpsql.engine import Engine, open_engine
from dpsql.errors import Rejected
from dpsql.ledger import init_ledger
from dpsql.policy.load import load
from dpsql.session.ports import CancelToken
from dpsql.types import Answer, Settings

HERE = Path(__file__).parent
EXACT = (2, 11, 16)
PRIVATE = (1, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 19, 21, 22)
SUPPRESSED = (3, 10, 18)
CORRELATED = (17, 20)
COMPARED = {1: 2, 4: 1, 5: 1, 6: 0, 7: 3, 9: 2, 12: 1, 13: 1, 19: 0}
"""Statements whose columns after so many keys are released counts and sums: compared number by number."""
SIGMAS = 7
"""Two-sided failure probability below 3e-12 for each number."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scale factor 0.01 as a DuckDB file with its policy and ledger, and a copy for raw answers."""
    if generator() is None:
        pytest.skip("tpchgen-cli is not installed")
    made = tmp_path_factory.mktemp("tpch")
    build(made / "tpch.duckdb", Decimal("0.01"))
    shutil.copy(made / "tpch.duckdb", made / "raw.duckdb")
    shutil.copy(HERE / "policy.yaml", made / "policy.yaml")
    policy = load(made / "policy.yaml")
    init_ledger(policy.ledger, policy.dataset)
    return made


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    opened = open_engine(load(folder / "policy.yaml"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def raw(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(folder / "raw.duckdb"), read_only=True) as connection:
        yield connection


def ask(engine: Engine, number: int) -> Answer:
    return engine.answer("alice", QUERIES[number], 0, Settings(null_noise=False), (), CancelToken())


def test_all_are_there() -> None:
    assert sorted(QUERIES) == list(range(1, 23)) == sorted((*EXACT, *PRIVATE, *SUPPRESSED, *CORRELATED))


@pytest.mark.parametrize("number", EXACT)
def test_public_statements_are_answered_exactly(engine: Engine, raw: duckdb.DuckDBPyConnection, number: int) -> None:
    expected = raw.execute(QUERIES[number]).fetchall()
    assert sorted(map(str, ask(engine, number).relation.rows)) == sorted(map(str, expected))


@pytest.mark.parametrize("number", PRIVATE)
def test_private_statements_are_answered(engine: Engine, raw: duckdb.DuckDBPyConnection, number: int) -> None:
    compiled = engine.preparer.ready("alice", QUERIES[number], 0, Settings(), ()).compiled
    answer = ask(engine, number)
    assert compiled.releases
    assert [c.name for c in answer.relation.columns] == [d[0] for d in raw.execute(QUERIES[number]).description or ()]
    if number in COMPARED:
        widest = max(m.stddev for release in compiled.releases for m in release.measurements)
        _compare(answer, raw.execute(QUERIES[number]).fetchall(), COMPARED[number], SIGMAS * widest)


def _compare(answer: Answer, expected: list[tuple[object, ...]], keys: int, tolerance: float) -> None:
    """Counts and sums per key; a key that the raw answer lacks is an exact zero."""
    truth = {_key(row[:keys]): row[keys:] for row in expected}
    for row in answer.relation.rows:
        exact = truth.get(_key(row[:keys]), (0,) * (len(row) - keys))
        for noisy, number in zip(row[keys:], exact, strict=True):
            assert isinstance(noisy, int | float | Decimal)
            assert isinstance(number, int | float | Decimal)
            assert abs(float(noisy) - float(number)) <= tolerance + 1e-6 * abs(float(number))


def _key(values: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(int(v)) if isinstance(v, Decimal | int) else str(v) for v in values)


@pytest.mark.parametrize("number", SUPPRESSED)
def test_keys_that_name_one_order_or_person_are_not_shown(engine: Engine, number: int) -> None:
    with pytest.raises(Rejected, match="Every group here is one"):
        ask(engine, number)


@pytest.mark.parametrize("number", CORRELATED)
def test_correlated_aggregates_are_refused_with_the_join(engine: Engine, number: int) -> None:
    with pytest.raises(Rejected) as refused:
        ask(engine, number)
    assert refused.value.sqlstate == "0A000"
    assert "JOIN (SELECT" in (refused.value.hint or "")


def test_the_join_that_the_refusal_names_works(engine: Engine) -> None:
    """TPC-H 17 as its refusal says to write it."""
    text = """
        SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
        JOIN (SELECT l_partkey, 0.2 * AVG(l_quantity) AS v FROM lineitem GROUP BY l_partkey) AS s
            ON s.l_partkey = p_partkey
        WHERE p_partkey = lineitem.l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < s.v
    """
    answer = engine.answer("alice", text, 0, Settings(), (), CancelToken())
    assert len(answer.relation.rows) == 1
