"""How many groups, and rows in each, a unit's part of a relation counts as: from the policy's bounds of its tables.

Decides the default contribution bound of a query. The rows of UNION ALL are those of all its sides, so their bounds
add up; a join's are the larger of its sides'. Privacy does not hang on it: whatever bound is chosen is enforced by
clipping, and priced.
"""

from __future__ import annotations

from dpsql.compiler.algebra import Filter, Join, Node, PerUnit, Project, Rows, Scan, UnionAll
from dpsql.policy.schema import Schema


def contribution(node: Node, schema: Schema) -> tuple[int, int]:
    """(groups, rows a group) of a unit in the relation; (0, 0) where it is public."""
    match node:
        case Scan(table=name):
            table = schema.tables.get(name) or schema.responses[name]
            return (0, 0) if table.public else (table.max_groups, table.max_rows_per_group)
        case Rows():
            return 0, 0
        case Filter(input=inner) | Project(input=inner) | PerUnit(input=inner):
            return contribution(inner, schema)
        case Join(left=left, right=right):
            return _larger(contribution(left, schema), contribution(right, schema))
        case UnionAll(inputs=sides):
            parts = [contribution(side, schema) for side in sides]
            most = max(schema.policy.privacy.max_groups, *(groups for groups, _ in parts))
            return min(sum(groups for groups, _ in parts), most), sum(rows for _, rows in parts)


def _larger(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return max(a[0], b[0]), max(a[1], b[1])
