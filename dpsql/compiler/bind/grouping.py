"""A grouped query over private rows: its aggregation, and the same query rewritten over the released relation.

Decides that everything above the aggregates reads released columns only: a column that is neither a
group key nor inside an aggregate is refused, so no private value can reach the remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlglot import exp

from dpsql.compiler.algebra import Lit, canonical
from dpsql.compiler.bind.aggregates import aggregate
from dpsql.compiler.bind.bars import bar_formula, bar_of_one, covariance
from dpsql.compiler.bind.compositions import composed
from dpsql.compiler.bind.expr import bind
from dpsql.compiler.bind.measured import ERROR_FUNCTIONS, Grouping, is_aggregate, reference, released
from dpsql.compiler.bind.propagate import COVARIANCE
from dpsql.compiler.bind.scope import Field, unknown_columns
from dpsql.compiler.facts import narrowed
from dpsql.compiler.parse import name_of, only, refuse, unwrap
from dpsql.compiler.problems import FollowUp, Problems, together
from dpsql.compiler.public.names import output_name
from dpsql.compiler.suggest import suggestion
from dpsql.errors import GROUPING, TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema
from dpsql.types import TEXT, Kind

T = TypeVar("T")

MOST_WRITTEN = 5000
"""Nodes that stand for names in QUALIFY: about as many as a text can have."""


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
    made = [_nothing(e) if f is None else f for e, f in zip(select.expressions, found, strict=True)]
    result = exp.Select(expressions=made)
    result.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(grouping.relation, quoted=True))))
    having = select.args.get("having")
    if grouping.sets and group is not None:
        result.set("group", problems.catch(partial(_rebuilt, group, grouping, frozenset())))
    if having is not None:
        condition = _caught(problems, having.this, partial(_rewritten, having.this, grouping, frozenset()), grouping)
        result.set(*("having", exp.Having(this=condition)) if grouping.sets else ("where", exp.Where(this=condition)))
    distinct = select.args.get("distinct")
    if distinct is not None:
        on = distinct.args.get("on")
        keys = [] if on is None else on.expressions if isinstance(on, exp.Tuple) else [on]
        kept = [problems.catch(partial(_first_of, each, grouping, frozenset(outputs))) for each in keys]
        known = [each for each in kept if each is not None]
        result.set("distinct", exp.Distinct(on=exp.Tuple(expressions=known) if known else None))
    for key in ("order", "qualify", "windows"):
        part = select.args.get(key)
        if isinstance(part, list) and part:
            result.set(key, [problems.catch(partial(_rewritten, p, grouping, frozenset())) for p in part])
        elif isinstance(part, exp.Expr):
            aliases = frozenset(outputs) if key == "order" else frozenset()
            part = _named_outputs(part, select, grouping.context.fields) if key == "qualify" else part
            result.set(key, problems.catch(partial(_rewritten, part, grouping, aliases)))
    for key in ("limit", "offset"):
        if select.args.get(key) is not None:
            result.set(key, select.args[key].copy())
    if problems.found and grouping.above is not None:
        problems.catch(partial(grouping.above, _known_parts(result)))
    problems.check()
    return result


def _nothing(node: exp.Expr) -> exp.Expr:
    """In place of an output column that was refused: the others keep their ordinals, and its name stands."""
    return exp.Alias(this=exp.Null(), alias=exp.to_identifier(output_name(node), quoted=True))


def _known_parts(result: exp.Select) -> exp.Select:
    """The query without the clauses that were refused."""
    for key, part in list(result.args.items()):
        if isinstance(part, list):
            result.set(key, [each for each in part if each is not None])
        elif isinstance(part, exp.Where | exp.Having) and part.this is None:
            result.set(key, None)
    return result


def _only_known(select: exp.Select) -> None:
    only(
        select, "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct",
        "qualify", "windows", "with_", "kind",
    )  # fmt: skip
    if select.args.get("distinct") is not None:
        grouped = select.args.get("group") is not None
        only(select.args["distinct"], *(("on",) if grouped else ()))


def _caught(problems: Problems, node: exp.Expr, part: Callable[[], T], grouping: Grouping) -> T | None:
    """The part's result; where it is refused, all columns of its text that cannot be found are named with it."""
    before = len(problems.found)
    made = problems.catch(part)
    if len(problems.found) > before:
        problems.found += unknown_columns(node, grouping.context.fields, grouping.context.outer)
    return made


