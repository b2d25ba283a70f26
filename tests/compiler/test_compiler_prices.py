"""A statement costs at least a millionth of its budget, however its price is named."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from compiler_mini import mini_engine

from dpsql import asking
from dpsql.dp.accounting import least_price
from dpsql.engine import Engine
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.session.ports import CancelToken
from dpsql.types import Settings

LEAST = Decimal("0.0034")
TABLES = """
  people: {unit: uid, max_rows: 1, columns: {age: {type: integer, lower: 0, upper: 100}}}
"""
COUNT = "SELECT COUNT(*) FROM people"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """The analyst's budget is epsilon 5."""
    rows = ", ".join(f"({unit}, {unit})" for unit in range(50))
    data = f"CREATE TABLE people (uid INTEGER PRIMARY KEY, age INTEGER); INSERT INTO people VALUES {rows}"
    with mini_engine(tmp_path, data, TABLES) as made:
        yield made


def _ask(engine: Engine, **settings: Decimal) -> None:
    engine.answer("ann", COUNT, 0, Settings(**settings), (), CancelToken())  # type: ignore[arg-type]


def _spent(engine: Engine) -> int:
    return engine.ledger.dataset_spent().rho


def test_a_smaller_price_is_refused_before_any_debit(engine: Engine) -> None:
    for small in ("0.0033", "0.000001", "1e-12"):
        settings = Settings(epsilon=Decimal(small))
        with pytest.raises(Rejected, match="the least that a statement of yours may cost") as refused:
            engine.answer("ann", COUNT, 0, settings, (), CancelToken())
        assert refused.value.sqlstate == BAD_PARAMETER
        assert f"SET dpsql.epsilon = {LEAST}" in (refused.value.hint or "")
        with pytest.raises(Rejected, match="the least"):
            engine.check_settings("ann", settings)
    assert not _spent(engine)


def test_the_least_price_is_a_debit(engine: Engine) -> None:
    _ask(engine, epsilon=LEAST)
    limit = asking.limits_for(engine.policy, asking.asker_of(engine.policy, "ann"))[0](0).rho
    assert limit is not None
    assert limit < _spent(engine) * 10**6 < 2 * limit


def test_an_error_that_is_met_for_less_costs_the_least(engine: Engine) -> None:
    _ask(engine, max_error=Decimal(9000))
    found = _spent(engine)
    _ask(engine, epsilon=LEAST)
    assert found > 0
    assert _spent(engine) == found


def test_mutant_no_least_price(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "least_of", lambda policy, asker: Decimal("1e-12"))
    _ask(engine, epsilon=Decimal("0.00001"))
    assert _spent(engine) < 10**6


def test_mutant_least_price_of_the_larger_budget(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The analyst's own budget is half of the dataset's."""
    own = least_price
    monkeypatch.setattr(
        "dpsql.asking.least_price", lambda accounting, epsilon, *rest: own(accounting, 2 * epsilon, *rest)
    )
    with pytest.raises(Rejected, match="the least"):
        _ask(engine, epsilon=LEAST)
