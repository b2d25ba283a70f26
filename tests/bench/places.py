"""The two datasets: the demo's flights, and a million synthetic rows. Each with a policy and statements to vary."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dpsql.commands.demo_data import build
from dpsql.pgwire.auth import make_verifier

USER, PASSWORD = "alice", "not-a-secret"

_SYNTHETIC = """
dpsql: 1
dataset: synthetic
backend: duckdb:synthetic.duckdb
privacy:
  unit: person
  units: 40000
  max_groups: 5
  max_rows_per_group: 10
  budget: {{epsilon: 1000, delta: 1e-6}}
tables:
  events:
    unit: uid
    columns:
      kind: {{type: integer, lower: 0, upper: 19}}
      amount: {{type: double, lower: 0, upper: 500}}
roles:
  analyst: {{budget: {{epsilon: 1000, delta: 1e-6}}, epsilon: 0.1}}
users:
  alice: {{role: analyst, password: "{verifier}"}}
"""

_EVENTS = """
dpsql: 1
dataset: events
backend: duckdb:events.duckdb
privacy:
  unit: user
  units: {units}
  max_groups: 10
  max_rows_per_group: 20
  budget: {{epsilon: 1000, delta: 1e-6}}
tables:
  events:
    unit: uid
    columns:
      country: {{type: integer, lower: 0, upper: 29}}
      product: {{type: integer, lower: 0, upper: 999}}
      amount: {{type: double, lower: 0, upper: 500, nullable: true}}
roles:
  analyst: {{budget: {{epsilon: 1000, delta: 1e-6}}, epsilon: 1}}
users:
  alice: {{role: analyst}}
"""


@dataclass(frozen=True)
class Place:
    """`{n}` in a statement is another number in each round, so that the measurement is a new one."""

    name: str
    policy: Path
    database: Path
    statements: Mapping[str, str]


def flights(folder: Path) -> Place:
    """The demo's policy with a budget and a password of the bench's own."""
    build(folder / "flights.duckdb")
    text = (Path(__file__).parents[2] / "policies" / "nyc-flights.yaml").read_text()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("alice:")]
    users = lines.index("users:")
    lines.insert(users + 1, f'  alice: {{role: bench, password: "{make_verifier(PASSWORD)}"}}')
    roles = lines.index("roles:")
    lines.insert(roles + 1, "  bench: {budget: {epsilon: 20, delta: 1e-6}, epsilon: 0.05}")
    policy = folder / "nyc-flights.yaml"
    policy.write_text("\n".join(lines) + "\n")
    statements = {
        "COUNT(*)": "SELECT COUNT(*) FROM flights WHERE distance > {n}",
        "COUNT(*), AVG(dep_delay) by month": (
            "SELECT month, COUNT(*), AVG(dep_delay) FROM flights WHERE distance > {n} GROUP BY month"
        ),
        "COUNT(*) by carrier, HAVING, ORDER, LIMIT": (
            "SELECT carrier, COUNT(*) AS n FROM flights WHERE distance > {n} GROUP BY carrier"
            " HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 5"
        ),
        "flights JOIN planes by engine": (
            "SELECT engine, AVG(dep_delay) FROM flights JOIN planes USING (tailnum) WHERE distance > {n}"
            " GROUP BY engine"
        ),
    }
    return Place("flights (336,776 rows)", policy, folder / "flights.duckdb", statements)


def synthetic(folder: Path) -> Place:
    path = folder / "synthetic.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(
            "CREATE TABLE events AS SELECT (i * 7919) % 40000 AS uid, CAST((i * 31) % 20 AS INTEGER) AS kind,"
            " CAST((i * 104729) % 50000 AS DOUBLE) / 100 AS amount FROM range(1000000) AS r(i)"
        )
    policy = folder / "synthetic.yaml"
    policy.write_text(_SYNTHETIC.format(verifier=make_verifier(PASSWORD)))
    statements = {
        "COUNT(*)": "SELECT COUNT(*) FROM events WHERE amount > {n}",
        "SUM(amount) by kind": "SELECT kind, SUM(amount) FROM events WHERE amount > {n} GROUP BY kind",
        "COUNT(DISTINCT uid), AVG(amount)": "SELECT COUNT(DISTINCT uid), AVG(amount) FROM events WHERE amount > {n}",
    }
    return Place("synthetic (1,000,000 rows, 40,000 units)", policy, path, statements)


def events(folder: Path, rows: int) -> Place:
    """Rows of 200,000 users for every ten million: lognormal (median 25, 99 % below 435) over up to 30 countries."""
    users = max(1, rows // 50)
    path = folder / "events.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            "CREATE TABLE users AS SELECT i AS uid, least(7003, ceil(25 * exp(1.23 * sqrt(-2 * ln(1 - random()))"
            " * cos(2 * pi() * random()))))::INTEGER AS n, least(30, 1 + floor(-2.9 * ln(1 - random())))::INTEGER"
            f" AS countries FROM range({users}) AS r(i)"
        )
        connection.execute(
            "CREATE TABLE events AS SELECT uid, ((uid * 7919 + floor(random() * random() * countries)::INTEGER) % 30)"
            "::INTEGER AS country, floor(1000 * random() * random())::INTEGER AS product,"
            " CASE WHEN random() < 0.95 THEN round(500 * random() * random(), 2) END AS amount"
            f" FROM users, range(7003) AS r(j) WHERE j < n LIMIT {rows}"
        )
        connection.execute("DROP TABLE users")
    policy = folder / "events.yaml"
    policy.write_text(_EVENTS.format(units=users))
    return Place(f"events ({rows:,} rows)", policy, path, {})
