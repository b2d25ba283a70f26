"""Making, opening and verifying the SQLite ledger of a dataset.

Decides when a ledger may be served: it exists, it is whole, it is this dataset's, no second place remembers more, and
it can be written to. Opening never makes a ledger, and making one never replaces one: an absent ledger that was once
there is a loss to be repaired from a backup, not a budget that begins again.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dpsql.ledger import anchor as anchors
from dpsql.ledger import audit
from dpsql.ledger.anchor import Mark
from dpsql.ledger.books import Books, chained
from dpsql.ledger.chain import FORMAT, draft, to_row
from dpsql.ledger.clock import reading
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.model import Entry, Head, Kind, LedgerError, Report
from dpsql.ledger.places import Places, beside, compare, marks
from dpsql.ledger.rows import Rows
from dpsql.ledger.sqlite import SqliteStore
from dpsql.ledger.tables import FAULTS, build, connect, reason, rows_of


def init_sqlite(path: Path, dataset: str, anchor: Path | None) -> Head:
    """Make the ledger of a new dataset, and the anchor if there is to be one.

    A ledger that exists and proves itself only gets the anchor that it lacks. Raises LedgerError otherwise.
    """
    if path.exists() and anchor is not None and not anchor.exists():
        report = verify_sqlite(path, dataset, None)
        anchors.create(anchor, Mark(report.ledger, report.head))
        return report.head
    _refuse_remains(path, anchor)
    first = first_entry(dataset)
    build(path, to_row(first))
    mark = Mark(first.hash, Head(first.id, first.hash))
    for place in (beside(path), *([anchor] if anchor else [])):
        anchors.create(place, mark)
    return mark.head


def first_entry(dataset: str) -> Entry:
    """The entry with which a new ledger begins."""
    now = reading()
    content = audit.description(dataset, secrets.token_hex(16))
    return chained(Books(), [draft(Kind.OPEN, at=now.wall, clock=str(now), content=content)])[0]


def _refuse_remains(path: Path, anchor: Path | None) -> None:
    if path.exists():
        raise LedgerError(f"there is a ledger at {path} already; a ledger is never made anew")
    for remains in (path.with_name(f"{path.name}-wal"), beside(path), *([anchor] if anchor else [])):
        if remains.exists():
            raise LedgerError(
                f"there was a ledger at {path} before: {remains} is left of it",
                hint="Restore the ledger from a backup: a new one would forget all that was spent.",
            )


def verify_sqlite(path: Path, dataset: str | None, anchor: Path | None) -> Report:
    """Verify all of a ledger, and that no second place remembers more. Raises LedgerError."""
    path = path.resolve()
    with closing(connect(path)) as connection:
        found = marks(beside(path), anchor)
        return audit.report(_proven(connection, path, dataset, found, _whole))


def open_sqlite(path: Path, dataset: str, anchor: Path | None) -> DurableLedger:
    """Open the dataset's ledger for service. Raises LedgerError unless it exists, is whole and can be written to."""
    path = path.resolve()
    connection = connect(path)
    try:
        found = marks(beside(path), anchor)  # before the ledger is read, for others may be adding to both
        books = _proven(connection, path, dataset, found, lambda _, rows: audit.read_on(rows))
        _require_writable(connection, path)
        places = opened_places((beside(path), *([anchor] if anchor else [])), books, beside(path))
        return DurableLedger(SqliteStore(connection, path), books, places, dataset)
    except BaseException:
        connection.close()
        raise


def _whole(connection: sqlite3.Connection, rows: Rows) -> Books:
    if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise LedgerError("the file is damaged")
    return audit.read_all(rows)


def _proven(
    connection: sqlite3.Connection,
    path: Path,
    dataset: str | None,
    found: dict[Path, Mark],
    read: Callable[[sqlite3.Connection, Rows], Books],
) -> Books:
    """The books of a ledger, read in one snapshot. Raises LedgerError naming the file and what is wrong first."""
    try:
        connection.execute("BEGIN")
        try:
            rows = rows_of(connection)
            return require(read(connection, rows), rows, dataset, found)
        finally:
            connection.execute("ROLLBACK")
    except FAULTS as error:
        raise audit.damaged(path, reason(error)) from None
    except LedgerError as error:
        raise audit.damaged(path, error.message) from None


def require(books: Books, rows: Rows, dataset: str | None, found: dict[Path, Mark]) -> Books:
    """The books, if they are the dataset's and no second place remembers more. Raises LedgerError."""
    report = audit.report(books)
    if dataset is not None and report.dataset != dataset:
        raise LedgerError(f"it is that of dataset {report.dataset!r}, not of {dataset!r}")
    compare(found, report.ledger, report.head.count, rows.hash_at)
    return books


def _require_writable(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {FORMAT}")  # BEGIN alone succeeds on a read-only file
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise LedgerError(f"the ledger {path} cannot be written to: {reason(error)}") from None


def opened_places(paths: tuple[Path, ...], books: Books, renewed: Path | None) -> Places:
    """The places of a verified ledger, moved on to its head; only `renewed` is made if it is missing."""
    mark = Mark(audit.report(books).ledger, books.head)
    if renewed is not None and not renewed.exists():
        anchors.create(renewed, mark)
    places = Places(mark.ledger, paths)
    places.advance(mark.head, sync=True)
    return places
