"""Parameters in the public remainder: each `$n` becomes the constant it stands for, as if it had been written there.

Over private rows `expr` binds parameters itself. A parameter whose type nothing has fixed yet takes that of what it
is compared with or of its clause, else text, and is recorded so that Describe can announce it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlglot import exp

from dpsql.compiler.algebra import Lit
from dpsql.compiler.bind.expr import parameter_index
from dpsql.compiler.clock import CLOCKS, reading
from dpsql.types import BOOL, FLOAT8, INT4, INT8, NUMERIC, TEXT, UNKNOWN, Column, Kind, SqlType

_NAMES = {
    Kind.BOOL: "boolean", Kind.INT2: "smallint", Kind.INT4: "integer", Kind.INT8: "bigint", Kind.NUMERIC: "numeric",
    Kind.FLOAT4: "real", Kind.FLOAT8: "double precision", Kind.TEXT: "text", Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMPTZ: "timestamptz", Kind.UUID: "uuid", Kind.INTERVAL: "interval",
    Kind.TIME: "time",
}  # fmt: skip


Relations = Mapping[str, tuple[Column, ...]]
_CLAUSES = {exp.Limit: INT8, exp.Offset: INT8, exp.Fetch: INT8, exp.Where: BOOL, exp.Having: BOOL}


def with_parameters(
    tree: exp.Query, parameters: tuple[Lit, ...], inferred: dict[int, SqlType], relations: Relations
) -> exp.Query:
    """The tree with every parameter replaced by a constant."""
    for node in list(tree.find_all(exp.Parameter)):
        index = parameter_index(node)
        literal = parameters[index] if index < len(parameters) else Lit(None, UNKNOWN)
        if literal.type.kind is Kind.UNKNOWN and index not in inferred:
            inferred[index] = _expected(node, relations)
        node.replace(constant(literal))
    return tree


def with_clock(tree: exp.Query, now: datetime | None) -> exp.Query:
    """The tree with the constants that the clock's functions stand for, where a release reads what it computes."""
    for node in list(tree.find_all(*CLOCKS)):
        node.replace(constant(reading(node, now)))
    return tree


def constant(literal: Lit) -> exp.Expr:
    """A constant as an expression; an untyped one stays an untyped string, which takes its context's type."""
    if literal.value is None:
        made: exp.Expr = exp.Null()
    elif isinstance(literal.value, bool):
        made = exp.Boolean(this=literal.value)
    elif isinstance(literal.value, int):
        made = exp.Literal.number(literal.value)
    else:
        made = exp.Literal.string(str(literal.value))
    name = _NAMES.get(literal.type.kind)
    return made if name is None else exp.Cast(this=made, to=exp.DataType.build(name, dialect="postgres"))


def _expected(node: exp.Parameter, relations: Relations) -> SqlType:
    """The type that the parameter's place suggests."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        parent = parent.parent
    clause = next((t for kind, t in _CLAUSES.items() if isinstance(parent, kind)), None)
    if clause is not None:
        return clause
    if isinstance(parent, exp.Cast):
        return _TYPES_BY_NAME.get(str(getattr(parent.args["to"].this, "value", "")).lower(), TEXT)
    if isinstance(parent, exp.Binary | exp.In | exp.Between):
        for other in parent.iter_expressions():
            found = _type_of(other, relations)
            if found is not None:
                return found
    return TEXT


def _type_of(node: exp.Expr, relations: Relations) -> SqlType | None:
    if isinstance(node, exp.Column):
        columns = relations.get(node.table, ())
        return next((c.type for c in columns if c.name == node.name), None)
    if isinstance(node, exp.Literal) and not node.is_string:
        return INT8 if node.is_int else NUMERIC
    if isinstance(node, exp.Count):
        return INT8
    if isinstance(node, exp.Paren | exp.Binary):
        return next((t for child in node.iter_expressions() if (t := _type_of(child, relations)) is not None), None)
    return None


_TYPES_BY_NAME = {
    "int": INT4, "bigint": INT8, "smallint": SqlType(Kind.INT2), "decimal": NUMERIC, "double": FLOAT8, "text": TEXT,
    "varchar": TEXT, "date": SqlType(Kind.DATE), "timestamp": SqlType(Kind.TIMESTAMP),
    "timestamptz": SqlType(Kind.TIMESTAMPTZ), "boolean": BOOL, "float": SqlType(Kind.FLOAT4),
}  # fmt: skip
