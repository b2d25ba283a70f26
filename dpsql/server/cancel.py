"""Which session a CancelRequest means. Decides by process number and secret; wrong ones change nothing."""

from __future__ import annotations

import hmac
import secrets

from dpsql.pgwire.messages import BackendKeyData, CancelRequest
from dpsql.server.ports import SessionLike

_PID_BITS = 31
_SECRET_BYTES = 4
"""What protocol 3.0 has room for."""


class CancelKeys:
    """The keys of the sessions that are open; used by the event loop's thread only."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[bytes, SessionLike | None]] = {}

    def issue(self) -> BackendKeyData:
        """New keys, taken until `revoke`."""
        pid = 0
        while pid == 0 or pid in self._open:
            pid = secrets.randbits(_PID_BITS)
        keys = BackendKeyData(pid, secrets.token_bytes(_SECRET_BYTES))
        self._open[pid] = (keys.secret, None)
        return keys

    def open(self, keys: BackendKeyData, session: SessionLike) -> None:
        """From here on these keys cancel that session."""
        self._open[keys.pid] = (keys.secret, session)

    def revoke(self, keys: BackendKeyData) -> None:
        self._open.pop(keys.pid, None)

    def find(self, request: CancelRequest) -> SessionLike | None:
        """The session whose keys these are."""
        secret, session = self._open.get(request.pid, (b"", None))
        return session if hmac.compare_digest(secret, request.secret) else None
