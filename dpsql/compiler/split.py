"""A query tree becomes private aggregations and the public remainder over their results.

Decides, bottom up, which parts of a query are public, private or released. A query over public sources stays as it is;
a grouped query over a private source becomes an `Aggregation` and a query over its released relation; a plain query
over private sources filters and projects them for the query around it, and is refused at the top. A released query
that is joined with private rows becomes a public relation computed before the outer release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import partial

from sqlglot import exp

from dpsql.compiler.algebra import Aggregation, Col, Domain, Expr, Lit, Rows, Scalar
from dpsql.compiler.bind.expr import Context, bind
from dpsql.compiler.bind.from_clause import bind_from
from dpsql.compiler.bind.grouping import Grouping, aggregation, has_aggregates, released_columns, rewrite, row_level
from dpsql.compiler.bind.joins import Numbers
from dpsql.compiler.bind.literals import coerce
from dpsql.compiler.bind.numbers import family
from dpsql.compiler.bind.parameters import with_clock, with_parameters
from dpsql.compiler.bind.per_unit import per_unit
from dpsql.compiler.bind.scope import Field, Source, unknown_columns
from dpsql.compiler.bind.subqueries import exists, membership, separated
from dpsql.compiler.bind.union import union_all
from dpsql.compiler.bind.units import scan
from dpsql.compiler.cautions import Doubts, doubts
from dpsql.compiler.domains import narrowed
from dpsql.compiler.local_model import COUNTS, debiased
from dpsql.compiler.parse import name_of, only, parse, refuse
from dpsql.compiler.probes import empty_query, is_probe, never_true
from dpsql.compiler.problems import FollowUp, Problems, together
from dpsql.compiler.public import Remainder, translate
from dpsql.compiler.public.names import output_name
from dpsql.compiler.refused import rest_of, stand_in, unknown_source
from dpsql.compiler.renumber import renumber
from dpsql.compiler.walk import derived_relations, larger_than
from dpsql.errors import NOT_PERMITTED, SYNTAX, TOO_COMPLEX, UNDEFINED_COLUMN, UNDEFINED_TABLE, Failed, Rejected
from dpsql.policy.schema import Schema, SchemaTable
from dpsql.types import BOOL, Column, Kind, SqlType

Result = exp.Query | Source
"""A processed query: a tree over public and released relations, or private rows."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A public relation that must be computed before a release can be: a remainder over earlier releases."""

    remainder: Remainder


@dataclass(slots=True)
class Split:
    """One statement while it is taken apart."""

    schema: Schema
    tables: frozenset[str] | None
    parameters: tuple[Lit, ...]
    max_groups: int | None
    numbers: Numbers
    zone: tzinfo = UTC
    now: datetime | None = None
    inferred: dict[int, SqlType] = field(default_factory=dict)
    aggregations: list[Aggregation] = field(default_factory=list)
    doubts: dict[int, Doubts] = field(default_factory=dict)
    relations: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    derived: list[Derived] = field(default_factory=list)
    shared: dict[int, exp.Query] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    probe: bool = False
    columns_only: bool = False
    queries: int = 0


MAX_QUERIES = 300
"""Each use of a WITH name counts: names that use others twice would double with every step."""


def _count(queries: int, state: Split) -> None:
    state.queries += queries
    if state.queries > MAX_QUERIES:
        raise Rejected(f"The statement has more than {MAX_QUERIES} queries, WITH written out.", sqlstate=TOO_COMPLEX)


