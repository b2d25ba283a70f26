"""SELECT over private rows: an aggregation, rows for the query around it, or a refusal with all that is wrong.

Decides that private rows leave a SELECT through an aggregation only: a query without aggregates filters and projects
them for the query around it. Equal aggregations of a statement are one release, measured and paid for once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from sqlglot import exp

from dpsql.compiler.algebra import Aggregation, Expr, Lit, Rows
from dpsql.compiler.bind.expr import Context, bind
from dpsql.compiler.bind.from_clause import bind_from
from dpsql.compiler.bind.grouping import has_aggregates, rewrite, row_level
from dpsql.compiler.bind.literals import coerce
from dpsql.compiler.bind.measured import Grouping, aggregation, released_columns
from dpsql.compiler.bind.numbers import family
from dpsql.compiler.bind.per_unit import determine_unit, per_unit
from dpsql.compiler.bind.scope import Field, Source, fields_of, unknown_columns
from dpsql.compiler.bind.subqueries import exists, membership, separated
from dpsql.compiler.cautions import doubts
from dpsql.compiler.facts import narrowed
from dpsql.compiler.fanout import check_fan_out
from dpsql.compiler.parse import only, refuse
from dpsql.compiler.probes import literal_limit
from dpsql.compiler.problems import Problems
from dpsql.compiler.public import translate
from dpsql.compiler.public.names import output_name
from dpsql.compiler.refused import rest_of, stand_in
from dpsql.compiler.renumber import renumber
from dpsql.compiler.split.released import as_source, constants, released_query, scalar
from dpsql.compiler.split.state import Names, Result, Split
from dpsql.compiler.walk import derived_relations, larger_than
from dpsql.errors import NOT_PERMITTED, TOO_COMPLEX, UNDEFINED_COLUMN, Failed, Rejected
from dpsql.types import BOOL, Kind

PENDING = Aggregation(Rows(-1, ()), None, (), (), (), 1, 1)
"""Holds an aggregation's place while its own subqueries are taken apart; for good if one of them measures the same."""


def private_select(
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
    source = problems.catch(partial(bind_from, sources[0], joined, condition, context, state.numbers))
    if source is None:
        what_else(select, sources, joins, problems, names, state, outer)
        problems.check()
        raise Failed("FROM is refused without a reason")
    if not has_aggregates(select):
        rows = problems.catch(partial(_projected, select, source, context(source.fields, source), top=top))
        if rows is not None:
            return rows
        if top and not state.probe and all(error.sqlstate == UNDEFINED_COLUMN for error in problems.found):
            problems.found.append(row_level(state.schema, select, state.tables))
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
        subquery=lambda query: released_query(query, names, state),
        room=state.room,
    )
    grouping.above = partial(_above, grouping, state)
    state.aggregations.append(PENDING)
    index = len(state.aggregations) - 1
    asked = select.copy()
    tree = rewrite(select, grouping)
    made = aggregation(grouping, state.max_groups, state.max_rows_per_group)
    check_fan_out(made, state.schema, joins[0] if joins else select)
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
    if not state.schema.policy.privacy.is_row and determine_unit(grouping.key_exprs, source):
        state.single_units[index] = asked
    state.doubts[index] = doubts(source, grouping.key_exprs, state.schema)
    return tree


def _above(grouping: Grouping, state: Split, tree: exp.Select) -> None:
    """Raises what is wrong with the public part of a query that is refused already, of which nothing else is kept."""
    columns = released_columns(aggregation(grouping, state.max_groups, state.max_rows_per_group))
    relations = {**state.relations, grouping.relation: columns}
    with suppress(Failed):
        translate(constants(tree, state), relations, state.schema.policy.timezone)


def what_else(
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
            released_query(query, names, state)
        else:
            _inner_rows(query, stand, names, state)
        return Lit(True, BOOL)

    context = replace(
        _context(stand.fields, stand, names, state, None if has_aggregates(select) else outer),
        exists=lambda node: tied(node.this),
        membership=lambda query, subject: tied(query),
    )
    grouping = Grouping(stand, context, state.schema, "refused", lambda query: released_query(query, names, state))
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
        subquery=lambda node: scalar(node, names, state),
        outer=() if outer is None else outer.fields,
        zone=state.zone,
        now=state.now,
    )
    if source is None:
        return context
    return replace(
        context,
        exists=lambda node: _exists(node, source, names, state),
        membership=lambda query, subject: _membership(query, subject, source, names, state),
    )


def _exists(node: exp.Exists, outer: Source, names: Names, state: Split) -> Expr:
    most = literal_limit(node.this)
    if most == 0:
        return Lit(False, BOOL)
    inner, correlated = _inner_rows(node.this if most is None else _without_limit(node.this), outer, names, state)
    return exists(inner, correlated, outer, node, state.numbers)


def _without_limit(query: exp.Expr) -> exp.Expr:
    """Whether there is a row does not hang on a LIMIT of 1 or more, nor on which row comes first."""
    if query.args.get("offset") is not None:
        return query
    plain = query.copy()
    plain.set("limit", None)
    plain.set("order", None)
    return plain


def _membership(query: exp.Expr, subject: Expr, outer: Source, names: Names, state: Split) -> Expr:
    inner, correlated = _inner_rows(query, outer, names, state)
    if len(inner.fields) != 1:
        raise refuse("subquery has too many columns", query, sqlstate="42601")
    member = inner.fields[0].expr
    if isinstance(subject, Lit) and subject.type.kind is Kind.UNKNOWN:
        subject = coerce(subject, member.type, query)
    if family(subject.type) != family(member.type):
        raise refuse(f"operator does not exist: {subject.type} = {member.type}", query, sqlstate="42883")
    return membership(inner, correlated, subject, member, outer, query, state.numbers)


def _inner_rows(query: exp.Expr, outer: Source, names: Names, state: Split) -> tuple[Source, tuple[Expr, ...]]:
    """The rows of a subquery in EXISTS or IN, and its conditions on the row outside."""
    result = state.process(query, names, state, outer=outer)
    if isinstance(result, Source):
        return separated(result)
    item = exp.Subquery(this=result, alias=exp.TableAlias(this=exp.to_identifier("q")))
    return as_source(item, query, names, state), ()


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
            fields += fields_of(node, source.fields)
        else:
            inner = node.this if isinstance(node, exp.Alias) else node
            made = problems.catch(partial(_column_of, inner, context))
            if made is None:
                problems.found += unknown_columns(inner, context.fields, context.outer)
            else:
                fields.append(Field("", output_name(node), narrowed(made, source.known)))
    problems.check()
    return replace(source, fields=tuple(fields))
