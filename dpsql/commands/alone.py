"""A process that serves by itself: it listens, and has the only engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dpsql.commands.metrics import Number
from dpsql.commands.numbers import numbers
from dpsql.commands.reload import Current
from dpsql.commands.running import begin_to_listen, no_place, say_ready, stop_signal
from dpsql.commands.worker import audit_to, make_server, open_current, prepare, settle, take_over
from dpsql.policy.load import load
from dpsql.policy.model import Policy


def run(loaded: Policy, path: Path, address: tuple[str, int], metrics: int | None, audit: Path | None) -> None:
    """Serves until it is told to stop."""
    audit_to(audit)
    current = open_current(loaded)
    try:
        asyncio.run(_serve(current, path, address, metrics))
    finally:
        current.close()


async def _serve(current: Current, path: Path, address: tuple[str, int], metrics: int | None) -> None:
    settle()
    server = make_server(current, address)
    try:
        await server.start()
    except OSError as error:
        raise no_place(address, error) from None

    async def counted() -> list[Number]:
        return await asyncio.to_thread(numbers, current)

    async def reload() -> int:
        change = await asyncio.to_thread(lambda: prepare(current, load(path)))
        return await take_over(current, server, change)

    stopped = stop_signal()
    try:
        end = await begin_to_listen(path, metrics, counted, reload)
        say_ready(current.policy, server.address)
        await stopped.wait()
        end()
    finally:
        await server.stop()