Names = Mapping[str, "CommonTable"]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A WITH query: its text as a tree, and the names visible to it."""

    query: exp.Query
    names: Names
    columns: tuple[str, ...] = ()


def split(tree: exp.Query, state: Split) -> exp.Query:
    """The public remainder of the whole statement; `state` then holds the aggregations it reads."""
    state.probe = is_probe(tree)
    result = _query(tree, {}, state, top=True)
    if isinstance(result, Source):
        if not state.probe or (not never_true(tree) and _existence_test(tree)):
            raise row_level(state.schema, tree)
        state.columns_only = True
        return empty_query([(f.name, f.expr.type) for f in result.fields])
    return _constants(result, state)


def _existence_test(tree: exp.Expr) -> bool:
    """SELECT 1 FROM t WHERE ... LIMIT 1 asks whether there is such a row."""
    asks = isinstance(tree, exp.Select) and not any(e.find(exp.Column, exp.Star) for e in tree.expressions)
    limit = tree.args.get("limit")
    return asks and not (isinstance(limit, exp.Limit) and str(limit.expression) == "0")


def _constants(tree: exp.Query, state: Split) -> exp.Query:
    return with_parameters(tree, state.parameters, state.inferred, state.relations)


def _query(tree: exp.Expr, names: Names, state: Split, *, top: bool = False, outer: Source | None = None) -> Result:
    """`top`: the statement itself. `outer`: the rows outside that a subquery of EXISTS or IN may refer to."""
    _count(1, state)
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
    if select.args.get("laterals"):
        raise refuse("LATERAL is not supported", select)
    items: list[exp.Expr] = [] if first is None else [first.this, *(j.this for j in joins)]
    problems = Problems()
    found = [problems.catch(partial(_item, item, names, state)) for item in items]
    if problems.found and not any(isinstance(result, exp.Expr) for result in found):
        sources = [r if isinstance(r, Source) else unknown_source(i) for r, i in zip(found, items, strict=True)]
        _rest_of(select, sources, joins, problems, names, state, outer)
    problems.check()
    results = [result for result in found if result is not None]
    if not any(isinstance(result, Source) for result in results):
        return _public_select(select, results, names, state)
    sources = [_as_source(r, item, state) for r, item in zip(results, items, strict=True)]
    outside = None if has_aggregates(select) else outer
    return _private_select(select, sources, joins, names, state, top=top, outer=outside)


def _item(item: exp.Expr, names: Names, state: Split) -> exp.Expr | Source:
    """A FROM item: private rows, or a public table expression."""
    match item:
        case exp.Table():
            return _table(item, names, state)
        case exp.Subquery():
            only(item, "alias")
            result = _query(item.this, names, state)
            return _aliased(result, item.args.get("alias"), item)
        case exp.Values():
            return item.copy()
        case exp.Lateral():
            raise refuse(
                "LATERAL is not supported",
                item,
                hint="Group the subquery by what ties it to the rows outside, and join it: "
                "JOIN (SELECT k, COUNT(*) AS n FROM ... GROUP BY k) AS l ON l.k = t.k",
            )
        case _:
            raise refuse(
                f"{type(item).__name__} is not supported in FROM",
                item,
                hint="FROM takes tables and views of the policy, subqueries and WITH names.",
            )


def _table(item: exp.Table, names: Names, state: Split) -> exp.Expr | Source:
    only(item, "alias", "db", "catalog")
    if not isinstance(item.this, exp.Identifier):
        raise refuse("Table functions are not supported in FROM.", item, sqlstate="42883")
    name, schema_name = name_of(item.this), name_of(item.args.get("db"))
    alias, counts = item.args.get("alias"), bool(item.this.meta.get(COUNTS))
    if not schema_name and name in names and not counts:
        common = names[name]
        if id(common) in state.refused:
            raise FollowUp(f'"{name}" was refused')
        shared = state.shared.get(id(common))
        _count(sum(isinstance(n, exp.Query) for n in shared.walk()) if shared is not None else 0, state)
        state.refused.add(id(common))
        result = shared.copy() if shared is not None else _query(common.query.copy(), common.names, state)
        state.refused.remove(id(common))
        if isinstance(result, exp.Query) and shared is None:
            state.shared[id(common)] = result.copy()
        made = alias or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        if common.columns and not made.args.get("columns"):
            made = made.copy()
            made.set("columns", [exp.to_identifier(c, quoted=True) for c in common.columns])
        return _aliased(result, made, item)
    if schema_name not in ("", "public"):
        raise _no_table(f"{schema_name}.{name}", item, state)
    visible = state.tables is None or name in state.tables
    if name in state.schema.policy.views and visible:
        tree = parse(state.schema.policy.views[name])
        made = alias or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        return _aliased(_query(tree, {}, state), made, item)
    table = state.schema.tables.get(name)
    if counts:
        table, visible = state.schema.responses[name], True
    if table is None or not visible:
        raise _no_table(name, item, state)
    qualifier = name_of(alias.this) if alias is not None and alias.this is not None else name
    if table.public:
        return _public_table(table, qualifier, alias, state)
    source = scan(table, state.numbers.take(), qualifier, state.schema)
    return _renamed(source, alias, item)


def _no_table(name: str, item: exp.Expr, state: Split) -> Rejected:
    visible = sorted(n for n in state.schema.tables if state.tables is None or n in state.tables)
    return refuse(
        f'relation "{name}" does not exist',
        item,
        sqlstate=UNDEFINED_TABLE,
        hint=f"Tables of this dataset: {', '.join(visible) or 'none'}.",
    )


def _public_table(table: SchemaTable, qualifier: str, alias: exp.Expr | None, state: Split) -> exp.Table:
    state.relations[table.name] = tuple(Column(c.name, c.type) for c in table.columns)
    made = exp.Table(this=exp.to_identifier(table.name, quoted=True))
    columns = [c.copy() for c in (alias.args.get("columns") or [])] if alias is not None else []
    made.set("alias", exp.TableAlias(this=exp.to_identifier(qualifier, quoted=True), columns=columns))
    return made


def _aliased(result: Result, alias: exp.Expr | None, item: exp.Expr) -> exp.Expr | Source:
    qualifier = name_of(alias.this) if alias is not None and alias.this is not None else ""
    if isinstance(result, Source):
        fields = tuple(replace(f, qualifier=qualifier, merged=False) for f in result.fields)
        return _renamed(replace(result, fields=fields), alias, item)
    made = exp.Subquery(this=result)
    name = exp.to_identifier(qualifier or "unnamed_subquery", quoted=True)
    columns = [c.copy() for c in (alias.args.get("columns") or [])] if alias is not None else []
    made.set("alias", exp.TableAlias(this=name, columns=columns))
    return made


def _renamed(source: Source, alias: exp.Expr | None, item: exp.Expr) -> Source:
    """Column aliases rename what is visible; each name still stands for its real column."""
    columns = [name_of(c) for c in (alias.args.get("columns") or [])] if alias is not None else []
    if not columns:
        return source
    if len(columns) > len(source.fields):
        raise refuse("more column aliases than columns", item, sqlstate="42P10")
    fields = list(source.fields)
    for index, name in enumerate(columns):
        fields[index] = replace(fields[index], name=name)
    return replace(source, fields=tuple(fields))


def _public_select(select: exp.Select, results: list[exp.Expr | Source], names: Names, state: Split) -> exp.Query:
    """The same query with its sources and subqueries processed."""
    made = select.copy()
    made.set("with_", None)
    trees = [r for r in results if isinstance(r, exp.Expr)]
    if trees:
        made.args["from_"].set("this", trees[0])
    problems = Problems()

    def inside(node: exp.Expr) -> exp.Expr | None:
        return problems.catch(partial(_subqueries, node, names, state))

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
    return made


def _subqueries(node: exp.Expr, names: Names, state: Split) -> exp.Expr:
    """Replaces every subquery of an expression by its processed form; each must be public or released."""
    if isinstance(node, exp.Subquery | exp.Select | exp.SetOperation):
        inner = _released_query(node, names, state)
        return exp.Subquery(this=inner) if isinstance(node, exp.Subquery) else inner
    for key, value in list(node.args.items()):
        if isinstance(value, list):
            node.set(key, [_subqueries(v, names, state) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr):
            node.set(key, _subqueries(value, names, state))
    return node


def _released_query(node: exp.Expr, names: Names, state: Split) -> exp.Query:
    try:
        result = _query(node, names, state)
    except Rejected as error:
        raise _correlated(node, error) or error from None
    if isinstance(result, Source):
        raise refuse(
            "A subquery over private rows must aggregate them here.",
            node,
            sqlstate=NOT_PERMITTED,
            hint="Use an aggregate in the subquery, or join on the unit column instead of IN or EXISTS.",
        )
    return result


def _correlated(node: exp.Expr, error: Rejected) -> Rejected | None:
    """The refusal of an aggregate that is taken anew for each row outside, with the join that says the same."""
    select = node.this if isinstance(node, exp.Subquery) else node
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if error.sqlstate not in (UNDEFINED_COLUMN, UNDEFINED_TABLE) or where is None or not select.args.get("from_"):
        return None
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    equal = [p for p in parts if isinstance(p, exp.EQ)]
    ties = [p for p in equal if isinstance(p.this, exp.Column) and isinstance(p.expression, exp.Column)]
    if not ties:
        return None
    keys = ", ".join(t.this.sql("postgres") for t in ties)
    value = select.expressions[0].sql("postgres") if select.expressions else "..."
    source = select.args["from_"].this.sql("postgres")
    others = " AND ".join(p.sql("postgres") for p in parts if p not in ties)
    filtered = f" WHERE {others}" if others else ""
    once = f"SELECT {keys}, {value} AS v FROM {source}{filtered} GROUP BY {keys}"
    on = " AND ".join(f"released.{name_of(t.this.this)} = {t.expression.sql('postgres')}" for t in ties)
    return refuse(
        "This subquery is an aggregate of private rows for each row of the query around it, which is not supported.",
        node,
        hint=f"Release it once and join it: JOIN ({once}) AS released ON {on}",
    )


def _as_source(result: exp.Expr | Source, item: exp.Expr, state: Split) -> Source:
    """A public FROM item that is joined with private rows: a public table, or a relation computed before."""
    if isinstance(result, Source):
        return result
    if isinstance(result, exp.Table):
        qualifier = name_of(result.args["alias"].this)
        table = state.schema.tables[name_of(result.this)]
        return _renamed(scan(table, state.numbers.take(), qualifier, state.schema), result.args["alias"], item)
    columns = _derive(exp.select("*").from_(result.copy()), state)
    number, index = state.numbers.take(), len(state.derived) - 1
    most = len(result.expressions) if isinstance(result, exp.Values) else _row_limit(result.this)
    cols = tuple(Col(f"t{number}_{i}", c.type, _released_domain(index, i, most)) for i, c in enumerate(columns))
    alias = result.args.get("alias")
    qualifier = name_of(alias.this) if alias is not None else ""
    fields = tuple(Field(qualifier, c.name, col) for c, col in zip(columns, cols, strict=True))
    return Source(Rows(index, cols), fields, private=False)


def _row_limit(tree: exp.Expr) -> int | None:
    """How many rows a query can have, from its text alone."""
    limit = tree.args.get("limit")
    count = limit.args.get("expression") or limit.args.get("count") if limit is not None else None
    if isinstance(count, exp.Literal) and not count.is_string and str(count.this).isdigit():
        return int(count.this)
    return None


def _released_domain(index: int, column: int, most: int | None) -> Domain:
    """A released column can name group keys where the text bounds how many values it has."""
    return Domain(released=None if most is None else (index, column, most))


def _derive(tree: exp.Query, state: Split) -> tuple[Column, ...]:
    """Registers a public relation to be computed before the release that reads it."""
    tree = with_clock(_constants(tree, state), state.now)
    remainder = translate(tree, state.relations, state.schema.policy.timezone)
    for column in remainder.columns:
        if column.type.kind in (Kind.JSON, Kind.BYTEA, Kind.INTERVAL, Kind.TIME):
            raise Rejected(f"a column of type {column.type} cannot be joined with private rows")
    state.derived.append(Derived(remainder))
    return remainder.columns


def _scalar(node: exp.Expr, names: Names, state: Split) -> Expr:
    """An uncorrelated scalar subquery beside private rows: released first, then one public value.

    Equal subqueries are one value, so that a group key with one in it is known again in the SELECT list.
    """
    tree = _released_query(node.this, names, state)
    columns = _derive(tree.copy(), state)
    if len(columns) != 1:
        raise refuse("subquery must return only one column", node, sqlstate="42601")
    index = state.derived.index(state.derived[-1])
    if index < len(state.derived) - 1:
        state.derived.pop()
    return Scalar(index, columns[0].type, Domain())


def _private_select(
    select: exp.Select,
    sources: list[Source],
    joins: list[exp.Join],
    names: Names,
    state: Split,
    *,
    top: bool,
    outer: Source | None,
) -> Result:
    def context(fields: tuple[Field, ...], source: Source | None) -> Context:
        return _context(fields, source, names, state, outer)

    where = select.args.get("where")
    problems = Problems()
    joined = list(zip(joins, sources[1:], strict=True))
    condition = where.this if where is not None else None
    source = problems.catch(partial(bind_from, sources[0], joined, condition, context, state.numbers, outer))
    if source is None:
        _rest_of(select, sources, joins, problems, names, state, outer)
        problems.check()
        raise Failed("FROM is refused without a reason")
    if not has_aggregates(select):
        rows = problems.catch(partial(_projected, select, source, context(source.fields, source), top=top))
        if rows is not None:
            return rows
        if top and not state.probe and all(error.sqlstate == UNDEFINED_COLUMN for error in problems.found):
            problems.found.append(row_level(state.schema, select))
        problems.check()
    if not top:
        private = per_unit(select, source, context(source.fields, source), state.numbers)
        if private is not None:
            return private
    grouping = Grouping(
        source,
        context(source.fields, source),
        state.schema,
        relation=f"_r{len(state.aggregations)}",
        subquery=lambda query: _released_query(query, names, state),
    )
    state.aggregations.append(PENDING)
    index = len(state.aggregations) - 1
    tree = rewrite(select, grouping)
    made = aggregation(grouping, state.max_groups)
    made = renumber(replace(made, depends_on=derived_relations(made)))
    before = next((i for i, each in enumerate(state.aggregations) if replace(each, pairs=made.pairs) == made), None)
    if before is not None:
        if index == len(state.aggregations) - 1:
            state.aggregations.pop()
        known = state.aggregations[before]
        both = replace(known, pairs=tuple(dict.fromkeys((*known.pairs, *made.pairs))))
        state.aggregations[before], state.relations[f"_r{before}"] = both, released_columns(both)
        return _reading(tree, grouping.relation, f"_r{before}")
    state.aggregations[index] = made
    state.relations[grouping.relation] = released_columns(made)
    state.doubts[index] = doubts(source, grouping.key_exprs, state.schema)
    return tree


def _rest_of(
    select: exp.Select,
    sources: list[Source],
    joins: list[exp.Join],
    problems: Problems,
    names: Names,
    state: Split,
    outer: Source | None,
) -> None:
    """Adds what else is wrong with a query whose FROM or WHERE was refused. Conditions need not prove equal units."""
    stand = stand_in(sources, joins)

    def tied(query: exp.Expr) -> Expr:
        if isinstance(query, exp.Select) and has_aggregates(query):
            _released_query(query, names, state)
        else:
            _inner_rows(query, stand, names, state)
        return Lit(True, BOOL)

    context = replace(
        _context(stand.fields, stand, names, state, None if has_aggregates(select) else outer),
        exists=lambda node: tied(node.this),
        membership=lambda query, subject, negated: tied(query),
    )
    grouping = Grouping(stand, context, state.schema, "refused", lambda query: _released_query(query, names, state))
    rest_of(select, context, grouping, problems, tied)


def _reading(tree: exp.Query, old: str, new: str) -> exp.Query:
    """The query over an equal release that the statement has already: it is measured and paid for once."""
    for identifier in tree.find_all(exp.Identifier):
        if identifier.this == old:
            identifier.set("this", new)
    return tree


def _context(
    fields: tuple[Field, ...], source: Source | None, names: Names, state: Split, outer: Source | None
) -> Context:
    """What expressions over these fields may use; subqueries need the joined `source` to be tied to its unit."""
    context = Context(
        fields,
        state.parameters,
        state.inferred,
        subquery=lambda node: _scalar(node, names, state),
        outer=() if outer is None else outer.fields,
        zone=state.zone,
        now=state.now,
    )
    if source is None:
        return context
    return replace(
        context,
        exists=lambda node: _exists(node, source, names, state),
        membership=lambda query, subject, negated: _membership(query, subject, negated, source, names, state),
    )


def _exists(node: exp.Exists, outer: Source, names: Names, state: Split) -> Expr:
    inner, correlated = _inner_rows(node.this, outer, names, state)
    return exists(inner, correlated, outer, node, state.numbers)


def _membership(query: exp.Expr, subject: Expr, negated: bool, outer: Source, names: Names, state: Split) -> Expr:
    inner, correlated = _inner_rows(query, outer, names, state)
    if len(inner.fields) != 1:
        raise refuse("subquery has too many columns", query, sqlstate="42601")
    member = inner.fields[0].expr
    if isinstance(subject, Lit) and subject.type.kind is Kind.UNKNOWN:
        subject = coerce(subject, member.type, query)
    if family(subject.type) != family(member.type):
        raise refuse(f"operator does not exist: {subject.type} = {member.type}", query, sqlstate="42883")
    return membership(inner, correlated, subject, member, negated, outer, query, state.numbers)


def _inner_rows(query: exp.Expr, outer: Source, names: Names, state: Split) -> tuple[Source, tuple[Expr, ...]]:
    """The rows of a subquery in EXISTS or IN, and its conditions on the row outside."""
    result = _query(query, names, state, outer=outer)
    if isinstance(result, Source):
        return separated(result)
    item = exp.Subquery(this=result, alias=exp.TableAlias(this=exp.to_identifier("q")))
    return _as_source(item, query, state), ()


PENDING = Aggregation(Rows(-1, ()), None, (), (), (), 1, 1)
"""Holds an aggregation's place while its own subqueries are taken apart; for good if one of them measures the same."""


