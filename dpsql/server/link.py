"""How the parent and a worker speak: questions and answers as lines of JSON, both ways at once, over a socket pair.

Decides the form of the lines alone; what they say is the business of both ends. An end that closes answers nothing any
more: whoever asks it, or has asked it, gets ConnectionError.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

from dpsql.errors import DpsqlError, Failed

Body = dict[str, object]
Answer = Callable[[Body], Awaitable[Body]]

_LONGEST: Final = 16 << 20
"""Bytes of a line: a policy has to fit."""
_NEWS: Final = 0
"""The number of a line that wants no answer."""


def refusal(error: DpsqlError) -> Body:
    """A refusal or a fault as an answer, in the words of the log."""
    return {"refused": error.cause if isinstance(error, Failed) else error.message, "hint": error.hint}


class Link:
    """One end. Belongs to one event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._asked: dict[int, asyncio.Future[Body]] = {}
        self._numbers = count(_NEWS + 1)
        self._answering: set[asyncio.Task[None]] = set()
        self.reading = asyncio.create_task(self._read())
        """Ends when the other end is gone."""

    async def ask(self, question: Body, patience: float) -> Body:
        """The answer. Raises ConnectionError if the other end is gone, TimeoutError after `patience` seconds."""
        number = next(self._numbers)
        future: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        try:
            self._send("ask", number, question)
            async with asyncio.timeout(patience):
                return await future
        finally:
            del self._asked[number]

    def tell(self, news: Body) -> None:
        """A line that wants no answer; lost if the other end is gone."""
        if not self.reading.done():
            self._send("ask", _NEWS, news)

    def close(self) -> None:
        self._writer.close()

    def _send(self, kind: str, number: int, body: Body) -> None:
        if self.reading.done():
            raise ConnectionResetError
        self._writer.write(json.dumps((kind, number, body)).encode() + b"\n")

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                kind, number, body = json.loads(line)
                if kind == "ask":
                    task = asyncio.create_task(self._reply(number, body))
                    self._answering.add(task)
                    task.add_done_callback(self._answering.discard)
                elif number in self._asked and not self._asked[number].done():
                    self._asked[number].set_result(body)
        except OSError:
            pass  # gone, as at the end of the lines
        finally:
            for future in self._asked.values():
                if not future.done():
                    future.set_exception(ConnectionResetError())
            self._writer.close()

    async def _reply(self, number: int, question: Body) -> None:
        answer = await self._answer(question)
        if number != _NEWS and not self.reading.done():
            self._send("answer", number, answer)


async def open_link(end: socket.socket, answer: Answer) -> Link:
    """A link over one end of a socket pair, which it takes over."""
    reader, writer = await asyncio.open_connection(sock=end, limit=_LONGEST)
    return Link(reader, writer, answer)
