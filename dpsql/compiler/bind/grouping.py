"""A grouped query over private rows: its aggregation, and the same query rewritten over the released relation.

Decides that everything above the aggregates reads released columns only: a column that is neither a
group key nor inside an aggregate is refused, so no private value can reach the remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from sqlglot import exp

from dpsql.compiler.algebra import (
    Aggregate,
    Aggregation,
    Expr,
    Lit,
    canonical,
    columns_of,
)
from dpsql.compiler.bind.aggregates import aggregate
from dpsql.compiler.bind.choices import chooses
from dpsql.compiler.bind.compositions import composed
from dpsql.compiler.bind.expr import Context, bind
from dpsql.compiler.bind.parameters import constant
from dpsql.compiler.bind.propagate import COVARIANCE, WIDE, propagated
from dpsql.compiler.bind.scope import Field, Source, unknown_columns
from dpsql.compiler.facts import narrowed
from dpsql.compiler.parse import name_of, only, refuse, unwrap
from dpsql.compiler.problems import FollowUp, Problems, together
from dpsql.compiler.public.names import output_name
from dpsql.compiler.sharing import may_share
from dpsql.compiler.suggest import suggestion
from dpsql.errors import GROUPING, TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema
from dpsql.types import FLOAT8, INT8, TEXT, Column, Kind

T = TypeVar("T")

MAX_AGGREGATES = 100
ERROR_FUNCTIONS = {"dp_stddev": "sd", "dp_interval_low": "low", "dp_interval_high": "high"}


@dataclass(slots=True)
class Grouping:
    """A grouped query in the making. `relation`: the name of the released relation that it will read.

    `sets`: ROLLUP, CUBE or GROUPING SETS, computed by summing the cells of the finest grouping. `refused`: a key is.
    `pairs`: the aggregates whose covariance error bars read.
    """

    source: Source
    context: Context
    schema: Schema
    relation: str
    subquery: Callable[[exp.Query], exp.Query]
    keys: dict[str, int] = field(default_factory=dict)
    key_exprs: list[Expr] = field(default_factory=list)
    key_classes: set[type[exp.Expr]] = field(default_factory=set)
    names: list[str] = field(default_factory=list)
    sets: bool = False
    refused: bool = False
    aggregates: list[Aggregate] = field(default_factory=list)
    places: dict[tuple[object, ...], int] = field(default_factory=dict)
    pairs: list[tuple[int, int]] = field(default_factory=list)


def rewrite(select: exp.Select, grouping: Grouping) -> exp.Select:
    """The query over the released relation; fills `grouping` with keys and aggregates on the way."""
    problems = Problems()
    problems.catch(partial(_only_known, select))
    group = select.args.get("group")
    grouping.sets = group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    for node in problems.catch(partial(key_nodes, select, grouping.context.fields)) or []:
        _caught(problems, node, partial(_add_key, node, grouping), grouping)
    grouping.refused = bool(problems.found)
    outputs = {output_name(e) for e in select.expressions}
    found = [_caught(problems, e, partial(_projection, e, grouping), grouping) for e in select.expressions]
    result = exp.Select(expressions=[e for e in found if e is not None])
    result.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(grouping.relation, quoted=True))))
    having = select.args.get("having")
    if grouping.sets and group is not None:
        result.set("group", problems.catch(partial(_rebuilt, group, grouping, frozenset())))
    if having is not None:
        condition = _caught(problems, having.this, partial(_rewritten, having.this, grouping, frozenset()), grouping)
        result.set(*("having", exp.Having(this=condition)) if grouping.sets else ("where", exp.Where(this=condition)))
    if select.args.get("distinct") is not None:
        result.set("distinct", exp.Distinct())
    for key in ("order", "qualify", "windows"):
        part = select.args.get(key)
        if isinstance(part, list) and part:
            result.set(key, [problems.catch(partial(_rewritten, p, grouping, frozenset())) for p in part])
        elif isinstance(part, exp.Expr):
            aliases = frozenset(outputs) if key == "order" else frozenset()
            result.set(key, problems.catch(partial(_rewritten, part, grouping, aliases)))
    for key in ("limit", "offset"):
        if select.args.get(key) is not None:
            result.set(key, select.args[key].copy())
    problems.check()
    return result


def _only_known(select: exp.Select) -> None:
    only(
        select, "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
        "qualify", "windows", "with_", "kind",
    )  # fmt: skip
    if select.args.get("distinct") is not None:
        only(select.args["distinct"])


def _caught(problems: Problems, node: exp.Expr, part: Callable[[], T], grouping: Grouping) -> T | None:
    """The part's result; where it is refused, all columns of its text that cannot be found are named with it."""
    before = len(problems.found)
    made = problems.catch(part)
    if len(problems.found) > before:
        problems.found += unknown_columns(node, grouping.context.fields, grouping.context.outer)
    return made


