"""Scalar expressions: sqlglot nodes to the closed algebra, with Postgres's types and derived domains.

Assembles the table of what exists over private rows: conditions, numbers and choices, texts, dates. Every form chosen
there has a total translation in each dialect (see `emit`), whatever the rows hold.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.algebra import Expr, Lit
from dpsql.compiler.bind import literals
from dpsql.compiler.bind.conditions import CONDITIONS
from dpsql.compiler.bind.context import (
    FUNCTIONS,
    RULES,
    Context,
    bind,
    bind_condition,
    boolean,
    parameter_index,
)
from dpsql.compiler.bind.dates import DATE_FUNCTIONS, DATE_RULES
from dpsql.compiler.bind.functions import FUNCTION_RULES
from dpsql.compiler.bind.scope import resolve
from dpsql.compiler.bind.spellings import SPELLED_FUNCTIONS, SPELLING_RULES
from dpsql.compiler.bind.strings import STRING_RULES
from dpsql.compiler.bind.temporal import TIME_FUNCTIONS, TIME_RULES
from dpsql.compiler.bind.text import TEXT_RULES
from dpsql.compiler.parse import refuse
from dpsql.types import UNKNOWN


def _column(node: exp.Expr, context: Context) -> Expr:
    assert isinstance(node, exp.Column)
    if isinstance(node.this, exp.Star):
        raise refuse("* is not a value", node)
    return resolve(node, context.fields, context.outer)


def _literal(node: exp.Expr, context: Context) -> Expr:
    return literals.string(str(node.this)) if node.args.get("is_string") else literals.number_literal(node.this, node)


def _parameter(node: exp.Expr, context: Context) -> Expr:
    assert isinstance(node, exp.Parameter)
    index = parameter_index(node)
    if index >= len(context.parameters):
        return Lit(None, UNKNOWN)
    return literals.parameter(context.parameters[index], node, context.zone)


def _scalar(node: exp.Expr, context: Context) -> Expr:
    inner = node.this
    if isinstance(inner, exp.Select) and len(inner.expressions) == 1 and _is_value(inner):
        return bind(inner.expressions[0].unalias(), context)
    if context.subquery is None:
        raise refuse("a subquery is not supported here", node)
    return context.subquery(node)


def _is_value(select: exp.Select) -> bool:
    """(SELECT expression) without FROM: the expression itself."""
    bare = all(not value for key, value in select.args.items() if key not in ("expressions", "kind"))
    return bare and select.expressions[0].find(exp.Column, exp.AggFunc, exp.Query, exp.Window, exp.Star) is None


def _boolean_literal(node: exp.Expr, context: Context) -> Expr:
    return literals.TRUE if node.this else literals.FALSE


RULES.update(CONDITIONS)
RULES.update(FUNCTION_RULES)
RULES.update(TEXT_RULES)
RULES.update(STRING_RULES)
RULES.update(TIME_RULES)
RULES.update(DATE_RULES)
RULES.update(SPELLING_RULES)
RULES.update(
    {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Parameter: _parameter,
        exp.Null: lambda node, context: Lit(None, UNKNOWN),
        exp.Boolean: _boolean_literal,
        exp.Paren: lambda node, context: bind(node.this, context),
        exp.Subquery: _scalar,
    }
)
FUNCTIONS.update(TIME_FUNCTIONS)
FUNCTIONS.update(DATE_FUNCTIONS)
FUNCTIONS.update(SPELLED_FUNCTIONS)


__all__ = ["Context", "bind", "bind_condition", "boolean", "parameter_index"]
