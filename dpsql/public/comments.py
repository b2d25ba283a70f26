"""What a client shows beside a table or column: in words, what the policy says of it."""

from __future__ import annotations

from dpsql.policy.model import UnitPath
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import Kind, Value

_MOST_VALUES = 20


def of_table(schema: Schema, table: SchemaTable) -> str:
    if table.public:
        return "Public: answered exactly and free."
    unit = schema.policy.privacy.unit
    parts = [f"Private: protects each {'row' if schema.policy.privacy.is_row else unit}."]
    if isinstance(table.unit, UnitPath):
        parts.append(f"Its unit is that of its row in {table.unit.through}.")
    if table.max_rows is not None:
        parts.append(f"At most {_count(table.max_rows, 'row')} of one unit.")
    groups, rows = _count(table.max_groups, "group"), _count(table.max_rows_per_group, "row")
    parts.append(f"One unit adds to at most {groups}, {rows} in each. Ask for aggregates.")
    return " ".join(parts)


def of_column(schema: Schema, table: SchemaTable, column: SchemaColumn) -> str | None:
    parts = []
    if table.unit == column.name:
        parts.append(f"privacy unit ({schema.policy.privacy.unit}): usable in COUNT(DISTINCT) and joins")
    if column.randomized is not None:
        parts.append(f"randomized when collected (epsilon {column.randomized}): its counts, asked alone, are free")
    if column.values is not None:
        parts.append(f"one of {_listed(column.values)}")
    if column.lower is not None or column.upper is not None:
        parts.append(f"from {_shown(column.lower)} to {_shown(column.upper)}")
    if column.references is not None:
        parts.append(f"a key of {'.'.join(column.references)}")
    if not parts and column.type.kind is Kind.BOOL and not table.public:
        parts.append("true or false")
    if column.nullable:
        parts.append("or NULL")
    if not parts and not table.public:
        parts.append("no bounds: for filters, COUNT and as a private key")
    text = ", ".join(parts)
    return text[:1].upper() + text[1:] if text else None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _listed(values: tuple[Value, ...]) -> str:
    shown = ", ".join(_shown(value) for value in values[:_MOST_VALUES])
    return shown if len(values) <= _MOST_VALUES else f"{shown} and {len(values) - _MOST_VALUES} more"


def _shown(value: Value) -> str:
    return "unbounded" if value is None else str(value)
