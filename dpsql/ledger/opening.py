"""Making, opening and verifying the SQLite ledger of a dataset.

Decides when a ledger may be served: it exists, it is whole, it is this dataset's, no second place remembers more, and
it can be written to. Opening never makes a ledger, and making one never replaces one: an absent ledger that was once
there is a loss to be repaired from a backup, not a budget that begins again.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from dpsql.ledger import anchor as anchors
from dpsql.ledger.anchor import Mark
from dpsql.ledger.audit import audit, damaged, description
from dpsql.ledger.chain import FORMAT, Books, chained, draft, to_row
from dpsql.ledger.model import Head, Kind, LedgerError, Report
from dpsql.ledger.places import Places, beside, compare, marks
from dpsql.ledger.shelf import hash_at
from dpsql.ledger.sqlite import SqliteLedger
from dpsql.ledger.store import Store
from dpsql.ledger.tables import build, connect, reason


def init_sqlite(path: Path, dataset: str, anchor: Path | None) -> Head:
    """Make the ledger of a new dataset, and the anchor if there is to be one.

    A ledger that exists and proves itself only gets the anchor that it lacks. Raises LedgerError otherwise.
    """
    if path.exists() and anchor is not None and not anchor.exists():
        report = verify_sqlite(path, dataset, None)
        anchors.create(anchor, _mark(report))
        return report.head
    _refuse_remains(path, anchor)
    content = description(dataset, secrets.token_hex(16))
    (first,) = chained(Books(), [draft(Kind.OPEN, at=time.time_ns() // 1000, content=content)])
    build(path, to_row(first))
    mark = Mark(first.hash, Head(first.id, first.hash))
    for place in (beside(path), *([anchor] if anchor else [])):
        anchors.create(place, mark)
    return mark.head


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
        return _prove(connection, path, dataset, anchor)[1]


def open_sqlite(path: Path, dataset: str, anchor: Path | None) -> SqliteLedger:
    """Open the dataset's ledger for service. Raises LedgerError unless it exists, is whole and can be written to."""
    path = path.resolve()
    connection = connect(path)
    try:
        books, report = _prove(connection, path, dataset, anchor)
        _require_writable(connection, path)
        places = _places(path, anchor, _mark(report))
        return SqliteLedger(Store(connection, path), books, places, dataset)
    except BaseException:
        connection.close()
        raise


def _prove(
    connection: sqlite3.Connection, path: Path, dataset: str | None, anchor: Path | None
) -> tuple[Books, Report]:
    found = marks(path, anchor)  # before the ledger is read, for others may be adding to both
    books, report = audit(connection, path)
    if dataset is not None and report.dataset != dataset:
        raise LedgerError(f"the ledger {path} is that of dataset {report.dataset!r}, not of {dataset!r}")
    try:
        compare(found, report.ledger, report.head.count, lambda number: hash_at(connection, number))
    except LedgerError as error:
        raise damaged(path, error.message) from None
    return books, report


def _mark(report: Report) -> Mark:
    return Mark(report.ledger, report.head)


def _require_writable(connection: sqlite3.Connection, path: Path) -> None:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA user_version = {FORMAT}")  # BEGIN alone succeeds on a read-only file
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise LedgerError(f"the ledger {path} cannot be written to: {reason(error)}") from None


def _places(path: Path, anchor: Path | None, mark: Mark) -> Places:
    if not beside(path).exists():
        anchors.create(beside(path), mark)
    places = Places(mark.ledger, (beside(path), *([anchor] if anchor else [])))
    places.advance(mark.head, sync=True)
    return places
