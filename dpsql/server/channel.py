"""One socket as seen by one coroutine: read, write, wait until written, and the change to TLS in place.

Decides when to stop reading a client that sends faster than it is served. It must never look into the bytes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Callable

from dpsql.server.records import Records

_HIGH_WATER = 256 << 10


class Channel(asyncio.Protocol):
    """Bytes in and out of one transport; also the protocol that asyncio calls."""

    def __init__(self, connected: Callable[[Channel], None]) -> None:
        self._connected = connected
        self._transport: asyncio.Transport | None = None
        self._records: Records | None = None
        self._encrypted = asyncio.Event()
        self._inbox = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.lost = asyncio.Event()
        """Set when nothing can be sent any more."""
        self.when_lost: Callable[[], None] | None = None
        self.known: Callable[[bytes], bytes | None] | None = None
        """Set while the next message is waited for: the answer to what comes, where it is known already."""
        self.answered = 0.0
        """When such an answer was last sent."""

    # --- called by asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connected(self)

    def data_received(self, data: bytes) -> None:
        if self._records is not None:
            data = self._opened(self._records, data)
            if not data:
                return
        if self.known is not None and not self._inbox and self._writable.is_set():
            answer = self.known(data)
            if answer is not None:
                self.answered = asyncio.get_running_loop().time()
                self.write(answer)
                return
        self._inbox += data
        self._arrived.set()
        if len(self._inbox) > _HIGH_WATER:
            self._open().pause_reading()

    def _opened(self, records: Records, data: bytes) -> bytes:
        """What the bytes say in TLS. Ends the connection where they break it, or say that they are the last."""
        said = b""
        try:
            said = records.receive(data)
        except ssl.SSLError:
            records.ended = True
        if due := records.due():
            self._open().write(due)
            if self._open().get_write_buffer_size() > _HIGH_WATER:  # a client that makes TLS talk, and reads nothing
                self._open().abort()
        if records.open:
            self._encrypted.set()
        if records.ended:
            self._open().close()
        return said

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self._encrypted.set()
        self._arrived.set()
        self._writable.set()
        if self.when_lost is not None:
            self.when_lost()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- called by the coroutine ---

    @property
    def local(self) -> bool:
        """Whether the client is on this machine."""
        return is_loopback(self._open().get_extra_info("peername"))

    def take(self) -> bytes:
        """What has come in, without waiting."""
        data = bytes(self._inbox)
        self._inbox.clear()
        self._arrived.clear()
        if not self.lost.is_set():
            self._open().resume_reading()
        return data

    async def read(self) -> bytes:
        """At least one byte; none at the end."""
        while not self._inbox and not self.lost.is_set():
            self._arrived.clear()
            await self._arrived.wait()
        return self.take()

    def write(self, data: bytes) -> None:
        records = self._records
        if not data or self.lost.is_set():
            return
        if records is None:
            self._open().write(data)
        elif records.open and not records.ended:
            self._open().write(records.send(data))

    @property
    def full(self) -> bool:
        """Whether more should be written only after `drain`, or never."""
        return not self._writable.is_set() or self.lost.is_set()

    async def drain(self) -> None:
        """Waits until the client has read enough for more to be written. Raises ConnectionResetError if it left."""
        await self._writable.wait()
        if self.lost.is_set():
            raise ConnectionResetError

    async def start_tls(self, answer: bytes, context: ssl.SSLContext) -> None:
        """Sends the answer to the SSLRequest and goes on through TLS. Raises ConnectionResetError if that fails.

        Nothing may be awaited between the two: what comes after the answer is TLS. What the client then says in it may
        be here before this returns.
        """
        self._open().write(answer)
        self._records = Records(context)
        await self._encrypted.wait()
        if self.lost.is_set() or not self._records.open:
            raise ConnectionResetError

    def close(self) -> None:
        """Sends what is written, then closes."""
        if self._records is not None and not self.lost.is_set():
            self._open().write(self._records.close())
        self._open().close()

    def abort(self) -> None:
        """Closes at once, whatever is left to send."""
        self._open().abort()

    def _open(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport


def is_loopback(peer: object) -> bool:
    """Whether a socket's peer name is an address of this machine."""
    if not isinstance(peer, tuple) or not peer:
        return False
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
