"""Whose row each row of a relation is, and how many rows of one unit there can be: derived from the tree that is sent.

The claim to be held: every row of a private relation is a function of one unit's stored rows, and of public ones. Then
taking a unit away takes its rows away and changes no other. It is derived bottom up:

- A stored row belongs to the unit in its table's unit column. That of a table with a path belongs to nobody until it is
  joined with the one row of its parent that the path names. That row must be read from *one* scan: columns of two
  instances of a table name a third row, of anybody. So each scan is given a number of its own here, whatever the
  algebra's columns say of themselves. The parent's columns must hold a verified key, compared exactly in its type.
- Rows of two private relations meet only where the condition in the tree equates their units, or is such a path.
- GROUP BY keeps one unit's rows together only where a key is the unit. UNION ALL keeps the unit that all sides name.
- EXISTS looks at rows of the same unit only: its conditions hold the equality of the units.

`unique` are sets of columns of which one unit has at most one row per value (the empty set: one row in all). They come
from verified keys, from rows that the scan itself numbers, and from GROUP BY, and outlive a join only on the side whose
rows each meet at most one. `constant` columns have one value in all rows of a unit. NULL never equals anything, so what
an outer join fills in proves nothing, and harms nothing.

Never: a name that is not offered below, a type that the schema does not say, or a relation that is not understood.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeGuard

from dpsql.certify.certificate import Gap
from dpsql.compiler.algebra import (
    Call,
    Case,
    Col,
    Exists,
    Expr,
    Filter,
    Join,
    Lit,
    Node,
    PerUnit,
    Project,
    Rows,
    Scalar,
    Scan,
    UnionAll,
    conjuncts,
)
from dpsql.policy.model import UnitPath
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.types import Kind, SqlType

NONE: frozenset[str] = frozenset()
Pairs = frozenset[tuple[str, str]]
"""Columns that a condition equates exactly: of the left side, and of the right."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A column as it is stored. `scan`: which scan read it; one number is one stored row in each row of a relation."""

    scan: int
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is derived of a relation.

    `types`: of all columns that it offers, None where nothing says. `unit`: columns that hold the unit of their row.
    `waits`: the scan of a table with a path, and the table, whose parent is still to be joined: no row is owned yet.
    """

    private: bool
    types: Mapping[str, SqlType | None]
    stored: Mapping[str, Stored] = field(default_factory=dict)
    unit: frozenset[str] = NONE
    waits: tuple[int, str] | None = None
    unique: tuple[frozenset[str], ...] = ()
    constant: frozenset[str] = NONE

    @property
    def one_row(self) -> bool:
        """Whether a unit has at most one row."""
        return NONE in self.unique

    def steady(self, expr: Expr) -> bool:
        """Whether an expression has one value in all rows of a unit."""
        read = list(walk(expr))
        return not any(isinstance(e, Exists) for e in read) and columns(read) <= self.constant


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and its parts, EXISTS as a whole."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        yield part
        match part:
            case Call(args=args):
                waiting += args
            case Case(branches=branches, default=default):
                waiting += [e for branch in branches for e in branch]
                waiting += [] if default is None else [default]
            case Col() | Lit() | Scalar() | Exists():
                pass
            case _:
                raise Gap("an expression that is not known")


def columns(parts: Iterable[Expr]) -> frozenset[str]:
    return frozenset(part.name for part in parts if isinstance(part, Col))


_EXACT = (Kind.TEXT, Kind.UUID, Kind.DATE, Kind.BOOL, Kind.TIMESTAMP)


def exact(x: Col, y: Col, *, stored: bool) -> bool:
    """Whether the backend finds two columns equal only where they are equal.

    Whole numbers are compared as such, and these types as they are. Not floats (NaN, two zeros), numbers of two types
    (as doubles), timestamps with time zone (as local ones), or decimals that are computed, for they may be doubles.
    """
    if x.type.is_integer and y.type.is_integer:
        return True
    return x.type == y.type and (x.type.kind in _EXACT or (x.type.kind is Kind.NUMERIC and stored))


def equated(conditions: Iterable[Expr], left: Facts, right: Facts) -> Pairs:
    found = set()
    for each in (part for condition in conditions for part in conjuncts(condition)):
        match each:
            case Call(op="eq", args=(Col() as x, Col() as y)):
                for a, b in ((x, y), (y, x)):
                    if a.name in left.types and b.name in right.types:
                        stored = a.name in left.stored and b.name in right.stored
                        found |= {(a.name, b.name)} if exact(a, b, stored=stored) else set()
    return frozenset(found)


def agree(a: SqlType | None, b: SqlType | None) -> bool:
    return a == b or (a is not None and b is not None and a.is_integer and b.is_integer)


class Reader:
    """Derives the facts of one release's relations. Raises Gap where one does not follow."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._is_row = schema.policy.privacy.is_row
        self._numbers = count()

    def relation(self, node: Node) -> Facts:
        match node:
            case Scan():
                return self._scan(node)
            case Rows(columns=cols):
                return Facts(False, _named((c.name, c.type) for c in cols))
            case Filter(input=inner, conditions=conditions):
                return self.read(self.relation(inner), *conditions)
            case Project(input=inner, columns=made):
                return self._project(self.relation(inner), made)
            case Join():
                return self._join(node, self.relation(node.left), self.relation(node.right))
            case PerUnit():
                return self._per_unit(node, self.relation(node.input))
            case UnionAll(inputs=inputs, columns=names):
                return self._union([self.relation(each) for each in inputs], names)
            case _:
                raise Gap("a relation that is not known")

    # Expressions ------------------------------------------------------------------------------------------------

    def read(self, scope: Facts, *exprs: Expr | None) -> Facts:
        """The facts. Raises Gap unless the expressions read these columns, and subqueries only of the same unit."""
        for part in (part for expr in exprs if expr is not None for part in walk(expr)):
            if isinstance(part, Col):
                known = scope.types.get(part.name)
                if part.name not in scope.types or not (known is None or agree(known, part.type)):
                    raise Gap(f"{part.name} is not what the relation offers")
            elif isinstance(part, Exists):
                self._exists(part, scope)
        return scope

    def _exists(self, test: Exists, outside: Facts) -> None:
        inside = self.relation(test.relation)
        pairs = equated(test.conditions, outside, inside)
        if inside.private and not self._same(pairs, outside, inside):
            raise Gap("a subquery looks at rows of other units")
        both = {**outside.types, **inside.types}
        _apart(outside, inside)
        stored = {**outside.stored, **inside.stored}
        self.read(Facts(outside.private, both, stored, outside.unit | inside.unit), *test.conditions)

    def _same(self, pairs: Pairs, a: Facts, b: Facts) -> bool:
        """Whether the condition equates the units. Rows that are units of their own meet no others."""
        return not self._is_row and any(x in a.unit and y in b.unit for x, y in pairs)

    # Relations --------------------------------------------------------------------------------------------------

    def _scan(self, node: Scan) -> Facts:
        table = self._schema.tables.get(node.table)
        if table is None or table.source != node.source:
            raise Gap("a table that the schema does not hold")
        types = _named((col.name, _stored_type(table, name, col)) for name, col in node.columns)
        scan, here = next(self._numbers), {name: col.name for name, col in node.columns}
        stored = {col.name: Stored(scan, table.name, name) for name, col in node.columns}
        unique = tuple(frozenset(here[c] for c in key) for key in table.unique if key <= here.keys())
        made = Facts(not table.public, types, stored, unique=unique)
        if table.public:
            return made
        if self._is_row != node.row_unit or (node.enforce_rows is not None and node.enforce_rows < 1):
            raise Gap("a scan that takes rows for units, or units for rows")
        if node.row_unit:
            if node.unit is None or node.unit in types or node.enforce_rows is not None:
                raise Gap("a row's identity that is a column")
            return replace(
                made, types={**types, node.unit: None}, unit=frozenset({node.unit}), unique=(NONE,), constant=_all(made)
            )
        if isinstance(table.unit, UnitPath):
            if node.unit is not None or node.enforce_rows is not None:
                raise Gap("a unit that the table does not hold")
            return replace(made, waits=(scan, table.name))
        if node.unit is None or here.get(str(table.unit)) != node.unit:
            raise Gap("a private table without its unit")
        return _owned(made, node.unit, one_row=node.enforce_rows == 1)

    def _project(self, below: Facts, made: tuple[tuple[str, Expr], ...]) -> Facts:
        self.read(below, *(expr for _, expr in made))
        types = _named((name, expr.type) for name, expr in made)
        _apart(below, Facts(False, types))
        return replace(
            below,
            types={**below.types, **types},
            stored={**below.stored, **{n: below.stored[e.name] for n, e in made if _is_copy(e, below.stored)}},
            unit=below.unit | {name for name, expr in made if _is_copy(_widened(expr), below.unit)},
            constant=below.constant | {name for name, expr in made if below.steady(expr)},
        )

    def _per_unit(self, node: PerUnit, below: Facts) -> Facts:
        self.read(below, *(expr for _, expr in node.keys))
        self.read(below, *(e for _, part in node.parts for e in (part.argument, part.condition)))
        unit = frozenset(name for name, key in node.keys if isinstance(key, Col) and key.name in below.unit)
        if not below.private or not unit:
            raise Gap("a GROUP BY that puts several units into one row")
        types = _named([*((n, key.type) for n, key in node.keys), *((n, None) for n, _ in node.parts)])
        stored = {n: below.stored[k.name] for n, k in node.keys if isinstance(k, Col) and k.name in below.stored}
        varied = frozenset(n for n, key in node.keys if n not in unit and not below.steady(key))
        return Facts(True, types, stored, unit, None, (varied,), unit if varied else frozenset(types))

    def _union(self, sides: list[Facts], names: tuple[str, ...]) -> Facts:
        if any(not set(names) <= side.types.keys() for side in sides):
            raise Gap("a UNION ALL of columns that are not there")
        first = sides[0].types
        types = _named((n, first[n] if all(agree(first[n], s.types[n]) for s in sides) else None) for n in names)
        if not any(side.private for side in sides):
            return Facts(False, types)
        unit = frozenset.intersection(*(side.unit for side in sides)) & {n for n, t in types.items() if t is not None}
        if self._is_row or not unit:
            raise Gap("a UNION ALL without one unit")
        return Facts(True, types, unit=unit, constant=unit)

    # Joins ------------------------------------------------------------------------------------------------------

    def _join(self, node: Join, a: Facts, b: Facts) -> Facts:
        _apart(a, b)
        pairs, steady = equated(node.conditions, a, b), self._steady(node, a, b)
        if a.private and b.private:
            made = self._private(node.kind, a, b, pairs, steady=steady)
        elif not a.private and b.private:
            if node.kind == "left":
                raise Gap("an outer join that keeps public rows beside private ones")
            made = _with_public(b, a, frozenset((y, x) for x, y in pairs), fixed=None)
        else:
            made = _with_public(a, b, pairs, fixed=None if node.kind == "inner" else steady)
        return self.read(made, *node.conditions)

    def _steady(self, node: Join, a: Facts, b: Facts) -> bool:
        """Whether the same rows match for all of a unit's rows."""
        both = replace(a, constant=a.constant | (b.constant if b.private else _all(b)))
        return all(both.steady(condition) for condition in node.conditions)

    def _private(self, kind: str, a: Facts, b: Facts, pairs: Pairs, *, steady: bool) -> Facts:
        waits = self._met(kind, a, b, pairs)
        one_a, one_b = _one(a, {x for x, _ in pairs}), _one(b, {y for _, y in pairs})
        if not one_a and not one_b:
            raise Gap("a join that could multiply one unit's rows without limit")
        unit = a.unit | b.unit if kind == "inner" else a.unit
        unique = (*(a.unique if one_b else ()), *(b.unique if one_a and kind == "inner" else ()))
        constant = a.constant | unit | (b.constant if kind == "inner" or steady else NONE)
        return Facts(True, {**a.types, **b.types}, {**a.stored, **b.stored}, unit, waits, unique, constant)

    def _met(self, kind: str, a: Facts, b: Facts, pairs: Pairs) -> tuple[int, str] | None:
        """What the joined rows still wait for. Raises Gap where rows of two units could meet."""
        if a.waits is None and b.waits is None:
            if not self._same(pairs, a, b):
                raise Gap("a join that does not equate the units of its sides")
            return None
        if b.waits is not None and self._child_meets_parent(b, a, frozenset((y, x) for x, y in pairs)):
            return a.waits
        if kind == "inner" and a.waits is not None and self._child_meets_parent(a, b, pairs):
            return b.waits
        raise Gap("a child that does not meet one row of its parent")

    def _child_meets_parent(self, child: Facts, parent: Facts, pairs: Pairs) -> bool:
        """Whether the row that waits is equated, on its whole path, with one stored row that holds a verified key."""
        scan, name = child.waits or (-1, "")
        path = self._schema.tables[name].unit
        if not isinstance(path, UnitPath):
            return False
        above = self._schema.tables[path.through]
        if above.public or not any(key <= set(path.on.values()) for key in above.unique):
            return False
        met: dict[int, set[tuple[str, str]]] = {}
        for x, y in pairs:
            mine, theirs = child.stored.get(x), parent.stored.get(y)
            if mine is not None and theirs is not None and (mine.scan, theirs.table) == (scan, path.through):
                met.setdefault(theirs.scan, set()).add((mine.column, theirs.column))
        return any(set(path.on.items()) <= found for found in met.values())


