"""A planned release as one backend query that returns exact integers per group, contributions already bounded.

The three shapes, and why one unit moves the result by at most the declared sensitivity:

- `rows`: every row is (or is the only one of) its unit. A row adds at most one grid value, in one group.
- `single`: the SQL guarantees a unit at most one group. Its partial there is clamped to the radius; moments are scaled
  by min(1, m / count), so a sum stays within m * B' because |sum| <= B' * count.
- `norm`: per unit and group partials (`p`), their norm over the unit's groups (`w`), and each coordinate scaled by
  radius / norm, truncated toward zero, where the norm exceeds the radius. Counts and sums clamp each partial to the
  radius first, then square, add and scale that same vector. Moments (of AVG, VARIANCE, COVAR, CORR) are scaled by the
  factor of the unclamped row counts: the scaled sums stay within B' times the scaled counts (|s| <= B' * n in every
  group), and a count above 2^40 contributes nothing. COUNT and SUM that are read from moments have that clipping too.
  Factors carry a shave of 2^-30, a thousand million times the rounding of the four double operations they are made of,
  so no result can exceed the radius.

Private keys: only groups with weight are returned. A unit beyond the selection's cap must leave no trace, and groups of
its own would count against the backend's limit of groups. Of what is measured nothing changes: such a group is no
candidate, so it is never shown, and what is shown is the same function of the same vector.

COUNT(DISTINCT x): each unit has the weight min(1, radius / norm of its distinct counts); a value counts with the
largest weight of the units that have it. Without one unit, a group loses at most that unit's weight per value of its
own, which is a vector of norm at most the radius.

Norms are computed from exact integers (HUGEINT / NUMERIC), so nothing depends on the order of summation. A unit's norm
reads that unit's rows only. Partials and norms are materialised: they come from one evaluation in one snapshot. Source:
DESIGN.md section 3, and the checked shape that it names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from dpsql.compiler.cells import ONE
from dpsql.compiler.emit.common import DerivedRows, Emitter
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.relation import emitter_for
from dpsql.compiler.emit.rows import RowLevel, inside, reads
from dpsql.compiler.plan import Measurement, PlannedRelease
from dpsql.compiler.walk import used_columns
from dpsql.dp.sensitivity import L1, L2, Sensitivity, radius
from dpsql.errors import Failed

SHAVE = 1 - 2.0**-30
MAX_COUNT = 2**40
MAX_TOTAL = 2**62
CANDIDATES = " WHERE totals.w > 0"


def emit(release: PlannedRelease, dialect: Dialect, derived: DerivedRows) -> str:
    """The query: key columns first (`k0`...), then one bigint per measurement (`m0`...), `w` last for private keys."""
    used = used_columns(release.aggregation)
    emitter = emitter_for(dialect, derived, used)
    return _Shape(release, emitter, RowLevel(release, emitter, used)).query()


@dataclass(frozen=True, slots=True)
class _Shape:
    """The query of one release."""

    release: PlannedRelease
    emitter: Emitter
    level: RowLevel

    @property
    def keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.release.keys))]

    @property
    def summed(self) -> list[Measurement]:
        """The measurements that are sums over rows; the others count distinct values."""
        return [m for m in self.release.measurements if m.cell.kind != "distinct"]

    @property
    def distinct(self) -> list[Measurement]:
        return [m for m in self.release.measurements if m.cell.kind == "distinct"]

    def query(self) -> str:
        steps: list[str] = []
        rows = self.level.query()
        if self.distinct:
            steps.append(f"r AS MATERIALIZED ({rows})")
            rows = "SELECT * FROM r"
        parts = []
        if self.summed or self.release.selection is not None or not self.distinct:
            parts.append((self._summed_names(), self._summed(rows, steps)))
        parts += [([m.column], self._distinct(m, steps)) for m in self.distinct]
        with_ = f"WITH {', '.join(steps)} " if steps else ""
        return with_ + self._totals(self._joined(parts))

    def _summed_names(self) -> list[str]:
        names = [m.column for m in self.summed]
        return [*names, "w"] if self.release.selection is not None else names

    def _joined(self, parts: list[tuple[list[str], str]]) -> str:
        """The totals of all parts beside each other: each part has zeros for the others' columns."""
        if len(parts) == 1:
            return parts[0][1]
        every = [name for names, _ in parts for name in names]
        padded = [
            f"SELECT {', '.join([*self.keys, *(n if n in names else f'0 AS {n}' for n in every)])} FROM ({sql}) AS part"
            for names, sql in parts
        ]
        sums = [f"SUM({n}) AS {n}" for n in every]
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {', '.join([*self.keys, *sums])} FROM ({' UNION ALL '.join(padded)}) AS parts{group}"

    def _totals(self, grouped: str) -> str:
        """The totals as bigints within +-2^62, empty sums as 0; of private keys those of candidates only."""
        names = [m.column for m in self.release.measurements]
        names += ["w"] if self.release.selection is not None else []
        parts = [
            f"CAST(CASE WHEN {n} > {MAX_TOTAL} THEN {MAX_TOTAL} WHEN {n} < -{MAX_TOTAL} THEN -{MAX_TOTAL} "
            f"ELSE COALESCE({n}, 0) END AS BIGINT) AS {n}"
            for n in names
        ]
        candidates = CANDIDATES if self.release.selection is not None else ""
        return f"SELECT {', '.join([*self.keys, *parts])} FROM ({grouped}) AS totals{candidates}"

    def _inside(self) -> str:
        """Rows within the public domains of all keys, and in a group that is released."""
        return " AND ".join(inside(self.release))

    def _grouped(self, source: str, parts: list[str], where: str = "") -> str:
        group = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        condition = f" WHERE {where}" if where else ""
        return f"SELECT {', '.join([*self.keys, *parts]) or '1 AS one'} FROM {source}{condition}{group}"

    # Sums over rows ---------------------------------------------------------------------------------------------

    def _summed(self, rows: str, steps: list[str]) -> str:
        match self.release.form:
            case "rows":
                parts = [f"{self._row_total(m)} AS {m.column}" for m in self.summed]
                parts += [f"COUNT(*) * {ONE} AS w"] if self.release.selection is not None else []
                return self._grouped(f"({rows}) AS rows", parts, self._inside())
            case "single":
                parts = [f"SUM({self._clamped(m)}) AS {m.column}" for m in self.summed]
                parts += [f"COUNT(*) * {ONE} AS w"] if self.release.selection is not None else []
                return self._grouped(f"({self._partials(rows)}) AS partials", parts)
            case "norm":
                return self._norm_clipped(rows, steps)

    def _norm_clipped(self, rows: str, steps: list[str]) -> str:
        vectors = [m for m in self.summed if m.cell.moment is None]
        clamped = [f"{self._vector(m)} AS {m.column}" for m in vectors]
        moments = [_partial(m) for m in self.summed if m.cell.moment is not None]
        select = ", ".join(["u", *self.keys, *clamped, *moments])
        steps.append(f"p AS MATERIALIZED (SELECT {select} FROM ({self._partials(rows)}) AS partials)")
        steps.append(f"w AS MATERIALIZED (SELECT {', '.join(['u', *self._norms(vectors)])} FROM p GROUP BY u)")
        parts = [f"SUM({self._scaled(m)}) AS {m.column}" for m in self.summed]
        parts += [f"SUM({self._weight()}) AS w"] if self.release.selection is not None else []
        return self._grouped("p JOIN w USING (u)", parts)

    def _partials(self, rows: str) -> str:
        """Per unit and group: `n{i}` counts and `s{i}` sums."""
        parts = [f"{self._added_up(m)} AS {_partial(m)}" for m in self.summed]
        where = f" WHERE {self._inside()}" if self._inside() else ""
        group = ", ".join(["u", *self.keys])
        return f"SELECT {', '.join([group, *parts])} FROM ({rows}) AS rows{where} GROUP BY {group}"

    def _added_up(self, m: Measurement) -> str:
        """COUNT or SUM of what a cell reads."""
        cell = m.cell
        if self.level.plain_count(cell):
            return "COUNT(*)"
        x = self.level.column(cell)
        if cell.moment is None:
            return f"COUNT({x})" if cell.counts else f"COALESCE(SUM({x}), 0)"
        y = self.level.column(cell, "y") if cell.moment.y is not None else None
        if cell.counts:
            return f"COUNT({x})" if y is None else f"COUNT({x} + {y})"
        return f"COALESCE(SUM({self._product(m, x, y)}), 0)"

    def _product(self, m: Measurement, x: str, y: str | None) -> str:
        """x^i * y^j of rows that have both, shifted down; below 2^42, so exact in a double."""
        moment = m.cell.moment
        if moment is None:
            raise Failed("a product without its moment")
        factors = [x] * moment.i + [y or x] * moment.j
        made = " * ".join(factors)
        if moment.shift:
            double = f"CAST({made} AS {self.emitter.dialect.double}) * {self.emitter.double(2.0**-moment.shift)}"
            made = self._truncated(double)
        other = y if moment.j == 0 else x if moment.i == 0 else None
        return made if y is None or other is None else f"CASE WHEN {other} IS NOT NULL THEN {made} END"

    def _row_total(self, m: Measurement) -> str:
        added = self._added_up(m)
        return f"{added} * {ONE}" if m.cell.counts else added

    def _vector(self, m: Measurement) -> str:
        """A count's or sum's partial, clamped to the radius: the vector that is then measured and scaled."""
        x, limit = _partial(m), radius(m.sensitivity)
        match m.cell.kind:
            case "count":
                return f"CASE WHEN {x} > {limit // ONE} THEN {limit} ELSE {x} * {ONE} END"
            case "units":
                return f"CASE WHEN {x} > 0 THEN {ONE} ELSE 0 END"
            case _:
                low = f"WHEN {x} < -{limit} THEN -{limit}"
                return f"CASE WHEN {x} > {limit} THEN {limit} {low} ELSE CAST({x} AS BIGINT) END"

    def _clamped(self, m: Measurement) -> str:
        """A unit's only partial within the radius; moments by the factor min(1, m / count)."""
        if m.cell.moment is None:
            return self._vector(m)
        x, rows, count = _partial(m), self.release.bound.rows, self._count_of(m)
        if m.cell.counts:
            return f"CASE WHEN {x} > {rows} THEN {rows} ELSE {x} END * {ONE}"
        factor = f"({self.emitter.double(rows * SHAVE)} / {count})"
        scaled = self._truncated(f"CAST({x} AS {self.emitter.dialect.double}) * {factor}")
        return f"CASE WHEN {count} > {MAX_COUNT} THEN 0 WHEN {count} > {rows} THEN {scaled} ELSE {x} END"

    def _norms(self, vectors: list[Measurement]) -> list[str]:
        """Each vector's norm over the unit's groups; moments share the norm of their row counts."""
        parts = [f"SUM({self._power(m.column)}) AS x{m.column[1:]}" for m in vectors]
        for m in self.summed:
            if m.cell.moment is not None and m.cell.counts:
                n = f"CASE WHEN {_partial(m)} > {MAX_COUNT} THEN {MAX_COUNT} ELSE {_partial(m)} END"
                parts.append(f"SUM({self._power(n)}) AS x{m.column[1:]}")
        return [*parts, "COUNT(*) AS groups"] if self.release.selection is not None or not parts else parts

    def _power(self, x: str) -> str:
        return f"ABS({x})" if self.release.norm == "l1" else f"CAST({x} AS {self.emitter.dialect.wide}) * ({x})"

    def _scaled(self, m: Measurement) -> str:
        if m.cell.moment is not None:
            return self._moment_scaled(m)
        limit, norm = _limit(m.sensitivity), f"x{m.column[1:]}"
        scaled = self._truncated(f"{m.column} * {self._factor(_root(m.sensitivity), norm)}")
        return f"CASE WHEN {norm} > {limit} THEN {scaled} ELSE {m.column} END"

    def _moment_scaled(self, m: Measurement) -> str:
        """All moments of one pair of arguments scaled by one factor: radius of the row counts over their norm."""
        count, norm = self._count_of(m), f"x{self._count_of(m)[1:]}"
        limit, root = self._row_radius()
        plain = f"{_partial(m)} * {ONE}" if m.cell.counts else _partial(m)
        scaled = self._truncated(f"CAST({plain} AS {self.emitter.dialect.double}) * {self._factor(root, norm)}")
        return f"CASE WHEN {count} > {MAX_COUNT} THEN 0 WHEN {norm} > {limit} THEN {scaled} ELSE {plain} END"

    def _row_radius(self) -> tuple[int, float]:
        """The radius of row counts as `_power` sums them, and as a length."""
        bound = self.release.bound
        if self.release.norm == "l1":
            return bound.l1, float(bound.l1)
        return bound.l2_squared, sqrt(bound.l2_squared)

    def _count_of(self, m: Measurement) -> str:
        """The partial row count that belongs to a moment: of the rows that it reads, else of all that meet its FILTER.

        Either counts every row that adds to the moment, so |s| <= B' * count.
        """
        counts = {reads(o.cell): o for o in self.summed if o.cell.moment is not None and o.cell.counts}
        every_row = replace(m.cell, argument=None, second=None)
        found = counts.get(reads(m.cell)) or counts.get(reads(every_row))
        if found is None:
            raise Failed("a moment without its count")
        return _partial(found)

    def _factor(self, root: float, norm: str) -> str:
        divisor = f"CAST({norm} AS {self.emitter.dialect.double})"
        divisor = f"SQRT({divisor})" if self.release.norm == "l2" else divisor
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

    # Distinct values --------------------------------------------------------------------------------------------

    def _distinct(self, m: Measurement, steps: list[str]) -> str:
        """Per group, the sum over values of the largest weight of the units that have the value."""
        value, i = self.level.column(m.cell), m.column[1:]
        where = " AND ".join([f"{value} IS NOT NULL", *inside(self.release)])
        if self.release.form == "rows":
            return self._grouped("r", [f"COUNT(DISTINCT {value}) * {ONE} AS {m.column}"], where)
        group = ", ".join(["u", *self.keys])
        steps.append(f"t{i} AS MATERIALIZED (SELECT DISTINCT {group}, {value} AS v FROM r WHERE {where})")
        counts = f"SELECT {group}, COUNT(*) AS d FROM t{i} GROUP BY {group}"
        limit, root = self._row_radius()
        scaled = self._truncated(f"{self.emitter.double(ONE)} * {self._factor(root, 'x')}")
        weight = f"CASE WHEN x > {limit} THEN {scaled} ELSE {ONE} END AS weight"
        norms = f"SELECT u, SUM({self._power('d')}) AS x FROM ({counts}) AS counts GROUP BY u"
        steps.append(f"f{i} AS MATERIALIZED (SELECT u, {weight} FROM ({norms}) AS norms)")
        per_value = ", ".join([*self.keys, "v"])
        largest = f"SELECT {per_value}, MAX(weight) AS weight FROM t{i} JOIN f{i} USING (u) GROUP BY {per_value}"
        return self._grouped(f"({largest}) AS largest", [f"SUM(weight) AS {m.column}"])


def _partial(m: Measurement) -> str:
    """The name of a measurement's per-unit partial."""
    return f"{'n' if m.cell.counts else 's'}{m.column[1:]}"


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
