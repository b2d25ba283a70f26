"""One private table and the public tables of the remainder's tests, and made-up releases as rows of Postgres."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import psycopg
from psycopg import sql

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.compiler.algebra import Aggregate, Col, Scan
from dpsql.compiler.plan import PlannedRelease
from dpsql.pgwire.values import encoder
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema
from dpsql.types import Column, Interval, Kind, Parameters, Relation, SqlType, Value

HERE = Path(__file__).parent
POLICY = """
dpsql: 1
dataset: rewriting
backend: duckdb:rewriting.duckdb
timezone: UTC
privacy: {unit: person, units: 10000, max_groups: 4, max_rows_per_group: 5, budget: {epsilon: 10, delta: 1e-6}}
tables:
  facts:
    unit: uid
    columns:
      kind: {type: text, values: [a, b, c, d]}
      "Zone": {type: text, values: [n, s]}
      f: {type: double, lower: 0, upper: 100, nullable: true}
      n: {type: "numeric(12,2)", lower: 0, upper: 1000}
      i: {type: integer, lower: 0, upper: 100}
      d: {type: date, lower: 2020-01-01, upper: 2020-12-31}
      at: {type: timestamp, lower: 2020-01-01 00:00:00, upper: 2020-12-31 23:59:59}
      ok: {type: boolean}
  r2: {public: true}
  cal: {public: true}
views:
  by_kind: SELECT kind, COUNT(*) AS n, AVG(f) AS mean FROM facts GROUP BY kind -- the kinds
  places: SELECT k0, region FROM r2 WHERE k0 IS NOT NULL
"""
TABLES = """
CREATE TABLE facts (uid INTEGER, kind TEXT, "Zone" TEXT, f DOUBLE PRECISION, n NUMERIC(12,2), i INTEGER, d DATE,
  "at" TIMESTAMP, ok BOOLEAN);
INSERT INTO facts VALUES (1, 'a', 'n', 1.5, 10.25, 3, '2020-01-05', '2020-01-05 10:00:00', TRUE),
  (1, 'a', 's', 2.5, 20.50, 4, '2020-02-05', '2020-02-05 11:00:00', FALSE),
  (2, 'b', 'n', 50.125, 1.00, 5, '2020-02-06', '2020-02-06 12:30:00', TRUE),
  (3, 'b', 's', NULL, 7.75, 6, '2020-03-07', '2020-03-07 00:00:00', TRUE),
  (4, 'c', 'n', 99, 999.99, 100, '2020-12-31', '2020-12-31 23:59:59', FALSE),
  (5, 'd', 's', 0, 0, 0, '2020-06-15', '2020-06-15 06:00:00', NULL);
CREATE TABLE r2 (k0 TEXT, region TEXT);
INSERT INTO r2 VALUES ('a', 'north'), ('b', 'south'), ('b', 'west'), ('e', 'east'), (NULL, 'lost');
CREATE TABLE cal (id INTEGER, day DATE, "at" TIMESTAMP, atz TIMESTAMPTZ, ok BOOLEAN, small SMALLINT, "real" REAL,
  price NUMERIC(12,2), name TEXT);
