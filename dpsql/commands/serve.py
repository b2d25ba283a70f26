"""`dpsql serve`: the proxy. Decides how a policy becomes a listening server, and how it stops."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dpsql.commands.metrics import LOOPBACK
from dpsql.commands.metrics import listen as listen_for_metrics
from dpsql.commands.reload import Current, begin
from dpsql.dp.mechanisms import DiscreteGaussian
from dpsql.dp.noise import draw
from dpsql.engine import open_engine
from dpsql.errors import BAD_PARAMETER, DpsqlError, Failed, Rejected
from dpsql.ledger.trail import AUDIT
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.server.listen import Server
from dpsql.server.tls import Certificate
from dpsql.session.session import Session

log = logging.getLogger(__name__)


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--listen", help="HOST:PORT instead of the policy's; port 0 takes a free one.")
@click.option("--audit", type=click.Path(path_type=Path), help="A file for the audit trail, instead of stderr.")
@click.option("--metrics", type=click.IntRange(0, 65_535), help="Port on 127.0.0.1 for Prometheus; 0 takes a free one.")
def serve(policy: Path, listen: str | None, audit: Path | None, metrics: int | None) -> None:
    """Serve POLICY to PostgreSQL clients until stopped (Ctrl-C or SIGTERM); SIGHUP reads POLICY again."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    _audit_to(audit)
    loaded = load(policy)
    address = _address(loaded, listen)
    engine = open_engine(loaded)
    current = Current(engine)
    try:
        begin(engine.ledger, loaded)
        asyncio.run(_serve(current, policy, address, metrics))
    finally:
        current.close()


def _audit_to(file: Path | None) -> None:
    """The audit trail as bare lines of JSON, appended; they go nowhere else."""
    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file)
    handler.setFormatter(logging.Formatter("%(message)s"))
    AUDIT.addHandler(handler)
    AUDIT.propagate = False


def _address(policy: Policy, listen: str | None) -> tuple[str, int]:
    if listen is None:
        return policy.server.host, policy.server.port
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise Rejected(f"--listen takes HOST:PORT, not {listen!r}", sqlstate=BAD_PARAMETER)
    return host.strip("[]"), int(port)


def _settle() -> None:
    """Modules, catalog and public tables live as long as the process: the collector need not walk them at each turn.

    With the demo's tables, compiling a statement takes about half as long.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def make_server(engine: Current, address: tuple[str, int]) -> Server:
    """A server for an engine, not yet listening."""

    def session(user: str, database: str, parameters: tuple[tuple[str, str], ...], pid: int) -> Session:
        return Session(engine, user, database, parameters, pid)

    def users() -> Mapping[str, str]:
        return {name: user.password for name, user in engine.policy.users.items() if user.password is not None}

    tls = engine.policy.server.tls
    certificate = Certificate(tls.cert, tls.key) if tls is not None else None
    return Server(session, users, address, certificate)


async def _serve(current: Current, path: Path, address: tuple[str, int], metrics: int | None) -> None:
    draw(DiscreteGaussian(1.0), 1)
    current.engine.pool.warm(2)
    _settle()
    server = make_server(current, address)
    try:
        await server.start()
    except OSError as error:
        raise Rejected(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from None
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    counting = await listen_for_metrics(current, metrics) if metrics is not None else None
    if counting is not None:
        click.echo(f"dpsql: metrics on {LOOPBACK}:{counting.sockets[0].getsockname()[1]}/metrics", err=True)
    reloading = asyncio.create_task(_reload(current, path, server))
    host, port = server.address
    click.echo(f"dpsql: dataset {current.policy.dataset} on {host}:{port}", err=True)
    await stopped.wait()
    reloading.cancel()
    if counting is not None:
        counting.close()
    await server.stop()


async def _reload(current: Current, path: Path, server: Server) -> None:
    """At each SIGHUP, one after the other: the policy anew, or a reason in the log why the old one stays."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    while True:
        await asked.wait()
        asked.clear()
        try:
            leaving = await asyncio.to_thread(lambda: current.reload(load(path)))
        except DpsqlError as error:
            cause = error.cause if isinstance(error, Failed) else error.message
            log.error("reload refused: %s%s", cause, f" ({error.hint})" if error.hint else "")
            continue
        ended = sum(server.end(user) for user in leaving)
        log.info("reload: %s is in force; sessions ended: %d", path, ended)
