"""`dpsql serve`: the proxy. Decides how a policy becomes a listening server, and how it stops."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dpsql.dp.mechanisms import DiscreteGaussian
from dpsql.dp.noise import draw
from dpsql.engine import Engine, open_engine
from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.server.listen import Server
from dpsql.server.tls import Certificate
from dpsql.session.session import Session


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--listen", help="HOST:PORT instead of the policy's; port 0 takes a free one.")
def serve(policy: Path, listen: str | None) -> None:
    """Serve POLICY to PostgreSQL clients until stopped (Ctrl-C or SIGTERM)."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    loaded = load(policy)
    address = _address(loaded, listen)
    engine = open_engine(loaded)
    try:
        asyncio.run(_serve(engine, address))
    finally:
        engine.close()


def _address(policy: Policy, listen: str | None) -> tuple[str, int]:
    if listen is None:
        return policy.server.host, policy.server.port
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise Rejected(f"--listen takes HOST:PORT, not {listen!r}", sqlstate=BAD_PARAMETER)
    return host.strip("[]"), int(port)


def make_server(engine: Engine, address: tuple[str, int]) -> Server:
    """A server for an engine, not yet listening."""

    def session(user: str, database: str, parameters: tuple[tuple[str, str], ...], pid: int) -> Session:
        return Session(engine, user, database, parameters, pid)

    def users() -> Mapping[str, str]:
        return {name: user.password for name, user in engine.policy.users.items() if user.password is not None}

    tls = engine.policy.server.tls
    certificate = Certificate(tls.cert, tls.key) if tls is not None else None
    return Server(session, users, address, certificate)


async def _serve(engine: Engine, address: tuple[str, int]) -> None:
    draw(DiscreteGaussian(1.0), 1)
    engine.pool.warm(2)
    server = make_server(engine, address)
    try:
        await server.start()
    except OSError as error:
        raise Rejected(f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from None
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    host, port = server.address
    click.echo(f"dpsql: dataset {engine.policy.dataset} on {host}:{port}", err=True)
    await stopped.wait()
    await server.stop()
