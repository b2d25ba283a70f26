"""What the policy declares of columns, as the rows of `dpsql.columns`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsql.policy.schema import Schema, SchemaTable
from dpsql.public import comments
from dpsql.types import BOOL, TEXT, Column, Value

MOST_VALUES = 50
"""More are cut off in `value_list`, with `...` at its end: psql shows every row as wide as the widest."""

COLUMNS_OF_COLUMNS = (
    Column("table_name", TEXT),
    Column("column_name", TEXT),
    Column("data_type", TEXT),
    Column("is_public", BOOL),
    Column("is_unit", BOOL),
    Column("lower", TEXT),
    Column("upper", TEXT),
    Column("value_list", TEXT),
    Column("can_be_null", BOOL),
    Column("refers_to", TEXT),
    Column("comment", TEXT),
)


def column_rows(schema: Schema, tables: Sequence[SchemaTable]) -> Iterator[Mapping[str, Value]]:
    """One row for each column that statements may name."""
    for table in tables:
        for column in table.columns:
            yield {
                "table_name": table.name,
                "column_name": column.name,
                "data_type": str(column.type),
                "is_public": table.public,
                "is_unit": column.name == table.unit,
                "lower": _shown(column.lower),
                "upper": _shown(column.upper),
                "value_list": _listed(column.values),
                "can_be_null": column.nullable,
                "refers_to": None if column.references is None else ".".join(column.references),
                "comment": comments.of_column(schema, table, column),
            }


def _listed(values: tuple[Value, ...] | None) -> str | None:
    if values is None:
        return None
    shown = [str(value) for value in values[:MOST_VALUES]]
    return ", ".join(shown if len(values) <= MOST_VALUES else [*shown, "..."])


def _shown(value: Value) -> str | None:
    return None if value is None else str(value)
