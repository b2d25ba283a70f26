"""The SQLite store: one connection as a resource, with its lock, its transactions and the faults that end its use.

Decides nothing about budgets. Must never let an error of SQLite, whose text may quote what is stored, go further than
here, and never go on after a sign that the file is no longer the one that was verified.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import uniform
from typing import Final

from dpsql.ledger.folding import Folding, caution
from dpsql.ledger.guard import PATIENCE, Guard
from dpsql.ledger.line import Line
from dpsql.ledger.migrations import LAYOUT
from dpsql.ledger.model import LedgerError, LedgerUnavailable, damaged
from dpsql.ledger.places import beside
from dpsql.ledger.room import Room
from dpsql.ledger.rows import Rows
from dpsql.ledger.tables import FAULTS, build, connect, is_transient, migrate, reason, rows_of

log = logging.getLogger(__name__)

_SHORTEST: Final = 0.0005
_LONGEST: Final = 0.01
"""Seconds between attempts: many who wait must not take the processor from the one who works."""


@dataclass(frozen=True, slots=True)
class SqliteHome:
    """A file for a ledger; see `dpsql.ledger.home.Home`."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def beside(self) -> Path:
        return beside(self.path)

    def exists(self) -> bool:
        return self.path.exists()

    def remains(self) -> tuple[Path, ...]:
        return self.path.with_name(f"{self.path.name}-wal"), self.beside

    def build(self, fill: Callable[[Rows], None]) -> None:
        build(self.path, fill)

    @contextmanager
    def snapshot(self, *, thorough: bool) -> Iterator[Rows]:
        with closing(connect(self.path)) as connection:
            try:
                connection.execute("BEGIN")
                if thorough and connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
                    raise damaged(self.name, "the file is damaged")
                yield rows_of(connection)
                connection.execute("ROLLBACK")
            except FAULTS as error:
                if is_transient(error):
                    raise LedgerUnavailable(f"the ledger {self.path} cannot be read: {reason(error)}") from None
                raise damaged(self.name, reason(error)) from None

    def store(self) -> SqliteStore:
        if known := caution():
            log.info("%s", known)
        connection = connect(self.path)
        try:
            self._require_writable(connection)
            return SqliteStore(connection, self.path)
        except BaseException:
            connection.close()
            raise

    def _require_writable(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")  # BEGIN alone succeeds on a read-only file
            connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            raise LedgerUnavailable(f"the ledger {self.path} cannot be written to: {reason(error)}") from None

    def set_aside(self) -> str:
        target = next(name for number in count(1) if not (name := self.path.with_suffix(f".lost-{number}")).exists())
        for suffix in ("-wal", "-shm", ""):
            old = self.path.with_name(f"{self.path.name}{suffix}")
            if old.exists():
                old.rename(target.with_name(f"{target.name}{suffix}"))
        return str(target)

    def migrate(self) -> tuple[int, int]:
        return migrate(self.path)


def _room(path: Path) -> Room:
    try:
        return Room(path.parent)
    except OSError as error:
        raise LedgerUnavailable(f"the directory of {path} cannot be written to: {error.strerror}") from None


class SqliteStore:
    """A verified ledger's connection, for one process and any number of threads, one transaction at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        connection.execute("PRAGMA busy_timeout = 0")  # waiting is done here, with naps that grow
        self._connection = connection
        self._path = path
        self._folding = Folding(path)
        self.guard = Guard(str(path))
        self.room = _room(path)
        self._line = Line(path.with_name(f"{path.name}-lock"))
        self._names = (str(path), f"{path}-wal")
        self._files = self._identities()

    def in_line(self, work: Callable[[], None]) -> None:
        """Do the work when this process is first in line."""
        try:
            self._line.run(work, PATIENCE)
        except TimeoutError:
            raise self.guard.failed(f"other programs kept it locked for {PATIENCE:.0f} s") from None

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Rows]:
        """A transaction that is rolled back at the end, unless its body has committed it. Raises Failed.

        While another process writes, this one's other threads may read.
        """
        deadline, nap = time.monotonic() + PATIENCE, _SHORTEST
        try:
            while True:
                with self.guard.alone():
                    self._check()
                    if self._begin(write, last=time.monotonic() > deadline):
                        try:
                            yield rows_of(self._connection)
                        finally:
                            if self._connection.in_transaction:
                                self._connection.execute("ROLLBACK")
                        return
                time.sleep(uniform(nap / 2, nap))
                nap = min(2 * nap, _LONGEST)
        except LedgerUnavailable as error:
            raise self.guard.failed(error.message) from None
        except LedgerError as error:
            raise self.guard.doubt(error.message) from None
        except FAULTS as error:
            if is_transient(error):
                raise self.guard.failed(reason(error)) from None
            raise self.guard.doubt(reason(error)) from None
        except OSError as error:
            raise self.guard.failed(error.strerror or "a file is not accessible") from None

    def close(self) -> None:
        """Give the connection up. What was committed stays."""
        with self.guard.closing():
            self._folding.close()
            self._connection.close()
            self._line.close()
            self.room.close()

    def _check(self) -> None:
        found = self._identities()
        if not found or tuple(each[:2] for each in found) != tuple(each[:2] for each in self._files):
            raise LedgerError("its file was replaced or removed while it was open")
        if found[0][2] < self._files[0][2]:
            raise LedgerError("its file was truncated while it was open")
        self._files = found

    def _identities(self) -> tuple[tuple[int, int, int], ...]:
        """(device, number, size) of the file and its log; the log exists for as long as a connection does."""
        try:
            stats = tuple(os.stat(name) for name in self._names)
        except FileNotFoundError:
            return ()
        return tuple((stat.st_dev, stat.st_ino, stat.st_size) for stat in stats)

    def _begin(self, write: bool, *, last: bool) -> bool:
        """Whether the transaction has begun; not, if others keep the file locked, unless this was the last attempt."""
        try:
            if write:
                self._connection.execute("BEGIN IMMEDIATE")
                if self._folding.when_due(self._files[1][2]):  # only who comes after it can begin the log anew
                    self._connection.execute("ROLLBACK")
                    self._connection.execute("BEGIN IMMEDIATE")
            else:
                self._connection.execute("BEGIN")
                self._connection.execute("SELECT 1 FROM entry LIMIT 1").fetchone()  # takes the snapshot
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY or last:
                raise
            return False
        return True
