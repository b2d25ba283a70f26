"""A small dataset with a ledger, for tests of what stored releases answer. Not a test itself.

`visits` and `people` have one row a person, by their primary keys, so that nothing is ever clipped; `calls` is cut to
five rows a person, which nobody exceeds; `busy` is clipped. Every public key holds all that its table has, but for
NULLs of `note`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from dpsql.engine import Engine, open_engine
from dpsql.ledger import Entry, Kind, init_ledger
from dpsql.policy.load import load
from dpsql.session.ports import CancelToken
from dpsql.types import Answer, Settings

PEOPLE = 300
POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:shop.duckdb
ledger: sqlite:shop.ledger
epoch: "{epoch}"
privacy:
  unit: person
  units: 1000
  max_groups: 5
  max_rows_per_group: 5
  replay: {replay}
  budget: {{epsilon: 500, delta: 1e-5}}
tables:
  visits:
    unit: uid
    max_rows: 1
    columns:
      shop: {{type: text, values: [books, cafe, zoo]}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-12-31}}
      at: {{type: timestamp, lower: 2024-01-01, upper: 2025-01-01}}
      hour: {{type: integer, lower: 0, upper: {hours}}}
      price: {{type: integer, lower: 0, upper: 50}}
      change: {{type: integer, lower: -10, upper: 50}}
      note: {{type: integer, lower: 1, upper: 4, nullable: true}}
      tag: {{type: text}}
  people:
    unit: uid
    max_rows: 1
    columns:
      age: {{type: integer, lower: 0, upper: 99}}
      city: {{type: text, values: [Lima, Oslo]}}
      income: {{type: integer, lower: 0, upper: 1000}}
      change: {{type: integer, lower: -10, upper: 50}}
      gain: {{type: integer, lower: -50, upper: 50}}
  calls:
    unit: uid
    max_rows: 5
    columns:
      shop: {{type: text, values: [books, cafe, zoo]}}
      price: {{type: integer, lower: 0, upper: 50}}
  busy:
    unit: uid
    max_rows_per_group: 1
    columns:
      hour: {{type: integer, lower: 0, upper: 23}}
      shop: {{type: text, values: [books, cafe, zoo]}}
roles:
  analyst: {{budget: {{epsilon: {budget}, delta: 1e-6}}, epsilon: 1, max_epsilon: 40}}
users:
  alice: {{role: analyst, password: "{password}"}}
  bob: {{role: analyst, password: "{password}"}}
  carol: {{role: analyst, password: "{password}"}}
  dora: {{role: analyst, password: "{password}"}}
  erik: {{role: analyst, password: "{password}"}}
"""
PASSWORD = "SCRAM-SHA-256$4096:aaaaaaaaaaaaaaaaaaaaaaaa$" + "a" * 43 + "=:" + "a" * 43 + "="
ROWS = f"""
CREATE TABLE visits AS SELECT
  i AS uid, ['books', 'cafe', 'zoo'][1 + i * 7 % 3] AS shop,
  DATE '2024-01-01' + (i * 11 % 366)::INTEGER AS day,
  TIMESTAMP '2024-01-01' + to_seconds(i * 20011) AS at, (i * 5 % 24)::INTEGER AS hour, (i * 13 % 51)::INTEGER AS price,
  (i * 13 % 61 - 10)::INTEGER AS change,
  CASE WHEN i % 9 < 8 THEN (1 + i % 4)::INTEGER END AS note, 't' || i % 4 AS tag
FROM range({PEOPLE * 5}) AS r(i);
ALTER TABLE visits ADD PRIMARY KEY (uid);
CREATE TABLE people AS SELECT i AS uid, (i * 7 % 100)::INTEGER AS age, ['Lima', 'Oslo'][1 + i % 2] AS city,
  (i * 31 % 1001)::INTEGER AS income,
  (i * 13 % 61 - 10)::INTEGER AS change, (i * 17 % 101 - 50)::INTEGER AS gain FROM range({PEOPLE}) AS r(i);
ALTER TABLE people ADD PRIMARY KEY (uid);
CREATE TABLE calls AS SELECT i % {PEOPLE} AS uid, ['books', 'cafe', 'zoo'][1 + i * 7 % 3] AS shop,
  (i * 13 % 51)::INTEGER AS price FROM range({PEOPLE * 5}) AS r(i);
CREATE TABLE busy AS SELECT i % {PEOPLE} AS uid, (i % 24)::INTEGER AS hour,
  ['books', 'cafe', 'zoo'][1 + i * 7 % 3] AS shop FROM range({PEOPLE * 48}) AS r(i);
"""


class Shop:
    """One engine over it; `ask` gives the whole answer, `value` the single value of one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def ask(self, text: str, user: str = "alice", **settings: Any) -> Answer:
        return self.engine.answer(user, text, 0, Settings(**settings), (), CancelToken())

    def value(self, text: str, user: str = "alice", **settings: Any) -> Any:
        return self.ask(text, user, **settings).relation.rows[0][0]

    def is_derived(self, text: str, user: str = "alice", **settings: Any) -> bool:
        """Whether it is answered without a new measurement, by derivation."""
        notices = self.ask(text, user, **settings).notices
        return "erived from" in notices[-1]

    def fresh(self, text: str) -> Answer:
        """The answer of a measurement of its own."""
        return self.ask(text, "erik", reuse_error=Decimal(0))

    def entries(self, kind: Kind, user: str | None = None) -> list[Entry]:
        return [entry for entry in self.engine.ledger.entries(user) if entry.kind is kind]

    def explained(self, text: str, user: str = "alice") -> list[str]:
        relation = self.engine.explain(user, text, 0, Settings(), (), "text", CancelToken())
        return [str(row[0]) for row in relation.rows]


def write(folder: Path, *, replay: str = "per_user", epoch: str = "1", budget: int = 400, hours: int = 23) -> Path:
    """The policy's file; with the data and an empty ledger, where there are none yet."""
    path = folder / "shop.yaml"
    text = POLICY.format(replay=replay, epoch=epoch, budget=budget, hours=hours, password=PASSWORD)
    path.write_text(text, encoding="utf-8")
    if not (folder / "shop.duckdb").exists():
        with closing(duckdb.connect(str(folder / "shop.duckdb"))) as connection:
            connection.execute(ROWS)
        init_ledger(load(path).ledger, "shop")
    return path


@contextmanager
def opened(path: Path) -> Iterator[Shop]:
    engine = open_engine(load(path))
    try:
        yield Shop(engine)
    finally:
        engine.close()
