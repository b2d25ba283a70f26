"""A query tree becomes private aggregations and the public remainder over their results.

Decides, bottom up, which parts of a query are public, private or released. A query over public sources stays as it is;
a grouped query over a private source becomes an `Aggregation` and a query over its released relation; a plain query
over private sources filters and projects them for the query around it, and is refused at the top. A released query
that is joined with private rows becomes a public relation computed before the outer release.
"""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dpsql.compiler.bind.grouping import has_aggregates, row_level
from dpsql.compiler.bind.scope import Field, Source, is_outside, spell
from dpsql.compiler.bind.union import union_all
from dpsql.compiler.local_model import debiased
from dpsql.compiler.parse import name_of, only, refuse
from dpsql.compiler.probes import empty_query, existence_test, is_probe
from dpsql.compiler.problems import Problems, together
from dpsql.compiler.refused import unknown_source
from dpsql.compiler.split.private import private_select, what_else
from dpsql.compiler.split.released import as_source, constants, subqueries
from dpsql.compiler.split.sources import item_of, public_fields
from dpsql.compiler.split.state import CommonTable, Names, Result, Split, count, few
from dpsql.errors import SYNTAX


def split(tree: exp.Query, state: Split) -> exp.Query:
    """The public remainder of the whole statement; `state` then holds the aggregations it reads."""
    state.process = _query
    state.probe = is_probe(tree)
    result = _query(tree, {}, state, top=True)
    if isinstance(result, Source):
        if not state.probe or existence_test(tree):
            raise row_level(state.schema, tree, state.tables)
        state.columns_only = True
        state.made = empty_query([(f.name, f.expr.type) for f in result.fields])
        return state.made
    state.made = result.copy()
    return constants(result, state)


def _query(tree: exp.Expr, names: Names, state: Split, *, top: bool = False, outer: Source | None = None) -> Result:
    """`top`: the statement itself. `outer`: the rows outside that a subquery of EXISTS or IN may refer to."""
    count(1, state)
    names = _common_tables(tree, names)
    match tree:
        case exp.Subquery() | exp.Paren():
            inner = _query(tree.this, names, state, top=top, outer=outer)
            return inner if isinstance(inner, Source) else _around(tree, inner)
        case exp.SetOperation():
            return _set_operation(tree, names, state)
        case exp.Select():
            return _select(tree, names, state, top=top, outer=outer)
        case exp.Table():
            return _query(exp.select("*").from_(tree.copy()), names, state)
        case _:
            raise refuse(f"{type(tree).__name__} is not supported", tree)


def _around(tree: exp.Expr, inner: exp.Query) -> exp.Query:
    """A parenthesised query may carry its own ORDER BY and LIMIT."""
    extra = {k: v for k, v in tree.args.items() if v and k not in ("this", "alias", "with_")}
    if not extra:
        return inner
    made = exp.Select(expressions=[exp.Star()])
    made.set("from_", exp.From(this=exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("q")))))
    for key, value in extra.items():
        made.set(key, value.copy() if isinstance(value, exp.Expr) else value)
    return made


def _common_tables(tree: exp.Expr, names: Names) -> Names:
    clause = tree.args.get("with_")
    if clause is None:
        return names
    if clause.args.get("recursive"):
        hint = "Lists of numbers or dates: FROM (VALUES (1), (2), (3)) AS list(n)."
        raise refuse("WITH RECURSIVE is not supported", clause, hint=hint)
    known = dict(names)
    for cte in clause.expressions:
        only(cte, "alias", "materialized")
        if not isinstance(cte.this, exp.Query):
            raise refuse("WITH takes SELECT queries only", cte)
        alias = cte.args["alias"]
        columns = tuple(name_of(c) for c in alias.args.get("columns") or [])
        known[name_of(alias.this)] = CommonTable(cte.this, dict(known), columns)
    return known


