"""GROUP BY: plain keys, ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpsql.compiler.public.coerce import distinct_form
from dpsql.compiler.public.expr import expression
from dpsql.compiler.public.order import ambiguous, selected
from dpsql.compiler.public.refuse import only
from dpsql.compiler.public.scope import Scope, name_of, position_of
from dpsql.compiler.public.term import Term
from dpsql.errors import GROUPING, Rejected


@dataclass(frozen=True, slots=True)
class Entry:
    """One column of the select list, to be translated once it is known what the query is grouped by."""

    name: str
    make: Callable[[Scope], Term]


Items = Sequence[Entry]


@dataclass(frozen=True, slots=True)
class Grouping:
    """The text after GROUP BY, per key what stands for it afterwards, and the output columns that are keys."""

    sql: str
    keys: Mapping[str, str]
    items: Mapping[int, Term]


_WIDEST_CUBE = 12
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys found so far. With grouping sets a key is NULL in some rows, so no row of the group can stand for it."""

    keys: dict[str, str] = field(default_factory=dict)
    items: dict[int, Term] = field(default_factory=dict)
    sets: bool = False


def group_clause(group: exp.Expr | None, scope: Scope, items: Items) -> Grouping | None:
    """None without GROUP BY."""
    if group is None:
        return None
    only(group, "expressions")
    inside = replace(scope, clause="GROUP BY")
    made = _Keys(sets=any(isinstance(each, _SETS) for each in group.expressions))
    texts = [_element(each, inside, items, made) for each in group.expressions]
    return Grouping(", ".join(texts), made.keys, made.items)


def _element(node: exp.Expr, scope: Scope, items: Items, made: _Keys) -> str:
    """One element of GROUP BY; its keys are put into `made`."""
    if isinstance(node, _SETS):
        only(node, "expressions")
        if isinstance(node, exp.Cube) and len(node.expressions) > _WIDEST_CUBE:
            text = f"CUBE is limited to {_WIDEST_CUBE} elements"
            raise Rejected(text, sqlstate="54011", position=position_of(node))
        word = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS"}[type(node)]
        return f"{word} ({', '.join(_element(each, scope, items, made) for each in node.expressions)})"
    if isinstance(node, exp.Tuple):
        return f"({', '.join(_element(each, scope, items, made) for each in node.expressions)})"
    term = _key(node.unnest(), scope, items, made)
    if scope.level in term.aggregate or term.window:
        what, state = ("window", "42P20") if term.window else ("aggregate", GROUPING)
        raise Rejected(f"{what} functions are not allowed in GROUP BY", sqlstate=state, position=position_of(node))
    text = _text(term)
    made.keys[term.sql] = text if made.sets or distinct_form(term) is term else f"first({term.sql})"
    return text


def _key(node: exp.Expr, scope: Scope, items: Items, made: _Keys) -> Term:
    """An input column first, then an output name or ordinal, then an expression."""
    bare = isinstance(node, exp.Column) and not node.args.get("table")
    if bare and any(f.name == name_of(node.this) for s in scope.sources for f in s.fields):
        return expression(node, scope)
    names = [item.name for item in items]
    index = selected(node, names, "GROUP BY")
    if index is None:
        return expression(node, scope)
    if bare and names.count(names[index]) > 1:
        raise ambiguous(node, "GROUP BY")
    if index not in made.items:
        made.items[index] = items[index].make(scope)
    return made.items[index]


def _text(key: Term) -> str:
    """The text to group by: never a bare constant, which DuckDB would take for an ordinal."""
    plain = distinct_form(key).sql
    return plain if key.loose else f"CAST({plain} AS {key.storage})"
