"""UNION ALL of private rows: a private relation over the same unit.

Every row keeps its own unit, so the result is private; nothing is known to be unique in it. A column that is the unit
on both sides is the unit of the result: each row's value there is the one that the side proved equal to its unit, in
the same type or, for whole numbers, in a wider one, so that different units stay different. Where each row is a unit
of its own, rows of different tables would share identities, so it is refused.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler import domains
from dpsql.compiler.algebra import Col, Expr, Lit, Node, Project, UnionAll
from dpsql.compiler.bind import temporal
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.bind.literals import coerce
from dpsql.compiler.bind.numbers import cast_number, common_type
from dpsql.compiler.bind.scope import Field, Source
from dpsql.compiler.parse import refuse
from dpsql.types import SqlType


def union_all(left: Source, right: Source, tree: exp.Expr, numbers: Numbers) -> Source:
    """Both sides' columns by position, under the left side's names."""
    if numbers.schema.policy.privacy.is_row or left.unit is None or right.unit is None:
        raise refuse("UNION ALL needs a unit column: here each row is a unit of its own", tree)
    if len(left.fields) != len(right.fields):
        raise refuse("each UNION query must have the same number of columns", tree, sqlstate="42601")
    number = numbers.take()
    types = [common_type([a.expr.type, b.expr.type], tree) for a, b in zip(left.fields, right.fields, strict=True)]
    unit = Col(f"v{number}_u", left.unit.type, left.unit.domain, left.unit.origin)
    names = tuple(f"v{number}_{i}" for i in range(len(types)))
    sides = tuple(_side(s, names, types, unit.name, tree) for s in (left, right))
    fields = tuple(
        Field("", a.name, Col(name, type_, domains.hull([a.expr.domain, b.expr.domain])))
        for a, b, name, type_ in zip(left.fields, right.fields, names, types, strict=True)
    )
    columns = zip(left.fields, right.fields, fields, strict=True)
    units = {f.expr.name for a, b, f in columns if isinstance(f.expr, Col) and _is_unit(a, b, f.expr.type, left, right)}
    return Source(
        node=UnionAll(sides, (unit.name, *names)),
        fields=fields,
        private=True,
        unit=unit,
        units=frozenset({unit.name, *units}),
        constants=frozenset({unit.name, *units}),
        tables=(*left.tables, *right.tables),
    )


def _is_unit(a: Field, b: Field, type_: SqlType, left: Source, right: Source) -> bool:
    """Whether the column is the unit on both sides, and told apart in the common type as in its own."""
    return all(
        isinstance(field.expr, Col)
        and field.expr.name in source.units
        and (field.expr.type == type_ or (field.expr.type.is_integer and type_.is_integer))
        for field, source in ((a, left), (b, right))
    )


def _side(source: Source, names: tuple[str, ...], types: list[SqlType], unit: str, tree: exp.Expr) -> Node:
    assert source.unit is not None
    columns = [(unit, source.unit), *zip(names, _in_types(source, types, tree), strict=True)]
    return Project(source.node, tuple((name, expr) for name, expr in columns))


def _in_types(source: Source, types: list[SqlType], tree: exp.Expr) -> list[Expr]:
    return [_as_type(f.expr, type_, tree) for f, type_ in zip(source.fields, types, strict=True)]


def _as_type(expr: Expr, type_: SqlType, tree: exp.Expr) -> Expr:
    if expr.type == type_:
        return expr
    if isinstance(expr, Lit):
        return coerce(expr, type_, tree)
    return cast_number(expr, type_, tree) if type_.is_number else temporal.cast(expr, type_, tree)
