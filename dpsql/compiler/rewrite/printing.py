"""What cannot be the client's own text, printed for Postgres from the tree.

A released relation is printed under a name that is replaced later, `"<relation 0>" AS "_r0"`; columns of it are read as
`"_r0"."a0"`. Whatever could bind otherwise than in the tree stands in brackets.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.transforms import eliminate_qualify

_RELATION = re.compile(r"_r([0-9]+)")


def relation_of(tree: exp.Expr | None) -> int | None:
    """The number of the release that a FROM item of a rewritten query is."""
    if not isinstance(tree, exp.Table) or tree.args.get("alias") is not None:
        return None
    found = _RELATION.fullmatch(str(tree.name))
    return int(found[1]) if found is not None else None


def item_of(number: int) -> str:
    return f'"<relation {number}>" AS "_r{number}"'


def printed(tree: exp.Expr) -> str:
    return plain(tree.copy()).sql("postgres", comments=False)


def plain(tree: exp.Expr) -> exp.Expr:
    """The tree as it is printed: of divisions, Postgres's own; changes it in place."""
    holder = exp.Paren(this=tree)
    for select in list(holder.find_all(exp.Select)):
        if select.args.get("qualify") is not None:
            select.replace(eliminate_qualify(select.copy()))
    for node in list(holder.walk()):
        number = relation_of(node)
        if number is not None:
            node.replace(_named(number))
        elif isinstance(node, exp.Div):
            node.set("typed", True)
            node.set("safe", False)
    made: exp.Expr = holder.this
    made.pop()
    return made


def _named(number: int) -> exp.Table:
    alias = exp.TableAlias(this=exp.to_identifier(f"_r{number}", quoted=True))
    return exp.Table(this=exp.to_identifier(f"<relation {number}>", quoted=True), alias=alias)


_WHOLE = (exp.Column, exp.Literal, exp.Func, exp.Paren, exp.Subquery, exp.Null, exp.Boolean, exp.Parameter)


def as_part(tree: exp.Expr) -> str:
    """The same, as a part of other text."""
    text = tree.sql("postgres") if isinstance(tree, exp.Column) else printed(tree)
    is_whole = isinstance(tree, _WHOLE) and not isinstance(tree, exp.Connector | exp.Binary)
    return text if is_whole else f"({text})"
