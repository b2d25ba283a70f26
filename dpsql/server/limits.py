"""How long a client may take, and how many there may be. Decides numbers and counts; it must never wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dpsql.errors import TOO_MANY_CONNECTIONS, Rejected
from dpsql.pgwire.connection import MAX_MESSAGE


@dataclass(frozen=True, slots=True)
class Limits:
    """Times in seconds, sizes in bytes.

    `startup`: from the connection to the StartupMessage, TLS included. `auth`: from there to the proof. `message`:
    from the first byte of a message to its last. `idle`: between messages. `write`: for a client to read what is due.
    `failure`: what a failed login waits for its answer. `sessions`: clients that have logged in; `user_sessions`:
    those of one user, so that nobody takes the places of all others; both count the clients of all workers. `pending`:
    clients that have not; more are closed unheard, so that a flood costs nothing. `workers`: statements that run at
    once. `portion`: the most that is encoded before it is sent.
    """

    startup: float = 10.0
    auth: float = 30.0
    message: float = 60.0
    idle: float = 8 * 3600.0
    write: float = 120.0
    failure: float = 0.25
    sessions: int = 400
    user_sessions: int = 300
    pending: int = 200
    workers: int = 32
    portion: int = 64 << 10
    max_message: int = MAX_MESSAGE


class Seats:
    """A count with a limit; used by the event loop's thread only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @property
    def taken(self) -> int:
        return self._taken

    @contextmanager
    def seat(self) -> Iterator[None]:
        """A place for as long as the block runs; raises Rejected 53300 if there is none."""
        if self._taken >= self._most:
            raise Rejected("sorry, too many clients already", sqlstate=TOO_MANY_CONNECTIONS)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