def _first_of(node: exp.Expr, grouping: Grouping, outputs: frozenset[str]) -> exp.Expr:
    """A key of DISTINCT ON: a name or ordinal of an output column, as in ORDER BY, or an expression."""
    node = unwrap(node)
    is_output = _is_alias(node, outputs) or (isinstance(node, exp.Literal) and not node.is_string)
    return node.copy() if is_output else _rewritten(node, grouping, outputs)


def _named_outputs(part: exp.Expr, select: exp.Select, fields: tuple[Field, ...]) -> exp.Expr:
    """QUALIFY with the names of output columns written out; an input column of the same name wins."""
    known = {f.name for f in fields}
    outputs = {output_name(e): e.this for e in select.expressions if isinstance(e, exp.Alias)}
    named = {name: output for name, output in outputs.items() if name not in known}
    sizes = {name: sum(1 for _ in output.walk()) for name, output in named.items()}
    written = 0

    def meant(node: exp.Expr) -> exp.Expr:
        nonlocal written
        bare = isinstance(node, exp.Column) and not node.args.get("table")
        name = name_of(node.this) if bare else ""
        if name not in named:
            return node
        written += sizes[name]
        if written > MOST_WRITTEN:
            hint = "Put the grouped query into a subquery and filter around it."
            raise refuse("QUALIFY is too large with the names in it written out", node, sqlstate=TOO_COMPLEX, hint=hint)
        return exp.Paren(this=named[name].copy())

    return part.transform(meant)


def has_aggregates(select: exp.Select) -> bool:
    """Whether the query groups: GROUP BY, HAVING, DISTINCT or an aggregate function of its own level."""
    if any(select.args.get(key) for key in ("group", "having", "distinct")):
        return True
    parts = [*select.expressions, *([select.args["order"]] if select.args.get("order") else [])]
    return any(_aggregates_in(part) for part in parts)


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


def row_level(schema: Schema | None, node: exp.Expr, visible: frozenset[str] | None = None) -> Rejected:
    """The refusal of a query that asks for single rows of private tables.

    `schema`: given only if all tables of the query were resolved, so that the hint may name columns of theirs.
    """
    example = suggestion(schema, node, visible) if schema is not None else None
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
            return released(
                aggregate(node.this, node.args["expression"].this, grouping.source, grouping.context), grouping
            )
        case exp.Anonymous() if node.meta.get(COVARIANCE):
            return covariance(node, grouping)
        case exp.Anonymous() if str(node.this).lower() in ERROR_FUNCTIONS:
            bar = bar_of_one(node, grouping)
            return _rewritten(bar_formula(node, grouping), grouping, frozenset()) if bar is None else bar
        case exp.Window() if isinstance(node.this, exp.AggFunc):
            return _rebuilt(node, grouping, aliases, keep_function=True)
        case exp.Grouping():
            return _which_keys(node, grouping)
        case exp.Subquery():
            return exp.Subquery(this=grouping.subquery(node.this))
        case exp.Select() | exp.SetOperation():
            return grouping.subquery(node)
        case _ if is_aggregate(node):
            return released(aggregate(node, None, grouping.source, grouping.context), grouping)
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
    return None if index is None else reference(f"k{index}", grouping, node)


def _rebuilt(node: exp.Expr, grouping: Grouping, aliases: frozenset[str], *, keep_function: bool = False) -> exp.Expr:
    """The same node over rewritten parts, of which none is copied first: that would be all that is below each time."""
    made, problems = type(node)(), Problems()
    made.meta.update(node.meta)
    for key, value in node.args.items():
        if isinstance(value, list):
            parts = [
                problems.catch(partial(_rewritten, v, grouping, aliases)) if isinstance(v, exp.Expr) else v
                for v in value
            ]
            made.set(key, parts)
        elif not isinstance(value, exp.Expr):
            made.set(key, value)
        elif keep_function and key == "this":
            made.set(key, problems.catch(partial(_rebuilt, value, grouping, aliases)))
        elif isinstance(value, exp.Identifier | exp.Star | exp.DataType):
            made.set(key, value.copy())
        else:
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
