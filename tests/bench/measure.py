"""Times one statement's variants: raw, the backend's part, new through the proxy, and replayed."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from statistics import mean, median

import duckdb
import psycopg
from psycopg.pq import ExecStatus

from .places import PASSWORD, USER, Place

_READY = re.compile(r"dpsql: dataset \S+ on (\S+):(\d+)")
_DPSQL = (sys.executable, "-c", "from dpsql.cli import main; main()")


@dataclass(frozen=True)
class Figures:
    """Medians, in milliseconds; `added` is that of the differences. A replay asks the backend nothing.

    The two of processor time are means: what others do on the machine hardly touches them.
    """

    raw: float
    backend: float
    new: float
    added: float
    replay: float
    added_cpu: float
    replay_cpu: float


@dataclass(frozen=True)
class Proxy:
    """A served proxy, with the seconds to its listening (of the clock, and of the processor) and first answer."""

    client: psycopg.Connection[tuple[object, ...]]
    pid: int
    listening: float
    listening_cpu: float
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
        listening, cpu = time.perf_counter() - begun, _cpu(process.pid) / 1000
        with psycopg.connect(host=host, port=port, user=USER, password=PASSWORD, autocommit=True) as client:
            client.execute(next(iter(place.statements.values())).format(n=0.5).encode()).fetchall()
            yield Proxy(client, process.pid, listening, cpu, time.perf_counter() - begun)
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
    rows = []
    with duckdb.connect(str(place.database), read_only=True) as backend:
        for n in range(rounds):
            statement = template.format(n=n + 1)
            parts = _backend_sql(proxy, statement)
            raw = _timed(partial(_run, backend, statement), os.getpid())
            inner = _timed(partial(_run, backend, *parts), os.getpid())
            rows.append((raw, inner, _asked(proxy, statement), _asked(proxy, statement)))
    raws, inners, news, replays = zip(*rows[1:], strict=True)
    return Figures(
        raw=median(took for took, _ in raws),
        backend=median(took for took, _ in inners),
        new=median(took for took, _ in news),
        added=median(new - inner for (new, _), (inner, _) in zip(news, inners, strict=True)),
        replay=median(took for took, _ in replays),
        added_cpu=mean(new - inner for (_, new), (_, inner) in zip(news, inners, strict=True)),
        replay_cpu=mean(cpu for _, cpu in replays),
    )


def _backend_sql(proxy: Proxy, statement: str) -> list[str]:
    """Asked with another blank, so that the proxy has not compiled the statement's own text when that is timed."""
    spelled = statement.replace(" ", "  ", 1)
    rows = proxy.client.execute(f"EXPLAIN (FORMAT JSON) {spelled}".encode()).fetchall()
    plan = rows[0][0]
    releases = (json.loads(plan) if isinstance(plan, str) else plan)["releases"]  # type: ignore[index]
    return [str(release["backend_sql"]) for release in releases]


def _run(backend: duckdb.DuckDBPyConnection, *statements: str) -> None:
    for statement in statements:
        backend.execute(statement).fetchall()


def _timed(work: Callable[[], None], pid: int) -> tuple[float, float]:
    """Milliseconds of the clock, and of the processor in that process."""
    begun, used = time.perf_counter(), _cpu(pid)
    work()
    took = (time.perf_counter() - begun) * 1000
    return took, _cpu(pid) - used


def _cpu(pid: int) -> float:
    """Milliseconds that all threads of a process have run; NaN where the system does not tell."""
    try:
        return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6
    except OSError:
        return nan


def _asked(proxy: Proxy, statement: str) -> tuple[float, float]:
    """What it took to the first byte; then takes the rest."""
    found = _timed(partial(_first_byte, proxy, statement), proxy.pid)
    while (result := proxy.client.pgconn.get_result()) is not None:
        if result.status == ExecStatus.FATAL_ERROR:
            raise SystemExit(result.error_message.decode())
    return found


def _first_byte(proxy: Proxy, statement: str) -> None:
    wire = proxy.client.pgconn
    wire.send_query(statement.encode())
    while wire.flush():
        select.select([], [wire.socket], [])
    select.select([wire.socket], [], [])
