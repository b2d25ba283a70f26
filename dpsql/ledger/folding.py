"""Folding SQLite's log back into the ledger's file, at moments when nobody can begin the log anew.

SQLite 3.7.0 to 3.51.2 (but 3.44.6 and 3.50.7 on in their series) may lose committed pages where two connections have a
database open in WAL mode (sqlite.org/wal.html, "The WAL-Reset Bug"): after a fold that was complete, a second one is
under way while another connection commits and, in that, begins the log anew; the second fold then notes pages as folded
that are not, and a third one skips them. SQLite's own folding, at the end of a commit, runs when the write lock is
given up already, so two processes can meet so. It is switched off for every connection of ours. Here a fold runs only
within a write transaction that another connection of the same process has begun, by this store: only who holds the
write lock can begin the log anew, so nobody does from before the fold reads where the log ends until after it is done.
Two folds at once exclude each other by the same lock. The fold that closing the last connection does runs under
SQLite's exclusive lock, when there is no other connection. So no order of events that the fault needs can come about
among processes of dpsql, whatever version they link; other programs must not write to the file or fold its log, where
theirs has the fault.

Decides when to fold. Must never fold outside a write transaction, nor let a fold that fails fail a statement: the log
only grows.
"""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Final

from dpsql.ledger.tables import connect, is_transient, reason

WRITES: Final = 64
"""Write transactions of this process from one fold to the next."""
GROWN: Final = 1 << 22
"""Bytes that the log's file may grow in between."""

log = logging.getLogger(__name__)


class Folding:
    """A connection for folding, beside the one that writes."""

    def __init__(self, path: Path) -> None:
        """Raises LedgerError."""
        self._connection = connect(path)
        self._connection.execute("PRAGMA busy_timeout = 0")
        self._writes = 0
        self._size = 0

    def when_due(self, size: int) -> bool:
        """Whether it folded, in a write transaction that is to write nothing then. `size`: of the log's file.

        Raises sqlite3.Error for damage.
        """
        self._writes += 1
        if self._writes < WRITES and size < self._size + GROWN:
            return False
        self._writes, self._size = 0, size
        try:
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            if not is_transient(error):
                raise
            log.warning("the ledger's log is not folded for now: %s", reason(error))
        return True

    def close(self) -> None:
        self._connection.close()


def has_fault(version: tuple[int, int, int]) -> bool:
    """Whether this version of SQLite has the fault."""
    series, patch = version[:2], version[2]
    mended = {(3, 44): 6, (3, 50): 7, (3, 51): 3}.get(series)
    return (3, 7) <= series <= (3, 51) and (mended is None or patch < mended)


def caution() -> str | None:
    """What the operator of a ledger in a file has to know of the SQLite that is linked here."""
    if not has_fault(sqlite3.sqlite_version_info):
        return None
    return (
        f"SQLite {sqlite3.sqlite_version} can damage a file that other programs write to as well (mended in 3.51.3); "
        "dpsql's own processes avoid it, but let no other program open the ledger to write while it is served"
    )
