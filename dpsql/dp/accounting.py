"""The exchange between (epsilon, delta) and rho, the limits of a budget, and the filter that adds up and refuses.

Filter: amounts spent are added and compared with a limit fixed beforehand. For pure epsilons that is basic composition,
for (rho, delta) composition of approximate zCDP; both stay valid when every next mechanism and its parameters depend on
earlier answers (Rogers, Roth, Ullman, Vadhan, "Privacy Odometers and Filters", NeurIPS 2016; Whitehouse, Ramdas,
Rogers, Wu, "Fully-Adaptive Composition in Differential Privacy", ICML 2023, the filter for approximate zCDP). So the
promise holds as long as `fits` is asked before each release.

Exchange (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020, proposition 12 with
a zCDP Renyi curve): rho-zCDP implies (epsilon, delta)-DP if for some alpha > 1

    epsilon >= alpha rho + ln(1 - 1/alpha) - (ln delta + ln alpha) / (alpha - 1).

Every alpha is sound, so floats only *choose* it and the bound is then evaluated in 50 digits and rounded to the safe
side. The choice is good too: for given rho and epsilon, ln delta as a function of alpha has the derivative
(2 alpha - 1) rho - epsilon + ln(1 - 1/alpha), which increases, so it is convex; hence the alphas that reach a given
rho (or epsilon) form an interval, the bound has one optimum, and golden-section search finds it.

An (epsilon, delta) budget under zcdp: delta is parted beforehand into a share for key selection, which adds up as it
is, and the rest, at which rho is converted. The total is then (epsilon, delta)-DP (approximate zCDP, Bun, Steinke 2016,
section 8: the two deltas add up).

Never: a minimum over conversions after the fact, a PLD figure, or a float as a gate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpsql.dp.privacy import UNITS, Accounting, amount, units_down, units_up
from dpsql.errors import BAD_PARAMETER, Failed, Rejected
from dpsql.types import Cost

MAX_AMOUNT = 10_000
MAX_DECIMALS = 12
MOST_STATEMENTS = 10**6
LEAST_UNITS = 1000
"""A statement costs no less than this many units of the ledger, nor than one in `MOST_STATEMENTS` of its budget."""

_NUMBER = re.compile(r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,2})?")
_EXACT = Context(prec=50)
_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
_GUARD = Fraction(1, 10**30)
"""Far above the rounding of 50 digits, far below a unit of 1e-15."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that may be spent, in units of `Cost`. None: that component does not gate."""

    epsilon: int | None
    rho: int | None
    delta: int | None


def parse_amount(text: str) -> Decimal:
    """An amount of privacy loss as a client or a policy writes it: above 0, at most 10,000 and 12 decimals.

    ASCII decimals, with an exponent if wanted (`1e-6`). Anything else raises Rejected 22023.
    """
    if len(text) > 40 or not _NUMBER.fullmatch(text):
        raise _bad_amount("must be a plain decimal number")
    exact = Fraction(text)
    if exact <= 0:
        raise _bad_amount("must be above 0")
    if exact > MAX_AMOUNT:
        raise _bad_amount(f"must be at most {MAX_AMOUNT:,}")
    if (exact * 10**MAX_DECIMALS).denominator != 1:
        raise _bad_amount(f"may have at most {MAX_DECIMALS} decimals")
    return amount(units_down(exact))


@lru_cache(maxsize=4096)
def rho_from_epsilon(epsilon: Decimal, delta: Decimal) -> Fraction:
    """The largest rho of which rho-zCDP implies (epsilon, delta)-DP, rounded down to 1e-15; may be 0."""
    _require_pair("epsilon", epsilon, delta)
    eps, log_delta = float(epsilon), math.log(delta)
    m = _argmax(lambda m: (eps + math.log1p(1 / m) + (log_delta + math.log1p(m)) / m) / (1 + m))
    gain, loss = _exact_terms(m, delta)
    rho = (Fraction(epsilon) + gain - loss) / (1 + Fraction(m))
    return Fraction(max(0, units_down(rho - _GUARD)), UNITS)


@lru_cache(maxsize=4096)
def epsilon_from_rho(rho: Fraction, delta: Decimal) -> Decimal:
    """The least epsilon of which rho-zCDP implies (epsilon, delta)-DP, rounded up to 1e-15; 0 for 0."""
    if rho == 0:
        return Decimal(0)
    _require_pair("rho", rho, delta)
    m, _ = _least_epsilon(float(rho), math.log(delta))
    gain, loss = _exact_terms(m, delta)
    epsilon = (1 + Fraction(m)) * Fraction(rho) - gain + loss
    return amount(max(0, units_up(epsilon + _GUARD)))


def near_epsilon(rho: Fraction, delta: Decimal) -> float:
    """`epsilon_from_rho` in floats, relative error below 1e-12: to show, never to gate."""
    return _least_epsilon(float(rho), math.log(delta))[1]