def aggregation(grouping: Grouping, max_groups: int | None, max_rows_per_group: int | None) -> Aggregation:
    """The release that the rewritten query reads; its bounds are the policy's, or the tighter ones that are asked for."""
    source, schema = grouping.source, grouping.schema
    tables = [schema.tables[name] for name in dict.fromkeys(source.tables)]
    groups = max(t.max_groups for t in tables)
    rows = max(t.max_rows_per_group for t in tables)
    unbounded = schema.policy.privacy.is_row and not source.multiplies
    keys = tuple(grouping.key_exprs)
    read = {col.name for key in keys for col in columns_of(key)}
    one_row = unbounded or (frozenset() in source.unique and not source.multiplies)
    return Aggregation(
        input=source.node,
        unit=None if unbounded or source.unit is None else source.unit.name,
        keys=keys,
        names=tuple(grouping.names),
        aggregates=tuple(grouping.aggregates),
        max_groups=min(groups, max_groups or groups),
        max_rows=min(rows, max_rows_per_group or rows),
        one_group=one_row or read <= source.constants,
        one_row=one_row,
        tables=tuple(dict.fromkeys(source.tables)),
        preserved=source.preserved,
        pairs=tuple(grouping.pairs),
    )


def released_columns(made: Aggregation) -> tuple[Column, ...]:
    """The released relation's columns: keys, aggregates, the hidden error bars of each, the covariances of pairs."""
    keys = [Column(f"k{i}", key.type) for i, key in enumerate(made.keys)]
    values = [Column(f"a{j}", a.type) for j, a in enumerate(made.aggregates)]
    bars = [Column(f"_a{j}_{suffix}", FLOAT8) for j in range(len(values)) for suffix in ERROR_FUNCTIONS.values()]
    return (*keys, *values, *bars, *(Column(_together(pair), FLOAT8) for pair in made.pairs))


def _together(pair: tuple[int, int]) -> str:
    return f"_a{pair[0]}_a{pair[1]}"


