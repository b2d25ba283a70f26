"""How a node that is not on the allow-list is refused."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.public.scope import position_of
from dpsql.errors import NOT_SUPPORTED, Rejected


def only(node: exp.Expr, *allowed: str) -> None:
    """Raises if `node` has any argument beyond `allowed`: an unknown option must never be dropped silently."""
    for name, value in node.args.items():
        if value not in (None, False, [], "") and name not in allowed:
            what = f"{name.replace('_', ' ').strip().upper()} in {_label(node)}"
            raise Rejected(f"{what} is not supported", sqlstate=NOT_SUPPORTED, position=position_of(node))


def unsupported(node: exp.Expr) -> Rejected:
    return Rejected(f"{_label(node)} is not supported here", sqlstate=NOT_SUPPORTED, position=position_of(node))


def _label(node: exp.Expr) -> str:
    """The node's kind; a function's name as Postgres has it."""
    if isinstance(node, exp.Func):
        name = node.sql("postgres").partition("(")[0].lower()
        return f"function {name}" if name.isidentifier() else node.key.upper()
    return node.key.upper()
