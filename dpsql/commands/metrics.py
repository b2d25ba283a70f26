"""Metrics in Prometheus's text format, on this machine's loopback only: for the operator, never for a client.

Decides which numbers there are: counts of statements and releases, what the dataset's budget has left, how far the
ledger's clock is behind. No user's name, no statement, no value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from dpsql.commands.reload import Current
from dpsql.errors import DpsqlError, Rejected
from dpsql.ledger.balance import dataset_balance
from dpsql.ledger.clock import SECOND
from dpsql.ledger.trail import COUNTS

LOOPBACK: Final = "127.0.0.1"
_MOST: Final = 8192
_PATIENCE: Final = 5.0


def lines(current: Current) -> Iterator[str]:
    """The metrics now. A ledger that cannot be read is `dpsql_ledger_up 0`, and its numbers are left out."""
    for name, labels, value in (*COUNTS.metrics(), *_ledger(current)):
        inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
        yield f"{name}{{{inside}}} {value}" if inside else f"{name} {value}"


def _ledger(current: Current) -> Iterator[tuple[str, dict[str, str], float]]:
    engine = current.engine
    try:
        balance = dataset_balance(engine.policy, engine.ledger.dataset_spent())
        count, behind = engine.ledger.head().count, engine.ledger.behind()
    except DpsqlError:
        yield "dpsql_ledger_up", {}, 0
        return
    yield "dpsql_ledger_up", {}, 1
    yield "dpsql_ledger_entries", {}, count
    yield "dpsql_ledger_clock_behind_seconds", {}, behind / SECOND
    yield "dpsql_dataset_epsilon_budget", {}, float(balance.budget.epsilon)
    yield "dpsql_dataset_epsilon_spent", {}, float(balance.epsilon_spent)
    yield "dpsql_dataset_epsilon_left", {}, float(balance.epsilon_left)
    yield "dpsql_dataset_delta_left", {}, float(balance.delta_left)


async def listen(current: Current, port: int) -> asyncio.Server:
    """Answers `GET /metrics` until it is closed. Raises Rejected if the port cannot be had."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await asyncio.to_thread(_response, current, request))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever it was, they get nothing
        finally:
            writer.close()

    try:
        return await asyncio.start_server(answer, LOOPBACK, port, limit=_MOST)
    except OSError as error:
        raise Rejected(f"cannot listen for metrics on {LOOPBACK}:{port}: {error.strerror}") from None


def _response(current: Current, request: bytes) -> bytes:
    if not request.startswith(b"GET /metrics "):
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    body = "".join(f"{line}\n" for line in lines(current)).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
