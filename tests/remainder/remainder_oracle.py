"""The same rows in a real Postgres and in the remainder, and how their answers are compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import sqlglot
from psycopg.types.string import TextLoader

from dpsql.compiler.public import Remainder, translate
from dpsql.remainder import Pool
from dpsql.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Column,
    Interval,
    Kind,
    Relation,
    SqlType,
    Value,
)

D = Decimal
_R1 = (Column("k0", TEXT), Column("a0", INT8), Column("a1", FLOAT8), Column("a2", NUMERIC))
_R2 = (Column("k0", TEXT), Column("region", TEXT))
_CAL = (
    Column("id", INT4),
    Column("day", DATE),
    Column("at", TIMESTAMP),
    Column("atz", TIMESTAMPTZ),
    Column("ok", BOOL),
    Column("small", SqlType(Kind.INT2)),
    Column("real", SqlType(Kind.FLOAT4)),
    Column("price", SqlType(Kind.NUMERIC, 12, 2)),
    Column("name", TEXT),
)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _cal(number: int, day: str, at: str, atz: str, *rest: Value) -> tuple[Value, ...]:
    return (number, date.fromisoformat(day), datetime.fromisoformat(at), _utc(atz), *rest)


RELATIONS: dict[str, Relation] = {
    "r1": Relation(
        _R1,
        (
            ("a", 5, 0.5, D("1.5")),
            ("a", 17, 1.25, D("2.50")),
            ("a", 3, -2.75, D("-10")),
            ("b", 100, 3.0, D("2.5")),
            ("b", -42, 12.125, D("0.001")),
            ("c", 0, 0.0, D("0.00")),
            ("d", None, None, None),
            (None, 64, 0.1, D("123456789012345678901234567890.12")),
        ),
    ),
    "r2": Relation(_R2, (("a", "north"), ("b", "south"), ("b", "west"), ("e", "east"), (None, "lost"))),
    "cal": Relation(
        _CAL,
        (
            _cal(1, "2020-02-29", "2020-02-29T13:05:06.789", "2020-02-29T22:00", True, 2, 1.5, D("19.99"), "Ann"),
            _cal(2, "2019-12-30", "2019-12-30T00:00", "2019-12-30T00:00", False, 3, 0.1, D("0.05"), "béa"),
            _cal(3, "2021-01-01", "2021-01-01T23:59:59", "2021-07-01T06:30", True, 0, -2.25, D("-7.50"), "Żoë"),
            _cal(4, "2020-02-09", "2020-07-09T08:07:01", "2020-02-09T01:01:01.0005", None, 7, 100.0, D("100.00"), ""),
            (5, None, None, None, None, None, None, None, None),
        ),
    ),
}


def statements(name: str) -> list[str]:
    """The statements of a case file: one a line, lines of `--` are headings."""
    text = (Path(__file__).parent / "cases" / f"{name}.sql").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("--")]


def create(connection: psycopg.Connection[Any]) -> None:
    """The relations as tables."""
    for name, relation in RELATIONS.items():
        columns = ", ".join(f"{c.name} {c.type}" for c in relation.columns)
        marks = ", ".join("%s" for _ in relation.columns)
        connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
        connection.execute(f"CREATE TABLE {name} ({columns})".encode())
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})".encode(), relation.rows)


def translated(statement: str, zone: str = "UTC") -> Remainder:
    tree = sqlglot.parse_one(statement, read="postgres")
    return translate(tree, {name: r.columns for name, r in RELATIONS.items()}, zone)


def answer(pool: Pool, statement: str, zone: str = "UTC") -> Relation:
    return pool.run(translated(statement, zone), RELATIONS, 10)


_OIDS = {
    16: Kind.BOOL,
    17: Kind.BYTEA,
    19: Kind.NAME,
    20: Kind.INT8,
    21: Kind.INT2,
    23: Kind.INT4,
    25: Kind.TEXT,
    700: Kind.FLOAT4,
    701: Kind.FLOAT8,
    1009: Kind.TEXT_ARRAY,
    1016: Kind.INT8_ARRAY,
    1022: Kind.FLOAT8_ARRAY,
    1043: Kind.TEXT,
    1082: Kind.DATE,
    1083: Kind.TIME,
    1114: Kind.TIMESTAMP,
    1184: Kind.TIMESTAMPTZ,
    1186: Kind.INTERVAL,
    1700: Kind.NUMERIC,
}


@dataclass(frozen=True)
class Expected:
    """What Postgres said."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]


def expected(connection: psycopg.Connection[Any], statement: str) -> Expected:
    connection.adapters.register_loader("interval", TextLoader)  # psycopg's own counts 30 days for a month
    cursor = connection.execute(statement.encode())
    description = cursor.description or []
    columns = tuple(
        Column(
            d.name,
            SqlType(_OIDS[d.type_code], d.precision, d.scale) if d.type_code == 1700 else SqlType(_OIDS[d.type_code]),
        )
        for d in description
    )
    return Expected(columns, tuple(cursor.fetchall()))


def differences(statement: str, theirs: Expected, ours: Relation) -> list[str]:
    """What differs, in words; empty if nothing does."""
    found = []
    if [c.name for c in theirs.columns] != [c.name for c in ours.columns]:
        found.append(f"names {[c.name for c in theirs.columns]} != {[c.name for c in ours.columns]}")
    if [str(c.type) for c in theirs.columns] != [str(c.type) for c in ours.columns]:
        found.append(f"types {[str(c.type) for c in theirs.columns]} != {[str(c.type) for c in ours.columns]}")
    left, right = _sorted(theirs.rows, statement), _sorted(ours.rows, statement)
    if len(left) != len(right) or not all(map(_same_row, left, right)):
        found.append(f"rows {left} != {right}")
    return found


def _sorted(rows: Sequence[tuple[Value, ...]], statement: str) -> list[tuple[Value, ...]]:
    return list(rows) if "ORDER BY" in statement.split(" OVER ")[0] else sorted(rows, key=_row_key)


def _row_key(row: tuple[Value, ...]) -> str:
    return repr([_plain(v) for v in row])


def _plain(value: Value) -> Value:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, Interval):
        return str(value)
    return round(value, 9) if isinstance(value, float) else value


def _same_row(left: tuple[Value, ...], right: tuple[Value, ...]) -> bool:
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Value, right: Value) -> bool:
    if isinstance(right, Interval):
        return left == str(right)
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-14, abs_tol=0)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return f"{left:f}" == f"{right:f}"
    if isinstance(left, datetime) and isinstance(right, datetime):
        return left == right and (left.tzinfo is None) == (right.tzinfo is None)
    return left == right
