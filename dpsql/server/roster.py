"""The sessions that are open, by user: who may stop them.

Decides that a user's sessions are stopped by that user alone, in whichever process they are. What is asked of other
processes goes to the parent, which asks all workers; a session that is not there and one of another user give the same
answer. Who sees which sessions is the public server's own affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dpsql.errors import CANCELLED, Rejected
from dpsql.server.link import Body
from dpsql.server.ports import SessionLike

Ask = Callable[[Body], Awaitable[Body]]
_PATIENCE: Final = 12.0
"""Seconds: longer than the parent waits for a worker."""
_ENDED: Final = "another session of yours ended this one"


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One open session. `task` serves its client."""

    user: str
    session: SessionLike
    task: asyncio.Task[None]


class Roster:
    """The sessions of this process; used by the event loop's thread only. `cancel` stops what a session does."""

    def __init__(self, cancel: Callable[[SessionLike], Awaitable[None]]) -> None:
        self._cancel = cancel
        self._open: dict[int, Entry] = {}

    @contextmanager
    def entered(self, user: str, session: SessionLike, task: asyncio.Task[None]) -> Iterator[None]:
        """For as long as the block runs, the session is one that its user may stop."""
        pid = session.pid
        self._open[pid] = Entry(user, session, task)
        try:
            yield
        finally:
            del self._open[pid]

    async def stop(self, user: str, pid: int, *, end: bool) -> bool:
        """Cancels what a session of the user does, or ends it; false if the number is none of theirs."""
        entry = self._open.get(pid)
        if entry is None or entry.user != user:
            return False
        if end:
            entry.task.cancel(_ENDED)
        else:
            await self._cancel(entry.session)
        return True


class Mine:
    """The sessions of one user, as statements ask for them from their threads. `ask` reaches the other processes."""

    def __init__(self, roster: Roster, user: str, ask: Ask | None) -> None:
        self._roster = roster
        self._user = user
        self._ask = ask
        self._loop = asyncio.get_running_loop()

    def stop(self, pid: int, *, end: bool) -> bool:
        future = asyncio.run_coroutine_threadsafe(self._stop(pid, end), self._loop)
        try:
            return future.result(_PATIENCE)
        except TimeoutError:
            future.cancel()
            raise Rejected("your other sessions do not answer", sqlstate=CANCELLED, hint="Try again.") from None

    async def _stop(self, pid: int, end: bool) -> bool:
        if self._ask is None:
            return await self._roster.stop(self._user, pid, end=end)
        return (await self._ask({"do": "stop", "user": self._user, "pid": pid, "end": end})).get("stopped") is True
