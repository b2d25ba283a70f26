"""Group commit: what several threads want to write becomes one transaction, and so one wait for the disk.

Decides who writes for whom, and who is told what when. Each write is decided in turn, on what those before it in the
transaction have added; one that is refused adds nothing and ends alone. Nobody hears of a success before the whole
transaction is durable: where it fails, all its writes have failed, refusals too, since they may rest on what is gone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, cast

from dpsql.errors import DpsqlError, Failed
from dpsql.ledger.books import Books
from dpsql.ledger.guard import PATIENCE, Unavailable
from dpsql.ledger.model import LedgerError
from dpsql.ledger.rows import Rows

T = TypeVar("T")
Work = Callable[[Rows, Books], T]
"""Decides on the books, and only then adds to rows and books. May raise what ends it alone before it has added."""

MOST: Final = 64
"""Writes in one transaction, so that none waits for many."""

_NAP: Final = 0.01
"""Seconds before what has been debited is tried again to be recorded; twice as many each time."""


@dataclass(slots=True, eq=False)
class Turn(Generic[T]):
    """One thread's write: first waiting, then either told its outcome or told to lead."""

    work: Work[T]
    told: threading.Event = field(default_factory=threading.Event)
    ended: bool = False
    result: T | None = None
    error: BaseException | None = None

    def take(self, rows: Rows, books: Books) -> None:
        """Do the work within a transaction. Raises what ends the whole transaction."""
        try:
            self.result = self.work(rows, books)
        except LedgerError:  # what was read does not prove itself
            raise
        except DpsqlError as error:
            self.error = error

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


Waiting = Callable[[], Sequence[Turn[object]]]
"""The turns that wait by the time that it is called; to be called once, when the transaction has begun."""


class Group:
    """The writes that wait for their transaction. `commit` runs those that wait in one, durably, or raises."""

    def __init__(self, commit: Callable[[Waiting], None]) -> None:
        self._commit = commit
        self._lock = threading.Lock()
        self._waiting: deque[Turn[object]] = deque()
        self._led = False

    def write(self, work: Work[T]) -> T:
        """The result of the work, once it is durable. Raises what it raised, or Failed."""
        turn = Turn(work)
        with self._lock:
            self._waiting.append(cast("Turn[object]", turn))
            leads, self._led = not self._led, True
        if not leads:
            turn.told.wait()
        if not turn.ended:
            self._lead(cast("Turn[object]", turn))
        return turn.outcome()

    def persist(self, work: Work[T], before_again: Callable[[], None]) -> T:
        """The same for what has been debited already: whatever keeps it from being written is worth a wait.

        `work` may have been done by a commit of which nobody heard, and must see that. `before_again` makes room.
        """
        deadline, nap = time.monotonic() + PATIENCE, _NAP
        while True:
            try:
                return self.write(work)
            except Unavailable:
                before_again()
                if time.monotonic() > deadline:
                    raise
            time.sleep(nap)
            nap *= 2

    def _lead(self, leader: Turn[object]) -> None:
        """Commit the turns that wait, this thread's first of all, and hand over to the next one that waits by then."""
        turns: list[Turn[object]] = []

        def waiting() -> Sequence[Turn[object]]:
            with self._lock:
                turns.extend(self._waiting.popleft() for _ in range(min(MOST, len(self._waiting))))
            return turns

        try:
            self._commit(waiting)
        except BaseException as error:
            for turn in turns or waiting():  # where it did not even begin, those that wait would not fare better
                turn.error = error if turn is leader else _failed(error)
        finally:
            for turn in turns:
                turn.ended = True
            with self._lock:
                following = next(iter(self._waiting), None)
                self._led = following is not None
            for turn in (*turns, *([following] if following else ())):
                turn.told.set()


def _failed(error: BaseException) -> Failed:
    """What the others in a transaction are told; each has an incident of its own."""
    if isinstance(error, Failed):
        return type(error)(error.cause)
    return Failed(f"a transaction was given up: {type(error).__name__}")
