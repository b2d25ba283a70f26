"""Metrics in Prometheus's text format, on this machine's loopback only: for the operator, never for a client.

Decides how they are asked for. Several workers count each for itself, under the label `worker`; the ledger is one, and
told of once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from dpsql.errors import Rejected

LOOPBACK: Final = "127.0.0.1"
_MOST: Final = 8192
_PATIENCE: Final = 5.0


Number = tuple[str, dict[str, str], float]
"""Name, labels and value."""
Source = Callable[[], Awaitable[Sequence[Number]]]


def together(found: Mapping[int, Sequence[Number]]) -> list[Number]:
    """The numbers of several workers, by the worker's: counts for each, the others once."""
    counted = [
        (name, {**labels, "worker": str(worker)}, value)
        for worker, each in found.items()
        for name, labels, value in each
        if name.endswith("_total")
    ]
    once = next((each for each in found.values()), ())
    return [*counted, *(number for number in once if not number[0].endswith("_total"))]


def _line(number: Number) -> str:
    name, labels, value = number
    inside = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}\n" if inside else f"{name} {value}\n"


async def listen(source: Source, port: int) -> asyncio.Server:
    """Answers `GET /metrics` until it is closed. Raises Rejected if the port cannot be had."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(source, request))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever it was, they get nothing
        finally:
            writer.close()

    try:
        return await asyncio.start_server(answer, LOOPBACK, port, limit=_MOST)
    except OSError as error:
        raise Rejected(f"cannot listen for metrics on {LOOPBACK}:{port}: {error.strerror}") from None


async def _response(source: Source, request: bytes) -> bytes:
    if not request.startswith(b"GET /metrics "):
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    body = "".join(map(_line, await source())).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body