def _set_operation(tree: exp.SetOperation, names: Names, state: Split) -> Result:
    left, right = together(partial(_query, side, names, state) for side in (tree.this, tree.expression))
    if isinstance(left, Source) and isinstance(right, Source) and isinstance(tree, exp.Union):
        only(tree, "expression", "distinct", "order", "with_")
        if not tree.args.get("distinct"):
            return union_all(left, right, tree, state.numbers)
    if isinstance(left, Source) or isinstance(right, Source):
        raise refuse(
            "Private rows can be combined by UNION ALL only, with private rows on both sides",
            tree,
            hint="Aggregate each side and combine the results.",
        )
    made = tree.copy()
    made.set("with_", None)
    made.set("this", left)
    made.set("expression", right)
    return made


def _select(
    select: exp.Select, names: Names, state: Split, *, top: bool = False, outer: Source | None = None
) -> Result:
    select = debiased(select, state.schema, frozenset(names), state.tables)
    if not select.expressions:
        raise refuse("a SELECT without columns is not supported", select, sqlstate=SYNTAX, hint="Name a column.")
    first = select.args.get("from_")
    joins = select.args.get("joins") or []
    few(joins)
    if first is None and joins:
        raise refuse("JOIN without FROM", joins[0], sqlstate=SYNTAX, hint="Write SELECT ... FROM a JOIN b ON ...")
    if select.args.get("laterals"):
        raise refuse("LATERAL is not supported", select)
    items: list[exp.Expr] = [] if first is None else [first.this, *(j.this for j in joins)]
    problems = Problems()
    found = [problems.catch(partial(item_of, item, names, state)) for item in items]
    if problems.found and not any(isinstance(result, exp.Expr) for result in found):
        sources = [r if isinstance(r, Source) else unknown_source(i) for r, i in zip(found, items, strict=True)]
        what_else(select, sources, joins, problems, names, state, outer)
    problems.check()
    results = [result for result in found if result is not None]
    if not any(isinstance(result, Source) for result in results) and not _reads(outer, select, results, state):
        return _public_select(select, results, names, state)
    sources = [as_source(r, item, names, state) for r, item in zip(results, items, strict=True)]
    outside = None if has_aggregates(select) else outer
    return private_select(select, sources, joins, names, state, top=top, outer=outside)


def _reads(outer: Source | None, select: exp.Select, items: list[exp.Expr | Source], state: Split) -> bool:
    """Whether a query over public tables reads columns of the private rows outside, as a correlated EXISTS does."""
    tables = [item for item in items if isinstance(item, exp.Table)]
    if outer is None or not tables or len(tables) < len(items) or has_aggregates(select):
        return False
    own = [f for item in tables for f in as_source(item, item, {}, state).fields]
    return any(is_outside(column, tuple(own), outer.fields) for column in select.find_all(exp.Column))


def _public_select(select: exp.Select, results: list[exp.Expr | Source], names: Names, state: Split) -> exp.Query:
    """The same query with its sources and subqueries processed."""
    made = select.copy()
    made.set("with_", None)
    trees = [r for r in results if isinstance(r, exp.Expr)]
    if trees:
        made.args["from_"].set("this", trees[0])
    problems = Problems()

    def inside(node: exp.Expr) -> exp.Expr | None:
        return problems.catch(partial(subqueries, node, names, state))

    for join, tree in zip(made.args.get("joins") or [], trees[1:], strict=True):
        join.set("this", tree)
        if join.args.get("on") is not None:
            join.set("on", inside(join.args["on"]))
    for key, value in list(made.args.items()):
        if key in ("from_", "joins", "with_"):
            continue
        if isinstance(value, list):
            made.set(key, [inside(v) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr):
            made.set(key, inside(value))
    problems.check()
    _spell(made, public_fields(trees, state))
    return made


def _spell(made: exp.Select, fields: tuple[Field, ...]) -> None:
    """Columns of its own level as they are declared: what is around private rows is read as Postgres reads it."""
    stack: list[exp.Expr] = list(made.iter_expressions())
    while stack:
        node = stack.pop()
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            spell(node, fields)
        elif not isinstance(node, exp.Query | exp.Table):
            stack.extend(node.iter_expressions())
