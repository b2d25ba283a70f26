"""Layouts of the tables, and the way from each to the next.

Decides how an older ledger becomes one of this version, by `dpsql ledger migrate` alone: opening never changes one.
A step may add tables, columns and indexes; it must never touch what an entry's hash covers. SQL here must be taken by
both stores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dpsql.ledger.model import LedgerError, damaged

LAYOUT: Final = 2

STEPS: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "CREATE TABLE shape (reservation bigint PRIMARY KEY, family text NOT NULL, body text NOT NULL)",
        "CREATE INDEX shape_family ON shape (family, reservation)",
        "CREATE INDEX entry_debit ON entry (key, id) WHERE kind = 'debit'",
    )
}
"""For each older layout, the statements that make it the next."""


def require_layout(version: object, name: str) -> None:
    """Raises LedgerError unless this version of dpsql reads the layout."""
    if version == LAYOUT:
        return
    if not isinstance(version, int) or version < 1:
        raise damaged(name, f"its layout is {version}")
    if version < LAYOUT:
        raise LedgerError(
            f"the ledger {name} has layout {version}, this version of dpsql needs {LAYOUT}",
            hint="Make a backup, then run `dpsql ledger migrate`.",
        )
    raise LedgerError(f"the ledger {name} has layout {version}, this version of dpsql reads {LAYOUT}")


def steps(version: int, name: str) -> Iterator[tuple[str, ...]]:
    """The steps from a layout to this version's. Raises LedgerError for one that no step leads away from."""
    for number in range(version, LAYOUT):
        if number not in STEPS:
            raise LedgerError(f"the ledger {name} has layout {version}, from which there is no way")
        yield STEPS[number]
    if version > LAYOUT:
        require_layout(version, name)
