"""`dpsql demo`: the main job on real data, from nothing: database, policy, ledger, proxy, an analyst's statements.

Decides the work folder and how the proxy is started and stopped. It is a demo: every run replaces the database, the
policy's copy and the ledger in its folder, which an operator never does. `demo_tour` asks; the true values it shows
beside the answers are read from the file directly, not through the proxy.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import click

from dpsql.commands.demo_attacks import attacks
from dpsql.commands.demo_data import build
from dpsql.errors import INTERNAL, UNDEFINED_OBJECT, Rejected
from dpsql.ledger import init_ledger
from dpsql.policy.load import load

POLICY = "nyc-flights.yaml"
USER, PASSWORD, DATABASE = "alice", "alice-demo", "nyc-flights"
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one demo."""

    folder: Path

    @property
    def policy(self) -> Path:
        return self.folder / POLICY

    @property
    def database(self) -> Path:
        return self.folder / "flights.duckdb"

    @property
    def log(self) -> Path:
        return self.folder / "serve.log"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running `dpsql serve`."""

    process: subprocess.Popen[bytes]
    host: str
    port: int


@click.group(invoke_without_command=True)
@click.option("--serve", "stay", is_flag=True, help="Leave the proxy running and print the psql command to type.")
@click.option("--prepare", "only_prepare", is_flag=True, help="Only make database, policy and ledger.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("dpsql-demo"),
    show_default=True,
    help="Where database, policy and ledger are made anew.",
)
@click.pass_context
def demo(context: click.Context, stay: bool, only_prepare: bool, folder: Path) -> None:
    """Show the main job end to end on the flights that left New York in 2013."""
    if context.invoked_subcommand is not None:
        return
    _require_psycopg()
    place = prepare(folder)
    if only_prepare:
        return
    listen = f"127.0.0.1:{_port() if stay else 0}"
    previous = signal.signal(signal.SIGTERM, _leave)
    try:
        with proxy(place, listen) as running:
            if stay:
                _stay(place, running)
            else:
                _tour(place, running)
    finally:
        signal.signal(signal.SIGTERM, previous)


demo.add_command(attacks)


def prepare(folder: Path) -> Place:
    """The database, the policy beside it and an empty ledger, in place of an earlier demo's."""
    place = Place(folder)
    click.echo(f"Work folder: {folder}. Each run makes its database, policy and ledger anew.")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("flights.ledger*"):
        old.unlink()
    build(place.database)
    shutil.copyfile(_shipped_policy(), place.policy)
    policy = load(place.policy)
    init_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    return place


@contextmanager
def proxy(place: Place, listen: str) -> Iterator[Proxy]:
    """`dpsql serve` in a process of its own, until the block ends."""
    command = [sys.executable, "-c", "from dpsql.cli import main; main()", "serve", str(place.policy)]
    with place.log.open("wb") as log:
        process = subprocess.Popen([*command, "--listen", listen], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield Proxy(process, *_address(process, place.log))
    finally:
        _stop(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"^dpsql: dataset \S+ on (\S+):(\d+)$", log.read_text("utf-8"), re.MULTILINE)
        if found:
            return found[1], int(found[2])
        time.sleep(0.02)
    raise Rejected("The proxy did not start.", sqlstate=INTERNAL, hint=f"Its output is in {log}.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tour(place: Place, running: Proxy) -> None:
    from dpsql.commands.demo_tour import tour

    tour(place.database, host=running.host, port=running.port, user=USER, password=PASSWORD, dbname=DATABASE)
    click.echo("\nTo ask yourself: make demo SERVE=1, or dpsql demo --serve.")


def _stay(place: Place, running: Proxy) -> None:
    address = f"host={running.host} port={running.port} user={USER} dbname={DATABASE}"
    click.echo(
        f"""The proxy runs at {running.host}:{running.port} until Ctrl-C; its log is {place.log}.
Connect from another terminal:

  PGPASSWORD={PASSWORD} psql "{address}"

Statements to begin with:

  SELECT origin, count(*), dp_stddev(count(*)) FROM flights GROUP BY origin;
  EXPLAIN SELECT month, avg(dep_delay) FROM flights GROUP BY month;
  SHOW dpsql.budget;
"""
    )
    running.process.wait()
    raise Rejected("The proxy has stopped.", sqlstate=INTERNAL, hint=f"Its output is in {place.log}.")


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _port() -> int:
    """The port of the policy, where it is free; else any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 6432))
        except OSError:
            return 0
    return 6432


def _shipped_policy() -> Path:
    """In a checkout beside the package, else where the wheel put it."""
    places = (Path(__file__).parents[2] / "policies", Path(sysconfig.get_path("data")) / "share" / "dpsql")
    for folder in places:
        if (folder / POLICY).is_file():
            return folder / POLICY
    raise Rejected(f"The demo's policy {POLICY} is not installed.", sqlstate=UNDEFINED_OBJECT)


def _require_psycopg() -> None:
    if importlib.util.find_spec("psycopg") is None:
        hint = "Install it with: pip install 'dpsql[demo]'"
        raise Rejected("The package psycopg is not installed.", sqlstate=UNDEFINED_OBJECT, hint=hint)
