"""Reading a ledger from its first entry, or from its last checkpoint: every entry proves itself and follows from the
one before, and every release is as recorded.

Decides whether a ledger may be used at all. Must never change it, and never report what it could not prove. From a
checkpoint on is enough to serve: what the entries before it add up to is proven by a hash in the chain, and an old
entry or release proves itself whenever it is read. `dpsql ledger verify` always reads all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from dpsql.ledger import shelf
from dpsql.ledger.books import Books, restore
from dpsql.ledger.chain import FORMAT, Row, is_body, proven
from dpsql.ledger.model import Entry, Kind, LedgerError, Report
from dpsql.ledger.rows import Rows


@dataclass(slots=True)
class References:
    """Which debits wait for their release, and which have one, as far as they were read."""

    waiting: dict[int, tuple[str, str]] = field(default_factory=dict)
    recorded: set[int] = field(default_factory=set)

    def post(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.DEBIT:
                self.waiting[entry.id] = (entry.account, entry.key)
            case Kind.RECORD:
                if self._waiting(entry) != (entry.account, entry.key):
                    raise LedgerError(f"entry {entry.id} records a release that was not debited")
                self.recorded.add(entry.reservation)
            case Kind.VIEW:
                if not self._is_recorded(entry):
                    raise LedgerError(f"entry {entry.id} shows a release that was not recorded")
            case _:
                pass

    def _waiting(self, record: Entry) -> tuple[str, str] | None:
        return self.waiting.pop(record.reservation, None)

    def _is_recorded(self, view: Entry) -> bool:
        return view.reservation in self.recorded


@dataclass(slots=True)
class _LaterReferences(References):
    """The same from a checkpoint on: what came before is looked up."""

    rows: Rows = field(kw_only=True)
    start: int = field(kw_only=True)

    def _waiting(self, record: Entry) -> tuple[str, str] | None:
        if record.reservation > self.start:
            return self.waiting.pop(record.reservation, None)
        debit = shelf.entry_at(self.rows, record.reservation)
        again = self.rows.about(debit.id, Kind.RECORD, debit.account) != record.id
        return None if debit.kind is not Kind.DEBIT or again else (debit.account, debit.key)

    def _is_recorded(self, view: Entry) -> bool:
        if view.reservation > self.start:
            return view.reservation in self.recorded
        debit = shelf.entry_at(self.rows, view.reservation)
        return self.rows.about(debit.id, Kind.RECORD, debit.account) is not None


def reading(rows: Rows, books: Books) -> Iterator[Entry]:
    """All entries, each verified and posted to the (empty) books before it is given; at the end, all releases are."""
    yield from posting(rows, books, References())
    check_releases(rows, 0, books)


def read_on(rows: Rows, books: Books) -> None:
    """Fill the books, verified from the last checkpoint on; from the first entry if none proves itself."""
    kept = rows.checkpoint()
    if kept is not None and _restore(rows, books, *kept):
        number = books.checkpoint
        for _ in posting(rows, books, _LaterReferences(rows=rows, start=number)):
            pass
        check_releases(rows, number, books)
        return
    for _ in reading(rows, books):
        pass


def _restore(rows: Rows, books: Books, number: int, body: bytes) -> bool:
    """Whether the books could be read from a checkpoint."""
    try:
        restore(books, body, shelf.entry_at(rows, 1), shelf.entry_at(rows, number))
    except (LedgerError, TypeError):
        return False
    return True


def posting(rows: Rows, books: Books, references: References) -> Iterator[Entry]:
    """The entries that follow those in the books, each verified and posted before it is given."""
    for row in rows.since(books.head.count + 1):
        yield posted(row, books, references)


def posted(row: Row, books: Books, references: References) -> Entry:
    """The next entry, verified. Raises LedgerError."""
    entry = proven(row, books.head.hash)
    books.post(row)
    references.post(entry)
    return entry


def check_release(entry: int, key: str, content: str, stored_key: str, body: object) -> None:
    """Raises LedgerError unless what is stored is what an entry recorded."""
    if stored_key != key or not is_body(body, content):
        raise LedgerError(f"the release recorded by entry {entry} is missing or has been altered")


def check_releases(rows: Rows, after: int, books: Books) -> None:
    """Those recorded by entries above `after`, and that there are as many in all as the books say."""
    for each in rows.releases_after(after):
        check_release(*each)
    if rows.count_releases() != books.releases:
        raise LedgerError("a stored release was never recorded, or one is missing")


def report(books: Books) -> Report:
    """What a verification found."""
    first = books.first
    if first is None:
        raise LedgerError("it has no entries")
    return Report(
        dataset=str(json.loads(first.content)["dataset"]),
        ledger=first.hash,
        head=books.head,
        debits=books.debits,
        releases=books.releases,
        dataset_spent=books.dataset_spent,
        accounts=tuple(sorted(books.accounts.items())),
    )


def description(dataset: str, nonce: str) -> str:
    """The content of a ledger's first entry."""
    return json.dumps({"dataset": dataset, "format": FORMAT, "nonce": nonce}, separators=(",", ":"))
