"""Reading a whole ledger: every entry proves itself, follows from the one before, and every release is as recorded.

Decides whether a ledger may be used at all. Must never change it, and never report what it could not prove.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from dpsql.ledger.chain import FORMAT, Books, proven
from dpsql.ledger.model import Entry, Kind, LedgerError, Report
from dpsql.ledger.tables import ENTRY, reason

_RELEASES = """
SELECT e.id, e.key, e.content, r.key, r.body FROM entry e LEFT JOIN release r ON r.reservation = e.reservation
WHERE e.kind = 'record' ORDER BY e.id
"""


@dataclass(slots=True)
class _References:
    """Which debits wait for their release, and which have one."""

    waiting: dict[int, tuple[str, str]] = field(default_factory=dict)
    recorded: set[int] = field(default_factory=set)
    debits: int = 0

    def post(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.DEBIT:
                self.waiting[entry.id] = (entry.account, entry.key)
                self.debits += 1
            case Kind.RECORD:
                if self.waiting.pop(entry.reservation, None) != (entry.account, entry.key):
                    raise LedgerError(f"entry {entry.id} records a release that was not debited")
                self.recorded.add(entry.reservation)
            case Kind.VIEW:
                if entry.reservation not in self.recorded:
                    raise LedgerError(f"entry {entry.id} shows a release that was not recorded")
            case Kind.OPEN:
                pass


def audit(connection: sqlite3.Connection, path: Path) -> tuple[Books, Report]:
    """Verify all of a ledger in one snapshot. Raises LedgerError naming the file and the first thing that is wrong."""
    try:
        connection.execute("BEGIN")
        try:
            return _audit(connection)
        finally:
            connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise damaged(path, reason(error)) from None
    except LedgerError as error:
        raise damaged(path, error.message) from None


def damaged(path: Path, what: str) -> LedgerError:
    """The error for a ledger that does not prove itself."""
    return LedgerError(
        f"the ledger {path} cannot be trusted: {what}",
        hint="Nothing is answered from it. Find out who or what changed the file, and restore the newest backup.",
    )


def _audit(connection: sqlite3.Connection) -> tuple[Books, Report]:
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise LedgerError("the file is damaged")
    books, references = Books(), _References()
    for row in connection.execute(f"SELECT {ENTRY} FROM entry ORDER BY id"):
        entry = proven(row, books.head.hash)
        books.post(entry)
        references.post(entry)
    _check_releases(connection, len(references.recorded))
    return books, _report(books, references)


def _check_releases(connection: sqlite3.Connection, recorded: int) -> None:
    for entry, key, content, stored_key, body in connection.execute(_RELEASES):
        if stored_key != key or not is_body(body, content):
            raise LedgerError(f"the release recorded by entry {entry} is missing or has been altered")
    if connection.execute("SELECT count(*) FROM release").fetchone() != (recorded,):
        raise LedgerError("a stored release was never recorded")


def is_body(body: object, content: str) -> bool:
    """Whether these are the bytes that an entry's `content` is the hash of."""
    return isinstance(body, bytes) and hashlib.sha256(body).hexdigest() == content


def _report(books: Books, references: _References) -> Report:
    if books.first is None:
        raise LedgerError("it has no entries")
    return Report(
        dataset=str(json.loads(books.first.content)["dataset"]),
        ledger=books.first.hash,
        head=books.head,
        debits=references.debits,
        releases=len(references.recorded),
        dataset_spent=books.dataset_spent,
        accounts=tuple((*name, spent) for name, spent in sorted(books.accounts.items())),
    )


def description(dataset: str, nonce: str) -> str:
    """The content of a ledger's first entry."""
    return json.dumps({"dataset": dataset, "format": FORMAT, "nonce": nonce}, separators=(",", ":"))
