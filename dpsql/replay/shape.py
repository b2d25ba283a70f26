"""The shape of a planned release: what of it is its family, which sets of rows its cells count, and how it clips them.

Two releases of one family read the same rows but for their keys and their filters over public domains: the same
relation, of which the same rows survive, the same unit and contribution bounds, norm, state of the data and
declarations. Where a table's rows are cut to `max_rows`, which of them survive hangs on all the columns that are read,
so these belong to the family. A release whose shape cannot be told (private keys, keys that depend on each other,
choices, inner releases, an outer join that keeps public rows, two keys on one axis) has none; nothing is derived from
it or for it.

How a vector is clipped (`_clip`) is what the emitted SQL makes of a unit's rows: see `compiler.emit.release`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Final

from dpsql.compiler.algebra import Col, Expr, Filter, Lit, Node, canonical, describe
from dpsql.compiler.cells import Cell, cell_text, linear
from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.compiler.sharing import may_clip
from dpsql.compiler.walk import cut_by, parts
from dpsql.dp.mechanisms import DiscreteGaussian, stddev
from dpsql.replay.axes import Line, Part, cells_of, columns, part_of
from dpsql.replay.key import fingerprint
from dpsql.replay.recipe import Axis, Kin, Measured, Role, Shape
from dpsql.replay.sets import Set, common

_PREFIX: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|scan\((\S+) as [^,]*,""")
"""A scan's prefix, which hangs on which columns are read; or a constant, in which a client may have written one."""

MAX_CELLS: Final = 10_000

_VERSION: Final = 2
"""Of what families and shapes mean: nothing is derived from a shape that was stored with another one."""


def shape_of(planned: PlannedRelease, epsilon: Decimal, surroundings: object) -> Shape | None:
    """The release's shape; `surroundings`: what else its family hangs on. None where there is none."""
    aggregation = planned.aggregation
    if (
        not planned.public
        or planned.places is not None
        or planned.histograms
        or aggregation.depends_on
        or aggregation.preserved
    ):
        return None
    if not planned.measurements or not 0 < (planned.size or 0) <= MAX_CELLS:
        return None
    known = columns(aggregation.input)
    rest, filters = _apart(aggregation.input, known)
    axes = _axes(planned, known, filters, _subjects(aggregation.input))
    if axes is None:
        return None
    family = fingerprint(
        (
            _VERSION,
            _PREFIX.sub(lambda found: found[0] if found[1] is None else f"scan({found[1]},", describe(rest)),
            cut_by(aggregation),
            aggregation.unit,
            aggregation.max_groups,
            aggregation.max_rows,
            planned.norm,
            surroundings,
        )
    )
    return Shape(family, axes, tuple(_measured(m, planned, axes) for m in planned.measurements), epsilon)


def _apart(node: Node, known: Mapping[str, Col]) -> tuple[Node, dict[str, Part]]:
    """The relation without the filters that are sets on axes, and these, by axis."""
    if not isinstance(node, Filter):
        return node, {}
    found: dict[str, Part] = {}
    kept: list[Expr] = []
    for condition in node.conditions:
        part = part_of(condition, known)
        if part is None:
            kept.append(condition)
            continue
        before = found.get(part.line.name)
        found[part.line.name] = part if before is None else Part(part.line, common(before.holds, part.holds))
    return (replace(node, conditions=tuple(kept)) if kept else node.input), found


def _subjects(node: Node) -> dict[str, Expr]:
    """Every part of the conditions, by its text: with the domains that columns are declared to have."""
    if not isinstance(node, Filter):
        return {}
    return {canonical(part): part for condition in node.conditions for part in parts(condition)}


