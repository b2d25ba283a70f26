"""What a profile asks of a source, as statements of the proxy's own SQL, and how their answers become declarations.

Decides what is measured: how many units there are, between which points of a fixed grid nearly all values lie, which
categories occur, and how many rows a unit has. Every unit counts as one row in each of these, so one unit moves any
count, rank or weight by at most one. The grids follow from types alone.

A quantile is chosen by noisy max: of many grid points beyond the largest value, one may win by luck unless the rows
left outside outweigh the noise. So the share left outside grows with the noise and the number of points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from math import log
from typing import Literal

from dpsql.policy.draft import Plan
from dpsql.policy.draft_checks import limits
from dpsql.policy.draft_columns import needs_bounds, needs_values, settled, type_word
from dpsql.policy.draft_names import identifies, quoted
from dpsql.policy.draft_text import source_line
from dpsql.policy.model import UnitPath
from dpsql.types import Column, Kind, SqlType

YEARS = tuple(range(1900, 2101))
ROWS = tuple(int(a * 10**k) for k in range(6) for a in (1, 2, 5))
MOST_VALUES = 50
MOST_ROWS = 2**20
"""Rows of a unit that are told apart; the profile's own policy bounds them, its statements count units."""

_LEAST_TAIL, _LARGEST_TAIL = 0.005, 0.2
_LUCK = 1000
_SMALL, _LARGE = -2, 12
_SLACK = Decimal("0.999999")
"""Of what is shared out: amounts are rounded up when they are debited."""
_DELTA_STEP = Decimal("1e-15")
_EPSILON_STEP = Decimal("1e-12")

What = Literal["units", "bounds", "years", "values", "rows"]


@dataclass(frozen=True, slots=True)
class Probe:
    """One statement of the profile. `shares`: how many measurements it makes. `grid`: what its answers are indices of.

    `sql` has the place `{tail}` for the share of units that a quantile leaves outside.
    """

    what: What
    table: str
    column: str
    sql: str
    shares: int = 1
    grid: tuple[Decimal, ...] = ()

    @property
    def points(self) -> int:
        return len(self.grid) or len(YEARS)


def probes(made: Plan) -> tuple[Probe, ...]:
    """All statements; those that count units first, since the others need to know about how many there are."""
    tables = made.private
    return (
        *_units(made, tables),
        *(probe for name in tables for probe in _columns(made, name)),
        *(probe for name in tables for probe in _rows(made, name)),
    )


def tail(units: int, epsilon: Decimal, points: int) -> float | None:
    """The share of units to leave outside; None where the noise would need too many of them.

    Noisy max with exponential noise of scale 2 / epsilon: a rival that falls behind by g wins with a probability of at
    most exp(-g * epsilon / 2), so one of all `points` with at most 1 / 1000 where g = 2 log(1000 * points) / epsilon.
    """
    needed = 2 * log(_LUCK * points) / float(epsilon) / max(units, 1)
    return None if needed > _LARGEST_TAIL else max(needed, _LEAST_TAIL)


def share(epsilon: Decimal, wanted: Sequence[Probe]) -> Decimal:
    """The epsilon of one measurement; 0 where there is too little to share out."""
    parts = max(sum(probe.shares for probe in wanted), 1)
    return (epsilon / parts * _SLACK).quantize(_EPSILON_STEP, ROUND_DOWN)


def _units(made: Plan, tables: Sequence[str]) -> Iterator[Probe]:
    if made.chosen is not None:
        counted = f"COUNT(DISTINCT {_sql(made.chosen.column)})"
        yield Probe("units", made.chosen.table, "", f"SELECT {counted} FROM {_sql(made.chosen.table)}")
    else:
        yield from (Probe("units", name, "", f"SELECT COUNT(*) FROM {_sql(name)}") for name in tables)


def _columns(made: Plan, name: str) -> Iterator[Probe]:
    key, facts = made.known.keys.get(name), made.outline.tables[name]
    said = limits(facts)
    for column in facts.columns:
        if settled(column, said.get(column.name)):
            continue
        if column.name == made.units.get(name) or (key is not None and column.name in key.columns):
            continue
        if any(column.name in reference.columns for reference in made.known.of(name)):
            continue
        if needs_bounds(column) and column.type.is_number:
            yield _bounds(name, column)
        elif needs_bounds(column):
            yield _years(name, column)
        elif needs_values(column):
            sql = f"SELECT {_sql(column.name)} FROM {_sql(name)} WHERE {_sql(column.name)} IS NOT NULL GROUP BY 1"
            yield Probe("values", name, column.name, sql)


def _bounds(name: str, column: Column) -> Probe:
    """The largest grid point below, and the smallest above, nearly all values."""
    grid, value = _grid(column.type), _sql(column.name)
    below = " ".join(f"WHEN {value} >= {_word(grid[i])} THEN {i}" for i in reversed(range(1, len(grid))))
    above = " ".join(f"WHEN {value} <= {_word(grid[i])} THEN {i}" for i in range(len(grid) - 1))
    lower = _quantile("{tail}", f"CASE {below} ELSE 0 END")
    upper = _quantile("1 - {tail}", f"CASE {above} ELSE {len(grid) - 1} END")
    sql = f"SELECT {lower}, {upper} FROM {_sql(name)} WHERE {value} IS NOT NULL"
    return Probe("bounds", name, column.name, sql, 2, grid)


def _years(name: str, column: Column) -> Probe:
    year = f"EXTRACT(YEAR FROM {_sql(column.name)})"
    sql = f"SELECT {_quantile('{tail}', year)}, {_quantile('1 - {tail}', year)} FROM {_sql(name)}"
    return Probe("years", name, column.name, f"{sql} WHERE {_sql(column.name)} IS NOT NULL", 2)


