"""The line in which processes wait to write: first come, first served, without asking again and again.

Decides order only, never safety: that one writes at a time is the store's own lock's business, and whoever cannot
stand in line still gets that. A lock of the system's on a file of its own is the line; it ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Line:
    """This process' place in line; one thread at a time may stand there."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # another user's file, or no room for one
            self._file = None
        self._wanted: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
        self._waiter: threading.Thread | None = None
        self._late: threading.Event | None = None
        """A turn that nobody waits for any more, and that has not come yet."""
        self._handover = threading.Lock()

    @contextmanager
    def turn(self, patience: float) -> Iterator[None]:
        """First in line for as long as the block runs. Raises TimeoutError after so many seconds."""
        file = self._file
        if file is None:
            yield
            return
        self._stand(file, patience)
        try:
            yield
        finally:
            if self._file is not None:  # else it is closed, and the lock gone with it
                fcntl.flock(file, fcntl.LOCK_UN)

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None and self._waiter is None:
            os.close(file)
        self._wanted.put(None)

    def _stand(self, file: int, patience: float) -> None:
        with self._handover:
            came, self._late = self._late, None
        if came is None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                came = self._asked(file)
        if came.wait(patience):
            return
        with self._handover:
            if not came.is_set():
                self._late = came
                raise TimeoutError

    def _asked(self, file: int) -> threading.Event:
        """Set when it is this process' turn: the system's call takes no time limit, so another thread waits in it."""
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._wait, args=(file,), daemon=True, name="dpsql-ledger-line")
            self._waiter.start()
        came = threading.Event()
        self._wanted.put(came)
        return came

    def _wait(self, file: int) -> None:
        while (came := self._wanted.get()) is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
            with self._handover:
                if came is self._late:  # it would be kept from all others until this process writes again
                    self._late = None
                    fcntl.flock(file, fcntl.LOCK_UN)
                else:
                    came.set()
        os.close(file)
