"""Names over the wire, as Postgres and DuckDB have them: with their schema, and in another case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from dpsql.pgwire.auth import make_verifier
from e2e.proxy import Proxy, ask, init_ledger, serving
from e2e.world import PASSWORD

POLICY = """
dpsql: 1
dataset: people
backend: "duckdb:{folder}/names.duckdb"
ledger: sqlite:names.ledger
privacy: {{unit: user, units: 1000, max_groups: 1, max_rows_per_group: 1, budget: {{epsilon: 2000, delta: 1e-5}}}}
tables:
  pums: {{source: pums.pums, unit: UserID, max_rows: 1, columns: {{Age: {{type: integer, lower: 0, upper: 100}}}}}}
roles: {{analyst: {{budget: {{epsilon: 1000, delta: 1e-6}}, epsilon: 50, max_epsilon: 50}}}}
users: {{alice: {{role: analyst, password: "{verifier}"}}}}
"""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    folder = tmp_path_factory.mktemp("names")
    with closing(duckdb.connect(str(folder / "names.duckdb"))) as connection:
        connection.execute("CREATE SCHEMA pums")
        connection.execute(
            'CREATE TABLE pums.pums AS SELECT i AS "UserID", (i % 90)::INTEGER AS "Age" FROM range(500) t(i)'
        )
    path = Path(folder) / "policy.yaml"
    path.write_text(POLICY.format(folder=folder, verifier=make_verifier(PASSWORD)))
    init_ledger(path)
    with serving(path) as proxy:
        yield proxy


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM pums.pums",
        "SELECT COUNT(*) FROM pums",
        'SELECT COUNT(*) FROM PUMS.Pums WHERE UserID >= 0 AND "Age" >= 0',
        "SELECT COUNT(p.userid) FROM pums.pums AS p WHERE AGE >= 0",
    ],
)
def test_they_are_found(named: Proxy, text: str) -> None:
    with named.connect() as client:
        ((count,),) = ask(client, text)
        assert 470 < count < 530
