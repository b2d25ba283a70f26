"""Looking up what is kept: releases by the key of their measurement, and whether an account has paid for one.

Read-only, within the caller's transaction. Every row that decides is proven by its hash when it is read, and a
release by the hash in the chain. A row that an index has lost can only make a statement dearer, never free.
"""

from __future__ import annotations

from typing import Final

from dpsql.ledger.books import Books
from dpsql.ledger.chain import NO_HASH, from_row, is_body, proven
from dpsql.ledger.model import Entry, Kind, LedgerError, Stored
from dpsql.ledger.rows import Rows
from dpsql.replay.store import from_bytes
from dpsql.types import Cost, Release


def catch_up(rows: Rows, books: Books) -> None:
    """Post what others have added. Raises LedgerError if the last known entry is gone or the rest does not follow."""
    known = books.head
    new = rows.since(known.count)
    row = next(new, None)
    if row is None or (row[0], row[-1]) != (known.count, known.hash):
        raise LedgerError(f"entry {known.count} is gone or has been altered")
    books.follow(new)


def entry_at(rows: Rows, number: int) -> Entry:
    """The entry with this id, proven by its hash. Raises LedgerError if there is none."""
    found = rows.between(number - 1, number)
    if not found or found[-1][0] != number or (len(found) == 1) != (number == 1):
        raise LedgerError(f"entry {number} is missing")
    return proven(found[-1], found[0][-1] if number > 1 else NO_HASH)


def kept(rows: Rows, key: str, account: str) -> tuple[Stored, ...]:
    """The releases of a measurement, newest first."""
    return tuple(stored(rows, number, account, key) for number in rows.reservations(key))


def stored(rows: Rows, number: int, account: str, key: str | None = None) -> Stored:
    """The release kept for a debit, which must be of this key. Raises LedgerError if the chain does not prove it."""
    debit = entry_at(rows, number)
    if debit.kind is not Kind.DEBIT or (key is not None and debit.key != key):
        raise LedgerError(f"the release kept for entry {number} does not belong to it")
    seen = debit.account == account or _about(rows, number, Kind.VIEW, account) is not None
    return Stored(number, debit.cost, seen, debit.content, debit.key)


def release_of(rows: Rows, reservation: int) -> Release:
    """The release that was recorded for a reservation, byte for byte. Raises LedgerError unless the chain proves it."""
    return release_and_body(rows, reservation)[0]


def release_and_body(rows: Rows, reservation: int) -> tuple[Release, bytes]:
    """The same with its stored bytes."""
    debit = entry_at(rows, reservation)
    record = _about(rows, reservation, Kind.RECORD, debit.account)
    body = rows.body(reservation)
    if record is None or body is None or not is_body(body, record.content):
        raise LedgerError(f"the release kept for entry {reservation} is missing or has been altered")
    try:
        return from_bytes(body), body
    except ValueError:
        raise LedgerError(f"the release kept for entry {reservation} was stored by another version of dpsql") from None


def _about(rows: Rows, reservation: int, kind: Kind, account: str) -> Entry | None:
    number = rows.about(reservation, kind, account)
    if number is None:
        return None
    entry = entry_at(rows, number)
    if (entry.reservation, entry.kind, entry.account) != (reservation, kind, account):
        raise LedgerError(f"entry {entry.id} is not what the index says")
    return entry


def total_before(rows: Rows, account: str, at: int) -> Cost:
    """The account's total before a time. An entry that an index has lost makes it too small, so spending too large."""
    number = rows.last_before(account, at)
    if number is None:
        return Cost()
    entry = entry_at(rows, number)
    if entry.account != account or entry.at >= at:
        raise LedgerError(f"entry {entry.id} is not what the index says")
    return entry.account_total


_END_OF_TIME: Final = 2**62
_LONGEST: Final = 200
"""Entries that one statement makes at most."""


def last_statement(rows: Rows, account: str) -> Cost:
    """What the account paid for its last statement: its entries have one time and one fingerprint."""
    number = rows.last_before(account, _END_OF_TIME)
    if number is None:
        return Cost()
    last = entry_at(rows, number)
    near = (from_row(row) for row in rows.between(number - _LONGEST, number))
    same = (entry for entry in near if (entry.account, entry.at, entry.statement) == (account, last.at, last.statement))
    return sum((entry.cost for entry in same), Cost())


def entries(rows: Rows, user: str | None, after: int, limit: int) -> tuple[Entry, ...]:
    """Up to `limit` entries with an id above `after`, of one user or of all, in order."""
    return tuple(from_row(row) for row in rows.of(user, after, limit))
