"""Which session a CancelRequest means. Decides by process number and secret; wrong ones change nothing.

The process number's upper bits are the worker's, so that any worker knows whose request it is. The secret is compared
where the session is, in constant time, against a random one where there is no such session.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from dpsql.pgwire.messages import BackendKeyData, CancelRequest
from dpsql.server.ports import SessionLike

MAX_WORKERS: Final = 64
_PID_BITS: Final = 25
"""31 less those for the worker's number."""
_SECRET_BYTES: Final = 4
"""What protocol 3.0 has room for."""


def number_of(pid: int) -> int:
    """The number of the worker that gave a process number out."""
    return pid >> _PID_BITS


class CancelKeys:
    """The keys of the sessions that are open; used by the event loop's thread only. `number` is the worker's."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._open: dict[int, tuple[bytes, SessionLike]] = {}
        self._none: tuple[bytes, None] = (secrets.token_bytes(_SECRET_BYTES), None)

    def open(self, session: SessionLike) -> BackendKeyData:
        """New keys, which cancel that session until `revoke`. The process number is the one that it has itself."""
        pid = self.number << _PID_BITS | session.pid
        while pid == 0 or pid in self._open:
            pid = self.number << _PID_BITS | secrets.randbits(_PID_BITS)
        keys = BackendKeyData(pid, secrets.token_bytes(_SECRET_BYTES))
        self._open[pid] = (keys.secret, session)
        return keys

    def revoke(self, keys: BackendKeyData) -> None:
        self._open.pop(keys.pid, None)

    def find(self, request: CancelRequest) -> SessionLike | None:
        """The session whose keys these are."""
        known: tuple[bytes, SessionLike | None] = self._open.get(request.pid) or self._none
        secret, session = known
        return session if hmac.compare_digest(secret, request.secret) else None
