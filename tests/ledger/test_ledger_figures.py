"""What `budget show` tells beside the gate: other accountants' figures, and how many statements still fit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_cases import AMPLE, made
from ledger_paid import paid
from test_ledger_commands import told, written

from dpsql.commands.budget import budget
from dpsql.commands.ledger import ledger as ledger_command
from dpsql.dp.accounting import Limits, fits, limits, rho_from_epsilon
from dpsql.dp.comparison import figures
from dpsql.dp.privacy import UNITS, PureEvent, ZcdpEvent
from dpsql.ledger import Calendar, open_ledger
from dpsql.ledger.balance import _left, dataset_balance, fitting
from dpsql.policy.load import load
from dpsql.types import Cost

COUNT_OF_100 = Cost(rho=5 * 10**10)
"""A count with Gaussian noise of standard deviation 100."""
LAPLACE_OF_100 = Cost(epsilon=14_142_135_623_731)
"""A count with Laplace noise of the same standard deviation: scale 100 / sqrt 2."""


@pytest.mark.parametrize(
    ("epsilon", "share", "count"), [(1, "0", 487), (1, "0.5", 458), (10, "0", 30_785), (10, "0.5", 29_568)]
)
def test_figures_that_budgets_reach(epsilon: int, share: str, count: int) -> None:
    """Over dp_accounting's coarse orders, 30,785 would be 30,779."""
    most = limits("zcdp", Decimal(epsilon), Decimal("1e-6"), Decimal(share))
    assert fits(Cost(rho=COUNT_OF_100.rho * (count - 1)), COUNT_OF_100, most)
    assert not fits(Cost(rho=COUNT_OF_100.rho * count), COUNT_OF_100, most)


@pytest.mark.parametrize(("epsilon", "count"), [(1, 70), (10, 707)])
def test_where_adding_epsilons_gives(epsilon: int, count: int) -> None:
    most = limits("pure", Decimal(epsilon), Decimal("1e-6"), Decimal(0))
    assert fits(Cost(LAPLACE_OF_100.epsilon * (count - 1)), LAPLACE_OF_100, most)
    assert not fits(Cost(LAPLACE_OF_100.epsilon * count), LAPLACE_OF_100, most)


def test_other_accountants() -> None:
    """487 counts at delta 1e-6: the gate says 1, the PLD a little less, adding far more."""
    found = figures({COUNT_OF_100.rho: 487}, {}, {}, Decimal("1e-6"))
    assert found.events == 487
    assert 0.9 < found.pld < 1
    assert found.pld < found.advanced < found.basic
    mixed = figures({COUNT_OF_100.rho: 10}, {LAPLACE_OF_100.epsilon: 10}, {}, Decimal("1e-6"))
    assert mixed.pld < mixed.basic
    alone = figures({}, {10**14: 3}, {}, Decimal("1e-6"))
    assert alone.basic == pytest.approx(0.3)
    assert alone.pld <= 0.3 + 1e-3
    choices = figures({}, {}, {10**14: 3}, Decimal("1e-6"))
    assert choices.events == 3
    assert choices.basic == pytest.approx(0.3)
    assert alone.pld <= choices.pld <= 0.3 + 1e-3


def test_events_and_the_last_statement(tmp_path: Path) -> None:
    url = made(tmp_path)
    ledger = open_ledger(url, "flights")
    assert ledger.last_statement("alice") == Cost()
    gaussian, laplace = ZcdpEvent(Fraction(5, 10**5)), PureEvent(Fraction(1, 10))
    for number in range(3):
        asks = [paid(f"{number} {part}", Cost(10**14, 10**13, 0), (gaussian, laplace)) for part in range(2)]
        ledger.reserve("alice", asks, AMPLE, AMPLE, f"statement {number}")
    ledger.reserve("bob", [paid("without events", Cost(0, 7, 1))], AMPLE, AMPLE, "s")
    assert ledger.events("alice", Calendar("day", "UTC")) == {("gaussian", 5 * 10**10): 6, ("laplace", 10**14): 6}
    assert ledger.events()["gaussian", 7] == ledger.events("bob")["delta", 1] == 1
    assert ledger.last_statement("alice") == Cost(2 * 10**14, 2 * 10**13, 0)
    ledger.close()


@given(
    st.decimals("0.000001", 30, places=6),
    st.decimals("0.000001", 1, places=6),
    st.sampled_from([Decimal("1e-3"), Decimal("5e-7"), Decimal("1e-12")]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_what_is_left_is_the_most_that_fits(budget: Decimal, part: Decimal, delta: Decimal, round_: bool) -> None:
    """To six decimals, also where what is left is an epsilon of six decimals itself."""
    most = rho_from_epsilon(budget, delta) * UNITS
    spent = 0 if round_ else int(most * Fraction(part))
    left = _left(Limits(None, int(most), 0), Cost(rho=spent), delta)

    def fitting_(epsilon: Decimal) -> bool:
        return epsilon == 0 or rho_from_epsilon(epsilon, delta) * UNITS <= most - spent

    assert fitting_(left)
    assert spent == most or not fitting_(left + Decimal("0.000001"))


def test_how_many_fit(tmp_path: Path) -> None:
    policy = load(written(tmp_path))
    balance = dataset_balance(policy, Cost())
    rho, delta = balance.limits.rho, balance.limits.delta
    assert rho is not None
    assert delta is not None
    assert fitting([balance], Cost(rho=rho)) == 1
    assert fitting([balance], Cost(rho=1, delta=delta // 2)) == 2
    assert fitting([balance], Cost(rho=rho + 1)) == 0
    assert fitting([balance], Cost()) is None


def test_budget_show(tmp_path: Path) -> None:
    path = str(written(tmp_path))
    told(ledger_command, "init", path)
    ledger = open_ledger(load(path).ledger, "flights")
    for number in range(10):
        ask = paid(str(number), COUNT_OF_100, (ZcdpEvent(Fraction(5, 10**5)),))
        ledger.reserve("alice", [ask], AMPLE, AMPLE, str(number))
    ledger.close()
    shown = told(budget, "show", path, "--user", "alice")
    assert "  fits    448 more like the last statement (epsilon 0.0" in shown
    assert "  compare 10 privacy events at delta 5e-7: epsilon " in shown
