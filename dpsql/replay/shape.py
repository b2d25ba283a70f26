"""The shape of a planned release: what of it is its family, and which sets of rows its cells count.

Two releases of one family measure the same rows but for their keys and their filters over public domains: the same
relation, unit, contribution bounds, norm, state of the data and declarations. A release whose shape cannot be told
(private keys, choices, inner releases, an outer join that keeps public rows, two keys on one axis) has none; nothing is
derived from it or for it.
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
from dpsql.compiler.plan import Form, Measurement, PlannedRelease
from dpsql.compiler.sharing import may_clip
from dpsql.compiler.walk import parts
from dpsql.dp.mechanisms import DiscreteGaussian, stddev
from dpsql.replay.axes import Line, Part, cells_of, columns, part_of
from dpsql.replay.key import fingerprint
from dpsql.replay.recipe import Axis, Kin, Measured, Role, Shape
from dpsql.replay.sets import Set, common

_PREFIX: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|scan\((\S+) as [^,]*,""")
"""A scan's prefix, which hangs on which columns are read; or a constant, in which a client may have written one."""

MAX_CELLS: Final = 10_000


def shape_of(planned: PlannedRelease, epsilon: Decimal, surroundings: object) -> Shape | None:
    """The release's shape; `surroundings`: what else its family hangs on. None where there is none."""
    aggregation = planned.aggregation
    if not planned.public or planned.histograms or aggregation.depends_on or aggregation.preserved:
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
            _PREFIX.sub(lambda found: found[0] if found[1] is None else f"scan({found[1]},", describe(rest)),
            aggregation.unit,
            aggregation.max_groups,
            aggregation.max_rows,
            planned.norm,
            surroundings,
        )
    )
    measured = tuple(_measured(m, planned.form) for m in planned.measurements)
    exact = not may_clip(aggregation, planned.form, planned.bound)
    return Shape(family, axes, measured, exact, epsilon)


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


def _measured(m: Measurement, form: Form) -> Measured:
    """Units are counted like rows where each has one."""
    cell, moment = m.cell, m.cell.moment
    role: Role = ""
    if cell.kind in ("count", "sum") and cell.argument is not None:
        role = "count" if cell.kind == "count" else "sum"
    elif moment is not None and moment.y is None and moment.order < 2:
        role = "x" if moment.order else "n"
    argument = "*" if cell.argument is None else canonical(cell.argument)
    condition = "" if cell.condition is None else canonical(cell.condition)
    grid = moment.x if moment is not None else cell.grid
    return Measured(
        text=_short(cell_text(cell)),
        summable=cell.kind in ("count", "sum", "moment") or (cell.kind == "units" and form == "rows"),
        gaussian=isinstance(m.mechanism, DiscreteGaussian),
        variance=stddev(m.mechanism) ** 2,
        role=role,
        of=_short(f"{argument}|{condition}") if role else "",
        step=grid.resolution if role in ("sum", "x") and grid is not None else Fraction(1),
        centre=moment.x.centre if moment is not None and role else 0,
        most=max(abs(grid.low), abs(grid.high)) if grid is not None and role else 0,
        nan=cell.argument is not None and cell.argument.type.is_float,
        grows=form == "single" and _grows(cell),
    )


def _grows(cell: Cell) -> bool:
    """Whether a unit's total never falls where rows are added, or never rises, but for where it is clipped."""
    if cell.kind == "sum" and cell.grid is not None:
        return cell.grid.low >= 0 or cell.grid.high <= 0
    return cell.kind == "count" or (cell.moment is not None and cell.moment.order == 0)


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
