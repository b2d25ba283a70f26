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
from dpsql.compiler.spelling import READINGS, Fits, alike, either, exactly, quoted
from dpsql.errors import AMBIGUOUS_COLUMN, NOT_PERMITTED, UNDEFINED_COLUMN, UNDEFINED_TABLE, Rejected
from dpsql.policy.model import UnitPath
from dpsql.types import UNKNOWN


@dataclass(frozen=True, slots=True)
class Field:
    """A visible column: `qualifier.name` stands for `expr`. `merged`: taken by USING, found qualified only.

    `schemas`: those that may stand before the qualifier, where it is a table's own name.
    """

    qualifier: str
    name: str
    expr: Expr
    merged: bool = False
    schemas: frozenset[str] = frozenset()


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
    spend(len(fields) // 8)
    own = bool(column.args.get("table")) and any(_is_of(column, f, exactly) for f in fields)
    levels = (fields,) if own or not outer else (fields, outer)
    for fits in READINGS:
        for level in levels:
            found = [f for f in level if fits(column.this, f.name) and _is_of(column, f, fits)]
            if found:
                return _single(column, found)
            _check_refused(column, level)
    raise _missing(column, levels[-1])


def is_outside(column: exp.Column, fields: tuple[Field, ...], outer: tuple[Field, ...]) -> bool:
    """Whether a query over `fields` names a column of the query outside, or a table of it."""
    for fits in READINGS:
        for level in (fields, outer):
            of = [f for f in level if _is_of(column, f, fits)]
            if any(column.args.get("table") or fits(column.this, f.name) for f in of):
                return level is outer
    return False


def fields_of(column: exp.Column, fields: tuple[Field, ...]) -> list[Field]:
    """Those that `table.*` stands for."""
    found = ([f for f in fields if _is_of(column, f, fits)] for fits in READINGS)
    return next((each for each in found if each), [])


def spell(column: exp.Column, fields: tuple[Field, ...]) -> None:
    """Writes a column as it is declared, where it is alike in all but case to one of the fields alone."""
    if any(exactly(column.this, f.name) and _is_of(column, f, exactly) for f in fields):
        return
    found = [f for f in fields if alike(column.this, f.name) and _is_of(column, f, alike)]
    if len(found) == 1:
        column.set("this", exp.to_identifier(found[0].name, quoted=True))
        if column.args.get("table") is not None:
            column.set("table", exp.to_identifier(found[0].qualifier, quoted=True))


def _is_of(column: exp.Column, field: Field, fits: Fits) -> bool:
    """Whether the field is of the table that is named before the column; of any, save what USING took, without one."""
    table, schema = column.args.get("table"), column.args.get("db")
    if table is None:
        return not field.merged
    return fits(table, field.qualifier) and (schema is None or any(fits(schema, name) for name in field.schemas))


def _single(column: exp.Column, found: list[Field]) -> Expr:
    distinct = list(dict.fromkeys(f.expr for f in found))
    if len(distinct) == 1:
        return distinct[0]
    message = f'column reference "{name_of(column.this)}" is ambiguous'
    raise refuse(message, column, sqlstate=AMBIGUOUS_COLUMN, hint=either(quoted(f.name) for f in found))


def _check_refused(column: exp.Column, fields: tuple[Field, ...]) -> None:
    table = name_of(column.args.get("table"))
    if any(f.name == ANYTHING and table in ("", f.qualifier) for f in fields):
        raise FollowUp(f'column "{name_of(column.this)}" is of a table that was refused', sqlstate=UNDEFINED_COLUMN)


def _missing(column: exp.Column, fields: tuple[Field, ...]) -> Rejected:
    name, qualifier = name_of(column.this), name_of(column.args.get("table"))
    if qualifier and not fields_of(column, fields):
        within = name_of(column.args.get("db"))
        table = f"{within}.{qualifier}" if within and any(f.qualifier == qualifier for f in fields) else qualifier
        return refuse(f'missing FROM-clause entry for table "{table}"', column, sqlstate=UNDEFINED_TABLE)
    if name in _STORAGE:
        return refuse(
            f'"{name}" tells where rows are stored, and rows are never returned',
            column,
            sqlstate=NOT_PERMITTED,
            hint="Ask for aggregates, such as SELECT COUNT(*), AVG(x) FROM ... GROUP BY ...",
        )
    return refuse(
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
