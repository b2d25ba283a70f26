"""Conversions against dp_accounting, the figures that budgets must reach, filters, and what is no amount."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp

from dpsql.dp.accounting import (
    Limits,
    epsilon_from_rho,
    fits,
    key_delta,
    least_price,
    limits,
    parse_amount,
    rho_from_epsilon,
    share_of_statement,
)
from dpsql.dp.mechanisms import DiscreteGaussian
from dpsql.dp.privacy import UNITS, cost_of
from dpsql.dp.sensitivity import L2
from dpsql.errors import DpsqlError, Failed, Rejected
from dpsql.types import Cost

EPSILONS = ("0.01", "0.1", "0.5", "1", "3", "10", "20", "100")
DELTAS = ("1e-5", "5e-7", "1e-9", "1e-12")
FINE = [float(order) for order in 1 + np.geomspace(0.02, 1e5, 6_000)]


def oracle_epsilon(rho: float, delta: float) -> float:
    """dp_accounting's epsilon, on far more orders than it tries by default."""
    accountant = rdp.RdpAccountant(orders=FINE)
    accountant.compose(dp_accounting.GaussianDpEvent((2 * rho) ** -0.5))
    return float(accountant.get_epsilon(delta))


def is_sound(convert: Callable[[Decimal, Decimal], Fraction], epsilon: str, delta: str) -> bool:
    return oracle_epsilon(float(convert(Decimal(epsilon), Decimal(delta))), float(delta)) <= float(epsilon) * (1 + 1e-5)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rho_is_the_oracles_largest(epsilon: str, delta: str) -> None:
    assert is_sound(rho_from_epsilon, epsilon, delta)
    rho = float(rho_from_epsilon(Decimal(epsilon), Decimal(delta)))
    assert oracle_epsilon(rho * (1 + 1e-4), float(delta)) > float(epsilon)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", ["1e-6", "0.001", "0.0244", "0.5", "3", "40"])
def test_epsilon_is_the_oracles(rho: str, delta: str) -> None:
    ours = float(epsilon_from_rho(Fraction(rho), Decimal(delta)))
    assert ours == pytest.approx(oracle_epsilon(float(rho), float(delta)), rel=1e-5)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_conversions_undo_each_other(epsilon: str, delta: str) -> None:
    rho = rho_from_epsilon(Decimal(epsilon), Decimal(delta))
    assert epsilon_from_rho(rho, Decimal(delta)) == pytest.approx(Decimal(epsilon), rel=Decimal("1e-9"))


def loose(epsilon: Decimal, delta: Decimal) -> Fraction:
    """A pure epsilon's rho, epsilon^2 / 2: the conversion in the wrong direction."""
    return Fraction(epsilon) ** 2 / 2


def whole_delta_twice(epsilon: Decimal, delta: Decimal) -> Fraction:
    return rho_from_epsilon(epsilon, 2 * delta)


@pytest.mark.parametrize("mutant", [loose, whole_delta_twice])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "10"])
def test_mutant_conversions_are_caught(mutant: Callable[[Decimal, Decimal], Fraction], epsilon: str) -> None:
    assert not is_sound(mutant, epsilon, "1e-6")


def test_textbook_conversion_is_beaten() -> None:
    """epsilon = rho + 2 sqrt(rho ln(1/delta)) (Bun, Steinke 2016, proposition 1.3) gives a smaller rho."""
    textbook = ((13.8155 + 1) ** 0.5 - 13.8155**0.5) ** 2
    assert rho_from_epsilon(Decimal(1), Decimal("1e-6")) > Fraction(1.3 * textbook)


@pytest.mark.parametrize(
    ("epsilon", "share", "count"), [("1", "0", 487), ("1", "0.5", 458), ("10", "0", 30_785), ("10", "0.5", 29_568)]
)
def test_how_many_counts_a_budget_answers(epsilon: str, share: str, count: int) -> None:
    """Gaussian counts of standard deviation 100 under (epsilon, 1e-6), with none or half of delta kept for keys."""
    allowed = limits("zcdp", Decimal(epsilon), Decimal("1e-6"), Decimal(share))
    each = cost_of(DiscreteGaussian(100.0), L2(1))
    assert allowed.rho is not None
    assert allowed.rho // each.rho == count
    spent = Cost(rho=(count - 1) * each.rho)
    assert fits(spent, each, allowed)
    assert not fits(spent + each, each, allowed)


