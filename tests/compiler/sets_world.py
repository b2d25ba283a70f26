"""A small hospital, without noise, on both backends: what statements over sets answer, beside a real Postgres.

The answers of `Sets.answered` are the whole pipeline's with noise of zero and bounds that nothing meets, so they must
be the rows of the same statement run on Postgres, and groups of nobody beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import psycopg
import pytest

import dpsql.release
from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.engine import Engine, open_engine
from dpsql.ledger import init_ledger
from dpsql.policy.load import parse
from dpsql.session.ports import CancelToken
from dpsql.types import Settings, Value

Rows = list[tuple[Value, ...]]
PATIENTS: Final = 120
TERMS: Final = Terms(Decimal(1), Decimal("1e-7"))

_DDL: Final = """
CREATE TABLE t (uid INTEGER PRIMARY KEY, x INTEGER, a BIGINT, b BIGINT, f DOUBLE PRECISION, hour SMALLINT NOT NULL,
  month INTEGER NOT NULL, born DATE NOT NULL, d DATE NOT NULL, seen TIMESTAMP NOT NULL, ward INTEGER NOT NULL,
  drug INTEGER, price NUMERIC(6,2) NOT NULL, kind TEXT NOT NULL);
CREATE TABLE t2 (uid BIGINT PRIMARY KEY, x INTEGER, b BIGINT);
CREATE TABLE log (uid INTEGER, n INTEGER NOT NULL);
CREATE TABLE region (region TEXT PRIMARY KEY, chief TEXT NOT NULL);
CREATE TABLE wards (ward INTEGER PRIMARY KEY, ward_code TEXT NOT NULL, ward_name TEXT NOT NULL, region TEXT NOT NULL,
  beds INTEGER);
