"""Lists that were spelled out for the private half, `x IN ($2, $3)` for `x = ANY ($1)`, become what they were."""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.placeholders import SPELLED


def gathered(tree: exp.Query) -> exp.Query:
    """Changes the tree in place; a list without elements stays the constant that it is."""
    holder = exp.Paren(this=tree)
    for node in list(holder.walk()):
        array = node.meta.get(SPELLED)
        if array is not None and not isinstance(node, exp.Boolean):
            inner = node.this if isinstance(node, exp.Not) else node
            kind = exp.NEQ if isinstance(node, exp.Not) else exp.EQ
            node.replace(kind(this=inner.this, expression=array.copy()))
    made: exp.Query = holder.this
    made.pop()
    return made