def _owned(made: Facts, unit: str, *, one_row: bool) -> Facts:
    """A scan with its unit's column: what is unique in the table is unique within a unit without it."""
    own = tuple(key - {unit} for key in made.unique) + ((NONE,) if one_row else ())
    constant = _all(made) if NONE in own else frozenset({unit})
    return replace(made, unit=frozenset({unit}), unique=own, constant=constant)


def _with_public(private: Facts, public: Facts, pairs: Pairs, *, fixed: bool | None) -> Facts:
    """Each row may meet many public ones, so only a verified key of these keeps anything unique.

    `fixed`: whether a unit's rows all meet the same ones; None: where what they are equated by is constant.
    """
    one = _one(public, {y for _, y in pairs})
    same = _one(public, {y for x, y in pairs if x in private.constant}) if fixed is None else one and fixed
    return replace(
        private,
        types={**private.types, **public.types},
        stored={**private.stored, **public.stored},
        unique=private.unique if one else (),
        constant=private.constant | (_all(public) if same else NONE),
    )


def _one(facts: Facts, equal: set[str]) -> bool:
    """Whether at most one row (of a unit) has given values in these columns."""
    return any(key <= equal for key in facts.unique)


def _is_copy(expr: Expr, of: Container[str]) -> TypeGuard[Col]:
    return isinstance(expr, Col) and expr.name in of


def _widened(expr: Expr) -> Expr:
    """The whole number below a cast to bigint: the emitter clamps nothing that it says to reach as far."""
    match expr:
        case Call(op="to_int", args=(Col() as inner,), type=SqlType(kind=Kind.INT8)):
            return inner if inner.type.is_integer and inner.domain.reach <= expr.domain.reach else expr
        case _:
            return expr


def _all(facts: Facts) -> frozenset[str]:
    return frozenset(facts.types)


def _apart(a: Facts, b: Facts) -> None:
    if a.types.keys() & b.types.keys():
        raise Gap("two columns of one name")


def _named(pairs: Iterable[tuple[str, SqlType | None]]) -> dict[str, SqlType | None]:
    found = list(pairs)
    made = dict(found)
    if len(made) != len(found):
        raise Gap("two columns of one name")
    return made


def _stored_type(table: SchemaTable, name: str, col: Col) -> SqlType:
    """The type that the backend has. Values that people randomized themselves are read by no release."""
    column = table.column(name)
    if column is None or column.type != col.type or column.randomized is not None:
        raise Gap(f"{name} is not that column of the table")
    return column.type