def has_aggregates(select: exp.Select) -> bool:
    """Whether the query groups: GROUP BY, HAVING, DISTINCT or an aggregate function of its own level."""
    if any(select.args.get(key) for key in ("group", "having", "distinct")):
        return True
    parts = [*select.expressions, *([select.args["order"]] if select.args.get("order") else [])]
    return any(_aggregates_in(part) for part in parts)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node itself is an aggregate function."""
    return isinstance(node, exp.AggFunc) or chooses(node)


def _aggregates_in(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        inner = list(node.this.iter_expressions()) if isinstance(node.this, exp.AggFunc) else [node.this]
        return any(_aggregates_in(child) for child in (*inner, *_window_parts(node)))
    if is_aggregate(node):
        return True
    return any(_aggregates_in(child) for child in node.iter_expressions())


def _window_parts(node: exp.Window) -> list[exp.Expr]:
    return [child for key, child in _children(node) if key != "this"]


def _children(node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    found = []
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                found.append((key, child))
    return found


def key_nodes(select: exp.Select, fields: tuple[Field, ...]) -> list[exp.Expr]:
    """The group keys as expressions: names, ordinals, aliases, GROUP BY ALL, or the columns of SELECT DISTINCT."""
    group = select.args.get("group")
    if group is None:
        keys_only = select.args.get("distinct") is not None and not any(_aggregates_in(e) for e in select.expressions)
        nodes = list(select.expressions) if keys_only else []
    elif group.args.get("all"):
        nodes = [e for e in select.expressions if not _aggregates_in(e)]
    else:
        nodes = [leaf for node in group.expressions for leaf in _set_leaves(node)]
        only(group, "expressions")
    return together(partial(_key_node, node, select, fields) for node in nodes)


def _set_leaves(node: exp.Expr) -> list[exp.Expr]:
    """The keys inside ROLLUP, CUBE and GROUPING SETS."""
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        return [leaf for inner in node.expressions for leaf in _set_leaves(inner)]
    return [node]


def _key_node(node: exp.Expr, select: exp.Select, fields: tuple[Field, ...]) -> exp.Expr:
    """GROUP BY 2, GROUP BY alias, GROUP BY expression; an input column wins over an alias, as in Postgres."""
    node = unwrap(node)
    if isinstance(node, exp.Literal) and not node.args.get("is_string"):
        index = int(node.this) if str(node.this).isdigit() else 0
        if not 1 <= index <= len(select.expressions):
            raise refuse(f"GROUP BY position {node.this} is not in select list", node, sqlstate="42P10")
        node = select.expressions[index - 1]
    elif isinstance(node, exp.Column) and not node.args.get("table"):
        name = name_of(node.this)
        if all(f.name != name for f in fields):
            aliased = [e for e in select.expressions if isinstance(e, exp.Alias) and output_name(e) == name]
            node = aliased[0] if aliased else node
    return unwrap(node.this if isinstance(node, exp.Alias) else node)


def _add_key(node: exp.Expr, grouping: Grouping) -> None:
    if _aggregates_in(node):
        raise refuse("aggregate functions are not allowed in GROUP BY", node, sqlstate=GROUPING)
    key = narrowed(bind(node, grouping.context), grouping.source.known)
    if key.type.kind is Kind.UNKNOWN:
        key = grouping.context.coerce(key, TEXT, node) if isinstance(key, Lit) else key
    if key.type.kind in (Kind.INTERVAL, Kind.TIME, Kind.JSON, Kind.BYTEA):
        raise refuse(f"GROUP BY a value of type {key.type} is not supported", node)
    text = canonical(key)
    if text not in grouping.keys:
        grouping.keys[text] = len(grouping.key_exprs)
        grouping.key_exprs.append(key)
        grouping.key_classes.add(type(node))
        grouping.names.append(output_name(node))


def _projection(node: exp.Expr, grouping: Grouping) -> exp.Expr:
    inner = node.this if isinstance(node, exp.Alias) else node
    if isinstance(unwrap(inner), exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
        raise row_level(None, node)
    made = _rewritten(inner, grouping, frozenset())
    return exp.Alias(this=made, alias=exp.to_identifier(output_name(node), quoted=True))


def row_level(schema: Schema | None, node: exp.Expr) -> Rejected:
    """The refusal of a query that asks for single rows of private tables.

    `schema`: given only if all tables of the query were resolved, so that the hint may name columns of theirs.
    """
    example = suggestion(schema, node) if schema is not None else None
    return refuse(
        "Rows of a private table are never returned.",
        node,
        sqlstate="42501",
        hint=f"Ask for aggregates, such as {example or 'SELECT COUNT(*), AVG(x) FROM ... GROUP BY ...'}; "
        "SELECT * FROM dpsql.columns shows what can be asked.",
    )


def _rewritten(node: exp.Expr, grouping: Grouping, aliases: frozenset[str]) -> exp.Expr:
    """A node above the aggregation, reading released columns instead of private rows."""
    if isinstance(node, exp.Ordered) and _is_alias(node.this, aliases):
        return node.copy()
    key = _as_key(node, grouping)
    if key is not None:
        return key
    formula = composed(node)
    if formula is not None:
        return _rewritten(formula, grouping, aliases)
    match node:
        case exp.Filter() if is_aggregate(node.this):
            only(node, "expression")
            return _released(
                aggregate(node.this, node.args["expression"].this, grouping.source, grouping.context), grouping
            )
        case exp.Anonymous() if node.meta.get(COVARIANCE):
            return _covariance(node, grouping)
        case exp.Anonymous() if str(node.this).lower() in ERROR_FUNCTIONS:
            return _error_bar(node, grouping)
        case exp.Window() if isinstance(node.this, exp.AggFunc):
            return _rebuilt(node, grouping, aliases, keep_function=True)
        case exp.Grouping():
            return _which_keys(node, grouping)
        case exp.Subquery():
            return exp.Subquery(this=grouping.subquery(node.this))
        case exp.Select() | exp.SetOperation():
            return grouping.subquery(node)
        case _ if is_aggregate(node):
            return _released(aggregate(node, None, grouping.source, grouping.context), grouping)
        case exp.Column():
            return _bare_column(node, grouping)
        case _:
            return _rebuilt(node, grouping, aliases)


def _which_keys(node: exp.Grouping, grouping: Grouping) -> exp.Expr:
    """GROUPING(key, ...): of released keys, public; 0 where there is one set of them."""
    keys = [_as_key(unwrap(each), grouping) for each in node.expressions]
    found = [key for key in keys if key is not None]
    if len(found) < len(keys):
        raise refuse("arguments to GROUPING must be grouping expressions", node, sqlstate=GROUPING)
    return exp.Grouping(expressions=found) if grouping.sets else exp.Literal.number(0)


def _is_alias(node: exp.Expr, aliases: frozenset[str]) -> bool:
    """ORDER BY name: an output column's name wins over an input column's, as in Postgres."""
    return isinstance(node, exp.Column) and not node.args.get("table") and name_of(node.this) in aliases


def _as_key(node: exp.Expr, grouping: Grouping) -> exp.Expr | None:
    """The released key column, where the node is one of the group keys."""
    if type(node) not in grouping.key_classes or isinstance(node, exp.Literal):
        return None
    try:
        text = canonical(bind(node, grouping.context))
    except Rejected:
        return None
    index = grouping.keys.get(text)
    return None if index is None else _reference(f"k{index}", grouping, node)


def _reference(name: str, grouping: Grouping, at: exp.Expr) -> exp.Column:
    """A column of the released relation, placed where the node it replaces stood."""
    identifier = exp.to_identifier(name, quoted=True)
    first = next((n for n in at.walk() if "start" in n.meta), None)
    if first is not None:
        identifier.meta.update(first.meta)
    return exp.Column(this=identifier, table=exp.to_identifier(grouping.relation, quoted=True))


def _rebuilt(node: exp.Expr, grouping: Grouping, aliases: frozenset[str], *, keep_function: bool = False) -> exp.Expr:
    made, problems = node.copy(), Problems()
    for key, value in node.args.items():
        if isinstance(value, list):
            parts = [
                problems.catch(partial(_rewritten, v, grouping, aliases)) if isinstance(v, exp.Expr) else v
                for v in value
            ]
            made.set(key, parts)
        elif isinstance(value, exp.Expr):
            if keep_function and key == "this":
                made.set(key, problems.catch(partial(_rebuilt, value, grouping, aliases)))
            elif not isinstance(value, exp.Identifier | exp.Star | exp.DataType):
                made.set(key, problems.catch(partial(_rewritten, value, grouping, aliases)))
    problems.check()
    return made


def _bare_column(node: exp.Column, grouping: Grouping) -> exp.Expr:
    bind(node, grouping.context)
    if grouping.refused:
        raise FollowUp(f'column "{node.sql("postgres")}" is no group key', sqlstate=GROUPING)
    raise refuse(
        f'column "{node.sql("postgres")}" must appear in the GROUP BY clause or be used in an aggregate function',
        node,
        sqlstate=GROUPING,
        hint=f"Add it to GROUP BY{', as in GROUP BY ' + node.sql('postgres') if not grouping.keys else ''}.",
    )


def _released(aggregate: Aggregate, grouping: Grouping) -> exp.Expr:
    if aggregate.argument is None and aggregate.kind in ("quantile_cont", "quantile_disc"):
        return constant(Lit(None, aggregate.type))
    if grouping.sets:
        return _summed(aggregate, grouping)
    return _reference(f"a{_index(aggregate, grouping)}", grouping, exp.Null())


def _summed(aggregate: Aggregate, grouping: Grouping) -> exp.Expr:
    """An aggregate of a coarser group, from the cells of the finest: free, by adding up what is released."""
    match aggregate.kind:
        case "count" | "sum":
            total = exp.Sum(this=_reference(f"a{_index(aggregate, grouping)}", grouping, exp.Null()))
            type_ = exp.DataType.build(str(aggregate.type), dialect="postgres")
            return exp.Cast(this=total, to=type_)
        case "avg":
            parts = [
                _summed(replace(aggregate, kind="sum"), grouping),
                _summed(replace(aggregate, kind="count", type=INT8), grouping),
            ]
            return exp.Div(this=parts[0], expression=exp.Nullif(this=parts[1], expression=exp.Literal.number(0)))
        case _:
            raise refuse(
                f"{aggregate.kind.upper()} is not available with ROLLUP, CUBE or GROUPING SETS",
                exp.Null(),
                hint="Available: COUNT, SUM and AVG.",
            )


def _index(aggregate: Aggregate, grouping: Grouping) -> int:
    """The aggregate's place in the release; equal ones share it."""
    mine = _identity(aggregate)
    if mine in grouping.places:
        return grouping.places[mine]
    if len(grouping.aggregates) >= MAX_AGGREGATES:
        raise Rejected(f"One query measures at most {MAX_AGGREGATES} different aggregates.", sqlstate=TOO_COMPLEX)
    grouping.places[mine] = len(grouping.aggregates)
    grouping.aggregates.append(aggregate)
    return grouping.places[mine]


