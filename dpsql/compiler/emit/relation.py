"""Relations as SQL: scans of declared tables under the names the binder gave them, joins, filters, released rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.compiler.algebra import Aggregation, Col, Expr, Filter, Join, Node, Project, Rows, Scan, columns_of, outputs
from dpsql.compiler.emit.common import Emitter, quote
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.types import Relation

MAX_ROWS = 20_000
"""Released rows that may be sent to a backend."""


def used_columns(aggregation: Aggregation) -> frozenset[str]:
    """Every column that the release reads; scans leave out all others."""
    exprs: list[Expr] = list(aggregation.keys)
    for aggregate in aggregation.aggregates:
        exprs += [e for e in (aggregate.argument, aggregate.condition) if e is not None]
    names = {col.name for expr in (*exprs, *_expressions(aggregation.input)) for col in columns_of(expr)}
    return frozenset(names | ({aggregation.unit} if aggregation.unit is not None else set()))


def _expressions(node: Node) -> Iterator[Expr]:
    match node:
        case Filter(input=inner, conditions=conditions):
            yield from conditions
            yield from _expressions(inner)
        case Project(input=inner, columns=columns):
            yield from (expr for _, expr in columns)
            yield from _expressions(inner)
        case Join(left=left, right=right, conditions=conditions):
            yield from conditions
            yield from _expressions(left)
            yield from _expressions(right)


def relation(node: Node, used: frozenset[str], emitter: Emitter) -> str:
    """A FROM item without alias: a parenthesised query or join."""
    match node:
        case Scan():
            return f"({_scan(node, used, emitter)})"
        case Rows():
            return f"({_rows(node, emitter)})"
        case Filter(input=inner, conditions=conditions):
            where = _all(conditions, emitter)
            return f"(SELECT * FROM {relation(inner, used, emitter)} AS {_alias(inner)} WHERE {where})"
        case Project(input=inner, columns=columns):
            made = ", ".join(f"{emitter.value(e)} AS {quote(n)}" for n, e in columns if n in used)
            source = f"{relation(inner, used, emitter)} AS {_alias(inner)}"
            return f"(SELECT *{', ' + made if made else ''} FROM {source})"
        case Join(kind=kind, left=left, right=right, conditions=conditions):
            word = "LEFT JOIN" if kind == "left" else "JOIN"
            first = f"{relation(left, used, emitter)} AS {_alias(left)}"
            second = f"{relation(right, used, emitter)} AS {_alias(right)}"
            return f"(SELECT * FROM {first} {word} {second} ON {_all(conditions, emitter)})"


def _alias(node: Node) -> str:
    """A name for a derived table; it is never referred to."""
    return f"s_{min(outputs(node), default='x').split('_', 1)[0]}"


def _all(conditions: Iterable[Expr], emitter: Emitter) -> str:
    return " AND ".join(emitter.condition(c) for c in conditions) or "TRUE"


def _scan(node: Scan, used: frozenset[str], emitter: Emitter) -> str:
    dialect = emitter.dialect
    wanted = [(name, col) for name, col in node.columns if col.name in used or col.name == node.unit]
    parts = [f"{dialect.read(quote(name), col.type)} AS {quote(col.name)}" for name, col in wanted]
    if node.row_unit and node.unit is not None and node.unit in used:
        parts.append(f"{dialect.row_id} AS {quote(node.unit)}")
    table = f"{quote(dialect.schema)}.{quote(node.table)}"
    unit = next((name for name, col in node.columns if col.name == node.unit), None)
    where = f" WHERE {quote(unit)} IS NOT NULL" if unit is not None else ""
    sql = f"SELECT {', '.join(parts) or '1 AS nothing'} FROM {table}{where}"
    return sql if node.enforce_rows is None else _at_most(sql, node, wanted, node.enforce_rows)


def _at_most(sql: str, node: Scan, wanted: list[tuple[str, Col]], limit: int) -> str:
    """`max_rows` made true: the first rows of each unit in a total order of what is read, within the unit alone."""
    assert node.unit is not None
    names = [quote(col.name) for _, col in wanted]
    order = ", ".join(f"{n} NULLS LAST" for n in names)
    ranked = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {quote(node.unit)} ORDER BY {order}) AS rank_in_unit"
    return f"SELECT {', '.join(names)} FROM ({ranked} FROM ({sql}) AS stored) AS ranked WHERE rank_in_unit <= {limit}"


def _rows(node: Rows, emitter: Emitter) -> str:
    names = [quote(c.name) for c in node.columns]
    known = emitter.derived.get(node.index)
    if known is None:
        return f"SELECT * FROM (VALUES :d{node.index}) AS d{node.index}({', '.join(names)})"
    if len(known.rows) > MAX_ROWS:
        raise Rejected(
            f"The inner query has {len(known.rows)} rows; at most {MAX_ROWS} can be joined with private rows.",
            sqlstate=TOO_COMPLEX,
            hint="Put a LIMIT on the inner query.",
        )
    return _values(node, known, names, emitter)


def _values(node: Rows, known: Relation, names: list[str], emitter: Emitter) -> str:
    typed = [f"CAST({n} AS {emitter.type_name(c.type)}) AS {n}" for n, c in zip(names, node.columns, strict=True)]
    if not known.rows:
        nulls = ", ".join(f"NULL AS {n}" for n in names)
        return f"SELECT {', '.join(typed)} FROM (SELECT {nulls}) AS none WHERE FALSE"
    rows = ", ".join(
        "(" + ", ".join(emitter.literal(emitter.plain(v), c.type) for v, c in zip(r, node.columns, strict=True)) + ")"
        for r in known.rows
    )
    return f"SELECT {', '.join(typed)} FROM (VALUES {rows}) AS released({', '.join(names)})"
