"""The row level of a release: each private row as its unit, its group and its grid values.

Keys become indices into their public domains (NULL: outside, dropped before bounding) or canonical private values;
arguments become whole grid steps, clamped to the derived interval. NULL and NaN stay NULL and contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil, floor

from dpsql.compiler.algebra import Col, Expr, Lit, canonical
from dpsql.compiler.bins import DayBins, ListedBins, NumberBins, SecondBins
from dpsql.compiler.cells import Cell, Grid
from dpsql.compiler.emit import decimals
from dpsql.compiler.emit.common import Emitter, quote
from dpsql.compiler.emit.relation import present, relation
from dpsql.compiler.exact import is_exact, scale_of
from dpsql.compiler.histograms import Choice
from dpsql.compiler.keys import Listed, Released, WholeNumbers
from dpsql.compiler.plan import Key, PlannedRelease
from dpsql.errors import Failed
from dpsql.types import DATE, FLOAT8, TIMESTAMP, Kind, Value

CASE_LIMIT = 40
"""Longer lists of key values are joined instead of written as CASE."""


@dataclass(frozen=True, slots=True)
class RowLevel:
    """Renders the rows of one release. Computed values get names (`e0`...), so each is written and evaluated once."""

    release: PlannedRelease
    emitter: Emitter
    used: frozenset[str]
    named: dict[str, str] = field(default_factory=dict)
    places: dict[tuple[str, ...], int] = field(default_factory=dict)
    """The first cell that reads the same columns, by what it reads."""

    @property
    def cells(self) -> list[Cell]:
        return [m.cell for m in self.release.measurements]

    def query(self) -> str:
        """Columns `u` (where contributions are bounded), `k0`..., and those of `columns`."""
        return self._query(self._columns(), None)

    def binned(self, choice: Choice) -> str:
        """Columns `u`, `k0`..., and `bin`: the index of the bin that the row counts in, or NULL."""
        index, join = self._bin(choice)
        return self._query({"bin": self._when(choice.condition, index)}, join)

    def _query(self, columns: dict[str, str], join: str | None) -> str:
        aggregation = self.release.aggregation
        source = relation(aggregation.input, self.used, self.emitter)
        parts, joined, unit = [], [join] if join else [], aggregation.unit
        if unit is not None and self.release.form != "rows":
            parts.append(f"{quote(unit)} AS u")
        for i, key in enumerate(self.release.keys):
            sql, join = self._key(i, key)
            parts.append(f"{sql} AS k{i}")
            joined += [join] if join else []
        parts += [f"{sql} AS {name}" for name, sql in columns.items()]
        where = f" WHERE {quote(unit)} IS NOT NULL" if unit is not None else ""
        if self.named:
            computed = ", ".join(f"{sql} AS {name}" for sql, name in self.named.items())
            source = f"(SELECT *, {computed} FROM {source} AS stored)"
        return f"SELECT {', '.join(parts) or '1 AS one'} FROM {source} AS source{''.join(joined)}{where}"

    def column(self, cell: Cell, axis: str = "x") -> str:
        """The column that a cell reads; cells over the same arguments share it. `axis` y: of the second argument."""
        if not self.places:
            for place, each in enumerate(self.cells):
                self.places.setdefault(reads(each), place)
        first = self.places[reads(cell)]
        return f"q{first}" if axis == "x" else f"q{first}y"

    def plain_count(self, cell: Cell) -> bool:
        """Counting all rows without FILTER, and counting units without it, need no column."""
        return cell.condition is None and (cell.kind == "units" or cell.argument is None)

    def _columns(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for cell in self.cells:
            if self.plain_count(cell) or self.column(cell) in found:
                continue
            found[self.column(cell)] = self._when(cell.condition, self._value(cell))
            if cell.moment is not None and cell.moment.y is not None and cell.second is not None:
                found[self.column(cell, "y")] = self._when(cell.condition, self._grid_value(cell.second, cell.moment.y))
        return found

    def _when(self, condition: Expr | None, value: str) -> str:
        return value if condition is None else f"CASE WHEN {self.emitter.condition(condition)} THEN {value} END"

    def _value(self, cell: Cell) -> str:
        grid = cell.moment.x if cell.moment is not None else cell.grid
        match cell.kind:
            case "units":
                return "1"
            case "count" | "moment" if cell.argument is None:
                return "1"
            case "count" if cell.argument is not None:
                return f"CASE WHEN {present(cell.argument, self.emitter)} THEN 1 END"
            case "distinct" if cell.argument is not None:
                return self._canonical(cell.argument)
            case _ if cell.argument is not None and grid is not None:
                return self._grid_value(cell.argument, grid)
            case _:
                raise Failed(f"a {cell.kind} without its argument")

    def _grid_value(self, argument: Expr, grid: Grid) -> str:
        """The argument clamped, scaled and rounded to its grid, less the centre.

        The clamp compares with the grid's ends in the argument's own units: scaling by a power of two is exact, and by
        a power of ten it is monotonic, so `floor` cannot leave [low, high].
        """
        emitter = self.emitter
        if argument.type.is_integer and grid.resolution == 1:
            x = self._named(emitter.number(argument)[0])
            high, low, inner = str(grid.high), str(grid.low), f"CAST({x} AS BIGINT)"
        elif argument.type.kind is Kind.NUMERIC and is_exact(argument):
            return self._exact_grid_value(argument, grid)
        else:
            x = self._named(_stored_float(argument) or emitter.as_double(argument))
            high, low = (emitter.double(end * grid.resolution) for end in (grid.high, grid.low))
            inner = f"CAST(FLOOR({x} * {emitter.double(1 / grid.resolution)} + {emitter.double(0.5)}) AS BIGINT)"
        missing = f"WHEN {emitter.dialect.is_nan(x)} THEN NULL " if _stored_float(argument) else ""
        return (
            f"CASE {missing}WHEN {x} >= {high} THEN {grid.high - grid.centre} "
            f"WHEN {x} <= {low} THEN {grid.low - grid.centre} ELSE {inner}{_less(grid.centre)} END"
        )

    def _exact_grid_value(self, argument: Expr, grid: Grid) -> str:
        """The same in decimals. The ends have the argument's decimals: what is inside cannot round beyond them."""
        x, scale = self._named(self.emitter.as_rep(argument, "exact")), scale_of(argument) or 0
        unit = grid.resolution * 10**scale
        high, low = Fraction(ceil(grid.high * unit), 10**scale), Fraction(floor(grid.low * unit), 10**scale)
        inner = decimals.steps(self.emitter, x, argument, grid.resolution, grid.low)
        return (
            f"CASE WHEN {x} >= {decimals.written(high, scale)} THEN {grid.high - grid.centre} "
            f"WHEN {x} <= {decimals.written(low, scale)} THEN {grid.low - grid.centre} "
            f"ELSE {inner}{_less(grid.centre)} END"
        )

    def _bin(self, choice: Choice) -> tuple[str, str | None]:
        argument = choice.argument
        match choice.bins:
            case NumberBins(resolution=resolution, low=low, high=high):
                return self._grid_value(argument, Grid(resolution, low, high, low)), None
            case DayBins(first=first, last=last, step=step):
                day = f"CAST({self.emitter.moment(argument)} AS DATE)"
                day, low_day, high_day = self._named(day), *(self.emitter.literal(d, DATE) for d in (first, last))
                return self._stepped(day, low_day, high_day, f"{day} - {low_day}", step, choice.bins.size), None
            case SecondBins(first=first, last=last, step=step):
                at, type_ = self._named(self.emitter.moment(argument)), TIMESTAMP
                low_at, high_at = (self.emitter.literal(t, type_) for t in (first, last))
                epoch = f"EXTRACT(EPOCH FROM DATE_TRUNC('second', {at})) - {_epoch(choice.bins.origin)}"
                return self._stepped(at, low_at, high_at, epoch, step, choice.bins.size), None
            case ListedBins(domain=domain):
                return self._key(len(self.release.keys), Key("bin", argument, domain))

    def _stepped(self, x: str, low: str, high: str, distance: str, step: int, size: int) -> str:
        """The nearest of equal steps of time. `distance` is a whole number, so the division by 2^k is exact."""
        double = self.emitter.double
        steps = f"CAST({distance} AS {self.emitter.dialect.double}) * {double(1 / step)} + {double(0.5)}"
        inner = f"CAST(FLOOR({steps}) AS BIGINT)"
        return f"CASE WHEN {x} >= {high} THEN {size - 1} WHEN {x} <= {low} THEN 0 ELSE {inner} END"

    def _named(self, sql: str) -> str:
        if sql.startswith('"') and sql.count('"') == 2:
            return sql
        return self.named.setdefault(sql, f"e{len(self.named)}")

    # Keys -------------------------------------------------------------------------------------------------------

    def _key(self, number: int, key: Key) -> tuple[str, str | None]:
        if key.domain is None:
            return self._canonical(key.expr), None
        match key.domain.of:
            case WholeNumbers(first=first, count=count):
                x = self._named(self.emitter.number(key.domain.subject)[0])
                inside = f"WHEN {x} BETWEEN {first} AND {first + count - 1} THEN CAST({x} AS BIGINT){_less(first)}"
                return f"CASE {inside}{self._null_index(key, x)} END", None
            case Listed(values=values) if len(values) <= CASE_LIMIT:
                x, options = self._options(key, values)
                arms = " ".join(f"WHEN {x} = {o} THEN {i}" for i, o in enumerate(options))
                null = self._null_index(key, x)
                return (f"CASE {arms}{null} END" if arms or null else "CAST(NULL AS BIGINT)"), None
            case Listed(values=values):
                return self._joined_key(number, key, values)
            case Released(relation=relation_index):
                subject = self._named(self.emitter.value(key.domain.subject))
                join = f" LEFT JOIN (VALUES :d{relation_index}) AS d{number}(v, i) ON {subject} = d{number}.v"
                return f"d{number}.i", join

    def _options(self, key: Key, values: tuple[Value, ...]) -> tuple[str, list[str]]:
        expr = key.domain.subject if key.domain is not None else key.expr
        literals = tuple(Lit(v, expr.type) for v in values)
        subject, *options = self.emitter.comparable((expr, *literals))
        return self._named(subject), options

    def _joined_key(self, number: int, key: Key, values: tuple[Value, ...]) -> tuple[str, str]:
        """Values that are equal to the backend share one index: a row must never find two."""
        subject, options = self._options(key, values)
        rows = ", ".join(f"({option}, {i})" for i, option in enumerate(options))
        once = f"SELECT v, MIN(i) AS i FROM (VALUES {rows}) AS listed(v, i) GROUP BY v"
        join = f" LEFT JOIN ({once}) AS d{number} ON {subject} = d{number}.v"
        null = self._null_index(key, subject)
        return (f"CASE WHEN d{number}.i IS NOT NULL THEN d{number}.i{null} END" if null else f"d{number}.i"), join

    def _null_index(self, key: Key, sql: str) -> str:
        nullable = key.domain is not None and key.domain.nullable
        return f" WHEN {sql} IS NULL THEN {key.domain.size - 1}" if nullable and key.domain is not None else ""

    def _canonical(self, expr: Expr) -> str:
        """One representative for all equal values, so that which one is shown says nothing about the rows."""
        if expr.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            return self.emitter.moment(expr)
        if expr.type.kind is Kind.DATE:
            return f"CAST({self.emitter.moment(expr)} AS DATE)"
        if expr.type.is_number:
            if not isinstance(expr, Col) and expr.type.kind is Kind.NUMERIC and is_exact(expr):
                return decimals.canonical(self.emitter, expr)
            stored = expr.type if isinstance(expr, Col) or expr.type.is_integer else FLOAT8
            return self.emitter.dialect.canonical_number(self.emitter.value(expr), stored)
        return self.emitter.value(expr)