def _axes(
    planned: PlannedRelease, known: Mapping[str, Col], filters: Mapping[str, Part], subjects: Mapping[str, Expr]
) -> tuple[Axis, ...] | None:
    """The axes of the keys, in their order, and those that are only filtered."""
    made: dict[str, Axis] = {}
    for key in planned.keys:
        if isinstance(key.expr, Lit) and key.domain is not None and key.domain.size == 1:
            continue
        found = cells_of(key, known, subjects)
        if found is None or found[0].name in made:
            return None
        line, cells = found
        made[line.name] = _axis(line, cells, filters.get(line.name))
    for name, part in filters.items():
        if name not in made:
            made[name] = _axis(part.line, (part.line.full,), part)
    return tuple(made.values())


def _axis(line: Line, cells: tuple[Set, ...], part: Part | None) -> Axis:
    narrowed = cells if part is None else tuple(common(cell, part.holds) for cell in cells)
    return Axis(line.name, line.full, narrowed)


def _measured(m: Measurement, planned: PlannedRelease, axes: tuple[Axis, ...]) -> Measured:
    """Units are counted like rows where each has one group."""
    cell, moment = m.cell, m.cell.moment
    role: Role = ""
    if cell.kind in ("count", "sum") and cell.argument is not None:
        role = "count" if cell.kind == "count" else "sum"
    elif moment is not None and moment.y is None and moment.order < 2:
        role = "x" if moment.order else "n"
    argument = "*" if cell.argument is None else canonical(cell.argument)
    condition = "" if cell.condition is None else canonical(cell.condition)
    grid = moment.x if moment is not None else cell.grid
    clip = _clip(cell, planned, axes)
    return Measured(
        text=_short(cell_text(cell)),
        clip=clip,
        alone=not clip or planned.form == "single",
        summable=cell.kind in ("count", "sum", "moment") or (cell.kind == "units" and planned.form != "norm"),
        gaussian=isinstance(m.mechanism, DiscreteGaussian),
        variance=stddev(m.mechanism) ** 2,
        role=role,
        of=_short(f"{argument}|{condition}") if role else "",
        step=grid.resolution if role in ("sum", "x") and grid is not None else Fraction(1),
        centre=moment.x.centre if moment is not None and role else 0,
        most=max(abs(grid.low), abs(grid.high)) if grid is not None and role else 0,
        nan=cell.argument is not None and cell.argument.type.is_float,
    )


def _clip(cell: Cell, planned: PlannedRelease, axes: tuple[Axis, ...]) -> str:
    """How a unit's contribution is clipped, "" where it never is; equal texts within a family mean equal clipping.

    - A unit counts as one in each of its groups, so its vector passes where the radius is that of all groups, or of as
      many as it has rows.
    - Rows so few that no norm reaches its radius pass, whatever else they add up to.
    - A unit's only partial is clamped to a radius that hangs on the family alone.
    - Else it is scaled by its norm over all cells: the bound, and these very cells, say by how much.
    """
    if cell.kind == "units":
        if planned.form != "norm" or planned.bound.groups in (planned.size, planned.bound.total):
            return ""
    elif not may_clip(planned.form, planned.bound):
        return ""
    if planned.form == "single":
        return "single"
    counted = {axis.name: frozenset(filter(None, axis.cells)) for axis in axes}
    told = {name: cells for name, cells in counted.items() if cells != {_full(axes, name)}}
    return fingerprint((planned.bound, told))[:32]


def _full(axes: tuple[Axis, ...], name: str) -> Set:
    return next(axis.full for axis in axes if axis.name == name)


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]


def kin_of(planned: PlannedRelease, shape: Shape, factor: Decimal, max_error: Decimal | None) -> Kin:
    """What may stand for the release: at most `factor` times its own error, and at most `max_error`."""
    limits = []
    for place, measured in enumerate(shape.measured):
        times = float(factor)
        if max_error is not None:
            errors = (planned.error95(o) for o in planned.outputs if place in dict(linear(o)))
            times = min([times, *(float(max_error) / error for error in errors if error)])
        limits.append(measured.variance * times**2)
    return Kin(shape, tuple(limits), max_error is not None)
