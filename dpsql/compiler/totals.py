"""How many rows one unit can have in a relation, in all: from what the SQL itself makes true, or what is verified.

Decides, from the bound algebra and public facts alone, the `total` of a contribution bound. It starts from the scans
that cut a unit's rows by ROW_NUMBER (`max_rows`), and from tables of which the backend's catalog says that a unit has
one row; a declaration alone gives nothing. A row meets as many public rows as share the values it is joined on (see
`fanout`). Of two private sides joined within the unit one has at most one row for each key, so the rows are those of
the other side: the larger number bounds them, the sum where unmatched rows are kept. Branches of UNION ALL add up.

Privacy does not hang on it: it chooses a radius, which the clip enforces whatever the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.compiler.algebra import Col, Expr, Filter, Join, Node, PerUnit, Project, Rows, Scan, UnionAll, outputs
from dpsql.compiler.fanout import UNKNOWN, Facts
from dpsql.compiler.walk import inputs
from dpsql.policy.schema import Schema


def rows_in_all(node: Node, schema: Schema) -> int:
    """The most rows of one unit in a private relation; at least `fanout.UNKNOWN` where nothing bounds them."""
    return _Totals(Facts(schema)).most(node, ())


@dataclass(frozen=True, slots=True)
class _Totals:
    facts: Facts

    def most(self, node: Node, known: tuple[Expr, ...]) -> int:
        """`known`: what the filters above ask of the rows."""
        match node:
            case Scan():
                return self._scanned(node)
            case Filter(input=inner, conditions=conditions):
                return self.most(inner, (*known, *conditions))
            case Project(input=inner):
                return self.most(inner, known)
            case Join():
                return self._joined(node, (*known, *node.conditions))
            case UnionAll(inputs=branches):
                return sum(self.most(each, ()) for each in branches)
            case PerUnit(input=inner, keys=keys):
                own = len(keys) == 1 and isinstance(keys[0][1], Col) and keys[0][1].name in _units(inner)
                return 1 if own else self.most(inner, ())
            case Rows():
                return UNKNOWN

    def _scanned(self, scan: Scan) -> int:
        table = self.facts.table(scan)
        if scan.row_unit or (table is not None and table.one_row_per_unit):
            return 1
        return UNKNOWN if scan.enforce_rows is None else scan.enforce_rows

    def _joined(self, join: Join, known: tuple[Expr, ...]) -> int:
        left, right = join.left, join.right
        if self.facts.is_public(right):
            met = self.facts.matches(right, known, outputs(left))
            return self.most(left, known) * max(met, 1)
        if self.facts.is_public(left):
            return self.most(right, known) * max(self.facts.matches(left, known, outputs(right)), 1)
        sides = self.most(left, known), self.most(right, known)
        return sum(sides) if join.kind == "left" else max(sides)


def _units(node: Node) -> frozenset[str]:
    """The columns that hold the unit of every row of the relation."""
    match node:
        case Scan(unit=unit):
            return frozenset() if unit is None else frozenset({unit})
        case UnionAll(columns=columns):
            return frozenset(columns[:1])
        case PerUnit(input=inner, keys=keys):
            own = _units(inner)
            return frozenset(name for name, expr in keys if isinstance(expr, Col) and expr.name in own)
        case Join(kind="left", left=left):
            return _units(left)
        case _:
            return frozenset().union(*map(_units, inputs(node)))
