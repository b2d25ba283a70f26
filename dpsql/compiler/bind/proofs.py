"""The proof that two rows belong to one privacy unit, read from the columns that a condition equates.

Decides when a join, EXISTS or IN of private rows may be said to stay within a unit. It must never combine columns of
several rows: a path's key names one stored row only if all its columns are read from that row (`Col.row`), in one
instance of the table, and are compared with all columns of one child row. The store of one order and the number of
another name a third order, of anybody. Equality must be no coarser than the one under which the key was verified.

The emitted SQL carries what is proven here as conditions of its own (`joins`, `subqueries`), so that a mistake in
this file would make answers wrong, not private rows of two units meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.compiler.algebra import Call, Col, Expr
from dpsql.compiler.fuel import spend
from dpsql.policy.model import UnitPath
from dpsql.policy.schema import Schema
from dpsql.policy.values import compared_exactly
from dpsql.types import Kind

Pair = tuple[Col, Col]
Columns = frozenset[tuple[str, str]]
"""Pairs of equated columns, by name: of a row of one table, and of a row of another."""


def equated(conditions: Iterable[Expr], mine: frozenset[str], theirs: frozenset[str]) -> list[Pair]:
    """Pairs of equated columns, (mine, theirs), where the backend compares them exactly."""
    pairs = []
    for condition in conditions:
        spend()
        match condition:
            case Call(op="eq", args=(Col() as a, Col() as b)) if is_exact(a, b):
                if a.name in mine and b.name in theirs:
                    pairs.append((a, b))
                elif b.name in mine and a.name in theirs:
                    pairs.append((b, a))
    return pairs


def is_exact(a: Col, b: Col) -> bool:
    """A computed numeric is a double, whatever its type is called: only one that is stored is compared as it is."""
    stored = a.row is not None and b.row is not None
    return compared_exactly(a.type, b.type) and (stored or a.type.kind is not Kind.NUMERIC)


def same_unit(pairs: list[Pair], left: frozenset[str], right: frozenset[str], schema: Schema) -> bool:
    """Whether equated columns prove that two rows belong to one unit.

    Either the unit columns themselves (`left`, `right`) are equal, or one row of the left and one of the right meet on
    all columns of a declared path: a child and its parent by the verified key, or two children of the same parent.
    """
    if any(a.name in left and b.name in right for a, b in pairs):
        return True
    return any(
        needed <= {(a, b) for a, b, _ in met}
        for (mine, theirs), met in _rows_that_meet(pairs).items()
        for needed in _enough(mine[1], theirs[1], schema)
    )


def meeting(pairs: list[Pair], child: str, path: UnitPath) -> list[Pair]:
    """The pairs by which a row of `child` meets one row of its parent on the whole path; none if it does not."""
    needed = frozenset(path.on.items())
    for (mine, theirs), met in _rows_that_meet(pairs).items():
        found = {(a, b): pair for a, b, pair in met}
        if (mine[1], theirs[1]) == (child, path.through) and needed <= found.keys():
            return [found[columns] for columns in sorted(needed)]
    return []


Row = tuple[str, str]
"""A row of a relation, and the declared table that it is a row of."""


def _rows_that_meet(pairs: list[Pair]) -> dict[tuple[Row, Row], list[tuple[str, str, Pair]]]:
    """The equated columns by the two rows that they are read from."""
    met: dict[tuple[Row, Row], list[tuple[str, str, Pair]]] = {}
    for a, b in pairs:
        if a.row is None or b.row is None or a.origin is None or b.origin is None:
            continue
        (mine, left), (theirs, right) = a.origin, b.origin
        met.setdefault(((a.row, mine), (b.row, theirs)), []).append((left, right, (a, b)))
    return met


def _enough(left: str, right: str, schema: Schema) -> Iterator[Columns]:
    """The sets of equal columns that make a row of each table belong to one unit."""
    up, down = path_of(left, schema), path_of(right, schema)
    if up is not None and up.through == right:
        yield frozenset(up.on.items())
    if down is not None and down.through == left:
        yield frozenset((key, child) for child, key in down.on.items())
    if up is not None and down is not None and up.through == down.through:
        mine, theirs = ({key: child for child, key in path.on.items()} for path in (up, down))
        if mine.keys() == theirs.keys():
            yield frozenset((mine[key], theirs[key]) for key in mine)


def path_of(name: str, schema: Schema) -> UnitPath | None:
    table = schema.tables.get(name)
    return table.unit if table is not None and isinstance(table.unit, UnitPath) else None
