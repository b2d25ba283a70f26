"""Turns at work that keeps a processor busy, so that nobody waits behind another user's pile of statements.

Decides who is next: a user has one turn at a time, and those who wait get them in rotation, whatever each has piled up.
Threads of one process share one interpreter, so a second turn at once would make nobody faster. Nothing here knows what
a turn is used for.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from dpsql.errors import CANCELLED, Rejected

_LOOK = 0.1
"""Seconds after which one who waits looks whether to go on."""


class Cancel(Protocol):
    """A client's wish to stop."""

    def check(self) -> None:
        """Raises Rejected 57014 once cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits: to the deadline, by the monotonic clock, or until it cancels or leaves."""

    deadline: float
    cancel: Cancel

    def check(self) -> None:
        """Raises Rejected 57014 once it is over."""
        self.cancel.check()
        if time.monotonic() >= self.deadline:
            raise Rejected("canceling statement due to statement timeout", sqlstate=CANCELLED)


class _Nobody:
    """Nobody cancels what no client waits for."""

    def check(self) -> None:
        """Never raises."""


ENDLESS = Patience(math.inf, _Nobody())


class Turns:
    """At most `most` turns at once, and of one user one. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, deque[object]] = OrderedDict()
        self._busy: set[str] = set()

    @contextmanager
    def turn(self, user: str, check: Callable[[], None]) -> Iterator[None]:
        """The block is the user's turn. `check` raises where it is no longer waited for."""
        with self._changed:
            self._wait(user, check)
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._busy.remove(user)
                self._changed.notify_all()

    def _wait(self, user: str, check: Callable[[], None]) -> None:
        me = object()
        mine = self._waiting.setdefault(user, deque())
        mine.append(me)
        try:
            while not (self._next() == user and mine[0] is me):
                self._changed.wait(_LOOK)
                check()
        finally:
            mine.remove(me)
            if mine:
                self._waiting.move_to_end(user)
            else:
                del self._waiting[user]
        self._free -= 1
        self._busy.add(user)
        self._changed.notify_all()

    def _next(self) -> str | None:
        """The user whose turn begins now."""
        return next((user for user in self._waiting if user not in self._busy), None) if self._free else None
