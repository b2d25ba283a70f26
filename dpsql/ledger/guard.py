"""Who may use an open store: one thread at a time, of the process that opened it, until there is a doubt.

Decides when a ledger ends. A doubt (an entry that is gone, a file that is another one) is never forgiven: only opening
the ledger again, and so verifying it, clears it. Only what was read and does not prove itself is a doubt: whatever may
pass (a lock, no room, no free descriptor, a lost server) refuses one statement after the other until it has passed,
which is as safe, since a statement that is refused tells nothing and debits nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dpsql.errors import Failed
from dpsql.ledger.model import LedgerError

PATIENCE: Final = 15.0
"""Seconds to wait for other threads, and then for other processes."""
ADVICE: Final = (
    "nothing is answered from it any more: stop serving, run `dpsql ledger verify`, and where that fails "
    "`dpsql ledger restore`"
)


class Unavailable(Failed):
    """The ledger cannot be used now, for a reason that may pass."""


class Guard:
    """The lock and the doubt of one open ledger, called `name` in messages."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._doubt: str | None = None
        self._closed = False
        self._at_end: list[Callable[[], None]] = []

    def failed(self, why: str) -> Unavailable:
        """For what may pass."""
        return Unavailable(self._cause(why))

    def _cause(self, why: str) -> str:
        return f"the ledger {self._name} cannot be used: {why}"

    def doubt(self, why: str) -> Failed:
        """No use of the ledger any more; the first reason stays."""
        self._doubt = self._doubt or why
        return Failed(self._cause(f"{why}; {ADVICE}"))

    def at_end(self, call: Callable[[], None]) -> None:
        """To be called when the store is closed."""
        self._at_end.append(call)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Alone with the store while the block runs. Raises LedgerError after a doubt, Failed if busy or closed."""
        if os.getpid() != self._process:
            raise Failed(self._cause("it was opened by another process; open it after the fork"))
        if not self._lock.acquire(timeout=PATIENCE):
            raise self.failed(f"other statements kept it busy for {PATIENCE:.0f} s")
        try:
            if self._closed:
                raise Failed(self._cause("it is closed"))
            if self._doubt:
                raise LedgerError(self._doubt)
            yield
        finally:
            self._lock.release()

    @contextmanager
    def closing(self) -> Iterator[None]:
        """For the block that closes the store."""
        for call in self._at_end:
            call()
        with self._lock:
            self._closed = True
            yield
