"""The name Postgres gives to an output column that has no alias (FigureColname in its parser)."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.public.nodes import function_name
from dpsql.compiler.public.scope import name_of

UNNAMED = "?column?"


def output_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Alias):
        return name_of(node.args["alias"])
    return _name(node)[0] or UNNAMED


def _name(node: exp.Expr) -> tuple[str, int]:
    """The name and its strength: 0 none, 1 weak (a cast's type, CASE), 2 strong."""
    match node:
        case exp.Column():
            return name_of(node.this), 2
        case exp.Paren() | exp.Window() | exp.Filter() | exp.WithinGroup() | exp.Collate():
            return _name(node.this)
        case exp.Cast(this=exp.IntDiv()):
            return "div", 2
        case exp.Cast():
            name, strength = _name(node.this)
            return (name, strength) if strength > 1 else (type_name(node.to), 1)
        case exp.Case():
            default = node.args.get("default")
            name, strength = _name(default) if default is not None else ("", 0)
            return (name, strength) if strength > 1 else ("case", 1)
        case exp.Subquery():
            return _subquery_name(node)
        case exp.Exists():
            return "exists", 2
        case exp.Array():
            return "array", 2
        case exp.AtTimeZone():
            return "timezone", 2
        case exp.Interval():
            return "interval", 1
        case _:
            name = function_name(node)
            return name, 2 if name else 0


def _subquery_name(node: exp.Expr) -> tuple[str, int]:
    inner = node.unnest()
    while isinstance(inner, exp.SetOperation):
        inner = inner.this.unnest()
    if isinstance(inner, exp.Select) and inner.expressions:
        return output_name(inner.expressions[0]), 2
    return "column1", 2


_TYPE_NAMES = {
    exp.DType.INT: "int4",
    exp.DType.SMALLINT: "int2",
    exp.DType.BIGINT: "int8",
    exp.DType.DECIMAL: "numeric",
    exp.DType.FLOAT: "float4",
    exp.DType.DOUBLE: "float8",
    exp.DType.BOOLEAN: "bool",
    exp.DType.CHAR: "bpchar",
    exp.DType.VARBINARY: "bytea",
}


def type_name(node: exp.Expr) -> str:
    """The type's internal name, as a column's name."""
    kind = node.this
    return _TYPE_NAMES.get(kind, str(getattr(kind, "value", kind)).lower())
