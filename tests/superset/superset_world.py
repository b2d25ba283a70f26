"""A served proxy over the demo's flights, and a real Superset that is connected to it. Not a test itself.

The policy is the demo's with a budget so large that answers lie close to the truth. The truth is what Superset's own
statement gives on the raw data, clipped to the policy's bounds and without the rows that belong to no aircraft.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from psycopg.rows import dict_row

sys.path.insert(0, str(Path(__file__).parents[1] / "clients"))

from clients_world import DPSQL, PASSWORD, make_certificate, serving
from superset_api import Api

from dpsql.pgwire.auth import make_verifier

HERE = Path(__file__).parent
VENV = Path(os.environ.get("SUPERSET_VENV", HERE.parents[1] / ".venv-superset")).absolute()
POLICY = HERE.parents[1] / "policies" / "nyc-flights.yaml"
START_SECONDS = 180.0
_LISTENS = re.compile(r"Listening at: (http://\S+)")
_ORDER = re.compile(r"(ORDER BY [^()]*)?LIMIT \d+( OFFSET \d+)?;?\s*$")
_CHANGES = {
    "budget: {epsilon: 20, delta: 1e-6}": "budget: {epsilon: 10000, delta: 1e-6}",
    "analyst: {budget: {epsilon: 15, delta: 1e-7}, epsilon: 1, max_epsilon: 5}": (
        "analyst: {budget: {epsilon: 9000, delta: 1e-6}, epsilon: 40, max_epsilon: 50}\n"
        "  guest: {budget: {epsilon: 1.5, delta: 1e-7}, epsilon: 1}"
    ),
}

TRUTH = """
CREATE SCHEMA public;
CREATE VIEW public.airlines AS SELECT * FROM raw.airlines;
CREATE VIEW public.flights AS SELECT * REPLACE (
    least(greatest(dep_delay, -30), 180) AS dep_delay, least(greatest(arr_delay, -60), 180) AS arr_delay,
    least(greatest(air_time, 20), 420) AS air_time, least(greatest(distance, 80), 2800) AS distance
) FROM raw.flights WHERE tailnum IS NOT NULL;
CREATE MACRO main.to_timestamp(value, format) AS CAST(value AS TIMESTAMP);
SET search_path = 'public,main';
"""


def make_policy(folder: Path, database: Path) -> Path:
    """Certificate, policy and ledger in a folder, for the demo's database; the policy's path."""
    (folder / "flights.duckdb").symlink_to(database)
    make_certificate(folder)
    text = POLICY.read_text()
    server = f"server: {{tls: {{cert: {folder}/server.crt, key: {folder}/server.key}}, "
    users = f'users:\n  bob: {{role: guest, password: "{make_verifier(PASSWORD)}"}}'
    password = f'alice: {{role: analyst, password: "{make_verifier(PASSWORD)}"}}'
    for old, new in {**_CHANGES, "server: {": server, "users:": users}.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    text = re.sub(r"alice: \{.*\}", lambda _: password, text)
    policy = folder / "flights.yaml"
    policy.write_text(text)
    done = subprocess.run([*DPSQL, "ledger", "init", str(policy)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return policy


@contextmanager
def superset(folder: Path) -> Iterator[str]:
    """The address of a Superset of its own, with nothing in it, until the block ends."""
    shutil.copy(VENV / "superset.db", folder / "superset.db")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SUPERSET_HOME": str(folder),
        "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
    }
    command = [str(VENV / "bin" / "gunicorn"), "-w", "1", "-k", "gthread", "--threads", "4", "-t", "120"]
    command += ["--graceful-timeout", "5", "-b", "127.0.0.1:0", "superset.app:create_app()"]
    log = folder / "superset.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=out, start_new_session=True)
    try:
        yield _address(process, log)
    finally:
        _stop(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Once it says that it is healthy."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = _LISTENS.search(log.read_text(errors="replace"))
        if found is not None:
            try:
                with urllib.request.urlopen(f"{found[1]}/health", timeout=START_SECONDS):
                    return found[1]
            except OSError:
                pass
        time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace"))


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The server and its workers: they are a process group of their own."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(20)


@dataclass(frozen=True, slots=True)
class World:
    """Superset as its administrator sees it, the proxy as alice sees it, and the raw data."""

    api: Api
    dsn: str
    uri: str
    raw: Path
    password: str = PASSWORD

    def truth(self, statement: str) -> list[dict[str, Any]]:
        """The rows of Superset's statement on the raw data, times as Superset sends them."""
        with closing(duckdb.connect()) as connection:
            connection.execute(f"ATTACH '{self.raw}' AS raw (READ_ONLY)")
            connection.execute(TRUTH)
            found = connection.execute(statement)
            names = [column[0] for column in found.description]
            return [dict(zip(names, map(_sent, row), strict=True)) for row in found.fetchall()]

    def deviations(self, statement: str, aggregates: Mapping[str, str]) -> list[dict[str, Any]]:
        """All rows, in any order, with announced standard deviations in place of the aggregates, given by label."""
        statement = _ORDER.sub("", statement)
        for label, aggregate in aggregates.items():
            statement, found = re.subn(
                rf'{re.escape(aggregate)} AS ("?{re.escape(label)}"?[\s,])', rf"dp_stddev({aggregate}) AS \1", statement
            )
            assert found == 1, statement
        with psycopg.connect(self.dsn, autocommit=True, row_factory=dict_row) as connection:
            rows = connection.execute(statement.strip().encode()).fetchall()
        return [{name: _sent(value) for name, value in row.items()} for row in rows]

    def spent(self) -> Any:
        """What alice and the dataset have spent so far."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            return connection.execute("SELECT whose, rho_spent, delta_spent FROM dpsql.budget ORDER BY 1").fetchall()


def _sent(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).timestamp() * 1000
    return value


@dataclass(frozen=True, slots=True)
class Address:
    """Of the proxy, for alice: as libpq and as SQLAlchemy take it."""

    dsn: str

    @property
    def uri(self) -> str:
        return self.dsn.replace("postgresql://", "postgresql+psycopg2://")


@contextmanager
def flights_proxy(folder: Path, database: Path) -> Iterator[Address]:
    with serving(make_policy(folder, database)) as proxy:
        where = f"localhost:{proxy.port}/nyc-flights?sslmode=verify-full&sslrootcert={proxy.ca}"
        yield Address(f"postgresql://alice:{PASSWORD}@{where}")


@contextmanager
def world(folder: Path, database: Path) -> Iterator[World]:
    with flights_proxy(folder, database) as address, superset(folder) as base:
        yield World(Api(base, "admin", "admin"), address.dsn, address.uri, database)
