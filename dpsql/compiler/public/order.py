"""ORDER BY and LIMIT. Postgres: NULLs come last ascending, first descending, whatever the engine's default."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from dpsql.compiler.public.coerce import sort_form
from dpsql.compiler.public.refuse import only, unsupported
from dpsql.compiler.public.scope import Field, name_of, position_of
from dpsql.compiler.public.term import Term
from dpsql.errors import AMBIGUOUS_COLUMN, NOT_SUPPORTED, SYNTAX, Rejected
from dpsql.types import Kind

Keyer = Callable[[exp.Expr], Term]


def order_clause(node: exp.Expr | None, key: Keyer) -> str:
    """` ORDER BY ...`, or nothing."""
    if node is None:
        return ""
    only(node, "expressions")
    return " ORDER BY " + order_list(node.expressions, key)


def order_list(nodes: Sequence[exp.Expr], key: Keyer) -> str:
    return ", ".join(_item(each, key) for each in nodes)


def _item(node: exp.Expr, key: Keyer) -> str:
    if not isinstance(node, exp.Ordered):
        raise unsupported(node)
    only(node, "this", "desc", "nulls_first")
    term = key(node.this)
    if term.kind in (Kind.JSON,):
        text = f"could not identify an ordering operator for type {term.kind.value}"
        raise Rejected(text, sqlstate="42883", position=position_of(node))
    direction = "DESC" if node.args.get("desc") else "ASC"
    return f"{sort_form(term)} {direction} NULLS {'FIRST' if node.args.get('nulls_first') else 'LAST'}"


def selected(node: exp.Expr, names: Sequence[str], clause: str) -> int | None:
    """Index of the output column that an ordinal or a bare name in ORDER BY or GROUP BY means; None for expressions."""
    node = node.unnest()
    if isinstance(node, exp.Column) and not node.args.get("table"):
        found = [i for i, name in enumerate(names) if name == name_of(node.this)]
        return found[0] if found else None
    sign, constant = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
    if not isinstance(constant, exp.Literal | exp.Null | exp.Boolean):
        return None
    text = str(constant.this) if isinstance(constant, exp.Literal) and not constant.is_string else ""
    if not text.isdigit():
        raise Rejected(f"non-integer constant in {clause}", sqlstate=SYNTAX, position=position_of(node))
    if sign or not 1 <= int(text) <= len(names):
        what = f"{clause} position {sign}{text} is not in select list"
        raise Rejected(what, sqlstate="42P10", position=position_of(node))
    return int(text) - 1


def ambiguous(node: exp.Expr, clause: str) -> Rejected:
    text = f'{clause} "{name_of(node.unnest().this)}" is ambiguous'
    return Rejected(text, sqlstate=AMBIGUOUS_COLUMN, position=position_of(node))


def output_key(fields: Sequence[Field]) -> Keyer:
    """Sort keys over a finished query `u`: its output names or ordinals only."""

    def key(node: exp.Expr) -> Term:
        index = selected(node, [f.name for f in fields], "ORDER BY")
        if index is None:
            text = "ORDER BY here can use only output names and ordinals"
            raise Rejected(text, sqlstate=NOT_SUPPORTED, position=position_of(node))
        return Term(f"u.c{index + 1}", fields[index].type, fields[index].digits)

    return key


def limit_clause(node: exp.Expr) -> str:
    """` LIMIT n OFFSET m`: whole numbers only. NULL and ALL mean none."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    count = None
    if isinstance(limit, exp.Fetch):
        only(limit, "direction", "count", "limit_options")
        options = limit.args.get("limit_options")
        if options is not None:
            only(options, "rows")
        count = _count(limit.args.get("count") or exp.Literal.number(1), "LIMIT")
    elif limit is not None:
        only(limit, "expression")
        count = _count(limit.expression, "LIMIT")
    skip = None if offset is None else _count(offset.expression, "OFFSET")
    return ("" if count is None else f" LIMIT {count}") + ("" if skip is None else f" OFFSET {skip}")


def _count(node: exp.Expr, clause: str) -> int | None:
    inner = node.this if isinstance(node, exp.Cast) else node.unnest()
    if isinstance(inner, exp.Null) or (isinstance(inner, exp.Var) and inner.name.upper() == "ALL"):
        return None
    if isinstance(inner, exp.Neg):
        state = "2201W" if clause == "LIMIT" else "2201X"
        raise Rejected(f"{clause} must not be negative", sqlstate=state, position=position_of(node))
    if not isinstance(inner, exp.Literal) or not str(inner.this).isdigit() or int(inner.this) >= 2**63:
        raise Rejected(f"{clause} takes a whole number here", sqlstate=NOT_SUPPORTED, position=position_of(node))
    return int(inner.this)
