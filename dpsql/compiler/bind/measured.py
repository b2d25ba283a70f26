"""A grouped query in the making: its keys and aggregates, and the released relation that the rest of it reads.

Decides which columns the release has, and what stands for an aggregate above it: equal aggregates share one column,
those of a coarser group (ROLLUP, CUBE, GROUPING SETS) are sums over the cells of the finest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpsql.compiler.algebra import Aggregate, Aggregation, Expr, Lit, canonical, columns_of
from dpsql.compiler.bind.bounds import contribution
from dpsql.compiler.bind.choices import chooses
from dpsql.compiler.bind.expr import Context
from dpsql.compiler.bind.parameters import constant
from dpsql.compiler.bind.scope import Source
from dpsql.compiler.parse import refuse
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema
from dpsql.types import FLOAT8, INT8, Column

MAX_AGGREGATES = 100
ERROR_FUNCTIONS = {"dp_stddev": "sd", "dp_interval_low": "low", "dp_interval_high": "high"}


@dataclass(slots=True)
class Room:
    """How many nodes the formulas of error bars may still have, in all of a statement."""

    left: int = 30_000

    def take(self, nodes: int, node: exp.Expr) -> None:
        """Raises Rejected 54001 where there are not that many."""
        self.left -= nodes
        if self.left < 0:
            hint = "Ask for the error bars of the aggregates themselves, or of fewer and shorter expressions."
            raise refuse("the error bars of expressions are too large", node, sqlstate=TOO_COMPLEX, hint=hint)


@dataclass(slots=True)
class Grouping:
    """A grouped query in the making. `relation`: the name of the released relation that it will read.

    `sets`: ROLLUP, CUBE or GROUPING SETS, computed by summing the cells of the finest grouping. `refused`: a key is.
    `pairs`: the aggregates whose covariance error bars read. `above` raises what is wrong with the query over the
    released relation; asked where the query is refused anyway.
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
    above: Callable[[exp.Select], object] | None = None
    room: Room = field(default_factory=Room)


def aggregation(grouping: Grouping, max_groups: int | None, max_rows_per_group: int | None) -> Aggregation:
    """The release that the rewritten query reads. Its bounds: the policy's, or the tighter ones that are asked for."""
    source, schema = grouping.source, grouping.schema
    groups, rows = contribution(source.node, schema)
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
    return (*keys, *values, *bars, *(Column(covariance_name(pair), FLOAT8) for pair in made.pairs))


def covariance_name(pair: tuple[int, int]) -> str:
    return f"_a{pair[0]}_a{pair[1]}"


def is_aggregate(node: exp.Expr) -> bool:
    """Whether the node itself is an aggregate function."""
    return isinstance(node, exp.AggFunc) or chooses(node)


def reference(name: str, grouping: Grouping, at: exp.Expr) -> exp.Column:
    """A column of the released relation, placed where the node it replaces stood."""
    identifier = exp.to_identifier(name, quoted=True)
    first = next((n for n in at.walk() if "start" in n.meta), None)
    if first is not None:
        identifier.meta.update(first.meta)
    return exp.Column(this=identifier, table=exp.to_identifier(grouping.relation, quoted=True))


def released(aggregate: Aggregate, grouping: Grouping) -> exp.Expr:
    if aggregate.argument is None and aggregate.kind in ("quantile_cont", "quantile_disc"):
        return constant(Lit(None, aggregate.type))
    if grouping.sets:
        return summed(aggregate, grouping)
    return reference(f"a{index_of(aggregate, grouping)}", grouping, exp.Null())


def summed(aggregate: Aggregate, grouping: Grouping) -> exp.Expr:
    """An aggregate of a coarser group, from the cells of the finest: free, by adding up what is released."""
    match aggregate.kind:
        case "count" | "sum":
            total = exp.Sum(this=reference(f"a{index_of(aggregate, grouping)}", grouping, exp.Null()))
            type_ = exp.DataType.build(str(aggregate.type), dialect="postgres")
            return exp.Cast(this=total, to=type_)
        case "avg":
            parts = [
                summed(replace(aggregate, kind="sum"), grouping),
                summed(replace(aggregate, kind="count", type=INT8), grouping),
            ]
            return exp.Div(this=parts[0], expression=exp.Nullif(this=parts[1], expression=exp.Literal.number(0)))
        case _:
            raise refuse(
                f"{aggregate.kind.upper()} is not available with ROLLUP, CUBE or GROUPING SETS",
                exp.Null(),
                hint="Available: COUNT, SUM and AVG.",
            )


def index_of(aggregate: Aggregate, grouping: Grouping) -> int:
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
    return aggregate.kind, aggregate.rank, aggregate.end, argument, condition, second
