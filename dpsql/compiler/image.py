"""Which values columns can have together: those of public rows, and of the finite domains of private columns.

Decides it from the policy, the public tables and the text. The result holds every combination that a row within the
declared domains can have, and as few others as equalities, joins and filters of the statement tell. It never looks at
private data. NULL is always among a private column's values: what it becomes, as in COALESCE, is then known too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import ceil, floor

from dpsql.compiler.algebra import Call, Col, Expr, Filter, Join, Node, PerUnit, Project, Scan, columns_of, conjuncts
from dpsql.compiler.bind.proofs import is_exact
from dpsql.compiler.domains import hull
from dpsql.compiler.evaluated import Known, Unknown, comparable, value_of
from dpsql.compiler.fuel import spend
from dpsql.compiler.instants import moments, period_of
from dpsql.compiler.walk import larger_than, parts, with_children
from dpsql.policy.schema import SchemaTable
from dpsql.types import Kind

MOST_ROWS = 20_000
MOST_WORK = 200_000
"""Nodes of expressions that are evaluated for one cluster of keys: the work stays within what a text may cost."""
_MOST_PARTS = 500

Row = dict[str, Known]


@dataclass(frozen=True, slots=True)
class _Public:
    """A public table. `on`: of an outer join that may leave it NULL, else None; `strict`: they are all that decides."""

    columns: tuple[Col, ...]
    rows: tuple[tuple[Known, ...], ...]
    on: tuple[Expr, ...] | None = None
    strict: bool = True

    @property
    def names(self) -> frozenset[str]:
        return frozenset(col.name for col in self.columns)


@dataclass(slots=True)
class World:
    """The relation that an aggregation reads: its public tables, what computed columns are, what holds in every row."""

    tables: Mapping[str, SchemaTable]
    public: list[_Public] = field(default_factory=list)
    made: dict[str, Expr] = field(default_factory=dict)
    conditions: list[Expr] = field(default_factory=list)

    def spelled(self, expr: Expr) -> Expr:
        """The expression over columns of tables."""
        if isinstance(expr, Col):
            return expr if expr.name not in self.made else self.spelled(self.made[expr.name])
        return with_children(expr, self.spelled)

    def tied(self, names: Iterable[str]) -> frozenset[str]:
        """The columns that are read together with these: of their public tables, and those equal to any of them."""
        found = frozenset(names)
        while True:
            more = found.union(*(t.names for t in self.public if t.names & found))
            more = more.union(*({a.name, b.name} for a, b in self._links() if {a.name, b.name} & more))
            if more == found:
                return found
            found = more

    def _links(self) -> Iterator[tuple[Col, Col]]:
        yield from _equalities(self.conditions)
        for table in self.public:
            yield from _equalities(table.on or ())

    def rows(self, exprs: tuple[Expr, ...]) -> list[Row]:
        """All rows of values that these expressions may read. Raises Unknown where they are not known, or too many."""
        if any(larger_than(e, _MOST_PARTS) for e in exprs):
            raise Unknown
        inner = [t for t in self.public if t.on is None]
        wanted = {col.name for e in exprs for col in columns_of(e)}
        read = [t for t in inner if t.names & wanted]
        tied = self.tied(wanted)
        try:
            return self._rows(exprs, wanted, [*read, *(t for t in inner if t not in read and t.names & tied)])
        except Unknown:
            return self._rows(exprs, wanted, read)

    def _rows(self, exprs: tuple[Expr, ...], wanted: set[str], inner: list[_Public]) -> list[Row]:
        """`inner`: the tables whose rows are joined."""
        alike = _classes(self.conditions)
        found: list[Row] = [{}]
        for table in inner:
            found = _with_table(found, table, self._read(table, wanted), alike)
        for name, occurrences in _private(exprs, self.public).items():
            found = _with_column(found, name, occurrences, exprs, alike)
        for table in self.public:
            if table.on is not None and table.names & wanted:
                found = _with_outer(found, table, self._read(table, wanted))
        tests = [c for c in self.conditions if _is_told(c, exprs)]
        work = sum(sum(1 for _ in parts(e)) for e in (*exprs, *tests))
        if len(found) * work > MOST_WORK:
            raise Unknown
        spend(len(found) * work)
        beside = _equals_of(found, tests, alike)
        return [row for row in found if all(_holds(t, row, beside) is not False for t in tests)]

    def _read(self, table: _Public, wanted: set[str]) -> frozenset[str]:
        """The columns of a public table that are wanted, or compared with others."""
        linked = {col.name for pair in self._links() for col in pair}
        filtered = {c.name for condition in self.conditions for c in columns_of(condition)}
        return table.names & (wanted | linked | filtered)


def world_of(node: Node, tables: Mapping[str, SchemaTable]) -> World:
    world = World(tables)
    _explore(node, world)
    return world


def _explore(node: Node, world: World) -> None:
    match node:
        case Scan():
            world.public += _table(node, world)
        case Filter(input=inner, conditions=conditions):
            world.conditions += [part for c in conditions for part in conjuncts(c)]
            _explore(inner, world)
        case Project(input=inner, columns=columns) | PerUnit(input=inner, keys=columns):
            world.made |= dict(columns)
            _explore(inner, world)
        case Join(kind="inner", left=left, right=right, conditions=conditions):
            world.conditions += [part for c in conditions for part in conjuncts(c)]
            _explore(left, world)
            _explore(right, world)
        case Join(left=left, right=right, conditions=conditions):
            _explore(left, world)
            on = tuple(part for c in conditions for part in conjuncts(c))
            if isinstance(right, Scan):
                strict = len(list(_equalities(on))) == len(on)
                world.public += [replace(t, on=on, strict=strict) for t in _table(right, world)]
        case _:
            return


def _table(scan: Scan, world: World) -> list[_Public]:
    table = world.tables.get(scan.table)
    if table is None or not table.public or table.rows is None:
        return []
    place = {column.name: i for i, column in enumerate(table.rows.columns)}
    if any(name not in place for name, _ in scan.columns):
        return []
    chosen = [place[name] for name, _ in scan.columns]
    rows = dict.fromkeys(tuple(comparable(row[i]) for i in chosen) for row in table.rows.rows[: MOST_ROWS + 1])
    return [_Public(tuple(col for _, col in scan.columns), tuple(rows))]


def _equalities(conditions: Iterable[Expr]) -> Iterator[tuple[Col, Col]]:
    for condition in conditions:
        match condition:
            case Call(op="eq", args=(Col() as a, Col() as b)) if is_exact(a, b):
                yield a, b


def _classes(conditions: Iterable[Expr]) -> dict[str, str]:
    """For each column that is equal to another in every row, one name for all of its equals."""
    found: dict[str, str] = {}
    for a, b in _equalities(conditions):
        old, new = found.setdefault(b.name, b.name), found.setdefault(a.name, a.name)
        found.update({name: new for name, known in found.items() if known == old})
    return found


def _is_told(condition: Expr, exprs: tuple[Expr, ...]) -> bool:
    """Whether a moment that stands for its whole period does so for the condition too."""
    times = {c.name: c for c in columns_of(condition) if c.type.is_time}
    return all(period_of(c, exprs) == period_of(c, (*exprs, condition)) for c in times.values())


def _equals_of(found: list[Row], tests: list[Expr], alike: Mapping[str, str]) -> dict[str, str]:
    """For columns that are only tested, one that is equal and known."""
    known = {alike[name]: name for row in found[:1] for name in row if name in alike}
    names = {col.name for test in tests for col in columns_of(test)}
    return {name: known[alike[name]] for name in names if alike.get(name) in known}


def _holds(condition: Expr, row: Row, beside: Mapping[str, str]) -> bool | None:
    """Whether a condition is true; None where it is not known. `beside`: columns that stand for others."""
    names = {col.name for col in columns_of(condition)}
    values = {n: row[n if n in row else beside[n]] for n in names if n in row or n in beside}
    if len(values) < len(names):
        return None
    try:
        return value_of(condition, values) is True
    except Unknown:
        return None


def _with_table(found: list[Row], table: _Public, read: frozenset[str], alike: Mapping[str, str]) -> list[Row]:
    """Every row with each row of the table that has equal values where columns are equal."""
    beside = {alike[n]: n for row in found[:1] for n in row if n in alike}
    shared = [(beside[alike[n]], n) for n in read if alike.get(n) in beside]
    by_value: dict[tuple[Known, ...], list[Row]] = {}
    for values in _projected(table, read):
        by_value.setdefault(tuple(values[n] for _, n in shared), []).append(values)
    return _limited(
        {**row, **values}
        for row in found
        for values in by_value.get(tuple(row[n] for n, _ in shared), ())
        if all(row[n] is not None for n, _ in shared)
    )


def _projected(table: _Public, read: frozenset[str]) -> list[Row]:
    places = [(i, col.name) for i, col in enumerate(table.columns) if col.name in read]
    distinct = dict.fromkeys(tuple(row[i] for i, _ in places) for row in table.rows)
    return [{name: value for (_, name), value in zip(places, values, strict=True)} for values in distinct]


def _with_outer(found: list[Row], table: _Public, read: frozenset[str]) -> list[Row]:
    """Every row with each row of the table that its ON may match, and with NULLs where it may match none."""
    pairs = [(a, b) if b.name in read else (b, a) for a, b in _equalities(table.on or ())]
    known = [(a.name, b.name) for a, b in pairs if all(a.name in row for row in found[:1])]
    by_value: dict[tuple[Known, ...], list[Row]] = {}
    for values in _projected(table, read):
        by_value.setdefault(tuple(values[b] for _, b in known), []).append(values)
    nothing: Row = dict.fromkeys(read)

    def matches(row: Row) -> list[Row]:
        key = tuple(row[a] for a, _ in known)
        equal = [] if None in key else by_value.get(key, [])
        return equal if equal and table.strict and len(known) == len(table.on or ()) else [*equal, nothing]

    return _limited({**row, **values} for row in found for values in matches(row))


def _private(exprs: tuple[Expr, ...], public: list[_Public]) -> dict[str, list[Col]]:
    """The columns of no public table, each with all its occurrences: conditions narrow some of them."""
    found: dict[str, list[Col]] = {}
    of_public = frozenset[str]().union(*(t.names for t in public))
    for col in (c for e in exprs for c in columns_of(e)):
        if col.name not in of_public:
            found.setdefault(col.name, []).append(col)
    return found


def _with_column(
    found: list[Row], name: str, occurrences: list[Col], exprs: tuple[Expr, ...], alike: Mapping[str, str]
) -> list[Row]:
    equals = [n for row in found[:1] for n in row if n in alike and alike[n] == alike.get(name)]
    if equals:
        return [{**row, name: row[equals[0]]} for row in found]
    values = _values(replace(occurrences[0], domain=hull([c.domain for c in occurrences])), exprs)
    return _limited({**row, name: value} for row, value in product(found, (*values, None)))


def _values(col: Col, exprs: tuple[Expr, ...]) -> list[Known]:
    """All values of a private column, NULL apart."""
    domain = col.domain
    if domain.computed or domain.released is not None:
        raise Unknown
    if domain.values is not None:
        return [comparable(v) for v in domain.values]
    if col.type.is_time:
        found = moments(col, exprs, MOST_ROWS)
        if found is None:
            raise Unknown
        return list(found)
    step = Fraction(1) if col.type.is_integer else Fraction(10) ** -(col.type.scale or 0)
    exact = col.type.is_integer or (col.type.kind is Kind.NUMERIC and col.type.precision is not None)
    if not exact or domain.lower is None or domain.upper is None:
        raise Unknown
    first, last = ceil(domain.lower / step), floor(domain.upper / step)
    if last - first > MOST_ROWS:
        raise Unknown
    return [n * step for n in range(first, last + 1)]


def _limited(rows: Iterable[Row]) -> list[Row]:
    made: list[Row] = []
    for row in rows:
        if len(made) >= MOST_ROWS:
            raise Unknown
        made.append(row)
    spend(len(made))
    return made
