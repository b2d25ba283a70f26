"""Runs sessions off the event loop, in portions, so that no client holds a thread while it does not read.

Decides what runs in which thread and for how long. It must never keep a thread waiting for a client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar, cast

from dpsql.pgwire.connection import Connection
from dpsql.pgwire.messages import BackendMessage, ReadyForQuery, SessionMessage, Terminate
from dpsql.server.ports import SessionLike

T = TypeVar("T")


class Workers:
    """Three pools of threads: for statements, for logins, and for cancelling statements when all the first are busy.

    One user has at most half of the threads for statements, whatever they ask at once, so that there is one for others.
    """

    def __init__(self, threads: int) -> None:
        self._statements = ThreadPoolExecutor(threads, thread_name_prefix="dpsql-statement")
        self._logins = ThreadPoolExecutor(2, thread_name_prefix="dpsql-login")
        self._cancels = ThreadPoolExecutor(2, thread_name_prefix="dpsql-cancel")
        self._share = max(threads // 2, 1)
        self._shares: dict[str, tuple[asyncio.Semaphore, int]] = {}

    async def run(self, call: Callable[[], T], user: str) -> T:
        """Runs a statement's work; a caller that is cancelled stops it only if it has not begun."""
        async with self._shared(user):
            return await asyncio.get_running_loop().run_in_executor(self._statements, call)

    async def open(self, call: Callable[[], T]) -> T:
        """Makes a session; not behind anybody's statements."""
        return await asyncio.get_running_loop().run_in_executor(self._logins, call)

    @asynccontextmanager
    async def _shared(self, user: str) -> AsyncIterator[None]:
        """One of the threads that the user may have; forgotten when nothing of the user's runs or waits."""
        share, users = self._shares.get(user, (asyncio.Semaphore(self._share), 0))
        self._shares[user] = share, users + 1
        try:
            async with share:
                yield
        finally:
            share, users = self._shares.pop(user)
            if users > 1:
                self._shares[user] = share, users - 1

    async def cancel(self, session: SessionLike) -> None:
        """Cancels what a session does, and waits until it is told."""
        await asyncio.get_running_loop().run_in_executor(self._cancels, session.cancel)

    def cancel_soon(self, session: SessionLike) -> None:
        """The same without waiting."""
        self._cancels.submit(session.cancel)

    def close_soon(self, session: SessionLike) -> None:
        """Lets a session go that has ended, without waiting."""
        try:
            self._cancels.submit(session.close)
        except RuntimeError:  # all is being stopped
            session.close()

    def stop(self) -> None:
        """Takes no more work; what runs ends by itself."""
        self._statements.shutdown(wait=False, cancel_futures=True)
        self._logins.shutdown(wait=False, cancel_futures=True)
        self._cancels.shutdown(wait=False)


class Inbox:
    """What a session's client sends: handed to the connection, unless the session knows the answer to it as it is."""

    def __init__(self, connection: Connection, session: SessionLike) -> None:
        self.connection = connection
        self._session = session
        self._asked = b""

    def known(self, data: bytes) -> bytes | None:
        """The answer to bytes that begin a turn, if it is known."""
        return self._session.recall(data) if self.connection.at_rest else None

    def receive(self, data: bytes) -> None:
        """Gives the bytes to the connection."""
        self._asked = data if self.connection.at_rest else b""
        self.connection.receive(data)

    def answered(self) -> None:
        """Tells the session what the turn that has ended came as."""
        self._session.remember(b"" if self.connection.buffered else self._asked)
        self._asked = b""


class Turn:
    """The answers to all that a client has sent, from `event` on. Belongs to one thread at a time."""

    def __init__(self, connection: Connection, session: SessionLike, event: SessionMessage) -> None:
        self._connection = connection
        self._session = session
        self._answers = self._handle(event)
        self._abandoned = False
        self.finished = False

    def portion(self, most: int) -> bytes:
        """The next bytes to send: to the end, to `most`, or to a ReadyForQuery before another statement.

        May block, as the session does.
        """
        parts: list[bytes] = []
        size = 0
        for message in self._answers:
            data = self._connection.send(message)
            parts.append(data)
            size += len(data)
            if size >= most or (isinstance(message, ReadyForQuery) and self._connection.buffered):
                return b"".join(parts)
        self.finished = True
        return b"".join(parts)

    def abandon(self) -> None:
        """Lets no further message begin. The only method that may be called while `portion` runs."""
        self._abandoned = True

    def close(self) -> None:
        """Gives up the rest of the answers."""
        self._answers.close()

    def _handle(self, event: SessionMessage) -> Generator[BackendMessage, None, None]:
        pending: SessionMessage | None = event
        while pending is not None and not isinstance(pending, Terminate) and not self._abandoned:
            yield from self._session.handle(pending)
            pending = cast(SessionMessage | None, self._connection.next_event())
