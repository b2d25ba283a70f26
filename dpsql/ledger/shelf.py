"""Looking up what is kept: releases by the key of their measurement, and whether an account has paid for one.

Read-only, within the caller's transaction. Every row that decides is proven by its hash when it is read, and a
release by the hash in the chain. A row that an index has lost can only make a statement dearer, never free.
"""

from __future__ import annotations

import sqlite3

from dpsql.ledger.audit import is_body
from dpsql.ledger.chain import Books, from_row, proven
from dpsql.ledger.model import Entry, Kind, LedgerError, Stored
from dpsql.ledger.tables import ENTRY
from dpsql.replay.store import from_bytes
from dpsql.types import Release


def catch_up(connection: sqlite3.Connection, books: Books) -> None:
    """Post what others have added. Raises LedgerError if the last known entry is gone or the rest does not follow."""
    known = books.head
    rows = connection.execute(f"SELECT {ENTRY} FROM entry WHERE id >= ? ORDER BY id", (known.count,))
    row = rows.fetchone()
    if row is None or (row[0], row[-1]) != (known.count, known.hash):
        raise LedgerError(f"entry {known.count} is gone or has been altered")
    for row in rows:
        books.post(proven(row, books.head.hash))


def entry_at(connection: sqlite3.Connection, number: int) -> Entry:
    """The entry with this id, proven by its hash. Raises LedgerError if there is none."""
    rows = connection.execute(
        f"SELECT {ENTRY} FROM entry WHERE id BETWEEN ? AND ? ORDER BY id", (number - 1, number)
    ).fetchall()
    if len(rows) != 2 or rows[1][0] != number:
        raise LedgerError(f"entry {number} is missing")
    return proven(rows[1], rows[0][-1])


def hash_at(connection: sqlite3.Connection, number: int) -> str:
    """The stored hash of an entry; "" if there is none."""
    row = connection.execute("SELECT hash FROM entry WHERE id = ?", (number,)).fetchone()
    return str(row[0]) if row else ""


def kept(connection: sqlite3.Connection, key: str, account: str) -> tuple[Stored, ...]:
    """The releases of a measurement, newest first."""
    rows = connection.execute("SELECT reservation FROM release WHERE key = ? ORDER BY reservation DESC", (key,))
    return tuple(_stored(connection, number, key, account) for (number,) in rows.fetchall())


def _stored(connection: sqlite3.Connection, number: int, key: str, account: str) -> Stored:
    debit = entry_at(connection, number)
    if debit.kind is not Kind.DEBIT or debit.key != key:
        raise LedgerError(f"the release kept for entry {number} does not belong to it")
    seen = debit.account == account or _about(connection, number, Kind.VIEW, account) is not None
    return Stored(number, debit.cost, seen)


def release_of(connection: sqlite3.Connection, reservation: int) -> Release:
    """The release that was recorded for a reservation, byte for byte. Raises LedgerError unless the chain proves it."""
    debit = entry_at(connection, reservation)
    record = _about(connection, reservation, Kind.RECORD, debit.account)
    row = connection.execute("SELECT body FROM release WHERE reservation = ?", (reservation,)).fetchone()
    if record is None or row is None or not is_body(row[0], record.content):
        raise LedgerError(f"the release kept for entry {reservation} is missing or has been altered")
    try:
        return from_bytes(row[0])
    except ValueError:
        raise LedgerError(f"the release kept for entry {reservation} was stored by another version of dpsql") from None


def _about(connection: sqlite3.Connection, reservation: int, kind: Kind, account: str) -> Entry | None:
    row = connection.execute(
        "SELECT id FROM entry WHERE reservation = ? AND reservation > 0 AND kind = ? AND account = ? LIMIT 1",
        (reservation, kind.value, account),
    ).fetchone()
    if row is None:
        return None
    entry = entry_at(connection, row[0])
    if (entry.reservation, entry.kind, entry.account) != (reservation, kind, account):
        raise LedgerError(f"entry {entry.id} is not what the index says")
    return entry


def entries(connection: sqlite3.Connection, user: str | None, after: int, limit: int) -> tuple[Entry, ...]:
    """Up to `limit` entries with an id above `after`, of one user or of all, in order."""
    rows = connection.execute(
        f"SELECT {ENTRY} FROM entry WHERE id > ? AND (? IS NULL OR user = ?) ORDER BY id LIMIT ?",
        (after, user, user, limit),
    )
    return tuple(from_row(row) for row in rows)
