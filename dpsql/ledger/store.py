"""A verified ledger's storage, as a Protocol: what serving needs of a store.

Decides nothing. What a store must never do: let two write at once, or let a fault's own text, which may quote what is
stored, go further than itself.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from dpsql.ledger.guard import Guard
from dpsql.ledger.room import Room
from dpsql.ledger.rows import Rows


class Store(Protocol):
    """A verified ledger's storage: one transaction at a time, its faults as Failed. The guard knows when it ends."""

    guard: Guard
    room: Room

    def in_line(self, work: Callable[[], None]) -> None:
        """Do the work, which writes, when this process is first in line. One thread at a time; maybe in another one."""
        ...

    def transaction(self, *, write: bool) -> AbstractContextManager[Rows]:
        """Rolled back at the end, unless its body has committed it. `write`: nobody else can write meanwhile."""
        ...

    def close(self) -> None: ...
