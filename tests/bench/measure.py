"""Times one statement's variants: raw, the backend's part, new through the proxy, and replayed."""

from __future__ import annotations

import json
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import duckdb
import psycopg
from psycopg.pq import ExecStatus

from .places import PASSWORD, USER, Place

_READY = re.compile(r"dpsql: dataset \S+ on (\S+):(\d+)")
_DPSQL = (sys.executable, "-c", "from dpsql.cli import main; main()")


@dataclass(frozen=True)
class Figures:
    """Medians, in milliseconds. `added` is the median of the differences."""

    raw: float
    backend: float
    new: float
    added: float
    replay: float

    @property
    def replay_added(self) -> float:
        """A replay asks the backend nothing."""
        return self.replay


@dataclass(frozen=True)
class Proxy:
    client: psycopg.Connection[tuple[object, ...]]
    listening: float
    first_answer: float


@contextmanager
def started(place: Place) -> Iterator[Proxy]:
    """`dpsql serve`, with the seconds to its listening and to its first private answer."""
    subprocess.run([*_DPSQL, "ledger", "init", str(place.policy)], check=True, capture_output=True)
    log = place.policy.with_suffix(".log")
    begun = time.perf_counter()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*_DPSQL, "serve", str(place.policy), "--listen", "127.0.0.1:0"], stdout=out, stderr=out
        )
    try:
        host, port = _address(process, log)
        listening = time.perf_counter() - begun
        with psycopg.connect(host=host, port=port, user=USER, password=PASSWORD, autocommit=True) as client:
            client.execute(next(iter(place.statements.values())).format(n=0.5).encode()).fetchall()
            yield Proxy(client, listening, time.perf_counter() - begun)
    finally:
        process.terminate()
        process.wait(20)


def _address(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    while process.poll() is None:
        found = _READY.search(log.read_text())
        if found is not None:
            return found[1], int(found[2])
        time.sleep(0.005)
    raise SystemExit(log.read_text())


def measure(place: Place, proxy: Proxy, template: str, rounds: int) -> Figures:
    """Every variant raw, on the backend, new and replayed, so that a busy moment touches all four alike."""
    rows: list[tuple[float, float, float, float]] = []
    with duckdb.connect(str(place.database), read_only=True) as backend:
        for n in range(rounds):
            statement = template.format(n=n + 1)
            parts = _backend_sql(proxy, statement)
            raw = _timed(backend, statement)
            inner = sum(_timed(backend, part) for part in parts)
            rows.append((raw, inner, _first_byte(proxy, statement), _first_byte(proxy, statement)))
    raws, inners, news, replays = zip(*rows[1:], strict=True)
    added = median(new - inner for new, inner in zip(news, inners, strict=True))
    return Figures(median(raws), median(inners), median(news), added, median(replays))


def _backend_sql(proxy: Proxy, statement: str) -> list[str]:
    rows = proxy.client.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode()).fetchall()
    plan = rows[0][0]
    releases = (json.loads(plan) if isinstance(plan, str) else plan)["releases"]  # type: ignore[index]
    return [str(release["backend_sql"]) for release in releases]


def _timed(backend: duckdb.DuckDBPyConnection, statement: str) -> float:
    begun = time.perf_counter()
    backend.execute(statement).fetchall()
    return (time.perf_counter() - begun) * 1000


def _first_byte(proxy: Proxy, statement: str) -> float:
    """Milliseconds from sending to the first byte; then takes the rest."""
    wire = proxy.client.pgconn
    begun = time.perf_counter()
    wire.send_query(statement.encode())
    while wire.flush():
        select.select([], [wire.socket], [])
    select.select([wire.socket], [], [])
    took = (time.perf_counter() - begun) * 1000
    while (result := wire.get_result()) is not None:
        if result.status == ExecStatus.FATAL_ERROR:
            raise SystemExit(result.error_message.decode())
    return took
