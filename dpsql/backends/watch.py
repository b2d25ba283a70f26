"""Stops statements that run too long or are cancelled.

Decides when a running statement is interrupted: at its deadline or when cancelled, and again and again until it ends,
because an interrupt that comes just before the engine starts is lost. It never interrupts a statement that has ended.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpsql.errors import CANCELLED, DpsqlError, Failed, Rejected

_AGAIN = 0.1


@dataclass(slots=True, eq=False)
class Guard:
    """One running statement. `due` is when to interrupt it next."""

    interrupt: Callable[[], None]
    due: float
    fired: bool = False
    cancelled: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: bool = False


class Watch:
    """One thread that watches all statements of a backend; it starts with the first and lives as long as needed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._guards: set[Guard] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def guard(self, interrupt: Callable[[], None], timeout: float) -> Iterator[Guard]:
        """While the block runs, `interrupt` is called once `timeout` seconds have passed or `cancel` was called."""
        guard = Guard(interrupt, time.monotonic() + timeout)
        with self._changed:
            self._guards.add(guard)
            self._start()
            self._changed.notify()
        try:
            yield guard
        finally:
            with self._changed:
                self._guards.discard(guard)
            with guard.lock:
                guard.ended = True

    def cancel(self, guard: Guard) -> None:
        """Interrupts the guarded statement soon. Returns at once."""
        with self._changed:
            guard.cancelled = True
            guard.due = time.monotonic()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dpsql-watch", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                now = time.monotonic()
                due = [guard for guard in self._guards if guard.due <= now]
                if not due:
                    nearest = min((guard.due for guard in self._guards), default=None)
                    self._changed.wait(None if nearest is None else max(nearest - now, 0.001))
            for guard in due:
                _fire(guard)


def _fire(guard: Guard) -> None:
    with guard.lock:
        if guard.ended:
            return
        guard.fired = True
        guard.interrupt()
        guard.due = time.monotonic() + _AGAIN


def stopped(guard: Guard, error: Exception) -> DpsqlError:
    """What an exception of the engine becomes: a cancel, a timeout, or a failure known by its class alone."""
    if guard.cancelled:
        return Rejected("canceling statement due to user request", sqlstate=CANCELLED)
    return Failed("timeout", sqlstate=CANCELLED) if guard.fired else Failed(type(error).__name__)
