"""The chain: the stored form of an entry, and what its hash covers.

Pure. Decides whether a row proves itself; whether it follows from the one before is `dpsql.ledger.books`' business.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from dpsql.ledger.model import Entry, Kind, LedgerError
from dpsql.types import Cost

FORMAT: Final = 1
NO_HASH: Final = ""
"""What stands before the first entry."""

Row = tuple[
    int, int, str, str, str, str, str, str, str, int, str, str, str, str, str, str, str, str, str, str, str, str
]
"""An entry as the store holds it; amounts are decimal texts, for they may exceed 64 bits."""

_FREE: Final = Cost()
KINDS: Final = {kind.value: kind for kind in Kind}
_TO_JSON: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def to_row(entry: Entry) -> Row:
    """The stored form of an entry; the last value is its hash."""
    cost, account, dataset = entry.cost, entry.account_total, entry.dataset_total
    return (
        entry.id,
        entry.at,
        entry.clock,
        entry.kind.value,
        entry.user,
        entry.account,
        entry.window,
        entry.key,
        entry.statement,
        entry.reservation,
        entry.gate,
        str(cost.epsilon),
        str(cost.rho),
        str(cost.delta),
        str(account.epsilon),
        str(account.rho),
        str(account.delta),
        str(dataset.epsilon),
        str(dataset.rho),
        str(dataset.delta),
        entry.content,
        entry.hash,
    )


def from_row(row: Row) -> Entry:
    """The inverse of `to_row`. Raises KeyError, TypeError or ValueError if a value cannot be one of an entry's."""
    return Entry(
        id=row[0],
        at=row[1],
        clock=row[2],
        kind=KINDS[row[3]],
        user=row[4],
        account=row[5],
        window=row[6],
        key=row[7],
        statement=row[8],
        reservation=row[9],
        gate=row[10],
        cost=Cost(int(row[11]), int(row[12]), int(row[13])),
        account_total=Cost(int(row[14]), int(row[15]), int(row[16])),
        dataset_total=Cost(int(row[17]), int(row[18]), int(row[19])),
        content=row[20],
        hash=row[21],
    )


def hash_of(row: Row, previous: str) -> str:
    """SHA-256, in hex, over the canonical JSON of the row without its own hash, and the hash of the entry before."""
    return hashlib.sha256(_TO_JSON([previous, *row[:21]]).encode("ascii")).hexdigest()


def draft(
    kind: Kind,
    *,
    at: int = 0,
    clock: str = "",
    user: str = "",
    account: str = "",
    window: str = "",
    key: str = "",
    statement: str = "",
    reservation: int = 0,
    gate: str = "",
    cost: Cost = _FREE,
    content: str = "",
) -> Entry:
    """An entry whose place in the chain is still open: `chained` gives it its number, totals and hash."""
    return Entry(
        id=0,
        at=at,
        clock=clock,
        kind=kind,
        user=user,
        account=account,
        window=window,
        key=key,
        statement=statement,
        reservation=reservation,
        gate=gate,
        cost=cost,
        account_total=_FREE,
        dataset_total=_FREE,
        content=content,
        hash=NO_HASH,
    )


def sealed(row: Row, previous: str) -> Row:
    """The row with its hash."""
    return (*row[:21], hash_of(row, previous))


def require_proven(row: Row, previous: str) -> None:
    """Raises LedgerError unless the row's hash is right, whatever else may be wrong with it."""
    try:
        if hash_of(row, previous) == row[21]:
            return
    except (TypeError, ValueError):
        pass  # a value of a wrong type proves nothing
    raise altered(row)


def altered(row: Row) -> LedgerError:
    return LedgerError(f"entry {row[0]} has been altered")


def proven(row: Row, previous: str) -> Entry:
    """The entry in a row whose hash is right. Raises LedgerError if it is not, or if it can be no entry."""
    require_proven(row, previous)
    try:
        return from_row(row)
    except (KeyError, TypeError, ValueError):
        raise altered(row) from None


def is_body(body: object, content: str) -> bool:
    """Whether these are the bytes that an entry's `content` is the hash of."""
    return isinstance(body, bytes) and hashlib.sha256(body).hexdigest() == content
