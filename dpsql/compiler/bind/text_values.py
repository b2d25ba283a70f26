"""All values of a text, where the policy and the statement tell them: they can then name public keys.

Decides how many are computed. The backend's text is compared with them, so a difference could lose rows but never show
a key that the policy does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from dpsql.compiler.algebra import Call, Domain, Expr, Lit, Op
from dpsql.compiler.fuel import spend
from dpsql.compiler.keys import Released, key_domain
from dpsql.types import TEXT, Value

MOST_VALUES = 10_000
MOST_TEXT = 200_000
"""Values of a text that are computed here, and their characters together: texts can grow with every function."""


def finite(expr: Expr) -> tuple[Value, ...] | None:
    """All values of an expression, NULL apart, where the policy and the statement tell them."""
    if isinstance(expr, Lit):
        return () if expr.value is None else (expr.value,)
    domain = key_domain(expr, MOST_VALUES)
    if domain is None or isinstance(domain.of, Released):
        return None
    spend(2 * domain.size)
    return tuple(domain.value(i, expr.type) for i in range(domain.size - domain.nullable))


def mapped(parts: tuple[Expr, ...], compute: Callable[..., Value]) -> tuple[Value, ...] | None:
    """The values of a function of these parts; None where they are not known, or too many."""
    choices = []
    for part in parts:
        values = finite(part)
        if values is None:
            return None
        choices.append(values)
    if prod(len(values) for values in choices) > MOST_VALUES:
        return None
    found: dict[Value, None] = {}
    size = 0
    for chosen in product(*choices):
        spend(2)
        made = compute(*chosen)
        size += len(made) if isinstance(made, str) else 0
        if size > MOST_TEXT:
            return None
        found[made] = None
    return tuple(found)


def called(op: Op, args: tuple[Expr, ...], compute: Callable[..., Value]) -> Call:
    """A text function that is NULL where an argument is."""
    values = mapped(args, compute)
    return Call(op, args, TEXT, Domain(values=values, nullable=any(a.domain.nullable for a in args)))
