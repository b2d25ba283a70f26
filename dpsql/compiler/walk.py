"""Walks over an aggregation: which columns it reads, which public relations it needs first, expressions changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from dpsql.compiler.algebra import (
    Aggregation,
    Call,
    Case,
    Col,
    Exists,
    Expr,
    Filter,
    Join,
    Node,
    PerUnit,
    Project,
    Rows,
    Scalar,
    Scan,
    UnionAll,
    canonical,
    children,
    columns_of,
)


def used_columns(aggregation: Aggregation) -> frozenset[str]:
    """Every column that the release reads; scans leave out all others."""
    names = {col.name for expr in expressions(aggregation) for col in columns_of(expr)}
    return frozenset(names | ({aggregation.unit} if aggregation.unit is not None else set()))


def cut_by(aggregation: Aggregation) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(table, the columns read of it, in order) where a unit's rows are cut to `max_rows`: these say which are kept."""
    used = used_columns(aggregation)
    return tuple(
        (node.table, tuple(name for name, col in node.columns if col.name in used))
        for node in nodes(aggregation)
        if isinstance(node, Scan) and node.enforce_rows is not None
    )


def derived_relations(aggregation: Aggregation) -> tuple[int, ...]:
    """The public relations that must be computed before: those read as rows, and as single values."""
    found = {node.index for node in nodes(aggregation) if isinstance(node, Rows)}
    for expr in expressions(aggregation):
        found |= {part.rows for part in parts(expr) if isinstance(part, Scalar)}
    return tuple(sorted(found))


def expressions(aggregation: Aggregation) -> Iterator[Expr]:
    """All expressions: keys, arguments, and those of every relation, inside EXISTS too."""
    own: list[Expr] = list(aggregation.keys)
    for aggregate in aggregation.aggregates:
        own += [e for e in (aggregate.argument, aggregate.second, aggregate.condition) if e is not None]
    yield from own
    for node in nodes(aggregation):
        yield from node_expressions(node)


def nodes(aggregation: Aggregation) -> Iterator[Node]:
    """All relations, those inside EXISTS too."""
    yield from _nodes(aggregation.input)
    for key in aggregation.keys:
        yield from _inside(key)
    for aggregate in aggregation.aggregates:
        for expr in (aggregate.argument, aggregate.second, aggregate.condition):
            if expr is not None:
                yield from _inside(expr)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for inner in inputs(node):
        yield from _nodes(inner)
    for expr in node_expressions(node):
        yield from _inside(expr)


def _inside(expr: Expr) -> Iterator[Node]:
    for part in parts(expr):
        if isinstance(part, Exists):
            yield from _nodes(part.relation)


def parts(expr: Expr) -> Iterator[Expr]:
    """An expression and all its arguments."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += reversed(children(part))


def larger_than(expr: Expr, most: int) -> bool:
    """Whether an expression has more parts than so many, one that stands in several places counted in each."""
    return next(islice(parts(expr), most, None), None) is not None


def with_children(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with each of its direct arguments changed, in order."""
    match expr:
        case Call(args=args):
            return replace(expr, args=tuple(change(arg) for arg in args))
        case Case(branches=branches, default=default):
            made = tuple((change(condition), change(value)) for condition, value in branches)
            return replace(expr, branches=made, default=None if default is None else change(default))
        case Exists(conditions=conditions):
            return replace(expr, conditions=tuple(change(condition) for condition in conditions))
        case _:
            return expr


def substitute(expr: Expr, known: Mapping[str, Col]) -> Expr:
    """The expression with every part whose canonical text is in `known` replaced by that column."""
    found = known.get(canonical(expr))
    return with_children(expr, lambda child: substitute(child, known)) if found is None else found


def inputs(node: Node) -> tuple[Node, ...]:
    """The relations that a relation is made of."""
    match node:
        case Scan() | Rows():
            return ()
        case Filter(input=inner) | Project(input=inner) | PerUnit(input=inner):
            return (inner,)
        case Join(left=left, right=right):
            return left, right
        case UnionAll(inputs=inner_nodes):
            return inner_nodes


def node_expressions(node: Node) -> tuple[Expr, ...]:
    """The expressions of one relation's own."""
    match node:
        case Filter(conditions=conditions) | Join(conditions=conditions):
            return conditions
        case Project(columns=columns):
            return tuple(expr for _, expr in columns)
        case PerUnit(keys=keys, parts=aggregates):
            read = (e for _, part in aggregates for e in (part.argument, part.condition) if e is not None)
            return (*(expr for _, expr in keys), *read)
        case Scan() | Rows() | UnionAll():
            return ()
