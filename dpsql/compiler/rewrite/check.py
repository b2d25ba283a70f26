"""Whether a text says what a tree says: it is read again and compared, spellings apart.

Decides what counts as a spelling: quotes around names, brackets, names that a table or column has anyway.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.compiler.parse import name_of, parse
from dpsql.compiler.public.names import output_name
from dpsql.compiler.rewrite.printing import plain
from dpsql.errors import Rejected


def says(text: str, tree: exp.Query) -> bool:
    """Uses the tree up."""
    try:
        return _spelled(parse(text)) == _spelled(plain(tree))
    except Rejected:
        return False


def _spelled(tree: exp.Expr) -> exp.Expr:
    made = exp.Paren(this=tree)
    for select in list(made.find_all(exp.Select)):
        select.set("expressions", [_named(e) for e in select.expressions])
    for node in list(made.walk()):
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("alias"):
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name_of(node.this), quoted=True)))
        elif isinstance(node, exp.Div):
            node.set("typed", True)
            node.set("safe", False)
        elif isinstance(node, exp.Least | exp.Greatest):
            node.set("ignore_nulls", None)
    for node in list(made.walk()):
        if isinstance(node, exp.Identifier):
            node.set("this", name_of(node))
            node.set("quoted", True)
        elif node is not made and _is_bracket(node):
            node.replace(node.this)
    return made


def _named(node: exp.Expr) -> exp.Expr:
    inner = node.unalias()
    if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        return node
    name = exp.to_identifier(output_name(node), quoted=True)
    return exp.Alias(this=inner, alias=name)


def _is_bracket(node: exp.Expr) -> bool:
    if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.SetOperation):
        return not any(value for key, value in node.args.items() if key != "this")
    return isinstance(node, exp.Paren)
