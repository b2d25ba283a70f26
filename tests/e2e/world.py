"""The dataset of the hostile cases, clean and poisoned, on DuckDB or Postgres, with its policy. Not a test itself.

`people` has one row a person, `visits` up to three shops of up to ten rows, `shops` is public. The clean rows lie
within every declared bound, so that the truth is what an answer scatters around; the poisoned ones hold what breaks
queries, and sentinels that must never be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Literal

import duckdb
import psycopg

from dpsql.pgwire.auth import make_verifier

Row = tuple[str | None, ...]
Rows = dict[str, list[Row]]
Variant = Literal["clean", "poison"]

PASSWORD = "not-a-secret"
PEOPLE = 400
CITIES = ("Lima", "Oslo", "Rome")
SHOPS = (("books", "north"), ("cafe", "south"), ("cinema", "north"), ("garden", "south"), ("zoo", "north"))
SENTINELS = ("SENTINEL", "1888777", "191919.19", "87.654321", "2029-09-09", "488.8125")
"""Parts of planted values as any message would spell them."""

TABLES = {
    "people": {
        "uid": "BIGINT", "age": "INTEGER", "salary": "NUMERIC(12,2)", "score": "DOUBLE PRECISION", "city": "TEXT",
        "joined": "DATE", "note": "TEXT", "hidden": "TEXT",
    },
    "visits": {"uid": "BIGINT", "shop": "TEXT", "amount": "DOUBLE PRECISION"},
    "shops": {"shop": "TEXT PRIMARY KEY", "region": "TEXT"},
}  # fmt: skip

POLICY = """
dpsql: 1
dataset: {dataset}
backend: "{backend}"
ledger: sqlite:{dataset}.ledger
privacy:
  unit: person
  units: 1000
  max_groups: 3
  max_rows_per_group: 10
  accounting: {accounting}
  budget: {{epsilon: {epsilon}, delta: 1e-5}}
tables:
  people:
    unit: uid
    max_rows: 1
    columns:
      age: {{type: integer, lower: 0, upper: 120}}
      salary: {{type: "numeric(12,2)", lower: 0, upper: 200000}}
      score: {{type: double, lower: 0, upper: 100}}
      city: {{type: text, values: [Rome, Oslo, Lima]}}
      joined: {{type: date, lower: 2000-01-01, upper: 2030-12-31}}
      note: {{type: text}}
  visits:
    unit: uid
    columns:
      shop: {{type: text, references: shops.shop}}
      amount: {{type: double, lower: 0, upper: 500}}
  shops: {{public: true, key: shop}}
views:
  adults: SELECT * FROM people WHERE age >= 18
roles:
  analyst: {{budget: {{epsilon: {user_epsilon}, delta: 1e-5}}, epsilon: 1, max_epsilon: 50}}
  poor: {{budget: {{epsilon: 1, delta: 1e-5}}, epsilon: 0.4}}
  narrow: {{budget: {{epsilon: 5, delta: 1e-6}}, tables: [visits, shops]}}
  owner: {{owner: true}}
users:
{users}
server: {{listen: 127.0.0.1:0, statement_timeout: 30s}}
"""
USERS = {
    "alice": "analyst", "bob": "analyst", "carol": "poor", "dora": "poor", "emil": "poor", "fred": "poor",
    "nina": "narrow", "olga": "owner",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terms:
    """What a policy promises."""

    epsilon: str = "5000"
    user_epsilon: str = "2000"
    accounting: str = "zcdp"


@cache
def _users() -> str:
    verifier = make_verifier(PASSWORD)
    return "\n".join(f'  {name}: {{role: {role}, password: "{verifier}"}}' for name, role in USERS.items())


def policy_text(dataset: str, backend: str, terms: Terms) -> str:
    return POLICY.format(
        dataset=dataset,
        backend=backend,
        users=_users(),
        epsilon=terms.epsilon,
        user_epsilon=terms.user_epsilon,
        accounting=terms.accounting,
    )


def rows(variant: Variant) -> Rows:
    """The same rows for every backend and every run."""
    random = Random(20_240_601)
    made: Rows = {"people": [], "visits": [], "shops": [tuple(shop) for shop in SHOPS]}
    for uid in range(1, PEOPLE + 1):
        made["people"].append(_person(uid, random))
        for shop, _ in random.sample(SHOPS, random.randint(0, 3)):
            for _ in range(random.randint(1, 10)):
                made["visits"].append((str(uid), shop, repr(round(random.uniform(0, 500), 2))))
    if variant == "poison":
        _poison(made)
    return made


def _person(uid: int, random: Random) -> Row:
    joined = date(2000, 1, 1) + timedelta(days=random.randrange(11_000))
    return (
        str(uid), str(random.randint(0, 120)), f"{random.uniform(0, 200_000):.2f}", repr(random.uniform(0, 100)),
        CITIES[uid % 3] if uid > 5 else "Rome", str(joined), f"note {uid % 7}", "SENTINEL-hidden",
    )  # fmt: skip


def _poison(made: Rows) -> None:
    """Rows that break what is declared; person 900 owns every sentinel and far too many rows."""
    odd = (None, "NaN", "Infinity", "-Infinity", "1e308", "-1e308", "5e-324", "-0.0", "87.654321")
    notes = (
        None,
        "",
        "(",
        "x" * 2000,
        "SENTINEL-note",
        "'; DROP TABLE people; --",
        "12",
        "é\u200b",
        "a\nb",
        "%",
        "NaN",
    )
    dates = (None, "infinity", "-infinity", "0001-01-01", "9999-12-31", "2029-09-09", "1970-01-01")
    for i in range(40):
        age = (None, "2147483647", "-2147483648", "30", "1888777", "0")[i % 6]
        salary = (None, "9999999999.99", "-9999999999.99", "191919.19", "0")[i % 5]
        city = (None, "", "Atlantis SENTINEL", "rome", "Rome")[i % 5]
        uid = None if i % 9 == 0 else str(900 + i % 4)
        made["people"].append(
            (uid, age, salary, odd[i % len(odd)], city, dates[i % len(dates)], notes[i % len(notes)], "SENTINEL-hidden")
        )
    for i in range(3000):
        made["visits"].append(("900", (None, "zoo", "SENTINEL-shop", "cafe")[i % 4], odd[i % len(odd)]))
    made["visits"] += [("9223372036854775807", f"SENTINEL-{i}", "488.8125") for i in range(300)]
    made["visits"] += [(None, "zoo", "488.8125"), ("-9223372036854775808", "zoo", "1e16"), ("901", "zoo", "-1e16")]


def build_duckdb(path: Path, variant: Variant) -> str:
    """Writes the database file; its URL."""
    with closing(duckdb.connect(str(path))) as connection:
        for statement in _statements(rows(variant)):
            connection.execute(statement)
    return f"duckdb:{path}"


def build_postgres(uri: str, name: str, variant: Variant) -> str:
    """Makes a database of that name; its URL."""
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
        old = connection.info.dbname
    url = uri.replace(f"/{old}?", f"/{name}?")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in _statements(rows(variant)):
            connection.execute(statement.encode())
    return url


def _statements(made: Rows) -> Sequence[str]:
    creates = [
        f"CREATE TABLE {table} ({', '.join(f'{name} {of}' for name, of in columns.items())})"
        for table, columns in TABLES.items()
    ]
    inserts = [
        f"INSERT INTO {table} VALUES " + ", ".join(f"({', '.join(map(_literal, row))})" for row in made[table])
        for table in TABLES
    ]
    return (*creates, *inserts)


def _literal(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"
