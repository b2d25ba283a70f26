"""The sessions that are open, by user: who sees them, and who may stop them.

Decides that a user's sessions are seen and stopped by that user alone, in whichever process they are. What is asked of
other processes goes to the parent, which asks the worker that a number belongs to; a session that is not there and one
of another user give the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeVar

from dpsql.catalog.context import OpenSession
from dpsql.errors import CANCELLED, Rejected
from dpsql.server.cancel import number_of
from dpsql.server.link import Body
from dpsql.server.ports import SessionLike

T = TypeVar("T")

Ask = Callable[[Body], Awaitable[Body]]
_PATIENCE: Final = 12.0
"""Seconds: longer than the parent waits for a worker."""
_ENDED: Final = "another session of yours ended this one"


@dataclass(slots=True, eq=False)
class Entry:
    """One open session. `task` serves its client."""

    user: str
    pid: int
    application: str
    session: SessionLike
    task: asyncio.Task[None]
    since: datetime
    active: bool = False

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self.active = True
        try:
            yield
        finally:
            self.active = False

    def shown(self) -> OpenSession:
        return OpenSession(self.pid, self.application, self.since, self.active)


class Roster:
    """The sessions of this process; used by the event loop's thread only. `cancel` stops what a session does."""

    def __init__(self, cancel: Callable[[SessionLike], Awaitable[None]]) -> None:
        self._cancel = cancel
        self._open: dict[int, Entry] = {}

    @contextmanager
    def entered(
        self, user: str, pid: int, application: str, session: SessionLike, task: asyncio.Task[None]
    ) -> Iterator[Entry]:
        """For as long as the block runs, the session is one that its user may see and stop."""
        entry = Entry(user, pid, application, session, task, datetime.now(UTC).replace(tzinfo=None))
        self._open[pid] = entry
        try:
            yield entry
        finally:
            del self._open[pid]

    def of(self, user: str) -> tuple[OpenSession, ...]:
        return tuple(entry.shown() for entry in self._open.values() if entry.user == user)

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

    def __init__(self, roster: Roster, user: str, number: int, ask: Ask | None) -> None:
        self._roster = roster
        self._user = user
        self._number = number
        self._ask = ask
        self._loop = asyncio.get_running_loop()

    def seen(self) -> tuple[OpenSession, ...]:
        return self._told(self._seen())

    def stop(self, pid: int, *, end: bool) -> bool:
        return self._told(self._stop(pid, end))

    async def _seen(self) -> tuple[OpenSession, ...]:
        if self._ask is None:
            return self._roster.of(self._user)
        return read((await self._ask({"do": "sessions", "user": self._user})).get("sessions"))

    async def _stop(self, pid: int, end: bool) -> bool:
        if self._ask is None or number_of(pid) == self._number:
            return await self._roster.stop(self._user, pid, end=end)
        return (await self._ask({"do": "stop", "user": self._user, "pid": pid, "end": end})).get("stopped") is True

    def _told(self, work: Coroutine[None, None, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(_PATIENCE)
        except TimeoutError:
            future.cancel()
            raise Rejected("your other sessions do not answer", sqlstate=CANCELLED, hint="Try again.") from None


def written(sessions: tuple[OpenSession, ...]) -> list[object]:
    """Sessions as one process tells another of them."""
    return [[each.pid, each.application, each.since.isoformat(), each.active] for each in sessions]


def read(told: object) -> tuple[OpenSession, ...]:
    """What `written` wrote."""
    rows = told if isinstance(told, list) else []
    return tuple(OpenSession(pid, name, datetime.fromisoformat(since), on) for pid, name, since, on in rows)