def share_of_statement(accounting: Accounting, epsilon: Decimal, delta: Decimal, key_delta_share: Decimal) -> Fraction:
    """What a statement that names `epsilon` may spend on noise: the epsilon itself, or under zcdp its rho.

    `delta` is the smaller of the user's and the dataset's.
    """
    if accounting == "pure":
        return Fraction(epsilon)
    return rho_from_epsilon(epsilon, delta * (1 - key_delta_share))


def least_price(accounting: Accounting, epsilon: Decimal, delta: Decimal, key_delta_share: Decimal) -> Decimal:
    """The least epsilon that a statement may name within a budget of (epsilon, delta), to two digits, rounded up.

    A millionth of the budget, as the ledger adds it up, and no less than a thousand of its units: what one measures in
    vain, by its time say, is measured a million times at most, and rounding up is no part of a debit. Without it a
    debit could be so small that any number of them add up to nothing.
    """
    whole = share_of_statement(accounting, epsilon, delta, key_delta_share)
    share = max(whole / MOST_STATEMENTS, Fraction(LEAST_UNITS, UNITS))
    if accounting == "pure":
        return _TWO_DIGITS.divide(Decimal(share.numerator), Decimal(share.denominator))
    return _TWO_DIGITS.plus(epsilon_from_rho(share, delta * (1 - key_delta_share)))


def key_delta(accounting: Accounting, delta: Decimal, key_delta_share: Decimal) -> Fraction:
    """What one release with private keys spends unless the policy says otherwise: a thousandth of the keys' share.

    Whole units of 1e-15, at least one; 0 if there is nothing for keys, so that private keys must be refused.
    """
    for_keys = _delta_for_keys(accounting, delta, key_delta_share)
    return Fraction(max(1, units_down(for_keys / 1000)), UNITS) if for_keys > 0 else Fraction(0)


def limits(accounting: Accounting, epsilon: Decimal, delta: Decimal, key_delta_share: Decimal) -> Limits:
    """The limits that make an (epsilon, delta) budget, rounded down. Under pure all of delta is for keys."""
    for_keys = units_down(_delta_for_keys(accounting, delta, key_delta_share))
    if accounting == "pure":
        return Limits(epsilon=units_down(epsilon), rho=None, delta=for_keys)
    rho = rho_from_epsilon(epsilon, delta * (1 - key_delta_share))
    return Limits(epsilon=None, rho=units_down(rho), delta=for_keys)


def fits(spent: Cost, cost: Cost, limits: Limits) -> bool:
    """Whether `cost` may still be spent. Raises Failed for a cost that pure accounting cannot price."""
    if limits.epsilon is not None and cost.rho > 0 and cost.epsilon == 0:
        raise Failed("a cost without a pure epsilon under pure accounting")
    total = spent + cost
    pairs = ((total.epsilon, limits.epsilon), (total.rho, limits.rho), (total.delta, limits.delta))
    return all(limit is None or used <= limit for used, limit in pairs)


def _delta_for_keys(accounting: Accounting, delta: Decimal, key_delta_share: Decimal) -> Decimal:
    if not 0 <= key_delta_share < 1:
        raise Failed(f"key_delta_share must be in [0, 1), not {key_delta_share}")
    return delta if accounting == "pure" else delta * key_delta_share


def _argmax(value: Callable[[float], float]) -> float:
    """The m = alpha - 1 in (1e-13, 1e30) where a function with one optimum is largest: golden section over ln m."""
    low, high, golden = -30.0, 70.0, (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if value(math.exp(left)) < value(math.exp(right)):
            low = left
        else:
            high = right
    return math.exp((low + high) / 2)


def _least_epsilon(rho: float, log_delta: float) -> tuple[float, float]:
    """The m = alpha - 1 of the least epsilon for rho, and that epsilon."""

    def negative(m: float) -> float:
        return math.log1p(1 / m) + (log_delta + math.log1p(m)) / m - (1 + m) * rho

    m = _argmax(negative)
    return m, -negative(m)


def _exact_terms(m: float, delta: Decimal) -> tuple[Fraction, Fraction]:
    """-ln(1 - 1/alpha) = ln(1 + 1/m), and -(ln delta + ln alpha) / (alpha - 1); alpha = 1 + m; to 1e-35."""
    exact = Decimal(m)
    ratio = _EXACT.add(Decimal(1), _EXACT.divide(Decimal(1), exact))
    logs = Fraction(_EXACT.ln(delta)) + Fraction(_EXACT.ln(_EXACT.add(Decimal(1), exact)))
    return Fraction(_EXACT.ln(ratio)), -logs / Fraction(m)


def _require_pair(what: str, loss: Decimal | Fraction, delta: Decimal) -> None:
    if not (math.isfinite(loss) and math.isfinite(delta) and loss > 0 and 0 < delta < 1):
        raise _bad_amount(f"must be above 0, and delta between 0 and 1: {what} {loss}, delta {delta}")


def _bad_amount(why: str) -> Rejected:
    return Rejected(
        f"An amount of privacy loss {why}.", sqlstate=BAD_PARAMETER, hint="Write it as 0.5, or 1e-6 for a delta."
    )
