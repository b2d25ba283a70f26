"""What the integers of released cells mean: units per grid step, and how large their noise is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.dp.mechanisms import DiscreteGaussian, reach95


@dataclass(frozen=True, slots=True)
class Scale:
    """What a measurement's cells mean, found once for all rows: units per grid step as a ratio, and the noise."""

    numerator: int
    denominator: int
    stddev: float
    error95: float
    wide: float
    """Standard deviations to the end of a 95 % interval."""

    def units(self, cell: int) -> float:
        return cell * self.numerator / self.denominator


def scale(measurement: Measurement) -> Scale:
    """Of a cell as it was measured."""
    reach = reach95(gaussian=isinstance(measurement.mechanism, DiscreteGaussian))
    return Scale(*measurement.resolution.as_integer_ratio(), measurement.stddev, measurement.error95, reach)


def derived_scales(planned: PlannedRelease, deviations: Sequence[float], reach: float) -> tuple[Scale, ...]:
    """`deviations` in steps, one for each measurement; `reach` of them is the 95 % error."""
    pairs = zip(planned.measurements, deviations, strict=True)
    made = [(m.resolution.as_integer_ratio(), sd * float(m.resolution)) for m, sd in pairs]
    return tuple(Scale(*ratio, sd, reach * sd, reach) for ratio, sd in made)
