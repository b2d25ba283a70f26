"""What a catalog query may ask about the session that asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from dpsql.types import Relation


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session that a user has open, in any process that serves. `since` in UTC; `active`: a statement runs."""

    pid: int
    application: str
    since: datetime
    active: bool


class OwnSessions(Protocol):
    """The sessions of the user who asks."""

    def seen(self) -> tuple[OpenSession, ...]: ...

    def stop(self, pid: int, *, end: bool) -> bool:
        """Cancels what one does, or ends it; false if it is none of this user's. May block."""
        ...


class NoSessions:
    """Where nobody else can ask, as on the command line."""

    def seen(self) -> tuple[OpenSession, ...]:
        return ()

    def stop(self, pid: int, *, end: bool) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Context:
    """`settings` by lower-case name, as SHOW prints them; `timeout` in seconds.

    `views` of schema dpsql are asked for at each query.
    """

    user: str
    database: str
    pid: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, Callable[[], Relation]] = field(default_factory=dict)
    timeout: float | None = None
    sessions: OwnSessions = field(default_factory=NoSessions)
