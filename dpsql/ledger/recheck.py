"""Reads the whole ledger again while it is served, a little at a time, and ends the service at the first thing wrong.

Opening verifies from the last checkpoint on, so that it takes a second; what is older proves itself whenever it is
read, and no total rests on it. Here also what nobody reads is verified, and the file's pages with it, indexes included.
Decides how fast: a slice, then a rest nine times as long. Holds no snapshot while it rests, so the log does not grow.
Must never change anything, nor take a passing fault (a lock, a lost connection) for damage.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import Final

from dpsql.ledger import audit
from dpsql.ledger.books import Books
from dpsql.ledger.guard import ADVICE
from dpsql.ledger.home import Home
from dpsql.ledger.model import LedgerError, LedgerUnavailable

SLICE: Final = 500
"""Entries or releases that are verified at a time."""
REST: Final = 9
FIRST, AGAIN, RETRY = 10.0, 86_400.0, 600.0
"""Seconds until the first reading, from one to the next, and after a fault."""

Rest = Callable[[float], bool]
"""Waits so many seconds; whether to go on."""

log = logging.getLogger(__name__)


class Recheck:
    """A thread that rechecks a ledger from time to time, until it is stopped. `doubt` is told of what is wrong."""

    def __init__(self, home: Home, doubt: Callable[[str], object]) -> None:
        self._home = home
        self._doubt = doubt
        self._stopped = threading.Event()
        threading.Thread(target=self._run, daemon=True, name="dpsql-ledger-recheck").start()

    def stop(self) -> None:
        """No slice begins any more."""
        self._stopped.set()

    def _run(self) -> None:
        wait = FIRST
        while self._rest(wait):
            try:
                recheck(self._home, self._rest)
                wait = AGAIN
            except LedgerUnavailable as error:
                log.warning("the ledger was not read again yet: %s", error.message)
                wait = RETRY
            except LedgerError as error:
                self._doubt(error.message)
                log.critical("the ledger %s cannot be trusted: %s; %s", self._home.name, error.message, ADVICE)
                return

    def _rest(self, seconds: float) -> bool:
        return not self._stopped.wait(seconds)


def recheck(home: Home, rest: Rest) -> None:
    """Verify the whole ledger in slices; ends early where `rest` says so.

    Raises LedgerError for what does not prove itself, LedgerUnavailable where the ledger cannot be read now.
    """
    books, references = Books(), audit.References()
    if _entries(home, books, references, rest) and _releases(home, books.head.count, rest):
        with home.snapshot(thorough=True) as rows:
            known = books.head.count
            for _ in audit.posting(rows, books, references):
                pass
            audit.check_releases(rows, known, books)


def _entries(home: Home, books: Books, references: audit.References, rest: Rest) -> bool:
    """The chain, from the first entry to one that was the last when it was read."""
    while True:
        with home.snapshot(thorough=False) as rows:
            batch = rows.between(books.head.count + 1, books.head.count + SLICE)
        start = time.monotonic()
        for row in batch:
            audit.posted(row, books, references)
        if len(batch) < SLICE:
            return True
        if not rest(REST * (time.monotonic() - start)):
            return False


def _releases(home: Home, last: int, rest: Rest) -> bool:
    """The releases that were recorded by the entries up to the last."""
    entry = 0
    while True:
        start = time.monotonic()
        with home.snapshot(thorough=False) as rows:
            found = [each for each in islice(rows.releases_after(entry), SLICE) if each[0] <= last]
            for each in found:
                audit.check_release(*each)
        if len(found) < SLICE:
            return True
        entry = found[-1][0]
        if not rest(REST * (time.monotonic() - start)):
            return False
