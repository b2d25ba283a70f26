"""The session's own functions in a catalog query, as literals.

Decides what version(), current_user, current_setting() and the like say. It must never say anything of the server's
machine or of another session.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.catalog.context import Context
from dpsql.catalog.routing import function_name
from dpsql.catalog.snapshot import PG_CATALOG
from dpsql.errors import NOT_SUPPORTED, UNDEFINED_OBJECT, Rejected


def session_value(node: exp.Expr, context: Context, database: str) -> exp.Expr:
    """Functions of the session as literals."""
    match function_name(node):
        case "version" | "current_version":
            server = context.settings.get("server_version", "15.8")
            return exp.Literal.string(f"PostgreSQL {server} (dpsql)")
        case "current_user" | "session_user" | "user" | "current_role":
            return exp.Literal.string(context.user)
        case "current_database" | "current_catalog":
            return exp.Literal.string(database)
        case "current_schema":
            return exp.Literal.string("public")
        case "current_schemas":
            names = ["public"] if _argument(node).sql().upper() == "FALSE" else [PG_CATALOG, "public"]
            return exp.Array(expressions=[exp.Literal.string(name) for name in names])
        case "pg_backend_pid":
            return exp.Literal.number(context.pid)
        case "current_setting":
            return _setting(node, context)
        case "set_config":
            return _unchanged_setting(node, context)
        case _:
            return node


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    first = [node.this] if isinstance(node.this, exp.Expr) else []
    return [*first, *node.expressions]


def _argument(node: exp.Expr, at: int = 0) -> exp.Expr:
    arguments = _arguments(node)
    return arguments[at] if at < len(arguments) else exp.Null()


def _setting(node: exp.Expr, context: Context) -> exp.Expr:
    name = _text(_argument(node))
    if name is None:
        return exp.Null()
    value = context.settings.get(name.lower())
    if value is not None:
        return exp.Literal.string(value)
    if _argument(node, 1).sql().upper() == "TRUE":
        return exp.Null()
    raise Rejected(f'unrecognized configuration parameter "{name[:63]}"', sqlstate=UNDEFINED_OBJECT)


def _unchanged_setting(node: exp.Expr, context: Context) -> exp.Expr:
    """set_config of what changes nothing here; settings that mean something are for SET."""
    name = (_text(_argument(node)) or "").lower()
    if name not in ("jit", "search_path", "bytea_output"):
        raise Rejected(f'set_config of "{name[:63]}" is not supported', sqlstate=NOT_SUPPORTED, hint="Use SET.")
    return _argument(node, 1)


def _text(node: exp.Expr) -> str | None:
    """A text literal's value, behind casts; None for NULL."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    if isinstance(node, exp.Null):
        return None
    if not isinstance(node, exp.Literal):
        raise Rejected("the name of a setting must be a literal here", sqlstate=NOT_SUPPORTED)
    return str(node.this)
