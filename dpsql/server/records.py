"""TLS of one connection between buffers in memory: bytes of the socket in, bytes of the client out, and back.

Decides nothing of what is said. asyncio's own layer does the same with several calls and buffers more for each message;
here one message costs one read, one write and no copy that is larger than it.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Final

_RECORD: Final = 16 << 10
"""The most that one record holds."""


class Records:
    """The server's side. What it has to say itself, in the handshake or at the end, waits in `due`."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.open = False
        """Whether the handshake is over."""
        self.ended = False
        """Whether the client has said that nothing more comes."""

    def receive(self, data: bytes) -> bytes:
        """What the client says in these bytes of the socket. Raises ssl.SSLError where they break TLS."""
        self._incoming.write(data)
        parts: list[bytes] = []
        try:
            if not self.open:
                self._tls.do_handshake()
                self.open = True
            # An attempt that finds nothing costs as much as one that finds something.
            while self._incoming.pending or self._tls.pending():
                if not (part := self._tls.read(_RECORD)):
                    self.ended = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def send(self, data: bytes) -> bytes:
        """The socket's bytes for something to say; what is due goes before it."""
        self._tls.write(data)
        return self._outgoing.read()

    def close(self) -> bytes:
        """The socket's last bytes: nothing more comes from here."""
        if self.open:
            with suppress(ssl.SSLError):  # the client has not said so yet, or cannot be told any more
                self._tls.unwrap()
        return self._outgoing.read()

    def due(self) -> bytes:
        return self._outgoing.read() if self._outgoing.pending else b""
