"""Making, opening and verifying the ledger of a dataset.

Decides when a ledger may be served: it exists, it is whole, it is this dataset's, no second place remembers more, and
it can be written to. Opening never makes a ledger, and making one never replaces one: an absent ledger that was once
there is a loss to be repaired from a backup, not a budget that begins again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dpsql.ledger import anchor as anchors
from dpsql.ledger import audit, shelf
from dpsql.ledger.anchor import Mark
from dpsql.ledger.books import Books, chained
from dpsql.ledger.chain import draft, to_row
from dpsql.ledger.clock import reading
from dpsql.ledger.durable import DurableLedger
from dpsql.ledger.home import Home
from dpsql.ledger.model import Entry, Head, Kind, LedgerError, LedgerUnavailable, Report, damaged
from dpsql.ledger.places import Places, compare, marks, missing
from dpsql.ledger.recheck import Recheck
from dpsql.ledger.rows import Rows


def init(home: Home, dataset: str, anchor: Path | None) -> Head:
    """Make the ledger of a new dataset, and the anchor if there is to be one.

    A ledger that exists and proves itself only gets the second places that it lacks: the operator's word that it is the
    newest copy. Raises LedgerError otherwise.
    """
    lacking = [place for place in places_of(home, anchor) if not place.exists()]
    if lacking and home.exists():
        report = verify(home, dataset, None if anchor in lacking else anchor)
        for place in lacking:
            anchors.create(place, mark_of(report))
        return report.head
    _refuse_remains(home, anchor)
    first = _first_entry(dataset)
    home.build(lambda rows: rows.add([to_row(first)]))
    mark = Mark(first.hash, Head(first.id, first.hash), first.dataset_total)
    for place in places_of(home, anchor):
        anchors.create(place, mark)
    return mark.head


def places_of(home: Home, anchor: Path | None) -> tuple[Path, ...]:
    """The second places of a ledger's head."""
    return tuple(place for place in (home.beside, anchor) if place is not None)


def mark_of(report: Report) -> Mark:
    """What a second place is to remember of a ledger."""
    return Mark(report.ledger, report.head, report.dataset_spent)


def _first_entry(dataset: str) -> Entry:
    now = reading()
    content = audit.description(dataset, secrets.token_hex(16))
    return chained(Books(), [draft(Kind.OPEN, at=now.wall, clock=str(now), content=content)])[0]


def _refuse_remains(home: Home, anchor: Path | None) -> None:
    if home.exists():
        raise LedgerError(f"there is a ledger at {home.name} already; a ledger is never made anew")
    for remains in (*home.remains(), *([anchor] if anchor else [])):
        if remains.exists():
            raise LedgerError(
                f"there was a ledger at {home.name} before: {remains} is left of it",
                hint="`dpsql ledger restore` it from a backup: a new one would forget all that was spent.",
            )


def verify(home: Home, dataset: str | None, anchor: Path | None) -> Report:
    """Verify all of a ledger, and that no second place remembers more. Raises LedgerError."""
    with proving(home, dataset, anchor, thorough=True) as (rows, books):
        for entry in audit.reading(rows, books):
            del entry
    return audit.report(books)


@contextmanager
def proving(
    home: Home, dataset: str | None, anchor: Path | None, *, thorough: bool, served: bool = False
) -> Iterator[tuple[Rows, Books]]:
    """A snapshot, and empty books for the block to fill; at its end they must be the dataset's, and the newest.

    `served`: as it is to be served, so that the file at its side must be there; a backup has none. Raises LedgerError
    naming the ledger and what is wrong first.
    """
    found = marks(home.beside, anchor)  # before the ledger is read, for others may be adding to both
    books = Books()
    with home.snapshot(thorough=thorough) as rows:
        try:
            yield rows, books
            report = audit.report(books)
            if dataset in (None, report.dataset):
                compare(found, report.ledger, report.head.count, partial(shelf.entry_at, rows))
                if served and home.beside is not None and home.beside not in found:
                    raise missing(home.beside)
        except LedgerUnavailable:
            raise
        except LedgerError as error:
            raise damaged(home.name, error.message, error.hint) from None
    if dataset not in (None, report.dataset):
        raise LedgerError(
            f"the ledger {home.name} is that of dataset {report.dataset!r}, not of {dataset!r}",
            hint="A dataset keeps its name for ever: check `dataset` and `ledger` in the policy.",
        )


def open_(home: Home, dataset: str, anchor: Path | None) -> DurableLedger:
    """Open the dataset's ledger for service. Raises LedgerError unless it exists, is whole and can be written to."""
    with proving(home, dataset, anchor, thorough=False, served=True) as (rows, books):
        audit.read_on(rows, books)
    store = home.store()
    try:
        ledger = DurableLedger(store, books, _opened_places(home, anchor, books), dataset)
        store.guard.at_end(Recheck(home, store.guard.doubt).stop)
        return ledger
    except BaseException:
        store.close()
        raise


def _opened_places(home: Home, anchor: Path | None, books: Books) -> Places:
    """The places of a verified ledger, moved on to its head."""
    mark = mark_of(audit.report(books))
    places = Places(mark.ledger, places_of(home, anchor))
    for place in places.paths:
        anchors.advance(place, mark)
    return places
