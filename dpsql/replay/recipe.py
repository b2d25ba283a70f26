"""Shapes of releases, and recipes that make one from a stored one: the vocabulary of derived answers, and their text.

Decides how noisy cells are added up, and what error the sums have: `dpsql.replay.derive` decides which.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import sqrt
from typing import Any, Final, Literal

from dpsql.replay.sets import Set, packed, unpacked
from dpsql.types import Cost, Release

LIMIT: Final = 2**63 - 1
"""Noisy totals saturate here, as fresh ones do."""

ONE: Final = 1024
"""Steps of a counted row, as in `compiler.cells`, which the ledger need not import; a test holds them equal."""

Role = Literal["", "count", "sum", "n", "x"]


@dataclass(frozen=True, slots=True)
class Axis:
    """`cells`: the sets of the release's keys on this axis, in order; one where it is only filtered."""

    name: str
    full: Set
    cells: tuple[Set, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured vector. `text` tells what is added up; `variance` is of its noise, in squared steps.

    `clip`: how contributions are clipped, "" for not at all, whatever the data; equal for equal clipping. `alone`: a
    unit's contribution to a cell hangs on its rows there alone. `summable`: the cells of a union add up to it.
    `role`: in what COUNT(x), SUM(x) and AVG(x) share: a count or a sum of `of`, or the first two moments, whose values
    are centred at `centre` steps and within `most` of zero. `step`: units per step. `nan`: x may be NaN, which COUNT
    counts and a moment does not.
    """

    text: str
    clip: str
    alone: bool
    summable: bool
    gaussian: bool
    variance: float
    role: Role = ""
    of: str = ""
    step: Fraction = Fraction(1)
    centre: int = 0
    most: int = 0
    nan: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """What a release of a family counts. Its rows are in the order of the product of the axes' cells.

    `epsilon`: what its statement named.
    """

    family: str
    axes: tuple[Axis, ...]
    measured: tuple[Measured, ...]
    epsilon: Decimal


@dataclass(frozen=True, slots=True)
class Reading:
    """An asked vector as a combination of a stored release's columns, with the variance of one cell."""

    parts: tuple[tuple[int, Fraction], ...]
    variance: float
    summable: bool


@dataclass(frozen=True, slots=True)
class Recipe:
    """How each asked cell is added up from rows of one stored release. `source`: its number; `readings`: by vector."""

    source: int
    readings: tuple[Reading, ...]
    cells: tuple[tuple[int, ...], ...]
    gaussian: bool

    def stddevs(self) -> tuple[tuple[float, ...], ...]:
        """The standard deviation of each cell of each vector, in steps."""
        return tuple(tuple(sqrt(len(rows) * each.variance) for each in self.readings) for rows in self.cells)


@dataclass(frozen=True, slots=True)
class Derived:
    """What answers an ask: a recipe, and the release that it names. `paid`: what the account pays for seeing that."""

    recipe: Recipe
    release: Release
    paid: Cost = field(default=Cost(), compare=False)

    def cells(self) -> tuple[tuple[int, ...], ...]:
        """The noisy cells, in whole steps."""
        return tuple(
            tuple(self._total(rows, reading) for reading in self.recipe.readings) for rows in self.recipe.cells
        )

    def _total(self, rows: Sequence[int], reading: Reading) -> int:
        totals = (self.release.cells[row][column] * factor for row in rows for column, factor in reading.parts)
        return max(-LIMIT, min(LIMIT, round(sum(totals, Fraction(0)))))


@dataclass(frozen=True, slots=True)
class Kin:
    """A release that may be derived. `limits`: the variance that each of its vectors may have in every cell.

    `aimed`: the statement asks for an error instead of an epsilon, so that stored releases of any epsilon will do; else
    only those of statements that named at least its own, for one that names more asks for more.
    """

    shape: Shape
    limits: tuple[float, ...]
    aimed: bool = False

    @property
    def family(self) -> str:
        return self.shape.family


# As text ------------------------------------------------------------------------------------------------------------


def encoded(shape: Shape) -> str:
    """The shape as it is stored, without its family."""
    document = {
        "epsilon": str(shape.epsilon),
        "axes": [[axis.name, packed([axis.full]), packed(axis.cells)] for axis in shape.axes],
        "measured": [_written(m) for m in shape.measured],
    }
    return json.dumps(document, separators=(",", ":"))


def _written(m: Measured) -> list[object]:
    clipping = m.clip, m.alone, m.summable
    return [m.text, *clipping, m.gaussian, m.variance.hex(), m.role, m.of, str(m.step), m.centre, m.most, m.nan]


@lru_cache(maxsize=128)
def decoded(text: str, family: str) -> Shape:
    """The inverse of `encoded`. Raises ValueError, KeyError or TypeError for anything else."""
    document = json.loads(text)
    return Shape(
        family=family,
        axes=tuple(Axis(name, unpacked(whole)[0], unpacked(cells)) for name, whole, cells in document["axes"]),
        measured=_measured(tuple(tuple(each) for each in document["measured"])),
        epsilon=Decimal(document["epsilon"]),
    )


@lru_cache(maxsize=4096)
def _measured(rows: tuple[tuple[Any, ...], ...]) -> tuple[Measured, ...]:
    """One tuple for all releases that measure the same, so that it is read once in a choice."""
    return tuple(
        Measured(text, clip, alone, summable, gaussian, float.fromhex(variance), role, of, Fraction(step), *rest)
        for text, clip, alone, summable, gaussian, variance, role, of, step, *rest in rows
    )


def digest(family: str, text: str) -> str:
    """What a stored release holds of its shape, so that the chain proves it."""
    return sha256(f"{family}\n{text}".encode()).hexdigest()
