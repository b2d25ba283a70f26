"""What a session needs from the layers below it, as Protocols and frozen values.

Decides names and shapes only. A session can get rows from nowhere else, and what it gets are public `Relation`s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, Protocol

from dpsql.errors import CANCELLED, Rejected
from dpsql.pgwire.values import WireValue
from dpsql.public.place import Names, Place
from dpsql.types import Again, Answer, Description, Mechanism, Parameters, Relation, Settings, SqlType

__all__ = [
    "Answer",
    "CancelToken",
    "Description",
    "Engine",
    "Mechanism",
    "Names",
    "NoSessions",
    "OwnSessions",
    "Parameters",
    "Place",
    "Settings",
    "WireParameters",
]

WireParameters = tuple[tuple[SqlType, WireValue], ...]
"""Parameters as they came; those of catalog queries may be arrays."""


class CancelToken:
    """Set once from any thread; whoever does the work looks at it or registers how to be interrupted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._interrupts: list[Callable[[], None]] = []

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        # Under the lock, so that no interrupt comes after its block has ended and hits what runs next.
        with self._lock:
            self._cancelled = True
            for interrupt in self._interrupts:
                interrupt()

    def check(self) -> None:
        """Raises Rejected 57014 once cancelled."""
        if self._cancelled:
            raise Rejected("canceling statement due to user request", sqlstate=CANCELLED)

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While the block runs, a cancel calls `interrupt`; raises Rejected 57014 if it came before."""
        with self._lock:
            self.check()
            self._interrupts.append(interrupt)
        try:
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)


class OwnSessions(Protocol):
    """The sessions of the user who asks."""

    def stop(self, pid: int, *, end: bool) -> bool:
        """Cancels what one does, or ends it; false if it is none of this user's. May block."""
        ...


class NoSessions:
    """Where nobody else can ask, as on the command line."""

    def stop(self, pid: int, *, end: bool) -> bool:
        return False


class Engine(Protocol):
    """The only way to an answer. `describe` and `explain` are pure, free and never touch the backend."""

    @property
    def statement_timeout(self) -> float:
        """Seconds that a statement may take in all."""
        ...

    def place(self, user: str) -> Place:
        """Where the user's sessions live in the public server."""
        ...

    def names(self, user: str) -> Names:
        """What the public server cannot answer for this user."""
        ...

    def check(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: CancelToken
    ) -> None:
        """Raises what is wrong with a query of these parameters."""
        ...

    def describe(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameter_types: tuple[SqlType | None, ...],
        cancel: CancelToken,
    ) -> Description: ...

    def answer(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: CancelToken
    ) -> Answer: ...

    def explain(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameters: Parameters,
        format: Literal["text", "json"],
        cancel: CancelToken,
    ) -> Relation: ...

    def check_settings(self, user: str, settings: Settings) -> None:
        """Raises Rejected 22023 for settings that no statement of this user may have."""
        ...

    def budget(self, user: str) -> Relation: ...

    def system_relations(self, user: str) -> Mapping[str, Callable[[], Relation]]:
        """The views of schema dpsql that the ledger fills, as this user sees them; read when they are called."""
        ...

    def recalled(self, user: str, text: str, again: Again) -> bool:
        """Whether an answer that may be given again still may; it is then told of. Must not block."""
        ...