def test_the_coarse_orders_of_dp_accounting_give_six_counts_less() -> None:
    """30,779 is the figure of its default orders, steps of 0.1; on fine ones it agrees with 30,785."""

    def epsilon_after(count: int, orders: list[float] | None) -> float:
        accountant = rdp.RdpAccountant(orders=orders) if orders else rdp.RdpAccountant()
        accountant.compose(dp_accounting.GaussianDpEvent(100), count)
        return float(accountant.get_epsilon(1e-6))

    assert epsilon_after(30_779, None) <= 10 < epsilon_after(30_780, None)
    assert epsilon_after(30_785, FINE) <= 10 < epsilon_after(30_786, FINE)


def test_conversions_are_fast() -> None:
    begin = time.perf_counter()
    for _ in range(1000):
        rho_from_epsilon(Decimal("0.7"), Decimal("5e-7"))
    assert time.perf_counter() - begin < 5


@pytest.mark.parametrize("epsilon", ["1e-12", "1e-9", "1e-6", "0.37", "9999.999999999999", "10000"])
@pytest.mark.parametrize("delta", ["1e-15", "1e-6", "0.4"])
def test_conversions_at_the_edges_err_to_the_safe_side(epsilon: str, delta: str) -> None:
    rho = rho_from_epsilon(Decimal(epsilon), Decimal(delta))
    assert rho >= 0
    assert (rho * UNITS).denominator == 1
    if rho:
        back = epsilon_from_rho(rho, Decimal(delta))
        assert back <= max(Decimal(epsilon) * (1 + Decimal("1e-9")), Decimal("1e-9"))


@pytest.mark.parametrize(
    ("loss", "delta"),
    [("0", "1e-6"), ("-1", "1e-6"), ("NaN", "0.1"), ("inf", "0.1"), ("1", "0"), ("1", "1"), ("1", "NaN")],
)
def test_conversions_refuse_what_has_no_meaning(loss: str, delta: str) -> None:
    with pytest.raises(Rejected):
        rho_from_epsilon(Decimal(loss), Decimal(delta))


@pytest.mark.parametrize(("rho", "delta"), [("-1", "1e-6"), ("1", "0"), ("1", "1"), ("1", "inf")])
def test_nothing_spent_is_epsilon_0_and_nonsense_is_refused(rho: str, delta: str) -> None:
    assert epsilon_from_rho(Fraction(0), Decimal("1e-6")) == 0
    with pytest.raises(Rejected):
        epsilon_from_rho(Fraction(rho), Decimal(delta))


# --- Limits and the filter.


