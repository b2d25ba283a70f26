"""Deadlines of running statements, watched by one thread: starting a timer per statement would cost more than most
remainders do."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count


class Watchdog:
    """Calls back when a deadline passes; the thread starts with the first deadline and ends with `close`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._over: set[int] = set()
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._closed = False

    @contextmanager
    def watch(self, seconds: float, expired: Callable[[], None]) -> Iterator[None]:
        """`expired` is called, once, if the block is still running after `seconds`; never after it has ended."""
        number = self._add(time.monotonic() + seconds, expired)
        try:
            yield
        finally:
            with self._changed:
                self._over.add(number)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _add(self, deadline: float, expired: Callable[[], None]) -> int:
        with self._changed:
            number = next(self._numbers)
            heapq.heappush(self._waiting, (deadline, number, expired))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadlines", daemon=True)
                self._thread.start()
            elif self._waiting[0][1] == number:
                self._changed.notify()
        return number

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                self._drop_finished()
                if not self._waiting:
                    self._changed.wait()
                    continue
                deadline, number, expired = self._waiting[0]
                left = deadline - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                heapq.heappop(self._waiting)
                if number not in self._over:
                    expired()
                self._over.discard(number)

    def _drop_finished(self) -> None:
        while self._waiting and self._waiting[0][1] in self._over:
            self._over.discard(heapq.heappop(self._waiting)[1])
