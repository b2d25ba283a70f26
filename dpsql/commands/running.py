"""What a serving process does for its operator: signals, metrics, the line that says where it listens.

Decides what signals mean: SIGTERM and Ctrl-C stop, SIGHUP takes the policy over again. It must stay quick to load.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from dpsql.commands.metrics import LOOPBACK, Source, listen
from dpsql.errors import DpsqlError, Rejected
from dpsql.policy.model import Policy
from dpsql.server.link import refusal

log = logging.getLogger(__name__)

Reload = Callable[[], Awaitable[int]]
"""Takes the policy over; how many sessions that ended. Raises DpsqlError, and then nothing has changed."""


def log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")


def stop_signal() -> asyncio.Event:
    """Set when the proxy is to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def say_ready(policy: Policy, address: tuple[str, int]) -> None:
    """Where it listens, and how a user connects."""
    click.echo(f"dpsql: dataset {policy.dataset} on {address[0]}:{address[1]}", err=True)
    user = next((name for name, user in policy.users.items() if user.password is not None), None)
    if user is not None:
        where = f"host={address[0]} port={address[1]} user={user} dbname={policy.dataset}"
        click.echo(f'Next: psql "{where}"', err=True)


def no_place(address: tuple[str, int], error: OSError) -> Rejected:
    busy = error.errno == errno.EADDRINUSE
    reason = "the port is in use" if busy else error.strerror
    hint = "Stop what runs there, or take another place: `server.listen` in the policy, or --listen."
    return Rejected(f"cannot listen on {address[0]}:{address[1]}: {reason}", hint=hint)


async def begin_to_listen(path: Path, metrics: int | None, counted: Source, reload: Reload) -> Callable[[], None]:
    """The metrics, if they are wanted, and the reload at SIGHUP; what is returned ends both."""
    counting = await listen(counted, metrics) if metrics is not None else None
    if counting is not None:
        click.echo(f"dpsql: metrics on {LOOPBACK}:{counting.sockets[0].getsockname()[1]}/metrics", err=True)
    reloading = asyncio.create_task(_reload(path, reload))

    def end() -> None:
        reloading.cancel()
        if counting is not None:
            counting.close()

    return end


async def _reload(path: Path, reload: Reload) -> None:
    """At each SIGHUP, one after the other: the policy anew, or a reason in the log why the old one stays."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    while True:
        await asked.wait()
        asked.clear()
        try:
            ended = await reload()
        except DpsqlError as error:
            refused = refusal(error)
            hint = f" ({refused['hint']})" if refused["hint"] else ""
            log.error("reload refused: %s%s", refused["refused"], hint)
        else:
            log.info("reload: %s is in force; sessions ended: %d", path, ended)