def test_limits_of_a_budget() -> None:
    assert limits("pure", Decimal("2.5"), Decimal(0), Decimal("0.5")) == Limits(25 * UNITS // 10, None, 0)
    assert limits("pure", Decimal(1), Decimal("1e-6"), Decimal("0.5")) == Limits(UNITS, None, 10**9)
    zcdp = limits("zcdp", Decimal(1), Decimal("1e-6"), Decimal("0.25"))
    rho = rho_from_epsilon(Decimal(1), Decimal("7.5e-7"))
    assert zcdp == Limits(None, int(rho * UNITS), 250_000_000)
    for share in ("1", "-0.1", "2"):
        with pytest.raises(Failed):
            limits("zcdp", Decimal(1), Decimal("1e-6"), Decimal(share))
    with pytest.raises(Rejected):
        limits("zcdp", Decimal(1), Decimal(0), Decimal("0.5"))


def test_a_statement_spends_the_epsilon_it_names() -> None:
    assert share_of_statement("pure", Decimal("0.3"), Decimal(0), Decimal("0.5")) == Fraction(3, 10)
    rho = share_of_statement("zcdp", Decimal("0.3"), Decimal("1e-7"), Decimal("0.5"))
    assert rho == rho_from_epsilon(Decimal("0.3"), Decimal("5e-8"))


@pytest.mark.parametrize("epsilon", ["0.0001", "0.1", "1", "3", "20", "10000"])
def test_a_budget_holds_a_million_statements_of_the_least_price_at_most(epsilon: str) -> None:
    budget, delta, share = Decimal(epsilon), Decimal("1e-7"), Decimal("0.5")
    for accounting in ("pure", "zcdp"):
        least = least_price(accounting, budget, delta, share)
        one, whole = (share_of_statement(accounting, e, delta, share) for e in (least, budget))
        assert whole / one <= 10**6
        assert one >= Fraction(999, UNITS)
        assert whole / one >= 5 * 10**5 or one <= Fraction(1200, UNITS)
        assert len(least.as_tuple().digits) <= 2


def test_key_delta_is_a_thousandth_of_its_share() -> None:
    assert key_delta("zcdp", Decimal("1e-6"), Decimal("0.5")) == Fraction(1, 2 * 10**9)
    assert key_delta("pure", Decimal("1e-6"), Decimal("0.5")) == Fraction(1, 10**9)
    assert key_delta("zcdp", Decimal("1e-12"), Decimal("0.5")) == Fraction(1, UNITS)
    assert key_delta("zcdp", Decimal("1e-6"), Decimal(0)) == 0
    assert key_delta("pure", Decimal(0), Decimal("0.5")) == 0


def test_filter_is_exact_at_its_limit() -> None:
    allowed = Limits(epsilon=None, rho=100, delta=10)
    assert fits(Cost(rho=99), Cost(rho=1), allowed)
    assert not fits(Cost(rho=99), Cost(rho=2), allowed)
    assert not fits(Cost(rho=1, delta=10), Cost(rho=1, delta=1), allowed)
    assert fits(Cost(epsilon=10**30), Cost(epsilon=10**30, rho=1), allowed)


def test_ten_tenths_fit_and_nothing_after() -> None:
    allowed, tenth = limits("pure", Decimal(1), Decimal(0), Decimal(0)), Cost(UNITS // 10, UNITS // 200)
    spent = Cost()
    for _ in range(10):
        assert fits(spent, tenth, allowed)
        spent += tenth
    assert not fits(spent, Cost(epsilon=1, rho=1), allowed)


def test_gaussian_noise_is_not_free_under_pure_accounting() -> None:
    with pytest.raises(Failed):
        fits(Cost(), cost_of(DiscreteGaussian(1.0), L2(1)), limits("pure", Decimal(1), Decimal(0), Decimal(0)))


# --- Amounts as text.


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", "1"), ("0.1", "0.1"), ("0.10", "0.1"), (".5", "0.5"), ("2.", "2"), ("1e-6", "0.000001"), ("1E1", "10"),
     ("007", "7"), ("10000", "10000"), ("0.000000000001", "1e-12"), ("1e-12", "1e-12"), ("9999.999999999999",) * 2],
)  # fmt: skip
def test_amounts_that_are_read(text: str, value: str) -> None:
    assert parse_amount(text) == Decimal(value)
    assert str(parse_amount(text)) == str(parse_amount(str(parse_amount(text))))


HOSTILE = (
    "", " ", " 1", "1 ", "1\n", "\t1", "-1", "+1", "-0", "0", "0.0", "0e5", "nan", "NaN", "sNaN", "inf", "Infinity",
    "-inf", "1e-400", "1e400", "1e-13", "1e999999999", "0x1", "0x1p-3", "1_000", "1,5", "1.5.2", "1..2", ".", "e5",
    "1e", "1e+", "\uff11", "\u0663", "\uff11.\uff15", "1\u066b5", "\u00bd", "\u00b2", "\u200b1", "1\u200b", "\ufeff1",
    "\u00a01", "1\x00", "0b1", "1/3", "1j", "True", "10000.000000000001", "10001", "1e5", "99999999999999999999",
    "0.1234567890123", "0.1000000000000000055511151231257827", "1" * 1000, "0." + "0" * 500 + "1", "0.3 epsilon",
    "'1'", "1;", "NULL", "1d", "1f",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_amounts_are_refused(text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        parse_amount(text)
    assert refusal.value.sqlstate == "22023"
    assert refusal.value.hint


def test_random_text_is_read_exactly_or_refused() -> None:
    dice = random.Random(3)
    for _ in range(5000):
        text = "".join(dice.choice("0123456789.eE+-_ xnaifN") for _ in range(dice.randrange(1, 9)))
        try:
            value = parse_amount(text)
        except DpsqlError:
            continue
        assert Fraction(value) == Fraction(text)
        assert 0 < value <= 10_000


def test_a_number_is_no_text() -> None:
    with pytest.raises(TypeError):
        parse_amount(cast(Any, 1.0))
