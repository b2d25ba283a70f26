"""The types that may be named in a cast."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.public.refuse import only
from dpsql.compiler.public.scope import position_of
from dpsql.errors import BAD_PARAMETER, NOT_SUPPORTED, Rejected
from dpsql.types import Kind, SqlType

_NAMED: dict[exp.DType, Kind] = {
    exp.DType.BOOLEAN: Kind.BOOL,
    exp.DType.SMALLINT: Kind.INT2,
    exp.DType.INT: Kind.INT4,
    exp.DType.BIGINT: Kind.INT8,
    exp.DType.DECIMAL: Kind.NUMERIC,
    exp.DType.FLOAT: Kind.FLOAT4,
    exp.DType.DOUBLE: Kind.FLOAT8,
    exp.DType.TEXT: Kind.TEXT,
    exp.DType.VARCHAR: Kind.TEXT,
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIME: Kind.TIME,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: Kind.TIMESTAMPTZ,
    exp.DType.INTERVAL: Kind.INTERVAL,
    exp.DType.UUID: Kind.UUID,
    exp.DType.NAME: Kind.NAME,
}


def declared_type(node: exp.Expr) -> tuple[SqlType, int | None]:
    """The type of a cast, and the length to cut text to."""
    kind = _NAMED.get(node.this) if isinstance(node, exp.DataType) else None
    if kind is None:
        raise Rejected(
            f"casts to {node.sql('postgres').lower()} are not supported",
            sqlstate=NOT_SUPPORTED,
            position=position_of(node),
        )
    only(node, "this", "expressions", "nested")
    numbers = [_number(each) for each in node.expressions]
    if not numbers:
        return SqlType(kind), None
    if kind is Kind.TEXT and node.this is exp.DType.VARCHAR and len(numbers) == 1:
        return SqlType(kind), numbers[0]
    if kind is not Kind.NUMERIC or len(numbers) > 2:
        text = f"type modifiers of {kind.value} are not supported"
        raise Rejected(text, sqlstate=NOT_SUPPORTED, position=position_of(node))
    return _numeric(numbers, node), None


def _numeric(numbers: list[int], node: exp.Expr) -> SqlType:
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if not 1 <= precision <= 1000 or not 0 <= scale <= precision:
        text = f"NUMERIC precision {precision}, scale {scale} is outside what is supported"
        raise Rejected(text, sqlstate=BAD_PARAMETER, position=position_of(node))
    return SqlType(Kind.NUMERIC, precision, scale)


def _number(node: exp.Expr) -> int:
    text = str(node.this.this) if isinstance(node, exp.DataTypeParam) and isinstance(node.this, exp.Literal) else ""
    if not text.isdigit() or len(text) > 8:
        raise Rejected("invalid type modifier", sqlstate=BAD_PARAMETER, position=position_of(node))
    return int(text)
