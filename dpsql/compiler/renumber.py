"""Column names of an aggregation renumbered in order of appearance.

The binder numbers tables over a whole statement. Here a release gets the names it would have alone, so that the same
measurement has one canonical form (and one key) wherever it stands in a statement.
"""

from __future__ import annotations

import re
from dataclasses import replace

from dpsql.compiler.algebra import (
    Aggregate,
    Aggregation,
    Col,
    Exists,
    Expr,
    Filter,
    Join,
    Node,
    Part,
    PerUnit,
    Project,
    Rows,
    Scan,
    UnionAll,
)
from dpsql.compiler.walk import used_columns, with_children

_NUMBERED = re.compile(r"([a-z])(\d+)(_.*)?")


class _Names:
    """Old numbers to new ones, by the order in which relations appear."""

    def __init__(self, used: frozenset[str]) -> None:
        self._known: dict[str, int] = {}
        self._used = used

    def name(self, old: str) -> str:
        found = _NUMBERED.fullmatch(old)
        if found is None:
            return old
        number = self._known.setdefault(found[2], len(self._known))
        return f"{found[1]}{number}{found[3] or ''}"

    def col(self, col: Col) -> Col:
        name = self.name(col.name)
        return col if name == col.name else replace(col, name=name)

    def node(self, node: Node) -> Node:
        match node:
            case Scan(columns=columns, unit=unit):
                made = tuple((n, self.col(c)) for n, c in columns if c.name in self._used or c.name == unit)
                return replace(node, columns=made, unit=None if unit is None else self.name(unit))
            case Rows(columns=columns):
                return replace(node, columns=tuple(self.col(c) for c in columns))
            case Filter(input=inner, conditions=conditions):
                return Filter(self.node(inner), self.exprs(conditions))
            case Project(input=inner, columns=columns):
                below = self.node(inner)
                return Project(below, tuple((self.name(n), self.expr(e)) for n, e in columns))
            case Join(left=left, right=right, conditions=conditions):
                return replace(node, left=self.node(left), right=self.node(right), conditions=self.exprs(conditions))
            case PerUnit(input=inner, keys=keys, parts=parts):
                below = self.node(inner)
                return PerUnit(
                    below,
                    tuple((self.name(n), self.expr(e)) for n, e in keys),
                    tuple((self.name(n), self.part(p)) for n, p in parts),
                )
            case UnionAll(inputs=inputs, columns=names):
                return UnionAll(tuple(self.node(i) for i in inputs), tuple(self.name(n) for n in names))

    def part(self, part: Part) -> Part:
        return replace(part, argument=self.maybe(part.argument), condition=self.maybe(part.condition))

    def maybe(self, expr: Expr | None) -> Expr | None:
        return None if expr is None else self.expr(expr)

    def exprs(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(self.expr(e) for e in exprs)

    def expr(self, expr: Expr) -> Expr:
        match expr:
            case Col():
                return self.col(expr)
            case Exists(relation=relation):
                return with_children(replace(expr, relation=self.node(relation)), self.expr)
            case _:
                return with_children(expr, self.expr)

    def aggregate(self, aggregate: Aggregate) -> Aggregate:
        return replace(
            aggregate,
            argument=self.maybe(aggregate.argument),
            condition=self.maybe(aggregate.condition),
            second=self.maybe(aggregate.second),
        )


def renumber(aggregation: Aggregation) -> Aggregation:
    """The same aggregation under the names it would have in a statement of its own, reading only what it uses."""
    names = _Names(used_columns(aggregation))
    below = names.node(aggregation.input)
    return replace(
        aggregation,
        input=below,
        unit=None if aggregation.unit is None else names.name(aggregation.unit),
        keys=names.exprs(aggregation.keys),
        aggregates=tuple(names.aggregate(a) for a in aggregation.aggregates),
    )
