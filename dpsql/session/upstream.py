"""A session's connection to the public server: what is sent to it, and which of its answers belong to what.

Decides the pairing alone: each message that is sent has an `Expected` answer, shown to the client or kept here, and an
error voids what was expected up to the next Sync, as the protocol says. Rows pass in bulk, unread. It must never look
into a statement or a value.

One thread uses it at a time; only `cancel` may be called from another one. Waiting for the server ends at `deadline`:
the statement is cancelled first, and the connection given up if that does not help.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from dpsql.errors import CANCELLED, Rejected
from dpsql.pgwire import frontend
from dpsql.pgwire.encode import encode
from dpsql.pgwire.messages import Raw, error_response
from dpsql.public.place import Place

SHUTDOWN: Final = "57P01"
_CHUNK: Final = 256 << 10
_GRACE: Final = 1.0
"""Seconds that a cancelled statement has to end."""
_PATIENCE: Final = 10.0
"""Seconds for the server to accept a connection."""
_HEAD = struct.Struct("!ci")
_BULK: Final = b"Dd"
"""Rows and COPY data: passed on unread."""
_ANY_TIME: Final = (b"S", b"N", b"A")
"""Parameters, notices and notifications."""

Exchange = Callable[[bytes], bytes]
"""An ErrorResponse frame to the one that is shown instead."""


@dataclass(slots=True)
class Expected:
    """What ends the answer to one message: a frame of one of these types.

    `shown`: to the client, but for the types in `dropped`; otherwise `kept` takes the frames. `before` goes out before
    the frame that ends it. `verb`: the command tag's first word. `error` exchanges an error, which is always shown;
    `then` is called where there was none.
    """

    ends: bytes
    shown: bool = True
    dropped: bytes = b""
    before: bytes = b""
    verb: str = ""
    error: Exchange | None = None
    then: Callable[[], object] | None = None
    kept: list[bytes] = field(default_factory=list)


class Upstream:
    """Raises Rejected from the server's own words if it does not let the session in."""

    def __init__(self, place: Place, parameters: Iterable[tuple[str, str]]) -> None:
        self._place = place
        self._socket = _connected(place)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._out = bytearray()
        self._in = bytearray()
        self._waiting: deque[Expected] = deque()
        self._key = (0, b"")
        self.status = b"I"
        """As the last ReadyForQuery said."""
        self.failed = False
        """An error has been met since, and nothing is done up to the next Sync."""
        self.deadline, self._over = float("inf"), False
        try:
            self.greeting = self._start(parameters)
        except BaseException:
            self._socket.close()
            raise
        """The frames of ParameterStatus, and of notices, of a new session."""

    @property
    def pid(self) -> int:
        return self._key[0]

    # --- sending ---------------------------------------------------------------------------------------------------

    def send(self, data: bytes, *expected: Expected) -> None:
        """Queues bytes with what will be answered; they go out when answers are taken."""
        self._out += data
        self._waiting.extend(expected)

    @property
    def queued(self) -> int:
        """Bytes that have not gone out."""
        return len(self._out)

    def has_failed(self) -> bool:
        """`failed`, as it is by now."""
        return self.failed

    @property
    def at_rest(self) -> bool:
        """Whether nothing is under way."""
        return not self._waiting and not self._out and not self.failed

    def replies(self) -> Iterator[Raw]:
        """What is shown to the client of all that is expected, in bulk, as it comes. Raises Rejected 57P01, 57014."""
        while self._waiting:
            yield from self._taken()
            if self._waiting:
                self._exchange()

    def flushed(self) -> Iterator[Raw]:
        """The same inside of the extended protocol, where the server holds its answers back until it is asked."""
        if self._waiting:
            self._out += frontend.FLUSH
        yield from self.replies()

    def abandon(self) -> None:
        self._socket.close()

    def close(self) -> None:
        try:
            self._socket.settimeout(_GRACE)
            self._socket.sendall(frontend.TERMINATE)
        except OSError:
            pass
        self._socket.close()

    def cancel(self) -> None:
        """Asks the server to stop what this session runs there."""
        try:
            with _connected(self._place) as other:
                other.sendall(frontend.cancel(*self._key))
                other.settimeout(_GRACE)
                other.recv(1)
        except OSError:
            pass

    # --- taking ----------------------------------------------------------------------------------------------------

    def _taken(self) -> Iterator[Raw]:
        """What has come in, up to the last whole frame; rows one after another are one piece."""
        data, at, start = self._in, 0, 0
        length = len(data)
        while length - at >= 5:
            kind, size = _HEAD.unpack_from(data, at)
            end = at + 1 + size
            if end > length:
                break
            if kind in _BULK and self._waiting and self._waiting[0].shown:
                at = end
                continue
            if at > start:
                yield Raw(kind, bytes(data[start:at]), False)
            frame = bytes(data[at:end])
            at = start = end
            shown = self._judged(kind, frame)
            if shown:
                del data[:at]
                length, at, start = len(data), 0, 0
                yield Raw(kind, shown, kind in b"EZ")
        if at > start:
            yield Raw(b"D", bytes(data[start:at]), False)
        del data[:at]

    def _judged(self, kind: bytes, frame: bytes) -> bytes:
        """What of a frame goes to the client; moves on to the next expected answer where it ends one."""
        if kind in _ANY_TIME:
            return frame if kind != b"A" else b""
        if kind == b"E":
            return self._fails(frame)
        if kind == b"Z":
            self.status, self.failed = frame[5:6], False
        if not self._waiting:
            return b""
        first = self._waiting[0]
        shown = frame if first.shown and kind not in first.dropped else b""
        if not first.shown:
            first.kept.append(frame)
        if kind in first.ends:
            self._waiting.popleft()
            if first.then is not None:
                first.then()
            shown = first.before + (_tagged(frame, first.verb) if first.verb and kind == b"C" else shown)
        return shown

    def _fails(self, frame: bytes) -> bytes:
        """An error: nothing more is answered up to the next Sync. It is shown even where the answer is not.

        FATAL ends all.
        """
        self.failed = True
        exchange = self._waiting[0].error if self._waiting else None
        while self._waiting and b"Z" not in self._waiting[0].ends:
            self._waiting.popleft()
        found = fields(frame)
        if found.get("V") == "FATAL":
            raise refused(frame)
        if self._over and found.get("C") == CANCELLED:
            return encode(error_response(Rejected("canceling statement due to statement timeout", sqlstate=CANCELLED)))
        return frame if exchange is None else exchange(frame)

    def _exchange(self) -> None:
        """Sends what can be sent and receives what is there, or waits for either."""
        self._poll.modify(self._socket, select.POLLIN | (select.POLLOUT if self._out else 0))
        for _, ready in self._poll.poll(self._left()):
            if ready & select.POLLOUT:
                self._send()
            if ready & ~select.POLLOUT:
                self._receive()

    def _left(self) -> float | None:
        """Milliseconds to wait; past the deadline the statement is cancelled, once."""
        if self.deadline == float("inf"):
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            self.deadline = float("inf")
            self.cancel()
            self.deadline = time.monotonic() + _GRACE
            if self._over:
                raise Rejected("terminating connection: the statement did not end in time", sqlstate=SHUTDOWN)
            self._over = True
            left = _GRACE
        return max(left, 0) * 1000

    def begin(self, seconds: float) -> None:
        """A statement begins that may take so long."""
        self.deadline, self._over = time.monotonic() + seconds, False

    def _send(self) -> None:
        try:
            sent = self._socket.send(self._out[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:
            raise _gone() from None
        del self._out[:sent]

    def _receive(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            raise _gone() from None
        if not data:
            raise _gone()
        self._in += data

    def _start(self, parameters: Iterable[tuple[str, str]]) -> tuple[bytes, ...]:
        first = (("user", self._place.role), ("database", self._place.database))
        greeting = Expected(b"Z", shown=False)
        self.send(frontend.startup((*first, *parameters)), greeting)
        self.begin(_PATIENCE)
        statuses = [raw.data for raw in self.replies()]
        for frame in greeting.kept:
            if frame[:1] == b"K":
                self._key = (struct.unpack_from("!i", frame, 5)[0], frame[9:])
        self.deadline = float("inf")
        return tuple(s for s in statuses if s[:1] in (b"S", b"N"))


def _tagged(frame: bytes, verb: str) -> bytes:
    """CommandComplete with another verb; a count behind it stays where SELECT would show one."""
    tag = frame[5:-1].decode()
    count = tag.partition(" ")[2] if verb in ("SELECT", "COPY", "FETCH") else ""
    text = f"{verb} {count}".strip().encode() + b"\0"
    return b"C" + struct.pack("!i", len(text) + 4) + text


def refused(frame: bytes) -> Rejected:
    """The error that an ErrorResponse frame holds."""
    found = fields(frame)
    position = found.get("P", "")
    return Rejected(
        found.get("M", ""),
        sqlstate=found.get("C", CANCELLED),
        hint=found.get("H"),
        detail=found.get("D"),
        position=int(position) if position.isdecimal() else None,
    )


def fields(frame: bytes) -> dict[str, str]:
    """The fields of an ErrorResponse or NoticeResponse by their letter."""
    parts = frame[5:].split(b"\0")
    return {part[:1].decode(): part[1:].decode("utf-8", "replace") for part in parts if part}


def _connected(place: Place) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(_PATIENCE)
        made.connect(place.socket)
        made.setblocking(False)
    except OSError:
        made.close()
        raise _gone() from None
    return made


def _gone() -> Rejected:
    return Rejected(
        "terminating connection: the public server has ended",
        sqlstate=SHUTDOWN,
        hint="Connect again. What was debited stays debited, and its answer is stored: ask again, free.",
    )
