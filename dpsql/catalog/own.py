"""The views of schema dpsql: what the policy declares of columns, and what the engine tells of a user's budget.

Decides their shape in SQL. `columns` is stored with the catalog; the others are asked for at each query, and become
rows of literals in it.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from dpsql.catalog.snapshot import OWN_SCHEMA, CatalogColumn, CatalogRelation
from dpsql.types import Kind, Relation, SqlType, Value

_TEXT, _BOOL = 25, 16
_OID = 16_383

COLUMNS = CatalogRelation(
    OWN_SCHEMA,
    "columns",
    _OID,
    "v",
    tuple(
        CatalogColumn(name, type, False)
        for name, type in (
            ("table_name", _TEXT),
            ("column_name", _TEXT),
            ("data_type", _TEXT),
            ("is_public", _BOOL),
            ("is_unit", _BOOL),
            ("lower", _TEXT),
            ("upper", _TEXT),
            ("value_list", _TEXT),
            ("can_be_null", _BOOL),
            ("refers_to", _TEXT),
            ("comment", _TEXT),
        )
    ),
)


# --- relations as literals -----------------------------------------------------------------------------------------

_DUCKDB_TYPES = {
    Kind.BOOL: "BOOLEAN",
    Kind.INT2: "SMALLINT",
    Kind.INT4: "INTEGER",
    Kind.INT8: "BIGINT",
    Kind.NUMERIC: "DECIMAL(38, 15)",
    Kind.FLOAT8: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMP",
}


def as_query(relation: Relation) -> exp.Query:
    """A relation as VALUES; one row of NULLs, which is filtered out, names and types the columns of an empty one."""
    names = [column.name for column in relation.columns]
    rows = [tuple(_typed(v, c.type) for v, c in zip(row, relation.columns, strict=True)) for row in relation.rows]
    nulls = tuple(_typed(None, column.type) for column in relation.columns)
    values = exp.values(rows or [nulls], alias="own", columns=names)
    query = exp.select(*(exp.column(name, quoted=True) for name in names)).from_(values)
    return query if rows else query.where(exp.false())


def _typed(value: Value, type: SqlType) -> exp.Expr:
    text = _DUCKDB_TYPES.get(type.kind, "VARCHAR")
    literal = exp.Null() if value is None else exp.Literal.string(_plain(value))
    return exp.cast(literal, exp.DataType.build(text, dialect="duckdb"))


def _plain(value: Value) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)
