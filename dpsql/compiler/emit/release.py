"""A planned release as one backend query that returns exact integers per group, contributions already bounded.

The three shapes, and why one unit moves the result by at most the declared sensitivity:

- `rows`: every row is (or is the only one of) its unit. A row adds at most one grid value, in one group.
- `single`: the SQL guarantees a unit at most one group. Its partial there is clamped to the radius; AVG's count and sum
  are scaled by min(1, m / count), so the sum stays within m * B' because |sum| <= B' * count.
- `norm`: per unit and group partials (`p`), their norm over the unit's groups (`w`), and each coordinate scaled by
  radius / norm, truncated toward zero, where the norm exceeds the radius. Counts and sums clamp each partial to the
  radius first, then square, add and scale that same vector. AVG's vectors are scaled by the factor of the unclamped row
  counts: the scaled sums stay within B' times the scaled counts (|s| <= B' * n in every group), and a count above 2^40
  contributes nothing. Factors carry a shave of 2^-30, a thousand million times the rounding of the four double
  operations they are made of, so no result can exceed the radius.

Norms are computed from exact integers (HUGEINT / NUMERIC), so nothing depends on the order of summation. A unit's norm
reads that unit's rows only. Rows with a NULL unit or with a key outside its public domain are dropped before bounding.
`p` and `w` are materialised: partials and norms come from one evaluation in one snapshot. Source: DESIGN.md section 3,
and the checked shape that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from dpsql.compiler.algebra import Col, Expr, Lit, canonical
from dpsql.compiler.emit.common import DerivedRows, Dialect, Emitter, quote
from dpsql.compiler.emit.relation import emitter_for, relation, used_columns
from dpsql.compiler.keys import KeyDomain, Listed, WholeNumbers
from dpsql.compiler.plan import ONE, Cell, Grid, Key, Measurement, PlannedRelease
from dpsql.dp.sensitivity import L1, L2, Sensitivity, radius
from dpsql.errors import Failed
from dpsql.types import Kind, Value

SHAVE = 1 - 2.0**-30
MAX_COUNT = 2**40
MAX_TOTAL = 2**62
CASE_LIMIT = 40
"""Longer lists of key values are joined instead of written as CASE."""


def emit(release: PlannedRelease, dialect: Dialect, derived: DerivedRows) -> str:
    """The query: key columns first (`k0`...), then one bigint per measurement (`m0`...), `w` last for private keys."""
    shape = _Shape(release, emitter_for(dialect, derived, used_columns(release.aggregation)))
    match release.form:
        case "rows":
            return shape.totals(shape.rows_query())
        case "single":
            return shape.totals(shape.single_query())
        case "norm":
            return shape.norm_query()


@dataclass(frozen=True, slots=True)
class _Shape:
    """The parts that the three shapes share."""

    release: PlannedRelease
    emitter: Emitter

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.release.keys))]

    @property
    def totals_names(self) -> list[str]:
        names = [m.column for m in self.release.measurements]
        return [*names, "w"] if self.release.selection is not None else names

    # Row level --------------------------------------------------------------------------------------------------

    def rows(self) -> str:
        """One row per private row: unit, key indices or values, and the grid values `q0`... of each cell."""
        aggregation = self.release.aggregation
        source = relation(aggregation.input, used_columns(aggregation), self.emitter)
        parts: list[str] = []
        joined: list[str] = []
        named: dict[str, str] = {}
        unit = aggregation.unit
        bounded = unit is not None and self.release.form != "rows"
        if bounded and unit is not None:
            parts.append(f"{quote(unit)} AS u")
        for i, key in enumerate(self.release.keys):
            sql, join = self._key(i, key, named)
            parts.append(f"{sql} AS k{i}")
            joined += [join] if join else []
        cells = [m.cell for m in self.release.measurements]
        parts += [f"{sql} AS {name}" for name, sql in self._cell_columns(cells, named)]
        where = f" WHERE {quote(unit)} IS NOT NULL" if unit is not None else ""
        if named:
            computed = ", ".join(f"{sql} AS {name}" for sql, name in named.items())
            source = f"(SELECT *, {computed} FROM {source} AS stored)"
        return f"SELECT {', '.join(parts) or '1 AS one'} FROM {source} AS source{''.join(joined)}{where}"

    def _named(self, sql: str, named: dict[str, str]) -> str:
        """A computed value under a name of its own (`e0`...), so that it is written and evaluated once."""
        if sql.startswith('"') and sql.count('"') == 2:
            return sql
        return named.setdefault(sql, f"e{len(named)}")

    def _cell_columns(self, cells: list[Cell], named: dict[str, str]) -> list[tuple[str, str]]:
        """AVG's count and sum read one column; COUNT(*) without FILTER reads none."""
        found: dict[str, str] = {}
        for cell in cells:
            name = self.column(cell, cells)
            if name is not None and name not in found:
                found[name] = self._cell_value(cell, cells, named)
        return list(found.items())

    def column(self, cell: Cell, cells: list[Cell]) -> str | None:
        """The row-level column that a cell adds up."""
        if cell.kind == "count" and cell.argument is None and cell.condition is None:
            return None
        first = next(i for i, other in enumerate(cells) if _reads(other) == _reads(cell))
        return f"q{first}"

    def _cell_value(self, cell: Cell, cells: list[Cell], named: dict[str, str]) -> str:
        if cell.kind in ("avg_count", "avg_sum"):
            total = next(c for c in cells if c.kind == "avg_sum" and _reads(c) == _reads(cell))
            value = self._grid_value(total, named)
        elif cell.kind == "sum":
            value = self._grid_value(cell, named)
        elif cell.kind == "count" and cell.argument is not None:
            value = f"CASE WHEN {self.emitter.value(cell.argument)} IS NOT NULL THEN 1 END"
        else:
            value = "1"
        if cell.condition is None:
            return value
        return f"CASE WHEN {self.emitter.condition(cell.condition)} THEN {value} END"

    def _grid_value(self, cell: Cell, named: dict[str, str]) -> str:
        """The argument clamped, scaled and rounded to its grid, less the centre; NULL and NaN stay NULL.

        The clamp compares with the grid's ends in the argument's own units: scaling by a power of two is exact, and by
        a power of ten it is monotonic, so `floor` cannot leave [low, high].
        """
        if cell.argument is None or cell.grid is None:
            raise Failed(f"a {cell.kind} without a grid")
        grid, argument = cell.grid, cell.argument
        whole = argument.type.is_integer and grid.resolution == 1
        if whole:
            x = self._named(self.emitter.number(argument)[0], named)
            high, low, inner = str(grid.high), str(grid.low), f"CAST({x} AS BIGINT)"
        else:
            x = self._named(self._measured(argument), named)
            high = self.emitter.double(grid.high * grid.resolution)
            low = self.emitter.double(grid.low * grid.resolution)
            scale = self.emitter.double(1 / grid.resolution)
            inner = f"CAST(FLOOR({x} * {scale} + {self.emitter.double(0.5)}) AS BIGINT)"
        missing = f"WHEN {self.emitter.dialect.is_nan(x)} THEN NULL " if _is_float(argument) else ""
        return (
            f"CASE {missing}WHEN {x} >= {high} THEN {grid.high - grid.centre} "
            f"WHEN {x} <= {low} THEN {grid.low - grid.centre} ELSE {inner}{_minus(grid)} END"
        )

    def _measured(self, argument: Expr) -> str:
        """A column is clamped to its bounds at once, so it needs no taming first."""
        return (
            quote(argument.name)
            if isinstance(argument, Col) and _is_float(argument)
            else (self.emitter.as_double(argument))
        )

    # Keys -------------------------------------------------------------------------------------------------------

    def _key(self, number: int, key: Key, named: dict[str, str]) -> tuple[str, str | None]:
        """A key as its index in the public domain (NULL: outside), or as its canonical value."""
        if key.domain is None:
            return self._private_key(key.expr), None
        match key.domain.of:
            case WholeNumbers(first=first, count=count):
                x = self._named(self.emitter.number(key.expr)[0], named)
                inside = f"WHEN {x} BETWEEN {first} AND {first + count - 1} THEN CAST({x} AS BIGINT) - {first}"
                return f"CASE {inside}{self._null_index(key, x)} END", None
            case Listed(values=values) if len(values) <= CASE_LIMIT:
                x, options = self._options(key, values, named)
                arms = " ".join(f"WHEN {x} = {o} THEN {i}" for i, o in enumerate(options))
                return f"CASE {arms}{self._null_index(key, x)} END" if arms or key.domain.nullable else "NULL", None
            case Listed(values=values):
                return self._joined_key(number, key, values, named)

    def _options(self, key: Key, values: tuple[Value, ...], named: dict[str, str]) -> tuple[str, list[str]]:
        literals = tuple(Lit(v, key.expr.type) for v in values)
        subject, *options = self.emitter.comparable((key.expr, *literals))
        return self._named(subject, named), options

    def _joined_key(self, number: int, key: Key, values: tuple[Value, ...], named: dict[str, str]) -> tuple[str, str]:
        """Values that are equal to the backend share one index: a row must never find two."""
        subject, options = self._options(key, values, named)
        rows = ", ".join(f"({option}, {i})" for i, option in enumerate(options))
        once = f"SELECT v, MIN(i) AS i FROM (VALUES {rows}) AS listed(v, i) GROUP BY v"
        join = f" LEFT JOIN ({once}) AS d{number} ON {subject} = d{number}.v"
        null = self._null_index(key, subject)
        return (f"CASE WHEN d{number}.i IS NOT NULL THEN d{number}.i{null} END" if null else f"d{number}.i"), join

    def _null_index(self, key: Key, sql: str) -> str:
        domain: KeyDomain | None = key.domain
        return f" WHEN {sql} IS NULL THEN {domain.size - 1}" if domain is not None and domain.nullable else ""

    def _private_key(self, expr: Expr) -> str:
        """One representative for all equal keys, so that which one is shown says nothing about the rows."""
        if expr.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            return self.emitter.moment(expr)
        if expr.type.kind is Kind.DATE:
            return f"CAST({self.emitter.moment(expr)} AS DATE)"
        if expr.type.is_number:
            return self.emitter.dialect.canonical_number(self.emitter.value(expr), expr.type)
        return self.emitter.value(expr)

    # Shapes -----------------------------------------------------------------------------------------------------

    def rows_query(self) -> str:
        """Each row is a unit: plain sums."""
        cells = [m.cell for m in self.release.measurements]
        parts = []
        for m in self.release.measurements:
            name = self.column(m.cell, cells)
            if m.cell.grid is not None:
                parts.append(f"COALESCE(SUM({name}), 0) AS {m.column}")
            else:
                parts.append(f"COUNT({name or '*'}) * {ONE} AS {m.column}")
        if self.release.selection is not None:
            parts.append(f"COUNT(*) * {ONE} AS w")
        return self._grouped(f"({self.rows()}) AS rows", parts)

    def single_query(self) -> str:
        """One group a unit: partials clamped to the radius, then summed."""
        parts = [f"SUM({self._clamped(m)}) AS {m.column}" for m in self.release.measurements]
        if self.release.selection is not None:
            parts.append(f"COUNT(*) * {ONE} AS w")
        return self._grouped(f"({self._partials()}) AS partials", parts)

    def norm_query(self) -> str:
        """Norm clipping over all groups of a unit."""
        vectors = [m for m in self.release.measurements if m.cell.kind not in ("avg_count", "avg_sum")]
        clamped = [f"{self._vector(m)} AS {m.column}" for m in vectors]
        raw = [f"{name}" for name in self._average_partials()]
        select = ", ".join(["u", *self.keys, *clamped, *raw])
        p = f"SELECT {select} FROM ({self._partials()}) AS partials"
        w = f"SELECT {', '.join(['u', *self._norms(vectors)])} FROM p GROUP BY u"
        parts = [f"SUM({self._scaled(m)}) AS {m.column}" for m in self.release.measurements]
        if self.release.selection is not None:
            parts.append(f"SUM({self._weight()}) AS w")
        totals = self.totals(self._grouped("p JOIN w USING (u)", parts))
        return f"WITH p AS MATERIALIZED ({p}), w AS MATERIALIZED ({w}) {totals}"

    def _partials(self) -> str:
        """Per unit and group: `n{i}` counts and `s{i}` sums of the columns the cells read."""
        cells = [m.cell for m in self.release.measurements]
        parts: dict[str, str] = {}
        for i, cell in enumerate(cells):
            name = self.column(cell, cells)
            if cell.kind in ("count", "units", "avg_count"):
                parts[f"n{i}"] = f"COUNT({name or '*'}) AS n{i}"
            else:
                parts[f"s{i}"] = f"COALESCE(SUM({name}), 0) AS s{i}"
        inside = " AND ".join(f"{k} IS NOT NULL" for k in self.keys) if self.release.public else ""
        where = f" WHERE {inside}" if inside else ""
        group = ", ".join(["u", *self.keys])
        return f"SELECT {', '.join([group, *parts.values()])} FROM ({self.rows()}) AS rows{where} GROUP BY {group}"

    def _average_partials(self) -> list[str]:
        names = []
        for i, m in enumerate(self.release.measurements):
            if m.cell.kind == "avg_count":
                names.append(f"n{i}")
            elif m.cell.kind == "avg_sum":
                names.append(f"s{i}")
        return names

    def _vector(self, m: Measurement) -> str:
        """A count's or sum's partial, clamped to the radius: the vector that is then measured and scaled."""
        i, limit = m.column[1:], radius(m.sensitivity)
        match m.cell.kind:
            case "count":
                return f"CASE WHEN n{i} > {limit // ONE} THEN {limit} ELSE n{i} * {ONE} END"
            case "units":
                return f"CASE WHEN n{i} > 0 THEN {ONE} ELSE 0 END"
            case _:
                return (
                    f"CASE WHEN s{i} > {limit} THEN {limit} WHEN s{i} < -{limit} THEN -{limit} "
                    f"ELSE CAST(s{i} AS BIGINT) END"
                )

    def _clamped(self, m: Measurement) -> str:
        """A unit's only partial within the radius; AVG's by the factor min(1, m / count)."""
        i, rows = m.column[1:], self.release.bound.rows
        match m.cell.kind:
            case "avg_count":
                return f"CASE WHEN n{i} > {rows} THEN {rows} ELSE n{i} END * {ONE}"
            case "avg_sum":
                count = f"n{self._count_of(m)}"
                factor = f"({self.emitter.double(rows * SHAVE)} / {count})"
                scaled = self._truncated(f"CAST(s{i} AS {self.emitter.dialect.double}) * {factor}")
                return f"CASE WHEN {count} > {MAX_COUNT} THEN 0 WHEN {count} > {rows} THEN {scaled} ELSE s{i} END"
            case _:
                return self._vector(m)

    def _norms(self, vectors: list[Measurement]) -> list[str]:
        wide, parts = self.emitter.dialect.wide, []
        for m in vectors:
            p = m.column
            term = f"ABS({p})" if self.release.norm == "l1" else f"CAST({p} AS {wide}) * {p}"
            parts.append(f"SUM({term}) AS x{p[1:]}")
        for i, m in enumerate(self.release.measurements):
            if m.cell.kind == "avg_count":
                n = f"CASE WHEN n{i} > {MAX_COUNT} THEN {MAX_COUNT} ELSE n{i} END"
                term = n if self.release.norm == "l1" else f"CAST({n} AS {wide}) * ({n})"
                parts.append(f"SUM({term}) AS x{i}")
        if self.release.selection is not None:
            parts.append("COUNT(*) AS groups")
        return parts

    def _scaled(self, m: Measurement) -> str:
        i = m.column[1:]
        match m.cell.kind:
            case "avg_count" | "avg_sum":
                return self._average_scaled(m)
            case _:
                limit = _limit(m.sensitivity)
                factor = self._factor(_root(m.sensitivity), f"x{i}")
                return f"CASE WHEN x{i} > {limit} THEN {self._truncated(f'{m.column} * {factor}')} ELSE {m.column} END"

    def _average_scaled(self, m: Measurement) -> str:
        """n and s scaled by one factor, radius of the row counts over their norm."""
        j, bound = self._count_of(m), self.release.bound
        limit = bound.groups * bound.rows if self.release.norm == "l1" else bound.groups * bound.rows**2
        root = float(limit) if self.release.norm == "l1" else sqrt(limit)
        plain = f"n{j} * {ONE}" if m.cell.kind == "avg_count" else f"s{m.column[1:]}"
        factor = self._factor(root, f"x{j}")
        scaled = self._truncated(f"CAST({plain} AS {self.emitter.dialect.double}) * {factor}")
        return f"CASE WHEN n{j} > {MAX_COUNT} THEN 0 WHEN x{j} > {limit} THEN {scaled} ELSE {plain} END"

    def _count_of(self, m: Measurement) -> int:
        """The place of the count that belongs to an AVG's cell."""
        for i, other in enumerate(self.release.measurements):
            if other.cell.kind == "avg_count" and _reads(other.cell) == _reads(m.cell):
                return i
        raise Failed("an average without its count")

    def _factor(self, root: float, norm: str) -> str:
        double = self.emitter.dialect.double
        divisor = f"CAST({norm} AS {double})"
        if self.release.norm == "l2":
            divisor = f"SQRT({divisor})"
        return f"({self.emitter.double(root * SHAVE)} / {divisor})"

    def _truncated(self, sql: str) -> str:
        """Toward zero; TRUNC first, since DuckDB's CAST rounds."""
        return f"CAST(TRUNC({sql}) AS BIGINT)"

    def _weight(self) -> str:
        """What a unit adds to each of its keys (see dp.selection.weight), or nothing beyond the cap."""
        selection, groups = self.release.selection, self.release.bound.groups
        if selection is None:
            raise Failed("weights without selection")
        root = float(ONE * groups) if self.release.norm == "l1" else ONE * sqrt(groups)
        scaled = self._truncated(self._factor(root, "groups"))
        return f"CASE WHEN groups > {selection.cap} THEN 0 WHEN groups <= {groups} THEN {ONE} ELSE {scaled} END"

    def _grouped(self, source: str, parts: list[str]) -> str:
        """Totals per group; keys outside a public domain were dropped."""
        inside = " AND ".join(f"{k} IS NOT NULL" for k in self.keys) if self.release.public else ""
        where = f" WHERE {inside}" if inside and self.release.form == "rows" else ""
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join([*self.keys, *parts])} FROM {source}{where}{group}"

    def totals(self, grouped: str) -> str:
        """The totals as bigints within +-2^62, empty sums as 0."""
        parts = [
            f"CAST(CASE WHEN {n} > {MAX_TOTAL} THEN {MAX_TOTAL} WHEN {n} < -{MAX_TOTAL} THEN -{MAX_TOTAL} "
            f"ELSE COALESCE({n}, 0) END AS BIGINT) AS {n}"
            for n in self.totals_names
        ]
        return f"SELECT {', '.join([*self.keys, *parts])} FROM ({grouped}) AS totals"


def _reads(cell: Cell) -> tuple[str, str, str]:
    """Cells that read one row-level column: the two of an AVG, or the same argument on the same grid."""
    family = "avg" if cell.kind in ("avg_count", "avg_sum") else cell.kind
    argument = "*" if cell.argument is None or cell.kind == "units" else canonical(cell.argument)
    return family, argument, "" if cell.condition is None else canonical(cell.condition)


def _is_float(argument: Expr) -> bool:
    return isinstance(argument, Col) and argument.type.is_float


def _minus(grid: Grid) -> str:
    return f" - {grid.centre}" if grid.centre > 0 else f" + {-grid.centre}" if grid.centre < 0 else ""


def _limit(sensitivity: Sensitivity) -> int:
    match sensitivity:
        case L1(bound=bound):
            return bound
        case L2(squared=squared):
            return squared


def _root(sensitivity: Sensitivity) -> float:
    match sensitivity:
        case L1(bound=bound):
            return float(bound)
        case L2(squared=squared):
            return sqrt(squared)
