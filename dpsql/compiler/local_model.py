"""The local model: counts of values that people randomized themselves, debiased, free, and never mixed.

Decides which queries over a table with a `randomized_response` column are answered from the counts of its noisy values
alone. Such counts are post-processing of answers that each person made differentially private before they were
collected, so no budget is spent (dp/randomized.py has the formulas and their sources). What this relies on: the query
reads nothing of the table but that one column; the number of rows is public in the local model. A query that names
the column together with anything else of private tables is refused: its counts would be biased, its price unclear.

The query's FROM becomes the table's public counts, one row for each value, and each COUNT(*) an estimate over them.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp, parse_one

from dpsql.compiler.bind.propagate import WIDE
from dpsql.compiler.parse import name_of, refuse
from dpsql.compiler.spelling import exactly, meant
from dpsql.compiler.tables import named
from dpsql.dp.randomized import RandomizedResponse, response
from dpsql.errors import Failed, Rejected
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import INT8, Column, Relation

COUNTS = "counts"
"""Marks the name of a randomized column's counts, which no statement can write."""
GIVEN, ROWS = "_given", "_rows"
"""Of each value: how often it was given; of all: how many answers there are."""
_BARS = {
    "dp_stddev": "{deviation}",
    "dp_interval_low": "{estimate} - {reach}",
    "dp_interval_high": "{estimate} + {reach}",
}


def given(name: str, column: SchemaColumn, counts: list[int]) -> SchemaTable:
    """The public relation of a randomized column: its values, how often each was given, and their sum."""
    columns = (SchemaColumn(column.name, column.type), SchemaColumn(GIVEN, INT8), SchemaColumn(ROWS, INT8))
    values = column.values or ()
    rows = tuple((value, count, sum(counts)) for value, count in zip(values, counts, strict=True))
    relation = Relation(tuple(Column(c.name, c.type) for c in columns), rows)
    return SchemaTable(name, public=True, columns=columns, rows=relation)


def debiased(
    select: exp.Select, schema: Schema, shadowed: frozenset[str], visible: frozenset[str] | None
) -> exp.Select:
    """The query over the public counts where it asks about a randomized column; else as it is.

    `shadowed`: names that stand for a WITH query. `visible`: the tables that the user may see, None for all. Raises
    Rejected 0A000 for a query that mixes.
    """
    alone = not select.args.get("joins")
    for item in _tables(select):
        if not item.args.get("db") and name_of(item.this) in shadowed:
            continue
        found = named(item, schema, visible)
        table = schema.tables.get(found.name) if found is not None else None
        if table is None:
            continue
        if item.args.get("alias") is not None and item.args["alias"].args.get("columns"):
            continue  # names of its own, which never stand for a randomized column
        qualifier = item.alias_or_name
        for column in table.columns:
            if column.randomized is None:
                continue
            asked = (c for c in _own(select) if _means(c, column.name, table, qualifier))
            first = next((c for c in asked if alone or exactly(c.this, column.name)), None)
            if first is not None:
                return _answered(select, item, first, table, column)
    return select