"""
_FOLDER = TemporaryDirectory()


@cache
def schema() -> Schema:
    path = Path(_FOLDER.name) / "rewriting.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(TABLES)
    with closing(open_backend(f"duckdb:{path}", "UTC")) as backend:
        return inspect(backend, parse(POLICY, Path("rewriting.yaml")))


def compiled(statement: str, parameters: Parameters = (), **more: Any) -> Compiled:
    return compile_statement(
        statement, schema(), Terms(Decimal(1), Decimal("1e-7"), **more), None, parameters, texts=True
    )


@contextmanager
def sorted_by_bytes(uri: str, name: str) -> Iterator[psycopg.Connection[Any]]:
    """A new database that sorts by bytes."""
    with psycopg.connect(uri, autocommit=True) as connection:
        name = f"{name}_{connection.info.dbname}"
        connection.execute(
            sql.SQL("CREATE DATABASE {} LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0").format(
                sql.Identifier(name)
            )
        )
        uri = uri.replace(f"/{connection.info.dbname}?", f"/{name}?")
    with psycopg.connect(uri, autocommit=True) as made:
        made.execute("SET TimeZone = 'UTC'")
        yield made


def as_query(columns: tuple[Column, ...], rows: tuple[tuple[Value, ...], ...]) -> str:
    """Rows as a query of their columns."""
    items = ", ".join(f'c{at}::{_type(c.type)} AS "{c.name}"' for at, c in enumerate(columns))
    arrays = ", ".join(f"{_array(rows, at, c.type)}::{_type(SqlType(c.type.kind))}[]" for at, c in enumerate(columns))
    names = ", ".join(f"c{at}" for at in range(len(columns)))
    return f"SELECT {items} FROM unnest({arrays}) AS given({names})"


def _type(type_: SqlType) -> str:
    return "text" if type_.kind is Kind.UNKNOWN else str(type_)


def _array(rows: tuple[tuple[Value, ...], ...], at: int, type_: SqlType) -> str:
    encode = encoder(type_)
    items = ", ".join(_literal(encode(row[at])) for row in rows)
    return f"ARRAY[{items}]"


def _literal(value: bytes | None) -> str:
    return "NULL" if value is None else "'" + value.decode().replace("'", "''") + "'"


def over(made: Compiled, rows: Mapping[int, Relation]) -> str:
    return made.text.over({n: as_query(r.columns, r.rows) for n, r in rows.items()})


def exact(made: Compiled) -> dict[int, str] | None:
    """Queries that give the releases without noise, in Postgres; None where one is more than columns of the table."""
    found = {}
    for release in made.releases:
        query = _exact(release)
        if query is None:
            return None
        found[release.index] = query
    return found


def _exact(release: PlannedRelease) -> str | None:
    made = release.aggregation
    if not isinstance(made.input, Scan) or made.pairs:
        return None
    names = {col.name: f'"{name}"' for name, col in made.input.columns}
    keys = [names.get(key.name) if isinstance(key, Col) else None for key in made.keys]
    values = [_value(each, names) for each in made.aggregates]
    items = [f"{item}::{c.type}" for item, c in zip((*keys, *values), release.columns, strict=False)]
    if None in (*keys, *values):
        return None
    items += ["0::float8"] * (len(release.columns) - len(items))
    named = ", ".join(f'{item} AS "{c.name}"' for item, c in zip(items, release.columns, strict=True))
    group = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    return f'SELECT {named} FROM "{made.input.table}"{group}'


def _value(aggregate: Aggregate, names: Mapping[str, str]) -> str | None:
    argument = aggregate.argument
    if aggregate.condition is not None or aggregate.kind not in ("count", "sum", "avg"):
        return None
    if argument is None:
        return "COUNT(*)"
    return f"{aggregate.kind.upper()}({names[argument.name]})" if isinstance(argument, Col) else None


def made_up(made: Compiled) -> dict[int, Relation]:
    """Rows that could be those of the releases."""
    chance = random.Random(7)
    found = {}
    for release in made.releases:
        keys = len(release.aggregation.keys)
        rows = tuple(
            tuple(_random(c, chance, row if at < keys else None) for at, c in enumerate(release.columns))
            for row in range(4 if keys else 1)
        )
        found[release.index] = Relation(release.columns, rows)
    return found


def _random(column: Column, chance: random.Random, row: int | None) -> Value:
    number = chance.randint(-20, 1000) if row is None else row
    match column.type.kind:
        case Kind.TEXT:
            return "abcd"[number % 4]
        case Kind.BOOL:
            return number % 2 == 0
        case Kind.DATE:
            return date(2020, 1, 1) + timedelta(days=31 * number)
        case Kind.TIMESTAMP:
            return datetime(2020, 1, 1) + timedelta(days=31 * number)
        case Kind.TIMESTAMPTZ:
            return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=31 * number)
        case Kind.FLOAT8:
            return number + 0.25
        case Kind.NUMERIC:
            return Decimal(number)
        case _:
            return number


def said(rows: Iterable[Sequence[object]], statement: str) -> list[str]:
    plain = [repr([_plain(value) for value in row]) for row in rows]
    return plain if "ORDER BY" in statement.split("OVER")[0] else sorted(plain)


def _plain(value: object) -> object:
    if isinstance(value, float | Decimal):
        return f"{value:.9g}"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return str(value) if isinstance(value, Interval) else value