def _identity(aggregate: Aggregate) -> tuple[object, ...]:
    argument = None if aggregate.argument is None else canonical(aggregate.argument)
    condition = None if aggregate.condition is None else canonical(aggregate.condition)
    second = None if aggregate.second is None else canonical(aggregate.second)
    return aggregate.kind, aggregate.rank, argument, condition, second


def _error_bar(node: exp.Anonymous, grouping: Grouping) -> exp.Expr:
    """dp_stddev, dp_interval_low and dp_interval_high: of one aggregate, or of an expression over some."""
    name = str(node.this).lower()
    inner = unwrap(node.expressions[0]) if len(node.expressions) == 1 else node
    if grouping.sets and isinstance(inner.this if isinstance(inner, exp.Filter) else inner, exp.Avg):
        inner = _ratio(inner)
    elif _is_one(inner):
        found = _one(inner, grouping)
        if grouping.sets:
            return _summed_bar(name, found, grouping)
        return _reference(f"_a{_index(found, grouping)}_{ERROR_FUNCTIONS[name]}", grouping, node)

    def share(a: exp.Expr, b: exp.Expr) -> bool:
        return may_share(_one(a, grouping), _one(b, grouping))

    return _rewritten(propagated(name, node, inner, is_aggregate, share), grouping, frozenset())


