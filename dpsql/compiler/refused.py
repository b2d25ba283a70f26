"""What else is wrong with a query whose FROM or WHERE was refused, so that all of it can be said at once.

Decides nothing: the query is refused already. Its other clauses are bound over a stand-in for its rows, which offers
the columns of every FROM item that is known, and stands silently for those of the others. Nothing made here is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from sqlglot import exp

from dpsql.compiler.algebra import Rows, columns_of
from dpsql.compiler.bind.expr import Context, bind_condition
from dpsql.compiler.bind.grouping import has_aggregates, rewrite
from dpsql.compiler.bind.measured import Grouping
from dpsql.compiler.bind.scope import Source, unknown_columns, unknown_item
from dpsql.compiler.parse import name_of
from dpsql.compiler.problems import Problems
from dpsql.compiler.spelling import Written, meant


def unknown_source(item: exp.Expr) -> Source:
    """In place of a FROM item that was refused."""
    alias = item.args.get("alias")
    name = alias.this if alias is not None else item.this if isinstance(item, exp.Table) else None
    return Source(Rows(-1, ()), (unknown_item(name_of(name)),), private=True)


def stand_in(sources: list[Source], joins: list[exp.Join]) -> Source:
    """All sources side by side, whatever their join is. USING and NATURAL leave one column of each name."""
    fields = list(sources[0].fields)
    for join, source in zip(joins, sources[1:], strict=True):
        using: list[Written] = [u.this if isinstance(u, exp.Column) else u for u in join.args.get("using") or []]
        merged = {name for u in using for name in meant(u, [f.name for f in source.fields])}
        if str(join.args.get("method") or "").upper() == "NATURAL":
            merged = {f.name for f in fields}
        fields += [replace(f, merged=f.merged or f.name in merged) for f in source.fields]
    columns = tuple({col.name: col for f in fields for col in columns_of(f.expr)}.values())
    return Source(
        node=Rows(-1, columns),
        fields=tuple(fields),
        private=True,
        unit=next((s.unit for s in sources if s.unit is not None), None),
        units=frozenset(name for s in sources for name in s.units),
        tables=tuple(name for s in sources for name in s.tables),
    )


def rest_of(
    select: exp.Select,
    context: Context,
    grouping: Grouping,
    problems: Problems,
    subquery: Callable[[exp.Query], object],
) -> None:
    """Adds the problems of ON, WHERE and the clauses above. `grouping` is over the stand-in; `subquery` binds one."""
    joins: list[exp.Join] = select.args.get("joins") or []
    where = select.args.get("where")
    conditions = [join.args["on"] for join in joins if join.args.get("on") is not None]
    conditions += [where.this] if where is not None else []
    for part in (p for c in conditions for p in (c.flatten() if isinstance(c, exp.And) else [c])):
        before = len(problems.found)
        problems.catch(partial(bind_condition, part, context))
        if len(problems.found) > before:
            problems.found += unknown_columns(part, context.fields, context.outer)
            for query in _nested(part):
                problems.catch(partial(subquery, query))
    if has_aggregates(select):
        problems.catch(partial(rewrite, select, grouping))
    else:
        for node in select.expressions:
            problems.found += unknown_columns(node, context.fields, context.outer)


def _nested(node: exp.Expr) -> Iterator[exp.Query]:
    """The subqueries of an expression, not those inside them."""
    if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
        yield node
        return
    for child in node.iter_expressions():
        yield from _nested(child)
