"""Where the ledger's head is kept besides the ledger: a file at its side, and the policy's anchor if it has one.

Decides when a ledger is an older copy of itself. The file at its side catches what happens to a ledger alone (a lost
write-ahead log, one file restored). The anchor, on another disk, also catches a directory restored as a whole. Neither
may be absent where a ledger is served: an older copy would be served once its head is deleted. Only the operator's
word, `dpsql ledger init`, makes one again. Without an anchor, an older copy together with its own head proves itself,
and so does an older state of a server's database: nothing here could tell.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dpsql.ledger import anchor
from dpsql.ledger.anchor import Mark
from dpsql.ledger.model import Entry, Head, LedgerError, LedgerUnavailable
from dpsql.types import Cost

log = logging.getLogger(__name__)


def beside(path: Path) -> Path:
    """The file at the ledger's side."""
    return path.with_name(f"{path.name}-head")


def marks(optional: Path | None, anchored: Path | None) -> dict[Path, Mark]:
    """What the places say, to be read before the ledger is. Raises LedgerError if the anchor is missing."""
    found = {optional: anchor.read(optional)} if optional is not None and optional.exists() else {}
    return found | ({anchored: anchor.read(anchored)} if anchored else {})


def missing(place: Path) -> LedgerError:
    """The error for a ledger that is to be served without the file at its side."""
    return LedgerError(
        f"{place}, which remembers its newest entry, is missing, so it may be an older copy",
        hint="Restore it. If this is the newest ledger for certain, as after a move, `dpsql ledger init` makes one.",
    )


def compare(found: dict[Path, Mark], ledger: str, count: int, entry_at: Callable[[int], Entry]) -> None:
    """Raises LedgerError unless a ledger of `count` entries holds every head that was marked."""
    for place, mark in found.items():
        if mark.ledger != ledger:
            raise LedgerError(f"{place} belongs to another ledger")
        if mark.head.count > count:
            raise _older(place, mark, count)
        entry = entry_at(mark.head.count)
        if (entry.hash, entry.dataset_total) != (mark.head.hash, mark.spent):
            raise LedgerError(f"its entry {entry.id} is not the one that {place} remembers")


def _older(place: Path, mark: Mark, count: int) -> LedgerError:
    return LedgerError(f"it is an older copy: it holds {count} entries, but {place} remembers {mark.head.count}")


@dataclass(frozen=True, slots=True)
class Places:
    """The places of an open ledger; `ledger` is the hash of its first entry."""

    ledger: str
    paths: tuple[Path, ...]

    @contextmanager
    def held(self, head: Head, spent: Cost) -> Iterator[tuple[int, ...]]:
        """The places' files, which nobody else moves on meanwhile. Only while nobody else can write to the ledger.

        Raises LedgerError if a place is ahead of the head, or is not the ledger's.
        """
        known = Mark(self.ledger, head, spent)
        files: list[int] = []
        try:
            for place in self.paths:
                files.append(anchor.hold(place))
                self._check(place, anchor.says(place, files[-1], known), head)
                anchor.put(place, files[-1], known)  # one that cannot be written to is found before anything is debited
            yield tuple(files)
        finally:
            for file in files:
                os.close(file)

    def _check(self, place: Path, mark: Mark, head: Head) -> None:
        if mark.head.count > head.count:
            raise _older(place, mark, head.count)
        if mark.ledger != self.ledger or (mark.head.count == head.count and mark.head != head):
            raise LedgerError(f"{place} remembers another ledger")

    def advance(self, files: Sequence[int], head: Head, spent: Cost) -> None:
        """Move all places, held, on to this head, and to what the dataset has spent by then.

        The head is durable by now, so it is told even where a place lags: the next write tries that before it debits.
        """
        mark = Mark(self.ledger, head, spent)
        for place, file in zip(self.paths, files, strict=True):
            try:
                anchor.put(place, file, mark)
            except LedgerUnavailable as error:
                log.warning("the ledger's head is not remembered for now: %s", error.message)
