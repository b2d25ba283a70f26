"""What the checker says of a release: a certificate with its price, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.dp.mechanisms import Mechanism, NoisyMax
from dpsql.dp.sensitivity import Scores, Sensitivity
from dpsql.types import Cost

Noised = tuple[Mechanism | NoisyMax, Sensitivity | Scores]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Proof that a release loses at most `price`. Only `dpsql.certify.check` constructs it.

    `noise`: of each measurement, each choice, and the selection of keys, in order; with how far one unit moves what it
    is added to. `threshold` and `delta`: of private keys.
    """

    release: str = field(compare=False)
    price: Cost
    noise: tuple[Noised, ...] = ()
    threshold: int | None = None
    delta: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Unproven:
    """The plan may be private; it could not be derived. `reason` is for the operator's log, and holds no data."""

    release: str = field(compare=False)
    reason: str


class Gap(Exception):
    """Ends a derivation: what the plan claims does not follow."""
