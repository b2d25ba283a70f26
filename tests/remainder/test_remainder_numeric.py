"""Numerics kept as text: order, arithmetic and printing against exact arithmetic."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.errors import Rejected
from dpsql.remainder import numeric, text_forms

FINITE = st.decimals(
    allow_nan=False, allow_infinity=False, min_value=-(10**40), max_value=10**40, places=12
) | st.builds(
    lambda unscaled, scale: Decimal(unscaled).scaleb(-scale), st.integers(-(10**9), 10**9), st.integers(0, 30)
)
ANY = FINITE | st.sampled_from([Decimal("Infinity"), Decimal("-Infinity"), Decimal("0.00"), Decimal("-0.0")])


@given(ANY, ANY)
def test_keys_sort_as_values_do(left: Decimal, right: Decimal) -> None:
    assert (numeric.key(left) < numeric.key(right)) == (left < right)
    assert (numeric.key(left) == numeric.key(right)) == (left == right)


def test_nan_sorts_last() -> None:
    assert numeric.key(Decimal("NaN")) > numeric.key(Decimal("Infinity"))


@given(FINITE, FINITE.filter(bool))
def test_division_is_rounded_half_away_at_its_scale(left: Decimal, right: Decimal) -> None:
    scale = numeric.division_scale(left, right)
    made = Fraction(numeric.divide(left, right))
    exact = Fraction(left) / Fraction(right)
    assert abs(made - exact) <= Fraction(1, 2 * 10**scale)
    if abs(made - exact) == Fraction(1, 2 * 10**scale):
        assert abs(made) > abs(exact)


@given(FINITE)
def test_plain_keeps_the_value(value: Decimal) -> None:
    made = numeric.plain(value)
    assert made == value
    assert "." not in numeric.show(made) or not numeric.show(made).endswith("0")


@given(FINITE, st.integers(-20, 20))
def test_round_is_nearest(value: Decimal, places: int) -> None:
    made = numeric.ROUND(value, places)
    assert abs(Fraction(made) - Fraction(value)) <= Fraction(10) ** -places / 2
    assert numeric.scale_of(made) == max(places, 0)


@given(st.lists(FINITE, min_size=2, max_size=8))
def test_variance_is_near_the_exact_one(values: list[Decimal]) -> None:
    exact = [Fraction(v) for v in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    wanted = sum(((v - mean) * (v - mean) for v in exact), Fraction(0)) / len(exact)
    made = numeric.variance(values, sample=False, root=False)
    assert made is not None
    assert abs(Fraction(made) - wanted) <= max(wanted * Fraction(1, 10**12), Fraction(1, 10**15))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float_text_reads_back(value: float) -> None:
    assert float(text_forms.float8(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (1e15, "1e+15"),
        (123456789012345.0, "123456789012345"),
        (0.0001, "0.0001"),
        (1e-5, "1e-05"),
    ],
)
def test_float_text(value: float, text: str) -> None:
    assert text_forms.float8(value) == text


@pytest.mark.parametrize(
    "made", [lambda: numeric.divide(Decimal(1), Decimal(0)), lambda: numeric.modulo(Decimal(1), Decimal(0))]
)
def test_division_by_zero(made: object) -> None:
    with pytest.raises(Rejected) as caught:
        made()  # type: ignore[operator]
    assert caught.value.sqlstate == "22012"