def _quantile(rank: str, of: str) -> str:
    return f"PERCENTILE_DISC({rank}) WITHIN GROUP (ORDER BY {of})"


def _rows(made: Plan, name: str) -> Iterator[Probe]:
    """How many rows of a table nearly all units stay below, by a statement with one row a unit."""
    unit = made.units.get(name)
    if unit is None or (isinstance(unit, str) and frozenset({unit}) in made.outline.tables[name].unique):
        return
    joins, alias, number = f"{_sql(name)} AS t0", "t0", 0
    while isinstance(unit, UnitPath):
        number += 1
        on = " AND ".join(f"{alias}.{_sql(child)} = t{number}.{_sql(parent)}" for child, parent in unit.on.items())
        joins += f" JOIN {_sql(unit.through)} AS t{number} ON {on}"
        alias, unit = f"t{number}", made.units[unit.through]
    counted = f"SELECT {alias}.{_sql(str(unit))} AS u, COUNT(*) AS n FROM {joins} GROUP BY {alias}.{_sql(str(unit))}"
    cases = " ".join(f"WHEN n <= {rows} THEN {i}" for i, rows in enumerate(ROWS[:-1]))
    most = _quantile("1 - {tail}", f"CASE {cases} ELSE {len(ROWS) - 1} END")
    yield Probe("rows", name, "", f"SELECT {most} FROM ({counted}) AS x", 1, tuple(map(Decimal, ROWS)))


def _grid(of: SqlType) -> tuple[Decimal, ...]:
    """1, 2, 5, 10, ... and their negatives, from about the smallest to the largest value of the type."""
    small, large = _SMALL, _LARGE
    if of.is_integer:
        small, large = 0, {Kind.INT2: 4, Kind.INT4: 9}.get(of.kind, _LARGE)
    elif of.kind is Kind.NUMERIC and of.precision is not None:
        small, large = -min(of.scale or 0, -_SMALL), max(min(of.precision - (of.scale or 0), _LARGE), 0)
    above = [Decimal(a).scaleb(k) for k in range(small, large + 1) for a in (1, 2, 5)]
    return (*(-value for value in reversed(above)), Decimal(0), *above)


def _word(value: Decimal) -> str:
    return f"{value:f}"


def _sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def bounds_of(probe: Probe, lower: int, upper: int) -> tuple[str, str] | None:
    """The declaration that the released indices stand for; None where they say nothing."""
    if probe.what == "years":
        return None if lower > upper else (f"{lower}-01-01", f"{upper + 1}-01-01")
    if not 0 <= lower < len(probe.grid) or not 0 <= upper < len(probe.grid) or lower >= upper:
        return None
    return _word(probe.grid[lower]), _word(probe.grid[upper])


def values_of(released: Sequence[str]) -> tuple[str, ...] | None:
    """The list for the policy; None where nothing was released, or too much for a category."""
    return tuple(map(quoted, sorted(released))) if 0 < len(released) <= MOST_VALUES else None


def rounded(count: int) -> int:
    """To two digits, at least one."""
    step = int(10 ** max(len(str(max(count, 1))) - 2, 0))
    return max(round(count / step) * step, 1)


def next_rows(index: int) -> int:
    return ROWS[min(max(index, 0), len(ROWS) - 1)]


def policy_of(made: Plan, dataset: str, backend: str, epsilon: Decimal, delta: Decimal, rows: int) -> str:
    """The policy under which a profile asks: pure accounting, so that what it spends adds up to its epsilon.

    One group and `rows` rows of it a unit: 1 for statements over rows, more where one row stands for a unit.
    """
    selections = max(sum(probe.what == "values" for probe in probes(made)), 1)
    unit = made.chosen.name if made.chosen is not None else "row"
    lines = [
        "dpsql: 1",
        f"dataset: {quoted(dataset)}",
        f"backend: {quoted(backend)}",
        "privacy:",
        f"  unit: {quoted(unit)}",
        "  units: 1000000",
        "  max_groups: 1",
        f"  max_rows_per_group: {rows}",
        "  selection_cap: 20",
        "  accounting: pure",
        f"  key_delta: {(delta / selections * _SLACK).quantize(_DELTA_STEP, ROUND_DOWN):e}",
        f"  budget: {{epsilon: {epsilon}, delta: {delta:e}}}",
        "tables:",
        *(line for name in made.private for line in _declared(made, name)),
        f"roles: {{profile: {{budget: {{epsilon: {epsilon}, delta: {delta:e}}}, epsilon: {epsilon}}}}}",
        "users: {init: {role: profile}}",
    ]
    return "\n".join(lines) + "\n"


def _declared(made: Plan, name: str) -> Iterator[str]:
    yield f"  {quoted(name)}:"
    yield from source_line(made.outline, name)
    unit = made.units.get(name)
    if isinstance(unit, UnitPath):
        pairs = ", ".join(f"{quoted(child)}: {quoted(parent)}" for child, parent in unit.on.items())
        yield f"    unit: {{through: {quoted(unit.through)}, on: {{{pairs}}}}}"
    elif unit is not None:
        yield f"    unit: {quoted(unit)}"
    yield "    columns:"
    for column in made.outline.tables[name].columns:
        if column.type.kind is not Kind.UNKNOWN and not (identifies(column.name) and column.type.kind is Kind.TEXT):
            years = ", lower: 1900-01-01, upper: 2100-12-31" if column.type.is_time else ""
            yield f"      {quoted(column.name)}: {{type: {type_word(column.type)}{years}}}"
