"""What the server asks of the layers that know users and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from dpsql.pgwire.messages import BackendMessage, SessionMessage
from dpsql.session.ports import OwnSessions


class SessionLike(Protocol):
    """One client's state. `handle` and the iterator it returns run in worker threads, never two at once."""

    def greeting(self) -> tuple[BackendMessage, ...]:
        """The ParameterStatus messages of a new session."""
        ...

    def handle(self, event: SessionMessage) -> Iterator[BackendMessage]:
        """The answer to one message; may block. Errors that the client may act on are answered, not raised."""
        ...

    def recall(self, asked: bytes) -> bytes | None:
        """The answer to a whole turn of messages, if it is known; quick, and called when nothing runs."""
        ...

    def remember(self, asked: bytes) -> None:
        """What has just been answered came as these bytes; empty if it came in pieces. Called when nothing runs."""
        ...

    @property
    def pid(self) -> int:
        """What the session itself says is its process."""
        ...

    def close(self) -> None:
        """Lets all go that the session holds. Called once, when nothing runs."""
        ...

    def cancel(self) -> None:
        """Stops the statement that runs now, if one does. Called from any thread, also after the client has left."""
        ...


class SessionFactory(Protocol):
    """Makes the session of a user who has proved who they are; Rejected ends the connection with that error.

    `parameters` are those of the StartupMessage, `sessions` all that the user has open.
    """

    def __call__(
        self, user: str, database: str, parameters: tuple[tuple[str, str], ...], sessions: OwnSessions, /
    ) -> SessionLike: ...


class Places(Protocol):
    """Places for clients, those that other processes serve included."""

    async def enter(self, user: str) -> int:
        """Takes a place; raises Rejected 53300 if there is none."""
        ...

    def leave(self, place: int) -> None:
        """Gives it back."""
        ...


Users = Callable[[], Mapping[str, str]]
"""The users and their verifiers, as they are now."""
