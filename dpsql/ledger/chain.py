"""The chain: what an entry's hash covers, which entry may follow which, and the running totals.

Pure. Decides whether a row proves itself and follows from the one before; must never repair or skip anything: the
first entry that does not follow makes the whole ledger unusable.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from dpsql.ledger.model import Entry, Head, Kind, LedgerError
from dpsql.types import Cost

FORMAT: Final = 1
NO_HASH: Final = ""
"""What stands before the first entry."""

Row = tuple[int, int, str, str, str, str, str, str, int, str, str, str, str, str, str, str, str, str, str, str, str]
"""An entry as the store holds it; amounts are decimal texts, for they may exceed 64 bits."""

_FREE: Final = Cost()
_TO_JSON: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def to_row(entry: Entry) -> Row:
    """The stored form of an entry; the last value is its hash."""
    cost, account, dataset = entry.cost, entry.account_total, entry.dataset_total
    return (
        entry.id,
        entry.at,
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
    """The inverse of `to_row`. Raises ValueError if a value cannot be one of an entry's."""
    return Entry(
        id=row[0],
        at=row[1],
        kind=Kind(row[2]),
        user=row[3],
        account=row[4],
        window=row[5],
        key=row[6],
        statement=row[7],
        reservation=row[8],
        gate=row[9],
        cost=Cost(int(row[10]), int(row[11]), int(row[12])),
        account_total=Cost(int(row[13]), int(row[14]), int(row[15])),
        dataset_total=Cost(int(row[16]), int(row[17]), int(row[18])),
        content=row[19],
        hash=row[20],
    )


def hash_of(row: Row, previous: str) -> str:
    """SHA-256, in hex, over the canonical JSON of the row without its own hash, and the hash of the entry before."""
    return hashlib.sha256(_TO_JSON([previous, *row[:20]]).encode("ascii")).hexdigest()


def draft(
    kind: Kind,
    *,
    at: int,
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
        0, at, kind, user, account, window, key, statement, reservation, gate, cost, _FREE, _FREE, content, NO_HASH
    )


def sealed(entry: Entry, previous: str) -> Entry:
    """The entry with its hash."""
    return replace(entry, hash=hash_of(to_row(entry), previous))


def proven(row: Row, previous: str) -> Entry:
    """The entry in a row whose hash is right. Raises LedgerError if it is not, whatever else may be wrong with it."""
    try:
        if hash_of(row, previous) == row[20]:
            return from_row(row)
    except (TypeError, ValueError):
        pass  # a value of a wrong type or kind proves nothing
    raise LedgerError(f"entry {row[0]} has been altered")


@dataclass(slots=True)
class Books:
    """The state that the entries so far add up to. It changes only by `post`, which checks what it is given.

    `rho_gated`: some debit was gated by rho, so its epsilon may be unknown and epsilons can no longer gate.
    """

    first: Entry | None = None
    last: Entry | None = None
    accounts: dict[tuple[str, str], Cost] = field(default_factory=dict)
    rho_gated: bool = False

    @property
    def head(self) -> Head:
        return Head(self.last.id, self.last.hash) if self.last else Head(0, NO_HASH)

    @property
    def dataset_spent(self) -> Cost:
        return self.last.dataset_total if self.last else _FREE

    def spent(self, account: str, window: str) -> Cost:
        return self.accounts.get((account, window), _FREE)

    def post(self, entry: Entry) -> None:
        """Take over an entry whose hash is proven. Raises LedgerError if it does not follow from the last one."""
        if problem := self._problem(entry):
            raise LedgerError(f"entry {entry.id} does not follow from the one before: {problem}")
        self.first = self.first or entry
        self.last = entry
        if entry.kind is not Kind.OPEN:
            self.accounts[entry.account, entry.window] = entry.account_total
        self.rho_gated = self.rho_gated or entry.gate == "rho"

    def _problem(self, entry: Entry) -> str | None:
        if entry.id != self.head.count + 1:
            return "a gap"
        if (entry.kind is Kind.OPEN) != (self.last is None):
            return "a second beginning" if self.last else "no beginning"
        if self.last and entry.at < self.last.at:
            return "an earlier time"
        if min(entry.cost.epsilon, entry.cost.rho, entry.cost.delta) < 0:
            return "a negative amount"
        if (entry.account_total, entry.dataset_total) != self.totals(entry):
            return "wrong totals"
        return None

    def totals(self, entry: Entry) -> tuple[Cost, Cost]:
        """The account's and the dataset's spending after this entry."""
        account = self.spent(entry.account, entry.window)
        match entry.kind:
            case Kind.DEBIT:
                return account + entry.cost, self.dataset_spent + entry.cost
            case Kind.VIEW:
                return account + entry.cost, self.dataset_spent
            case Kind.OPEN | Kind.RECORD:
                return account, self.dataset_spent


def chained(books: Books, drafts: Iterable[Entry]) -> tuple[Entry, ...]:
    """The drafts (ids, totals, hashes open) as entries that follow from the books, which stay as they are."""
    ahead = Books(books.first, books.last, {})
    done: list[Entry] = []
    for draft in drafts:
        ahead.accounts.setdefault((draft.account, draft.window), books.spent(draft.account, draft.window))
        at = max(draft.at, ahead.last.at) if ahead.last else draft.at
        numbered = replace(draft, id=ahead.head.count + 1, at=at)
        account, dataset = ahead.totals(numbered)
        entry = sealed(replace(numbered, account_total=account, dataset_total=dataset), ahead.head.hash)
        ahead.post(entry)
        done.append(entry)
    return tuple(done)
