"""The statement that a refusal shows in place of one that asks for single rows: about the same table, and it works.

Decides by the policy alone which columns it names: a key whose values are public and few, and a number with bounds to
average. Only for queries whose tables were all resolved, so that none is named that the asker may not see.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.parse import name_of
from dpsql.compiler.spelling import quoted
from dpsql.compiler.tables import named, written
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import Kind

_MAX_KEYS = 200
"""More rows than anyone reads."""


def suggestion(schema: Schema, query: exp.Expr, visible: frozenset[str] | None = None) -> str | None:
    """An aggregate over the first private table of a query; None where no table of the policy is named."""
    shadowed = {name_of(cte.args["alias"].this) for cte in query.find_all(exp.CTE)}
    for node in query.find_all(exp.Table):
        if isinstance(node.this, exp.Identifier) and (node.args.get("db") or name_of(node.this) not in shadowed):
            found = named(node, schema, visible)
            table = schema.tables.get(found.name) if found is not None else None
            if table is not None and not table.public:
                return _statement(table)
    return None


def _statement(table: SchemaTable) -> str:
    usable = [c for c in table.columns if c.name != table.unit and c.name not in (table.key or ()) and not c.randomized]
    key = min((c for c in usable if _keys(c)), key=lambda c: (c.type.is_number, not c.references), default=None)
    number = min((c for c in usable if _averaged(c) and c is not key), key=lambda c: c.type.is_integer, default=None)
    shown = [quoted(key.name)] if key is not None else []
    asked = [*shown, "COUNT(*)", *([f"AVG({quoted(number.name)})"] if number is not None else [])]
    grouped = f" GROUP BY {shown[0]}" if shown else ""
    return f"SELECT {', '.join(asked)} FROM {written(table)}{grouped}"


def _keys(column: SchemaColumn) -> bool:
    """Whether the column's values are public and few."""
    if column.type.kind is Kind.BOOL:
        return True
    if column.values is not None:
        return 0 < len(column.values) <= _MAX_KEYS
    lower, upper = column.lower, column.upper
    return column.type.is_integer and isinstance(lower, int) and isinstance(upper, int) and upper - lower < _MAX_KEYS


def _averaged(column: SchemaColumn) -> bool:
    return column.type.is_number and column.lower is not None and column.upper is not None
