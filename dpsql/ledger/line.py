"""The line in which processes wait to write: first come, first served, without asking again and again.

Decides order only, never safety: that one writes at a time is the store's own lock's business, and whoever cannot
stand in line still gets that. A lock of the system's on a file of its own is the line; it ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True, eq=False)
class _Job:
    """What is to be done when its turn comes, and how that ended."""

    work: Callable[[], None]
    ended: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    def do(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.error = error


class Line:
    """This process' place in line; one thread at a time may stand there."""

    def __init__(self, path: Path) -> None:
        try:
            self._file: int | None = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # another user's file, or no room for one
            self._file = None
        self._changed = threading.Condition()
        self._waiter: threading.Thread | None = None
        self._stands = False
        """The waiting thread is in line, or on its way there."""
        self._job: _Job | None = None
        """What it is to do when its turn comes; None if nobody waits for that any more."""

    def run(self, work: Callable[[], None], patience: float) -> None:
        """Do the work when first in line. Raises what it raises, or TimeoutError if its turn is so many seconds away.

        The system's call takes no time limit, so where others are in line, another thread waits in it. That one does
        the work too: everybody behind waits for as long as a second thread takes to wake up.
        """
        file = self._file
        if file is None:
            work()
            return
        job = _Job(work)
        with self._changed:
            alone = not self._stands and _is_free(file)
            if not alone:
                self._ask(file, job)
        if alone:
            try:
                work()
            finally:
                self._leave(file)
            return
        try:
            ended = job.ended.wait(patience)
        except BaseException:
            self._give_up(job)
            raise
        if not ended and self._give_up(job):
            raise TimeoutError
        if job.error is not None:
            raise job.error

    def close(self) -> None:
        with self._changed:
            file, self._file = self._file, None
            if file is not None and self._waiter is None:
                os.close(file)
            self._changed.notify()

    def _ask(self, file: int, job: _Job) -> None:
        """Have the thread do the job; it may be in line already, for one that was given up."""
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._wait, args=(file,), daemon=True, name="dpsql-ledger-line")
            self._waiter.start()
        self._job, self._stands = job, True
        self._changed.notify()

    def _give_up(self, job: _Job) -> bool:
        """Whether the job will not be done; one that has begun is waited for."""
        with self._changed:
            if self._job is job:
                self._job = None
                return True
        job.ended.wait()
        return False

    def _wait(self, file: int) -> None:
        while True:
            with self._changed:
                while not self._stands and self._file is not None:
                    self._changed.wait()
                if not self._stands:
                    break
            fcntl.flock(file, fcntl.LOCK_EX)
            with self._changed:
                job, self._job = self._job, None
            if job is not None:
                job.do()
            with self._changed:  # at once: kept, it would be kept from all others until this process writes again
                fcntl.flock(file, fcntl.LOCK_UN)
                self._stands = self._job is not None
            if job is not None:
                job.ended.set()
        os.close(file)

    def _leave(self, file: int) -> None:
        with self._changed:
            if self._file is not None:  # else it is closed, and the lock gone with it
                fcntl.flock(file, fcntl.LOCK_UN)


def _is_free(file: int) -> bool:
    """Whether nobody was in line; then this process is."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
