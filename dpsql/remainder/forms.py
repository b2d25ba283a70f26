"""Rows into DuckDB and out of it: the run-time side of `dpsql.compiler.public.storage`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import cast

from dpsql.compiler.public.storage import digits_of, duckdb_type
from dpsql.compiler.public.term import quote_name
from dpsql.errors import Rejected
from dpsql.remainder.text_forms import float4
from dpsql.types import Column, Interval, Kind, Relation, Value


def as_select(relation: Relation) -> tuple[str, list[list[object]]]:
    """A SELECT that gives the relation's rows, and its parameters: one list per column."""
    columns = [f"unnest(CAST(? AS {_type(c)}[])) AS {quote_name(c.name)}" for c in relation.columns]
    values = zip(*relation.rows, strict=True) if relation.rows else ((),) * len(relation.columns)
    taken = [kept(column, given) for column, given in zip(relation.columns, values, strict=True)]
    return f"SELECT {', '.join(columns)}", taken


def as_table(name: str, relation: Relation) -> str:
    """CREATE TABLE for the relation."""
    return (
        f"CREATE TABLE {quote_name(name)} ({', '.join(f'{quote_name(c.name)} {_type(c)}' for c in relation.columns)})"
    )


def _type(column: Column) -> str:
    return duckdb_type(column.type, digits_of(column.type))


def kept(column: Column, values: Sequence[Value]) -> list[object]:
    """A column's values as DuckDB takes them."""
    if column.type.kind is Kind.TIMESTAMPTZ:
        return [v.astimezone(UTC).replace(tzinfo=None) if isinstance(v, datetime) else v for v in values]
    if column.type.kind is Kind.INTERVAL:
        return [v if v is None else _interval_text(cast(Interval, v)) for v in values]
    if column.type.kind is Kind.NUMERIC:
        return [f"{v:f}" if isinstance(v, Decimal) else v if v is None else str(v) for v in values]
    return list(values)


def interval_parts(name: str) -> str:
    """Months, days and microseconds of an interval as a list: DuckDB's client makes 30 days of a month."""
    micros = f"(extract(hour FROM {name}) * 60 + extract(minute FROM {name})) * 60000000"
    return (
        f"CASE WHEN {name} IS NOT NULL THEN [extract(year FROM {name}) * 12 + extract(month FROM {name}),"
        f" extract(day FROM {name}), {micros} + extract(microsecond FROM {name})] END"
    )


def readable(sql: str, intervals: Sequence[bool]) -> str:
    """A query whose client gets its columns that are intervals as the lists that `interval_of` reads."""
    if not any(intervals):
        return sql
    names = [f"c{number}" for number in range(len(intervals))]
    read = [interval_parts(name) if interval else name for name, interval in zip(names, intervals, strict=True)]
    return f"SELECT {', '.join(read)} FROM ({sql}) AS shown({', '.join(names)})"


def interval_of(parts: object) -> Interval:
    return Interval(*cast(list[int], parts))


def given(columns: Sequence[Column], rows: Sequence[tuple[object, ...]]) -> tuple[tuple[Value, ...], ...]:
    """DuckDB's rows as values."""
    makers = [(i, _MAKERS[c.type.kind]) for i, c in enumerate(columns) if c.type.kind in _MAKERS]
    if not makers:
        return tuple(rows)  # type: ignore[arg-type]
    made = []
    for row in rows:
        values = list(row)
        for index, maker in makers:
            if values[index] is not None:
                values[index] = maker(values[index])
        made.append(tuple(values))
    return tuple(made)  # type: ignore[arg-type]


def _interval_text(value: Interval) -> str:
    return f"{value.months} months {value.days} days {value.micros} microseconds"


def _moment(value: object) -> object:
    """DuckDB gives text for what Python's calendar does not hold."""
    if isinstance(value, str):
        raise Rejected("dates outside the years 1 to 9999 cannot be shown", sqlstate="22008")
    return value


def _utc(value: object) -> object:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else _moment(value)


def _decimal(value: object) -> object:
    return value if isinstance(value, Decimal) else Decimal(str(value))


def _single(value: object) -> object:
    """The shortest double that means the same single: what a client would read from Postgres's text."""
    return float(float4(value)) if isinstance(value, float) else value


_MAKERS: dict[Kind, Callable[[object], object]] = {
    Kind.DATE: _moment,
    Kind.TIMESTAMP: _moment,
    Kind.TIMESTAMPTZ: _utc,
    Kind.NUMERIC: _decimal,
    Kind.FLOAT4: _single,
    Kind.INTERVAL: interval_of,
}