def _tables(select: exp.Select) -> Iterator[exp.Table]:
    first = select.args.get("from_")
    for item in [] if first is None else [first.this, *(j.this for j in select.args.get("joins") or [])]:
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            yield item


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a query without those of queries inside it."""
    for child in node.iter_expressions():
        if not isinstance(child, exp.Query):
            yield child
            yield from _own(child)


def _means(node: exp.Expr, name: str, table: SchemaTable, qualifier: str) -> bool:
    if not isinstance(node, exp.Column) or node.table not in ("", qualifier):
        return False
    return meant(node.this, [column.name for column in table.columns]) == (name,)


def _answered(
    select: exp.Select, item: exp.Table, first: exp.Expr, table: SchemaTable, column: SchemaColumn
) -> exp.Select:
    mixed = _mixed(select, item, table, column)
    if mixed is not None:
        raise _refusal(mixed, table, column)
    if column.randomized is None or column.values is None:
        raise Failed("a randomized column without values")
    model = response(column.randomized, len(column.values))
    made = select.copy()
    source = made.args["from_"].this
    alias = exp.TableAlias(this=exp.to_identifier(item.alias_or_name, quoted=True))
    counts = exp.to_identifier(f"{table.name}.{column.name}", quoted=True)
    counts.meta[COUNTS] = True
    source.replace(exp.Table(this=counts, alias=alias))
    for key, value in list(made.args.items()):
        if key in ("from_", "where", "group"):
            continue
        if isinstance(value, list):
            made.set(key, [_estimated(v, model, table, column) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr):
            made.set(key, _estimated(value, model, table, column))
    return made


def _mixed(select: exp.Select, item: exp.Table, table: SchemaTable, column: SchemaColumn) -> exp.Expr | None:
    """What the query reads or does beside counting the one column; None where that is all."""
    joins: list[exp.Join] = select.args.get("joins") or []
    if joins:
        return joins[0]
    asks = bool(select.args.get("group") or select.args.get("distinct"))
    for node in _own(select):
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            return node
        known = _means(node, column.name, table, item.alias_or_name) or node.name in _output_names(select)
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star) and not known:
            return node
        asks = asks or isinstance(node, exp.Count)
    return None if asks else select.expressions[0]


def _output_names(select: exp.Select) -> set[str]:
    return {e.alias for e in select.expressions if isinstance(e, exp.Alias)}


def _estimated(node: exp.Expr, model: RandomizedResponse, table: SchemaTable, column: SchemaColumn) -> exp.Expr:
    """The expression with each count, and each error bar of one, estimated; queries inside it are of their own."""
    if isinstance(node, exp.Query):
        return node.copy()
    count = _count(node)
    if count is not None:
        return _formula("CAST(ROUND(CAST({estimate} AS numeric)) AS bigint)", count, model)
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in _BARS:
        inner = _count(node.expressions[0]) if len(node.expressions) == 1 else None
        if inner is None:
            raise refuse(f"{str(node.this).lower()} takes COUNT(*) here", node)
        return _formula(_BARS[str(node.this).lower()], inner, model)
    if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window):
        raise _refusal(node, table, column)
    made = node.copy()
    for key, value in node.args.items():
        if isinstance(value, list):
            made.set(key, [_estimated(v, model, table, column) if isinstance(v, exp.Expr) else v for v in value])
        elif isinstance(value, exp.Expr):
            made.set(key, _estimated(value, model, table, column))
    return made


def _count(node: exp.Expr) -> str | None:
    """The FILTER clause, or nothing, of COUNT(*) or COUNT(column); None for anything else."""
    while isinstance(node, exp.Paren):
        node = node.this
    plain = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(plain, exp.Count) or isinstance(plain.this, exp.Distinct) or isinstance(node.parent, exp.Window):
        return None
    condition = node.args["expression"].this.sql("postgres") if isinstance(node, exp.Filter) else ""
    return f" FILTER (WHERE {condition})" if condition else ""


def _formula(template: str, filter_: str, model: RandomizedResponse) -> exp.Expr:
    """An SQL expression over the public counts of a group; see dp/randomized.py for O, n, P, Q and c."""

    def double(sql: str) -> str:
        return f"CAST({sql} AS double precision)"

    n = double(f'COALESCE(MAX("{ROWS}"), 0)')
    other, slope = double(repr(model.other)), double(repr(model.slope))
    inside = f"({double(f'COUNT(*){filter_}')} * {other})"
    among = f"({slope} + {inside})"
    seen = double(f'COALESCE(SUM("{GIVEN}"){filter_}, 0)')
    estimate = f"(({seen} - {n} * {inside}) / {slope})"
    likely = f"LEAST(GREATEST({estimate}, 0), {n})"
    variance = f"{likely} * {among} * (1 - {among}) + ({n} - {likely}) * {inside} * (1 - {inside})"
    deviation = f"(SQRT(GREATEST({variance}, 0)) / {slope})"
    sql = template.format(estimate=estimate, deviation=deviation, reach=f"{WIDE} * {deviation}")
    return exp.Paren(this=parse_one(sql, dialect="postgres"))


def _refusal(node: exp.Expr, table: SchemaTable, column: SchemaColumn) -> Rejected:
    return refuse(
        f"{table.name}.{column.name} was randomized when it was collected: only counts of it alone are answered",
        node,
        hint=f"Ask, free of charge: SELECT {column.name}, COUNT(*) FROM {table.name} GROUP BY {column.name}",
    )
