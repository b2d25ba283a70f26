"""TRY_CAST of text over private rows: a number or date where the text is one in a plain spelling, NULL elsewhere.

CAST raises an error on a text that is none, which no row may; so it is refused with TRY_CAST as the way to write it,
except over texts whose values are all listed and can be read. The spellings are few, so that every backend reads the
same texts: whole numbers of at most 18 digits, decimals of at most 15 before and after the point, dates YYYY-MM-DD of
the calendar from the year 1000 on, timestamps YYYY-MM-DD HH:MI:SS; blanks around them are skipped.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dpsql.compiler.algebra import Call, Case, Domain, Expr, Lit
from dpsql.compiler.bind.context import Context, boolean
from dpsql.compiler.bind.text_values import finite
from dpsql.compiler.domains import INTEGER_REACH, hull, null_domain
from dpsql.compiler.parse import refuse
from dpsql.errors import BAD_TEXT, Rejected
from dpsql.types import TEXT, Kind, SqlType


def tried(inner: Expr, type_: SqlType, node: exp.Expr, context: Context) -> Expr:
    """TRY_CAST(text AS type)."""
    if isinstance(inner, Lit):
        try:
            return context.coerce(inner, type_, node)
        except Rejected:
            return Lit(None, type_)
    if type_.is_integer:
        reach = INTEGER_REACH[type_.kind]
        return Call("text_to_int", (inner,), type_, Domain(reach=reach, grain=Fraction(1)))
    if type_.is_number:
        return Call("text_to_float", (inner,), type_, Domain(reach=Fraction(10**15), grain=Fraction(1, 10**15)))
    match type_.kind:
        case Kind.DATE:
            return Call("text_to_date", (inner,), type_, Domain())
        case Kind.TIMESTAMP:
            return Call("text_to_timestamp", (inner,), type_, Domain())
        case _:
            raise refuse(f"TRY_CAST from text to {type_} is not available over private rows", node)


def surely(inner: Expr, type_: SqlType, node: exp.Expr, context: Context) -> Expr:
    """CAST(text AS type): of listed values, each of which must have the type's form; else refused."""
    values = finite(inner)
    if values is not None and 1 <= len(values) <= 500:
        made = []
        for value in values:
            try:
                made.append((value, context.coerce(Lit(value, TEXT), type_, node)))
            except Rejected as error:
                raise Rejected(
                    error.message,
                    sqlstate=BAD_TEXT,
                    position=error.position,
                    hint=f"One of the listed values is no {type_}. {_instead(node, type_)}",
                ) from None
        branches = tuple((boolean("eq", inner, Lit(value, TEXT)), literal) for value, literal in made)
        listed = [literal.domain for _, literal in made]
        return Case(branches, None, type_, hull([*listed, *([null_domain()] if inner.domain.nullable else [])]))
    raise refuse(
        f"CAST from text to {type_} would fail on a row whose text is no {type_}, so it is not available over "
        "private rows",
        node,
        hint=_instead(node, type_),
    )


def _instead(node: exp.Expr, type_: SqlType) -> str:
    x = node.this.sql("postgres") if isinstance(node.this, exp.Expr) else "x"
    written = f"TRY_CAST({x} AS {type_})"
    bounded = f"; to sum it, bound it: LEAST(GREATEST({written}, 0), 1000)" if type_.is_number else ""
    return f"Write {written}, which is NULL there{bounded}."
