"""What expressions over private rows are bound in, and the table of rules that binds them.

Decides what an expression may refer to, how untyped literals get their types, and that everything is by allow-list: an
unknown node, or an argument that the rule for its node does not read, is refused. `expr` fills the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import count

from sqlglot import exp

from dpsql.compiler.algebra import Call, Domain, Expr, Lit, Op
from dpsql.compiler.bind import literals
from dpsql.compiler.bind.instead import INSTEAD, INSTEAD_OF, TOTAL
from dpsql.compiler.bind.numbers import cast_number, common_type, family
from dpsql.compiler.bind.scope import Field
from dpsql.compiler.clock import of_word
from dpsql.compiler.fuel import spend
from dpsql.compiler.parse import refuse, unwrap, written
from dpsql.errors import TOO_COMPLEX, TYPE_MISMATCH, UNDEFINED_FUNCTION, Rejected
from dpsql.types import BOOL, NUMERIC, TEXT, Kind, SqlType


@dataclass(frozen=True, slots=True)
class Context:
    """What expressions may refer to: visible columns, then those of the query outside, parameters, subqueries.

    The callbacks bind what needs more than an expression; None refuses it. `membership` takes the subquery of IN and
    the left side. `inferred` collects the types that their place gave to untyped parameters.
    `zone`: the policy's. `now`: the time that the statement's clock shows there, see `clock`.
    """

    fields: tuple[Field, ...]
    parameters: tuple[Lit, ...] = ()
    inferred: dict[int, SqlType] = field(default_factory=dict)
    subquery: Callable[[exp.Expr], Expr] | None = None
    exists: Callable[[exp.Exists], Expr] | None = None
    membership: Callable[[exp.Expr, Expr], Expr] | None = None
    aggregate: Callable[[exp.Expr], Expr] | None = None
    outer: tuple[Field, ...] = ()
    zone: tzinfo = UTC
    now: datetime | None = None
    bound: Iterator[int] = field(default_factory=count)
    """How many expressions have been bound: one that is written several times is bound as often, and all in it too."""

    def coerce(self, literal: Lit, type_: SqlType, at: exp.Expr) -> Lit:
        parameter = unwrap(at)
        if isinstance(parameter, exp.Parameter) and literal.type.kind is Kind.UNKNOWN:
            self.inferred[parameter_index(parameter)] = type_
        elif type_.is_time and isinstance(literal.value, str):
            named = of_word(literal.value, self.now)
            if named is not None:
                return Lit(named.date() if type_.kind is Kind.DATE else named, type_)
        return literals.coerce(literal, type_, at, self.zone)


MOST_BOUND = 10_000
"""Far beyond what tokens need, but for nested expressions that multiply: BETWEEN, CASE x WHEN, IN of rows."""

Rule = Callable[[exp.Expr, Context], Expr]
RULES: dict[type[exp.Expr], Rule] = {}
FUNCTIONS: dict[str, Rule] = {}
"""Functions that sqlglot has no node for, by their lower-case names."""


def bind(node: exp.Expr, context: Context) -> Expr:
    """The algebra's form of a scalar expression."""
    spend(20)
    if next(context.bound) >= MOST_BOUND:
        hint = "Use fewer nested expressions."
        raise Rejected("The statement is too complex.", sqlstate=TOO_COMPLEX, hint=hint)
    rule = RULES.get(type(node))
    if rule is None and context.aggregate is not None and isinstance(node, exp.AggFunc | exp.Filter):
        return context.aggregate(node)
    if rule is None and isinstance(node, exp.Anonymous):
        rule = FUNCTIONS.get(str(node.this).lower())
    if rule is None:
        raise _unsupported(node)
    return rule(node, context)


def bind_condition(node: exp.Expr, context: Context) -> Expr:
    """A boolean expression, as WHERE, ON and FILTER need it."""
    expr = typed(bind(node, context), BOOL, node, context)
    if expr.type.kind is not Kind.BOOL:
        raise refuse(f"a condition must be boolean, not {expr.type}", node, sqlstate=TYPE_MISMATCH)
    return expr


def parameter_index(node: exp.Parameter) -> int:
    """The 0-based index of `$n`."""
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if not text.isdigit() or not 1 <= int(text) <= 65_535:
        hint = (
            "Write ABS(x) for @ x."
            if isinstance(node.this, exp.Expr) and not isinstance(node.this, exp.Literal)
            else None
        )
        raise refuse("parameters are written $1, $2, ...", node, sqlstate="42P02", hint=hint)
    return int(text) - 1


