"""Relations as SQL: scans of declared tables under the names the binder gave them, joins, filters, released rows."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dpsql.compiler.algebra import (
    Col,
    Exists,
    Expr,
    Filter,
    Join,
    Node,
    Part,
    PerUnit,
    Project,
    Rows,
    Scan,
    UnionAll,
    outputs,
)
from dpsql.compiler.emit import decimals
from dpsql.compiler.emit.common import DerivedRows, Emitter, quote
from dpsql.compiler.emit.dialect import Dialect
from dpsql.compiler.emit.moments import plain
from dpsql.compiler.exact import MOST_DIGITS, scale_of, sums_exactly
from dpsql.compiler.presence import may_be_nan
from dpsql.errors import TOO_COMPLEX, Failed, Rejected
from dpsql.types import Relation, TableName

MAX_ROWS = 20_000
"""Released rows that may be sent to a backend."""


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
        case PerUnit():
            return f"({_per_unit(node, used, emitter)})"
        case UnionAll(inputs=inputs, columns=columns):
            names = ", ".join(quote(n) for n in columns)
            sides = (f"SELECT {names} FROM {relation(i, used | set(columns), emitter)} AS {_alias(i)}" for i in inputs)
            return f"({' UNION ALL '.join(sides)})"


def emitter_for(dialect: Dialect, derived: DerivedRows, used: frozenset[str]) -> Emitter:
    """An emitter that can render EXISTS over relations of which `used` columns are read."""

    def exists(expr: Exists) -> str:
        source = f"{relation(expr.relation, used, emitter)} AS {_alias(expr.relation)}"
        return f"EXISTS (SELECT 1 FROM {source} WHERE {_all(expr.conditions, emitter)})"

    emitter = Emitter(dialect, derived, exists)
    return emitter


def _per_unit(node: PerUnit, used: frozenset[str], emitter: Emitter) -> str:
    """One row per unit and key. Sums are exact on their grid, so the order of rows cannot matter."""
    keys = [f"{emitter.value(key)} AS {quote(name)}" for name, key in node.keys]
    parts = [f"{_part(part, emitter)} AS {quote(name)}" for name, part in node.parts if name in used]
    group = ", ".join(emitter.value(key) for _, key in node.keys)
    source = f"{relation(node.input, used, emitter)} AS {_alias(node.input)}"
    return f"SELECT {', '.join([*keys, *parts])} FROM {source} GROUP BY {group}"


def _part(part: Part, emitter: Emitter) -> str:
    argument = part.argument
    if part.kind == "count":
        tests = [emitter.condition(part.condition)] if part.condition is not None else []
        tests += [present(argument, emitter)] if argument is not None else []
        return f"COUNT(CASE WHEN {' AND '.join(tests)} THEN 1 END)" if tests else "COUNT(*)"
    if argument is None:
        raise Failed(f"{part.kind} without an argument")
    if part.kind in ("count_distinct", "min", "max"):
        value = _when(part.condition, _plain(argument, emitter), emitter)
        return f"COUNT(DISTINCT {value})" if part.kind == "count_distinct" else f"{part.kind.upper()}({value})"
    steps = _when(part.condition, _steps(argument, part.resolution or Fraction(1), emitter), emitter)
    if part.kind == "sum" and argument.type.is_integer:
        return f"SUM({steps})"
    resolution = part.resolution or Fraction(1)
    if part.kind == "sum" and sums_exactly(argument, resolution):
        total = f"CAST(SUM({steps}) AS {decimals.decimal_type(emitter, MOST_DIGITS, 0)})"
        return f"({total} * {decimals.constant(emitter, resolution, scale_of(argument) or 0)})"
    total = f"CAST(SUM({steps}) AS {emitter.dialect.double})"
    if part.kind == "sum":
        return f"({total} * {emitter.double(resolution)})"
    if resolution < 1:  # one division, rounded once: the nearest double of the average
        return f"({total} / NULLIF(COUNT({steps}) * {emitter.double(1 / resolution)}, 0))"
    return f"({total} / NULLIF(COUNT({steps}), 0) * {emitter.double(resolution)})"


def present(expr: Expr, emitter: Emitter) -> str:
    """Whether the expression has a value: NaN is none, for COUNT as for all other aggregates."""
    value = emitter.value(expr)
    floating = isinstance(expr, Col) and expr.type.is_number and may_be_nan(expr)
    return f"{value} IS NOT NULL AND NOT {emitter.dialect.is_nan(value)}" if floating else f"{value} IS NOT NULL"


def _plain(argument: Expr, emitter: Emitter) -> str:
    """A value to be compared: floats without NaN."""
    value = emitter.value(argument)
    if argument.type.is_float and isinstance(argument, Col):
        return f"CASE WHEN {emitter.dialect.is_nan(value)} THEN NULL ELSE {value} END"
    return value


def _when(condition: Expr | None, value: str, emitter: Emitter) -> str:
    return value if condition is None else f"CASE WHEN {emitter.condition(condition)} THEN {value} END"


def _steps(argument: Expr, resolution: Fraction, emitter: Emitter) -> str:
    """A value in whole steps of its grid, clamped to declared bounds where those chose the grid."""
    if argument.type.is_integer:
        return emitter.number(argument)[0]
    if sums_exactly(argument, resolution):
        return _exact_steps(argument, resolution, emitter)
    x, domain = emitter.as_double(argument), argument.domain
    if domain.lower is not None and domain.upper is not None:
        low, high = emitter.double(domain.lower), emitter.double(domain.upper)
        x = f"(CASE WHEN {x} > {high} THEN {high} WHEN {x} < {low} THEN {low} ELSE {x} END)"
    return f"CAST(FLOOR({x} * {emitter.double(1 / resolution)} + {emitter.double(0.5)}) AS BIGINT)"


def _exact_steps(argument: Expr, resolution: Fraction, emitter: Emitter) -> str:
    """A decimal in whole steps of its last decimal, whatever its declared bounds: the sum of a unit's rows is exact."""
    x = decimals.times(emitter, emitter.as_rep(argument, "exact"), argument, 1 / resolution)
    return f"CAST({x} AS {emitter.dialect.wide})"


def _alias(node: Node) -> str:
    """A name for a derived table; it is never referred to."""
    return f"s_{min(outputs(node), default='x').split('_', 1)[0]}"


def _all(conditions: Iterable[Expr], emitter: Emitter) -> str:
    return " AND ".join(emitter.condition(c) for c in conditions) or "TRUE"


def stored(table: TableName, dialect: Dialect) -> str:
    """A stored table, always with its schema."""
    return f"{quote(table.schema or dialect.schema)}.{quote(table.name)}"


def _scan(node: Scan, used: frozenset[str], emitter: Emitter) -> str:
    dialect = emitter.dialect
    wanted = [(name, col) for name, col in node.columns if col.name in used or col.name == node.unit]
    parts = [f"{dialect.read(quote(name), col.type)} AS {quote(col.name)}" for name, col in wanted]
    if node.row_unit and node.unit is not None and node.unit in used:
        parts.append(f"{dialect.row_id} AS {quote(node.unit)}")
    table = stored(node.source or TableName(node.table), dialect)
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
        "(" + ", ".join(emitter.literal(plain(v), c.type) for v, c in zip(r, node.columns, strict=True)) + ")"
        for r in known.rows
    )
    return f"SELECT {', '.join(typed)} FROM (VALUES {rows}) AS released({', '.join(names)})"
