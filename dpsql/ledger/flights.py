"""Which measurements are being made now, so that equal first asks at the same time measure once.

Decides how long a debit without a release is worth waiting for. Of one that was made here it is known whether it is
still worked on. Of another process's, or of one before a crash, only its age is known: when it is no longer young,
nobody waits for it, and what it measured may be measured again, for a debit of its own. Waiting never gives an answer:
whoever has waited asks the ledger again, and pays as any viewer does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final

from dpsql.ledger.clock import SECOND

YOUNG: Final = 10 * SECOND
"""Microseconds: most measurements take less; after a crash, waits are over by then."""

NAP: Final = 0.025
"""Seconds between looks at what other processes do."""


class Flights:
    """The measurements of this process, and what is known of others'; safe to use from several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._on: dict[int, str] = {}
        self._ended: dict[int, None] = {}

    def begin(self, debits: Iterable[tuple[int, str]]) -> None:
        """(id, key) of debits that were made here."""
        with self._changed:
            self._on.update(debits)

    def end(self, debit: int) -> None:
        """It is recorded, or will never be."""
        with self._changed:
            self._on.pop(debit, None)
            self._ended[debit] = None
            while len(self._ended) > 1000:
                del self._ended[next(iter(self._ended))]
            self._changed.notify_all()

    def is_on(self, debit: int, age: int) -> bool:
        """Whether a debit without a release, of an age in microseconds, is worth waiting for."""
        with self._changed:
            return debit in self._on or (debit not in self._ended and age < YOUNG)

    def wait(self, key: str, seconds: float) -> None:
        """Until a measurement of this key that is made here ends; a nap where it is made elsewhere."""
        with self._changed:
            here = key in self._on.values()
            self._changed.wait(seconds if here else min(seconds, NAP))