MAX_COLUMN = 1000
"""Parts of one computed column: the queries around it may name it many times, and each of these again."""


def _column_of(node: exp.Expr, context: Context) -> Expr:
    made = bind(node, context)
    if larger_than(made, MAX_COLUMN):
        raise Rejected(f"A column of a subquery has more than {MAX_COLUMN:,} parts.", sqlstate=TOO_COMPLEX)
    return made


def _projected(select: exp.Select, source: Source, context: Context, *, top: bool) -> Source:
    """A query that only filters and projects private rows. `top`: as the statement itself, it gives columns or none."""
    for key in ("limit", "offset", "qualify", "windows"):
        if select.args.get(key) and not (top and key in ("limit", "offset")):
            raise refuse(
                f"{key.upper()} over private rows is not supported",
                select.args[key] if isinstance(select.args[key], exp.Expr) else select,
                sqlstate=NOT_PERMITTED,
                hint="Which rows come first depends on other people's rows. Aggregate first, then limit.",
            )
    clauses = ("limit", "offset") if top else ()
    only(select, "expressions", "from_", "joins", "where", "order", "with_", "kind", *clauses)
    fields: list[Field] = []
    problems = Problems()
    for node in select.expressions:
        if isinstance(node, exp.Star):
            only(node)
            fields += [f for f in source.fields if not f.merged]
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            fields += [f for f in source.fields if f.qualifier == name_of(node.args.get("table"))]
        else:
            inner = node.this if isinstance(node, exp.Alias) else node
            made = problems.catch(partial(_column_of, inner, context))
            if made is None:
                problems.found += unknown_columns(inner, context.fields, context.outer)
            else:
                fields.append(Field("", output_name(node), narrowed(made, source.known)))
    problems.check()
    return replace(source, fields=tuple(fields))
