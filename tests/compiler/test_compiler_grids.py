"""Grid steps are powers of two, found without a search."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dpsql.compiler.cells import power_of_two

FINEST = Fraction(1, 2**60)


@given(st.fractions(min_value=0, max_value=10**30) | st.integers(-70, 200).map(lambda place: Fraction(2) ** place))
def test_the_least_power_that_is_not_below(least: Fraction) -> None:
    found = power_of_two(least)
    assert found >= max(least, FINEST)
    assert found == FINEST or found / 2 < least
    assert 1 in (found.numerator, found.denominator)
    assert (found.numerator * found.denominator).bit_count() == 1
