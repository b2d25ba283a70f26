"""Rows on which the emitted SQL of both backends is compared with what Postgres itself says of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg

from dpsql.backends import Backend, open_backend
from dpsql.backends.inspect import inspect
from dpsql.compiler import Terms, compile_statement
from dpsql.compiler.emit import DIALECTS, emit
from dpsql.compiler.plan import PlannedRelease
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema
from dpsql.types import Value

ONE = 1024
TERMS = Terms(Decimal(1), Decimal("1e-7"))
_POLICY = """
dpsql: 1
dataset: meaning
backend: duckdb:meaning.duckdb
timezone: UTC
privacy: {unit: UNIT, units: 100000, max_groups: 1, max_rows_per_group: 1, budget: {epsilon: 10, delta: 1e-6}}
tables:
  t:ROWS
    columns:
      id: {type: integer, lower: 0, upper: 1000}
      a: {type: "numeric(9,2)", lower: -100, upper: 1000}
      y: {type: integer, lower: -20, upper: 100}
      s: {type: smallint, lower: 0, upper: 10}
      big: {type: bigint}
      far: {type: bigint, lower: -1000, upper: 1000}
      d: {type: "numeric(15,2)", lower: 0, upper: 100000}
      p: {type: "numeric(15,2)", lower: 0, upper: 1}
      w: {type: "numeric(38,10)"}
      r: {type: "numeric(6,5)"}
      f: {type: double, lower: -50, upper: 50}
      g: {type: real}
      day: {type: date, lower: 2020-01-01, upper: 2021-12-31}
      word: {type: text}
"""
_COLUMNS = (
    "id integer, a numeric(9,2), y integer, s smallint, big bigint, far bigint, d numeric(15,2), p numeric(15,2), "
    "w numeric(38,10), r numeric(6,5), f double precision, g real, day date, word text"
)
_WORDS = (
    "Ähre", "ähre", "ÄHRE", "Éric", "éRIC", "Straße", "STRASSE", "Иван", "иван", "ИВАН", "Ελλάδα", "ΕΛΛΆΔΑ", "ελλάδα",
    "ΟΔΟΣ", "οδος", "οδοσ", "İstanbul", "ıstanbul", "ISTANBUL", "Ǆ", "ǅ", "ǆ", "ŉ", "ﬁ", "ÿ", "Ÿ", "µ", "μ", "ſ", "S",
    "Kelvin", "kelvin", "plain", "PLAIN", "", None, "naïve café", "NAÏVE CAFÉ", "Đặng", "đặng", "ĐẶNG", "Őr", "őr",
    "e\u0301", "日本", "ა", "a" * 300 + "É",
)  # fmt: skip


def rows() -> Iterator[tuple[Value, ...]]:
    """Hostile values: ties, ends of types, what binary floats cannot hold, NULLs, what no declaration allows."""
    yield (0,) + (None,) * 13
    for i in range(1, 331):
        cents = Decimal(i * 37 % 1109 - 110)
        yield (
            i,
            cents / 100 if i % 5 else cents,
            i % 41 - 15 if i % 17 else None,
            i % 11,
            (2**53 - 5 + i % 10, -(2**53) - i % 7, 2**63 - 1 - i % 3, i, -(2**63) + i % 2, 10**15 + i)[i % 6],
            (i, -i, i * 10**14, -(2**62) + i, 500, 0)[i % 6],
            (Decimal(i * 12345 % 9999999) / 100, Decimal("9999999999999.99"), Decimal("0.01"), Decimal("-5.05"))[i % 4],
            Decimal(i % 101) / 100 if i % 9 else Decimal(10) ** 12,
            (Decimal(i * 10**9 // 7) / 10**9, Decimal("9" * 28 + ".9999999999"), Decimal("-0.5"), Decimal(i), Decimal(
                "0.0000000001"))[i % 5],
            (Decimal(i * 271 % 199999) - 99999) / 100000,
            (i / 10, i + 0.5, -i - 0.5, 0.1 + 0.2, 2.675, 49.5, -0.5, 1e308, -1e300, 5e-324, float("nan"), float("inf"),
             float("-inf"), i * 0.29, 0.49999999999999994, 4503599627370497.5, i / 3, None)[i % 18],
            (i / 10, i + 0.5, 0.1, 16777216.0, -i / 7, None)[i % 6],
            f"2020-{i % 12 + 1:02}-{i % 28 + 1:02}" if i % 13 else f"2021-{i % 12 + 1:02}-01",
            _WORDS[i % len(_WORDS)],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Worlds:
    """The same rows in both backends, and a connection that asks Postgres itself."""

    backends: tuple[tuple[str, Backend, Schema], ...]
    raw: psycopg.Connection[tuple[Value, ...]]

    def said(self, sql: str) -> list[tuple[Value, ...]]:
        """What Postgres answers to the same text."""
        return self.raw.execute(sql.encode()).fetchall()

    def releases(self, sql: str) -> list[tuple[PlannedRelease, str, Backend]]:
        """The statement's only release, with the SQL of each backend."""
        found = []
        for dialect, backend, schema in self.backends:
            (release,) = compile_statement(sql, schema, TERMS).releases
            found.append((release, emit(release, DIALECTS[dialect], {}), backend))
        return found

    def cells(self, sql: str) -> dict[tuple[Value, ...], tuple[int, ...]]:
        """The exact integers by group, once both backends have given the same."""
        answers = []
        for release, emitted, backend in self.releases(sql):
            found = backend.fetch(emitted, len(release.keys), 60.0)
            keys = [
                tuple(
                    k.domain.value(v, k.expr.type) if k.domain and isinstance(v, int) else v
                    for v, k in zip(key, release.keys, strict=True)
                )
                for key in found.keys
            ]
            answers.append(dict(zip(keys, found.cells, strict=True)))
        first, *others = answers
        assert all(other == first for other in others), sql
        return first

    def count(self, condition: str) -> int:
        ((count,),) = self.cells(f"SELECT COUNT(*) FROM t WHERE {condition}").values()
        assert count % ONE == 0
        return count // ONE


@contextmanager
def worlds(folder: Path, postgres_uri: str, unit: str = "row") -> Iterator[Worlds]:
    """Fills both databases; `t` is dropped again. `unit`: a column that holds it, or each row for itself."""
    values = list(rows())
    place = folder / "meaning.duckdb"
    with closing(duckdb.connect(str(place))) as connection:
        connection.execute(f"CREATE TABLE t ({_COLUMNS})")
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * 14)})", values)
    with ExitStack() as stack:
        raw = stack.enter_context(psycopg.connect(postgres_uri, autocommit=True))
        raw.execute("DROP TABLE IF EXISTS t")
        raw.execute(f"CREATE TABLE t ({_COLUMNS})".encode())
        with raw.cursor() as cursor:
            cursor.executemany(f"INSERT INTO t VALUES ({', '.join(['%s'] * 14)})".encode(), values)
        stack.callback(raw.execute, "DROP TABLE IF EXISTS t")
        rows_of = "" if unit == "row" else f"\n    unit: {unit}\n    max_rows: 1"
        text = _POLICY.replace("UNIT", "row" if unit == "row" else "person").replace("ROWS", rows_of)
        policy = parse(text, Path("meaning.yaml"))
        found = []
        for dialect, uri in (("duckdb", f"duckdb:{place}"), ("postgres", postgres_uri)):
            backend = stack.enter_context(closing(open_backend(uri, "UTC")))
            found.append((dialect, backend, inspect(backend, policy)))
        yield Worlds(tuple(found), raw)
