"""Which expressions are never NULL in any row that a release reads, whatever the database holds.

Decided from what the emitted SQL does, never from what the policy declares: a NULL unit is dropped by every scan, a row
passes a filter or an inner join only where its comparisons are true, COUNT of a unit's rows has a value, and so have
constants and what total functions make of all these. Floats, and numerics that are read as floats, may be NaN, which
contributes to no aggregate and passes comparisons: no condition makes a stored one count. A wrong answer here would
cost correctness alone: the factor of moments comes from row counts that include all rows with a value, so that no
sensitivity hangs on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.compiler.algebra import (
    Call,
    Case,
    Col,
    Expr,
    Filter,
    Join,
    Lit,
    Node,
    PerUnit,
    Project,
    Rows,
    Scan,
    UnionAll,
    conjuncts,
)
from dpsql.types import Kind

_KEEPS = (
    "add", "sub", "mul", "neg", "abs", "floor", "ceil", "round", "trunc", "sign", "to_int", "to_float", "to_numeric",
    "clamp", "bool_to_int", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not",
)  # fmt: skip
"""Have a value where all their arguments have one."""

_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge", "like", "ilike")


def always_there(expr: Expr, present: frozenset[str]) -> bool:
    """Whether the expression has a value in every row in which the columns `present` have one."""
    match expr:
        case Lit(value=value):
            return value is not None
        case Col(name=name):
            return name in present and not may_be_nan(expr)
        case Call(op="coalesce", args=args):
            return any(always_there(arg, present) for arg in args)
        case Call(op="is_null" | "is_true" | "is_false" | "distinct"):
            return True
        case Call(op=op, args=args) if op in _KEEPS:
            return all(always_there(arg, present) for arg in args)
        case Case(branches=branches, default=default) if default is not None:
            return all(always_there(value, present) for value in (default, *(v for _, v in branches)))
        case _:
            return False


def may_be_nan(column: Col) -> bool:
    """Whether a stored number is read as a float, of which NaN is taken as NULL."""
    return column.type.is_float or (column.type.kind is Kind.NUMERIC and column.type.precision is None)


def present_in(node: Node) -> frozenset[str]:
    """The columns of a relation that are never NULL."""
    match node:
        case Scan(unit=unit):
            return frozenset() if unit is None else frozenset({unit})
        case Rows():
            return frozenset()
        case Filter(input=inner, conditions=conditions):
            return present_in(inner) | demanded(conditions)
        case Project(input=inner, columns=columns):
            below = present_in(inner)
            return below | {name for name, expr in columns if always_there(expr, below)}
        case Join(kind=kind, left=left, right=right, conditions=conditions):
            if kind == "left":
                return present_in(left)
            return present_in(left) | present_in(right) | demanded(conditions)
        case PerUnit(input=inner, keys=keys, parts=parts):
            below = present_in(inner)
            made = {name for name, part in parts if part.kind in ("count", "count_distinct")}
            return frozenset(made | {name for name, key in keys if always_there(key, below)})
        case UnionAll(inputs=inputs, columns=names):
            return frozenset(names).intersection(*(present_in(each) for each in inputs))


def demanded(conditions: Iterable[Expr]) -> frozenset[str]:
    """The columns without which none of the conditions would be true."""
    return frozenset(col.name for each in conditions for part in conjuncts(each) for col in _read(part))


def _read(part: Expr) -> Iterator[Col]:
    match part:
        case Call(op=op, args=args) if op in _COMPARES:
            yield from (arg for arg in args if isinstance(arg, Col))
        case Call(op="in", args=(Col() as subject, *_)):
            yield subject
        case Call(op="not", args=(Call(op="is_null", args=(Col() as subject,)),)):
            yield subject
        case _:
            return