def inside(release: PlannedRelease) -> list[str]:
    """The conditions on the indices of public keys under which a row's group is one of those that are released."""
    if not release.public:
        return []
    names = [f"k{i}" for i in range(len(release.keys))]
    found = [f"{name} IS NOT NULL" for name in names]
    if release.places is None:
        return found
    sizes = [key.domain.size for key in release.keys if key.domain is not None]
    code, codes = "0", [0] * len(release.places)
    for at, (name, size) in enumerate(zip(names, sizes, strict=True)):
        code = name if at == 0 else f"({code} * {size} + {name})"
        codes = [before * size + place[at] for before, place in zip(codes, release.places, strict=True)]
    return [*found, f"{code} IN ({', '.join(map(str, codes)) or 'NULL'})"]


def reads(cell: Cell) -> tuple[str, str, str, str]:
    """Equal for cells that read the same row-level columns: all moments of the same arguments share theirs."""
    texts = [("" if e is None else canonical(e)) for e in (cell.argument, cell.second, cell.condition)]
    return cell.kind, texts[0] if cell.kind != "units" else "", texts[1], texts[2]


def _epoch(moment: datetime) -> int:
    """Seconds since 1970 of a timestamp without fractions."""
    return (moment - datetime(1970, 1, 1)) // timedelta(seconds=1)


def _stored_float(argument: Expr) -> str | None:
    """The name of a stored float: it is clamped to its bounds at once, so it needs no taming first."""
    return quote(argument.name) if isinstance(argument, Col) and argument.type.is_float else None


def _less(amount: int) -> str:
    return f" - {amount}" if amount > 0 else f" + {-amount}" if amount < 0 else ""
