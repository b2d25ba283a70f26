"""What a statement's FROM clause makes visible, and what is known about its rows.

Decides how a name finds its column: real columns of the policy, by qualifier and name, never by position in a client's
alias. A `Source` is a relation with its privacy facts; joins build bigger sources from smaller ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial

from sqlglot import exp

from dpsql.compiler.algebra import Col, Domain, Expr, Lit, Node
from dpsql.compiler.fuel import spend
from dpsql.compiler.parse import name_of, refuse
from dpsql.compiler.problems import FollowUp, Problems
from dpsql.compiler.suggest import quoted
from dpsql.errors import AMBIGUOUS_COLUMN, NOT_PERMITTED, UNDEFINED_COLUMN, UNDEFINED_TABLE, Rejected
from dpsql.policy.model import UnitPath
from dpsql.types import UNKNOWN


@dataclass(frozen=True, slots=True)
class Field:
    """A visible column: `qualifier.name` stands for `expr`. `merged`: taken by USING, found qualified only."""

    qualifier: str
    name: str
    expr: Expr
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A relation in scope.

    `unit`: the column that holds each row's unit; None where public, or where `path` still waits for its parent.
    `units`: all columns proven equal to it. `unique`: sets of columns of which one unit has at most one row per value
    (the empty set: one row a unit), true by verification or by the SQL itself. `determines`: sets of columns whose
    values belong to one unit only, by verification. `constants`: columns that have at most one value per unit.
    `multiplies`: rows of a private table may occur more than once. `preserved`: see `from_clause`. `tables`: the
    private tables inside. `known`: what its filter says of expressions.
    """

    node: Node
    fields: tuple[Field, ...]
    private: bool
    unit: Col | None = None
    units: frozenset[str] = frozenset()
    path: UnitPath | None = None
    unique: tuple[frozenset[str], ...] = ()
    determines: tuple[frozenset[str], ...] = ()
    constants: frozenset[str] = frozenset()
    multiplies: bool = False
    preserved: bool = False
    tables: tuple[str, ...] = ()
    known: dict[str, Domain] = field(default_factory=dict)


ANYTHING = "\0"


def unknown_item(qualifier: str) -> Field:
    """Stands for all columns of a FROM item that was refused: what they may be is not reported again."""
    return Field(qualifier, ANYTHING, Lit(None, UNKNOWN))


def resolve(column: exp.Column, fields: tuple[Field, ...], outer: tuple[Field, ...] = ()) -> Expr:
    """The expression that a column reference stands for; 42703, 42P01 or 42702 with its position otherwise.

    A name that is not among `fields` is looked for in the query outside, as SQL does for correlated subqueries.
    """
    name, qualifier = name_of(column.this), name_of(column.args.get("table"))
    spend(len(fields) // 8)
    found = [f for f in fields if f.name == name and (f.qualifier == qualifier if qualifier else not f.merged)]
    distinct = list(dict.fromkeys(f.expr for f in found))
    if len(distinct) == 1:
        return distinct[0]
    if not distinct and any(f.name == ANYTHING and qualifier in ("", f.qualifier) for f in fields):
        raise FollowUp(f'column "{name}" is of a table that was refused', sqlstate=UNDEFINED_COLUMN)
    if not distinct and outer and not (qualifier and any(f.qualifier == qualifier for f in fields)):
        return resolve(column, outer)
    if distinct:
        raise refuse(f'column reference "{name}" is ambiguous', column, sqlstate=AMBIGUOUS_COLUMN)
    if qualifier and all(f.qualifier != qualifier for f in fields):
        raise refuse(f'missing FROM-clause entry for table "{qualifier}"', column, sqlstate=UNDEFINED_TABLE)
    if name in _STORAGE:
        raise refuse(
            f'"{name}" tells where rows are stored, and rows are never returned',
            column,
            sqlstate=NOT_PERMITTED,
            hint="Ask for aggregates, such as SELECT COUNT(*), AVG(x) FROM ... GROUP BY ...",
        )
    raise refuse(
        f'column "{qualifier + "." if qualifier else ""}{name}" does not exist',
        column,
        sqlstate=UNDEFINED_COLUMN,
        hint=_suggest(name, fields),
    )


_STORAGE = frozenset(("ctid", "cmin", "cmax", "xmin", "xmax", "tableoid"))
"""Columns that every table of Postgres has: tools scan and edit tables by them."""


def unknown_columns(node: exp.Expr, fields: tuple[Field, ...], outer: tuple[Field, ...] = ()) -> list[Rejected]:
    """The refusals of all columns of an expression, outside its subqueries, that cannot be found."""
    problems = Problems()
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            problems.catch(partial(resolve, part, fields, outer))
        elif not isinstance(part, exp.Query):
            stack.extend(part.iter_expressions())
    return problems.found


ALIKE = 0.7
"""A name less like another one than this is no slip of the pen: first_name is not birth_date."""


def _suggest(name: str, fields: tuple[Field, ...]) -> str:
    names = sorted({f.name for f in fields if f.name != ANYTHING})
    close = get_close_matches(name, names, n=1, cutoff=ALIKE)
    if close:
        return f'Perhaps you meant "{close[0]}". Only columns declared in the policy exist here.'
    shown = ", ".join(map(quoted, names[:12])) + (", ..." if len(names) > 12 else "")
    return f"Only columns declared in the policy exist here: {shown}."
