"""Where a ledger lives, as a Protocol: what making, opening, verifying and copying need of a store.

Decides nothing. What a home must never do: make a ledger unless `build` is called, or change one while it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dpsql.ledger.rows import Rows
from dpsql.ledger.store import Store


class Home(Protocol):
    """One dataset's place for a ledger, whether there is one or not."""

    @property
    def name(self) -> str:
        """For messages; without a password."""
        ...

    @property
    def beside(self) -> Path | None:
        """The file at the ledger's side that remembers its head, if this store has one."""
        ...

    def exists(self) -> bool: ...

    def remains(self) -> tuple[Path, ...]:
        """What may be left of a ledger that is gone."""
        ...

    def build(self, fill: Callable[[Rows], None]) -> None:
        """Make a new ledger with what `fill` adds, durably; whole or not at all, and never over an existing one."""
        ...

    def snapshot(self, *, thorough: bool) -> AbstractContextManager[Rows]:
        """One state of the ledger to read, while others may go on writing. `thorough`: the file itself is checked.

        Raises LedgerError for all faults, also for those of the block.
        """
        ...

    def store(self) -> Store:
        """The ledger for service. Raises LedgerError unless it can be written to, durably."""
        ...

    def set_aside(self) -> str:
        """Move a broken ledger out of the way; where to."""
        ...

    def migrate(self) -> tuple[int, int]:
        """Bring the tables to this version's layout, in one transaction: the layouts before and after."""
        ...