def _unsupported(node: exp.Expr | None) -> Rejected:
    if node is None:
        return Rejected("a function lacks an argument", sqlstate=UNDEFINED_FUNCTION)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return refuse(
            f"function {name} is not available over private rows",
            node,
            sqlstate=UNDEFINED_FUNCTION,
            hint=INSTEAD_OF.get(name, TOTAL),
        )
    if isinstance(node, exp.AggFunc):
        hint = f"A condition on groups stands behind GROUP BY: HAVING {node.sql('postgres')} ..."
        return refuse("an aggregate function is not allowed here", node, sqlstate="42803", hint=hint)
    if isinstance(node, exp.Window):
        return refuse(
            "window functions over private rows are not supported",
            node,
            hint="Aggregate first: a window over a subquery with GROUP BY is free.",
        )
    instead = INSTEAD.get(type(node), TOTAL if isinstance(node, exp.Func) else None)
    return refuse(f"{written(node)} is not supported over private rows", node, hint=instead)


def typed(expr: Expr, type_: SqlType, node: exp.Expr, context: Context) -> Expr:
    """Gives an untyped literal or parameter the type that its place asks for."""
    if isinstance(expr, Lit) and expr.type.kind is Kind.UNKNOWN:
        return context.coerce(expr, type_, node)
    return expr


def pair(left: exp.Expr, right: exp.Expr, context: Context) -> tuple[Expr, Expr]:
    """Both sides of an operator; an untyped one takes the other's type."""
    a, b = bind(left, context), bind(right, context)
    if a.type.kind is Kind.UNKNOWN and b.type.kind is Kind.UNKNOWN:
        return typed(a, TEXT, left, context), typed(b, TEXT, right, context)
    return typed(a, b.type, left, context), typed(b, a.type, right, context)


def boolean(op: Op, *args: Expr) -> Call:
    """A boolean call; its domain is both truth values, and NULL where an argument may be NULL."""
    nullable = op not in ("is_null", "distinct", "is_true", "is_false") and any(a.domain.nullable for a in args)
    return Call(op, args, BOOL, Domain(values=(False, True), nullable=nullable))


def comparable(a: Expr, b: Expr, node: exp.Expr) -> None:
    """Refuses to compare values of two families."""
    if family(a.type) != family(b.type):
        raise refuse(
            f"operator does not exist: {a.type} compared with {b.type}",
            node,
            sqlstate=UNDEFINED_FUNCTION,
            hint="Write the constant in the type of the column.",
        )


def number(expr: Expr, node: exp.Expr, context: Context) -> Expr:
    """The expression, which must be a number."""
    expr = typed(expr, NUMERIC, node, context)
    if not expr.type.is_number:
        raise refuse(f"a number is needed here, not {expr.type}", node, sqlstate=UNDEFINED_FUNCTION)
    return expr


def text(node: exp.Expr, context: Context) -> Expr:
    """The bound expression, which must be text."""
    expr = typed(bind(node, context), TEXT, node, context)
    if expr.type.kind is not Kind.TEXT:
        raise refuse(
            f"text is needed here, not {expr.type}", node, sqlstate=UNDEFINED_FUNCTION, hint="Write CAST(x AS text)."
        )
    return expr


def constant(node: exp.Expr | None, type_: SqlType, context: Context) -> Lit | None:
    """A constant of this type; None where it is another expression, or NULL."""
    if node is None:
        return None
    found = typed(bind(node, context), type_, node, context)
    return found if isinstance(found, Lit) and found.value is not None and found.type.kind is type_.kind else None


def same_type(results: list[tuple[exp.Expr, Expr]], node: exp.Expr, context: Context) -> list[Expr]:
    """The results of CASE, COALESCE, ... in one type."""
    type_ = common_type([bound.type for _, bound in results], node)
    values = [typed(bound, type_, at, context) for at, bound in results]
    return [as_type(value, type_, context, node) for value in values]


def as_type(value: Expr, type_: SqlType, context: Context, node: exp.Expr) -> Expr:
    """An expression of one family in another of its types."""
    from dpsql.compiler.bind import temporal

    if value.type == type_:
        return value
    if isinstance(value, Lit):
        return context.coerce(value, type_, node)
    if value.type.is_number:
        return cast_number(value, type_, node)
    return temporal.cast(value, type_, node)