CREATE TABLE drugs (drug INTEGER PRIMARY KEY, category TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE pub (y INTEGER);
CREATE TABLE full_pub (y INTEGER NOT NULL);
CREATE TABLE none_pub (y INTEGER);
"""
_POLICY: Final = """
dpsql: 1
dataset: sets
backend: {backend}
ledger: sqlite:{ledger}
privacy: {{unit: patient, units: 1000, max_groups: 50, max_rows_per_group: 20,
  budget: {{epsilon: 10000, delta: 1e-6}}}}
roles: {{analyst: {{budget: {{epsilon: 10000, delta: 1e-7}}, epsilon: 1}}}}
users: {{ann: {{role: analyst}}}}
tables:
  t:
    unit: uid
    max_rows: 1
    columns:
      x: {{type: integer, lower: 0, upper: 9, nullable: true}}
      a: {{type: bigint, lower: 0, upper: 100}}
      b: {{type: bigint, lower: 0, upper: 100}}
      f: {{type: double, lower: 0, upper: 100}}
      hour: {{type: smallint, lower: 0, upper: 23}}
      month: {{type: integer, lower: 1, upper: 12}}
      born: {{type: date, lower: 1930-01-01, upper: 2029-12-31}}
      d: {{type: date, lower: 2023-01-01, upper: 2024-12-31}}
      seen: {{type: timestamp, lower: 2024-01-01 00:00:00, upper: 2024-12-31 23:59:59}}
      ward: {{type: integer, references: wards.ward}}
      drug: {{type: integer, references: drugs.drug, nullable: true}}
      price: {{type: "numeric(6,2)", lower: 0, upper: 5}}
      kind: {{type: text, values: [in, out, day]}}
  t2: {{unit: uid, max_rows: 1, columns: {{x: {{type: integer, lower: 0, upper: 9}}, b: {{type: bigint}}}}}}
  log: {{unit: uid, columns: {{n: {{type: integer, lower: 0, upper: 3}}}}}}
  region: {{public: true, key: region}}
  wards: {{public: true, key: ward}}
  drugs: {{public: true, key: drug}}
  pub: {{public: true}}
  full_pub: {{public: true}}
  none_pub: {{public: true}}
"""


def _text(value: object) -> str:
    return "NULL" if value is None else str(value) if isinstance(value, int | float) else f"'{value}'"


def _insert(table: str, rows: Sequence[Sequence[object]]) -> str:
    return f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(map(_text, row))})" for row in rows) + ";\n"


def _float(i: int) -> object:
    return {0: None, 1: "NaN", 2: "Infinity", 3: "-Infinity"}.get(i % 20, i / 4)


def _patient(i: int) -> tuple[object, ...]:
    day = f"{2023 + i % 2}-{1 + i * 7 % 12:02d}-{1 + i % 28:02d}"
    at = f"2024-{1 + i * 5 % 12:02d}-{1 + i % 28:02d} {i * 11 % 24:02d}:{i * 13 % 60:02d}:{i * 17 % 60:02d}"
    born, price = f"{1930 + i * 3 % 100}-{1 + i % 12:02d}-15", f"{i % 5}.{i % 100:02d}"
    return (
        i, None if i % 7 == 0 else i % 10, i % 101, i * 3 % 101, _float(i), i % 24, 1 + i % 12, born, day, at,
        1 + i % 12, None if i % 11 == 0 else 1 + i % 30, price, ("in", "out", "day")[i % 3],
    )  # fmt: skip


DATA: Final = _DDL + "".join(
    [
        _insert("t", [_patient(i) for i in range(PATIENTS)]),
        _insert("t2", [(i, i % 10, i) for i in range(0, 2 * PATIENTS, 2)]),
        _insert("log", [(i % 40, i % 4) for i in range(200)]),
        _insert("region", [("N", "Nora"), ("S", "Sven")]),
        _insert(
            "wards", [(i, f"W{i:02d}", f"Ward {i}", "NS"[i % 2], None if i == 3 else 10 * i) for i in range(1, 13)]
        ),
        _insert("drugs", [(i, f"C{i % 4}", f"drug {i}") for i in range(1, 31)]),
        _insert("pub", [(1,), (3,), (5,), (None,)]),
        _insert("full_pub", [(1,), (3,), (5,)]),
    ]
)


@dataclass(frozen=True, slots=True)
class Sets:
    """Engines over the same rows in both backends, and a plain connection to them."""

    engines: dict[str, Engine]
    raw: psycopg.Connection[tuple[Value, ...]]

    def answered(self, text: str, backend: str) -> Rows:
        """The exact answer. Each is asked anew: nothing is derived from what was stored before."""
        settings = Settings(reuse_error=Decimal(0), null_noise=False)
        found = self.engines[backend].answer("ann", text, 0, settings, (), CancelToken())
        return [tuple(row) for row in found.relation.rows]

    def compiled(self, text: str, backend: str = "duckdb") -> Compiled:
        return compile_statement(text, self.engines[backend].schema, TERMS)

    def truth(self, text: str) -> Rows:
        return self.raw.execute(text.encode()).fetchall()


def same(rows: Rows) -> list[tuple[str, ...]]:
    """Rows as texts, in order: numbers by value."""
    return sorted(tuple(_shown(v) for v in row) for row in rows)


def _shown(value: Value) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return str(value)
    return f"{float(value):.6g}"


@contextmanager
def opened(folder: Path, uri: str) -> Iterator[Sets]:
    """The world in files of `folder` and in the empty Postgres database at `uri`."""
    with closing(duckdb.connect(str(folder / "sets.duckdb"))) as connection:
        connection.execute(DATA)
    with ExitStack() as stack:
        stack.enter_context(_without_noise())
        raw = stack.enter_context(psycopg.connect(uri, autocommit=True))
        raw.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
        raw.execute(DATA.encode())
        urls = {"duckdb": f"duckdb:{folder / 'sets.duckdb'}", "postgres": uri}
        engines = {name: stack.enter_context(_engine(folder / f"{name}.ledger", url)) for name, url in urls.items()}
        yield Sets(engines, raw)


@contextmanager
def _engine(ledger: Path, backend: str) -> Iterator[Engine]:
    policy = parse(_POLICY.format(backend=backend, ledger=ledger), ledger.with_suffix(".yaml"))
    init_ledger(policy.ledger, policy.dataset)
    with closing(open_engine(policy)) as engine:
        yield engine


@contextmanager
def _without_noise() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dpsql.release, "draw", lambda _, count: np.zeros(count, dtype=np.int64))
        patch.setattr(dpsql.release, "choose", lambda _, scores: int(np.argmax(scores)))
        yield
