"""Transaction state of one session: I, T or E, and the settings that a rollback restores.

Decides what BEGIN, COMMIT, ROLLBACK and savepoints do to settings and status. It must never undo a debit: an answered
statement stays paid for, whatever becomes of the transaction around it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import IN_FAILED_TRANSACTION, Rejected
from dpsql.pgwire.messages import TransactionStatus
from dpsql.session.prepared import Portal
from dpsql.session.settings import Values

NO_TRANSACTION = "25P01"
ACTIVE_TRANSACTION = "25001"
NO_SAVEPOINT = "3B001"

_MAX_SAVEPOINTS = 1000


@dataclass(frozen=True, slots=True)
class _Layers:
    """Settings of the session, and those of SET LOCAL on top of them."""

    session: Values
    local: Values


class Transaction:
    """Holds the settings in force. Changes go through its methods only."""

    def __init__(self, values: Values) -> None:
        self.status: TransactionStatus = "I"
        self._now = _Layers(values, {})
        self._before: _Layers | None = None
        self._savepoints: list[tuple[str, _Layers, tuple[Portal, ...]]] = []

    @property
    def values(self) -> Values:
        return {**self._now.session, **self._now.local} if self._now.local else self._now.session

    def change(self, values: Values, local: bool = False) -> None:
        """Takes on the settings that differ from those in force."""
        current = self.values
        changed = {name: value for name, value in values.items() if current.get(name) != value}
        kept = {name: value for name, value in self._now.local.items() if local or name not in changed}
        if local:
            self._now = _Layers(self._now.session, {**kept, **changed})
        else:
            self._now = _Layers({**self._now.session, **changed}, kept)

    def check_usable(self) -> None:
        if self.status == "E":
            raise Rejected(
                "current transaction is aborted, commands ignored until end of transaction block",
                sqlstate=IN_FAILED_TRANSACTION,
                hint="ROLLBACK first.",
            )

    def begin(self) -> bool:
        """False if a transaction was already open."""
        if self.status != "I":
            return False
        self.status, self._before = "T", self._now
        return True

    def commit(self) -> bool:
        """True if something was committed: not outside of a transaction, nor in a failed one, which is rolled back."""
        if self.status != "T":
            self.rollback()
            return False
        self._end(_Layers(self._now.session, {}))
        return True

    def rollback(self) -> bool:
        """False outside of a transaction."""
        if self.status == "I":
            return False
        self._end(self._before or self._now)
        return True

    def _end(self, layers: _Layers) -> None:
        self.status, self._now, self._before = "I", layers, None
        self._savepoints.clear()

    def fail(self) -> None:
        if self.status == "T":
            self.status = "E"

    def mark(self) -> _Layers:
        """The settings now, for `restore` when an implicit transaction fails."""
        return self._now

    def restore(self, mark: _Layers) -> None:
        if self.status == "I":
            self._now = mark

    def savepoint(self, name: str, portals: tuple[Portal, ...] = ()) -> None:
        """`portals` are those that are open now."""
        self._require_block("SAVEPOINT")
        if len(self._savepoints) >= _MAX_SAVEPOINTS:
            raise Rejected(f"more than {_MAX_SAVEPOINTS} savepoints", sqlstate="54000")
        self._savepoints.append((name, self._now, portals))

    def release(self, name: str) -> None:
        self._require_block("RELEASE SAVEPOINT")
        del self._savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> tuple[Portal, ...]:
        """The portals that were open at the savepoint."""
        self._require_block("ROLLBACK TO SAVEPOINT")
        at = self._find(name)
        _, self._now, portals = self._savepoints[at]
        del self._savepoints[at + 1 :]
        self.status = "T"
        return portals

    def _require_block(self, what: str) -> None:
        if self.status == "I":
            raise Rejected(f"{what} can only be used in transaction blocks", sqlstate=NO_TRANSACTION)

    def _find(self, name: str) -> int:
        for at in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[at][0] == name:
                return at
        raise Rejected(f'savepoint "{name}" does not exist', sqlstate=NO_SAVEPOINT)
