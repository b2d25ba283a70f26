"""Room on the ledger's disk for the records of what has been debited.

A statement is debited first, and its release recorded later: were the disk full by then, a debit would stay without an
answer. So before a debit, room for its record is really taken, as blocks of a file that has no name and ends with its
process, however that ends. A record that finds the disk full gets of that room what it needs, and is tried again. Where
no room is left to take, nothing is debited, and the statement is refused.

Decides how much. What it cannot promise: that no other program is quicker to use what is given back, or that a file
system gives blocks of its own to a file (those that compress, or copy what they write, may not).
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

LEAST: Final = 1 << 16
"""Bytes that the smallest record may need: pages of the log, for its entry, its release and their indexes."""
_HELD: Final = 1 << 23
"""Bytes that are kept although nobody needs them now, so that few statements ask the file system."""


class Room:
    """What this process holds of a disk, in bytes; safe to use from several threads."""

    def __init__(self, directory: Path | None) -> None:
        """None: a disk that is not this machine's, of which nothing can be held. Raises OSError."""
        self._file = None if directory is None or not hasattr(os, "posix_fallocate") else _unnamed(directory)
        self._lock = threading.Lock()
        self._promised: dict[int, int] = {}
        self._asked = 0
        self._size = 0

    def held(self, needed: Mapping[str, int]) -> AbstractContextManager[dict[int, str]]:
        """Room for records, by key, while the block debits them; it names the debits, which keep theirs.

        Raises OSError, at once, where there is none.
        """
        with self._lock:
            self._grow(sum(needed.values()))
        return self._promising(needed)

    @contextmanager
    def _promising(self, needed: Mapping[str, int]) -> Iterator[dict[int, str]]:
        made: dict[int, str] = {}
        try:
            yield made
        finally:
            with self._lock:
                self._asked -= sum(needed.values())
                self._promised.update((debit, needed.get(key, 0)) for debit, key in made.items())

    def _grow(self, size: int) -> None:
        wanted = self._needed() + size
        if self._file is not None and wanted > self._size:
            try:
                os.posix_fallocate(self._file, self._size, wanted - self._size)
            except OSError:
                self._cut(self._size)
                raise
            self._size = wanted
        self._asked += size

    def _needed(self) -> int:
        return self._asked + sum(self._promised.values())

    def end(self, debit: int) -> None:
        """It is recorded, or never will be."""
        with self._lock:
            self._promised.pop(debit, None)
            if self._size > self._needed() + _HELD:
                self._cut(self._needed())

    def give(self, size: int) -> None:
        """Back to the disk, for a record of this size."""
        with self._lock:
            self._cut(max(0, self._size - 2 * size - LEAST))

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _cut(self, size: int) -> None:
        if self._file is not None:
            os.ftruncate(self._file, size)
            self._size = size


def _unnamed(directory: Path) -> int:
    """A new file that nobody else finds."""
    file, name = tempfile.mkstemp(prefix=".room-", dir=directory)
    os.unlink(name)
    return file
