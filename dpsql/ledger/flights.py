"""Which measurements are being made now, so that equal first asks at the same time measure once.

Decides how long a debit without a release is worth waiting for. Of one that was made here it is known whether it is
still worked on. Of another process's, or of one before a crash, only its age is known, and for how long this process
has known it: when either is no longer young, nobody waits for it, and what it measured may be measured again, for a
debit of its own. No clock that somebody sets can make it young for longer. Waiting never gives an answer: whoever has
waited asks the ledger again, and pays as any viewer does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Final, TypeVar

from dpsql.ledger.clock import SECOND, since, up

T = TypeVar("T")

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
        self._seen: dict[int, int] = {}
        """When others' debits were first seen here, by the boot clock."""

    def begin(self, debits: Iterable[tuple[int, str]]) -> None:
        """(id, key) of debits that were made here."""
        with self._changed:
            self._on.update(debits)

    def end(self, debit: int) -> None:
        """It is recorded, or will never be."""
        with self._changed:
            self._on.pop(debit, None)
            self._ended[debit] = None
            _forget(self._ended)
            self._changed.notify_all()

    def is_on(self, debit: int, at: int, clock: str, now: int) -> bool:
        """Whether a debit without a release is worth waiting for.

        Its age is by the boot clock that it names; of another machine's or boot's, by the ledger's time (`now` less
        `at`), which stands still where the wall clock was set back.
        """
        passed = since(clock)
        age = now - at if passed is None else passed
        with self._changed:
            if debit in self._on or debit in self._ended:
                return debit in self._on
            seen = self._seen.setdefault(debit, up())
            _forget(self._seen)
            return max(age, up() - seen) < YOUNG

    def wait(self, key: str, seconds: float) -> None:
        """Until a measurement of this key that is made here ends; a nap where it is made elsewhere."""
        with self._changed:
            here = key in self._on.values()
            self._changed.wait(seconds if here else min(seconds, NAP))


def _forget(found: dict[int, T]) -> None:
    """All but the newest."""
    while len(found) > 1000:
        del found[next(iter(found))]