def _is_one(node: exp.Expr) -> bool:
    """Whether the node is a single aggregate, with or without FILTER."""
    return is_aggregate(node.this if isinstance(node, exp.Filter) else node)


def _one(node: exp.Expr, grouping: Grouping) -> Aggregate:
    plain, condition = (node.this, node.args["expression"].this) if isinstance(node, exp.Filter) else (node, None)
    return aggregate(plain, condition, grouping.source, grouping.context)


def _covariance(node: exp.Anonymous, grouping: Grouping) -> exp.Expr:
    """Of the noise of two aggregates; of a coarser group, the sum over the finest ones."""
    first, second = sorted(_index(_one(each, grouping), grouping) for each in node.expressions)
    if (first, second) not in grouping.pairs:
        grouping.pairs.append((first, second))
    found = _reference(_together((first, second)), grouping, exp.Null())
    return exp.Sum(this=found) if grouping.sets else found


def _ratio(average: exp.Expr) -> exp.Expr:
    """AVG(x), with its FILTER, as what stands for it in a coarser group: SUM(x) / NULLIF(COUNT(x), 0)."""
    parts = []
    for function in (exp.Sum, exp.Count):
        part = average.copy()
        old = part.this if isinstance(part, exp.Filter) else part
        new = function(this=old.this)
        if part is old:
            part = new
        else:
            part.set("this", new)
        parts.append(part)
    return exp.Div(this=parts[0], expression=exp.Nullif(this=parts[1], expression=exp.Literal.number(0)))


def _summed_bar(name: str, aggregate: Aggregate, grouping: Grouping) -> exp.Expr:
    """The error bar of a coarser group: the noise of the finest groups is independent, so its squares add up."""
    total = _summed(aggregate, grouping)
    deviation = _reference(f"_a{_index(aggregate, grouping)}_sd", grouping, exp.Null())
    spread = exp.Sqrt(this=exp.Sum(this=exp.Mul(this=deviation, expression=deviation.copy())))
    if name == "dp_stddev":
        return spread
    reach = exp.Mul(this=exp.Literal.number(WIDE), expression=spread)
    side = exp.Sub if name == "dp_interval_low" else exp.Add
    return exp.Paren(this=side(this=total, expression=reach))


__all__ = ["Grouping", "aggregation", "has_aggregates", "is_aggregate", "released_columns", "rewrite", "row_level"]
