"""How a node that is not on the allow-list is refused."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.public.scope import position_of
from dpsql.errors import NOT_SUPPORTED, Rejected

JSON_HINT = "Ask for rows and columns: clients make JSON of them; `dpsql query --format json` does."


def only(node: exp.Expr, *allowed: str) -> None:
    """Raises if `node` has any argument beyond `allowed`: an unknown option must never be dropped silently."""
    for name, value in node.args.items():
        if value not in (None, False, [], "") and name not in allowed:
            what = name.replace("_", " ").strip().upper()
            what = what if isinstance(node, exp.LimitOptions) else f"{what} in {_label(node)}"
            raise Rejected(
                f"{what} is not supported",
                sqlstate=NOT_SUPPORTED,
                position=position_of(node),
                hint=_INSTEAD.get((type(node), name)),
            )


_INSTEAD: dict[tuple[type[exp.Expr], str], str] = {
    (
        exp.LimitOptions,
        "with_ties",
    ): "Write QUALIFY RANK() OVER (ORDER BY x DESC) <= 10 in the place of FETCH FIRST 10.",
    (
        exp.LimitOptions,
        "percent",
    ): "Write QUALIFY PERCENT_RANK() OVER (ORDER BY x DESC) < 0.1 for the first 10 percent.",
}


def unsupported(node: exp.Expr) -> Rejected:
    hint = JSON_HINT if "json" in node.key or "json" in _label(node) else None
    message = f"{_label(node)} is not supported here"
    return Rejected(message, sqlstate=NOT_SUPPORTED, position=position_of(node), hint=hint)


def _label(node: exp.Expr) -> str:
    """The node's kind; a function's name as Postgres has it."""
    if isinstance(node, exp.Func):
        name = node.sql("postgres").partition("(")[0].lower()
        return f"function {name}" if name.isidentifier() else node.key.upper()
    return node.key.upper()
