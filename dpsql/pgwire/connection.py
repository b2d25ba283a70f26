"""One connection as a state machine without I/O: which message may come when, and how the byte stream splits.

The client's bytes go in through `receive`, its messages come out of `next_event`, one at a time, because how the next
one is taken depends on the answer to the last (an error in the extended protocol skips to Sync). Answers go through
`send`, which gives their bytes and keeps the phase. The phases and what moves between them are the two tables below;
what they do not list is a protocol error, and ends the connection.

This file must never wait, decide who someone is, or look into a statement.
"""

from __future__ import annotations

from enum import Enum, auto

from dpsql.errors import PROTOCOL, TOO_COMPLEX, Rejected
from dpsql.pgwire import decode
from dpsql.pgwire import messages as m
from dpsql.pgwire.encode import encode
from dpsql.pgwire.frames import Frame, Frames

MAX_STARTUP = 10_000
"""Postgres's own limit for the first packet."""
MAX_SASL = 2_048
"""Above any honest SASL message: libpq's have some 150 bytes with channel binding."""
MAX_MESSAGE = 1 << 20
"""A statement has at most 64 KiB; the rest is room for parameters."""


class Phase(Enum):
    """Where a connection stands. In the phases marked `ours` nothing is read until we have answered."""

    OPENING = auto()
    ENCRYPTION = auto()  # ours: S or N
    MECHANISMS = auto()  # ours: which SASL mechanisms there are
    SASL_INITIAL = auto()
    SASL_CHALLENGE = auto()  # ours
    SASL_RESPONSE = auto()
    SASL_VERDICT = auto()  # ours
    STARTING = auto()  # ours: parameters, keys, the first ReadyForQuery
    READY = auto()
    QUERY = auto()  # ours: a simple query, up to ReadyForQuery
    EXTENDED = auto()
    SKIPPING = auto()  # after an error in the extended protocol: all up to Sync is passed over
    SYNC = auto()  # ours: ReadyForQuery
    CLOSED = auto()


_EXTENDED = (m.Parse, m.Bind, m.Describe, m.Execute, m.Close, m.Flush)

RECEIVED: dict[tuple[Phase, type[m.FrontendMessage]], Phase] = {
    (Phase.OPENING, m.SSLRequest): Phase.ENCRYPTION,
    (Phase.OPENING, m.GSSENCRequest): Phase.ENCRYPTION,
    (Phase.OPENING, m.CancelRequest): Phase.CLOSED,
    (Phase.OPENING, m.Startup): Phase.MECHANISMS,
    (Phase.SASL_INITIAL, m.SaslInitial): Phase.SASL_CHALLENGE,
    (Phase.SASL_RESPONSE, m.SaslResponse): Phase.SASL_VERDICT,
    **{(phase, m.Query): Phase.QUERY for phase in (Phase.READY, Phase.EXTENDED)},
    **{(phase, m.FunctionCall): Phase.QUERY for phase in (Phase.READY, Phase.EXTENDED)},
    **{(phase, type): Phase.EXTENDED for phase in (Phase.READY, Phase.EXTENDED) for type in _EXTENDED},
    **{(phase, m.Sync): Phase.SYNC for phase in (Phase.READY, Phase.EXTENDED, Phase.SKIPPING)},
    **{(phase, m.Terminate): Phase.CLOSED for phase in (Phase.READY, Phase.EXTENDED, Phase.SKIPPING)},
}
"""The client's moves. `Unreadable` moves as a Query or a Parse."""

SENT: dict[tuple[Phase, type[m.BackendMessage]], Phase] = {
    (Phase.MECHANISMS, m.AuthenticationSasl): Phase.SASL_INITIAL,
    (Phase.SASL_CHALLENGE, m.AuthenticationSaslContinue): Phase.SASL_RESPONSE,
    (Phase.SASL_VERDICT, m.AuthenticationOk): Phase.STARTING,
    (Phase.STARTING, m.ReadyForQuery): Phase.READY,
    (Phase.QUERY, m.ReadyForQuery): Phase.READY,
    (Phase.SYNC, m.ReadyForQuery): Phase.READY,
    (Phase.EXTENDED, m.ErrorResponse): Phase.SKIPPING,
}
"""Our moves; other messages of ours leave the phase as it is."""

OURS = frozenset(
    (
        Phase.ENCRYPTION,
        Phase.MECHANISMS,
        Phase.SASL_CHALLENGE,
        Phase.SASL_VERDICT,
        Phase.STARTING,
        Phase.QUERY,
        Phase.SYNC,
        Phase.CLOSED,
    )
)


class Connection:
    """The protocol's side of one client; not safe for use by two threads at once."""

    def __init__(self, max_message: int = MAX_MESSAGE) -> None:
        self.phase = Phase.OPENING
        self._frames = Frames()
        self._max_message = max_message
        self._asked: frozenset[type[m.FrontendMessage]] = frozenset()
        self._encrypted = False

    @property
    def buffered(self) -> int:
        """Bytes received and not yet taken."""
        return len(self._frames)

    @property
    def at_rest(self) -> bool:
        """Whether the client may begin a new turn, and has sent nothing of it yet."""
        return self.phase is Phase.READY and not self._frames.partial

    @property
    def closed(self) -> bool:
        """Whether nothing will be taken from the client any more."""
        return self.phase is Phase.CLOSED

    @property
    def in_message(self) -> bool:
        """Whether the client has begun a message that we wait to see the end of."""
        return self.phase not in OURS and self._frames.partial

    def receive(self, data: bytes) -> None:
        """Takes bytes of the client, in any pieces. After the end they are dropped."""
        if self.phase is not Phase.CLOSED:
            self._frames.receive(data)

    def next_event(self) -> m.FrontendMessage | None:
        """The next message, or None if more bytes, or an answer of ours, must come first.

        Raises Rejected where the client breaks the protocol; the connection is then closed, but may send the error.
        """
        try:
            while self.phase not in OURS:
                event = self._take()
                if event is None or self._move(event):
                    return event
        except Rejected:
            self.close()
            raise
        return None

    def send(self, message: m.BackendMessage) -> bytes:
        """The bytes of an answer of ours; after a FATAL error nothing more is taken from the client."""
        if isinstance(message, m.ErrorResponse) and message.severity == "FATAL":
            self.close()
        self.phase = SENT.get((self.phase, _said(message)), self.phase)
        return encode(message)

    def send_encryption(self, accept: bool) -> bytes:
        """The answer to SSLRequest or GSSENCRequest: `S` (what comes next comes through TLS) or `N`.

        Raises Rejected if the client did not wait for it: bytes sent before would pass from plain text into the
        encrypted session (CVE-2021-23214).
        """
        if self._frames.partial:
            self.close()
            raise Rejected("received data before the answer to the encryption request", sqlstate=PROTOCOL)
        self.phase = Phase.OPENING
        self._encrypted = self._encrypted or accept
        return b"S" if accept else b"N"

    def close(self) -> None:
        """Nothing is taken from the client any more."""
        self.phase = Phase.CLOSED
        self._frames.clear()

    def _move(self, event: m.FrontendMessage) -> bool:
        """Follows the table; False for a message that is passed over on the way to Sync."""
        kind = _kind(event)
        phase = RECEIVED.get((self.phase, kind))
        if phase is None and self.phase is Phase.SKIPPING:
            return False
        if phase is None or not self._may_ask(kind):
            raise Rejected(f"unexpected message {kind.__name__}", sqlstate=PROTOCOL)
        self.phase = phase
        return True

    def _may_ask(self, kind: type[m.FrontendMessage]) -> bool:
        """Encryption may be asked for once of each kind, and not inside of itself."""
        if kind not in (m.SSLRequest, m.GSSENCRequest):
            return True
        allowed = not self._encrypted and kind not in self._asked
        self._asked |= {kind}
        return allowed

    def _take(self) -> m.FrontendMessage | None:
        match self.phase:
            case Phase.OPENING:
                packet = self._frames.first_packet(MAX_STARTUP)
                return None if packet is None else decode.first_packet(packet)
            case Phase.SASL_INITIAL:
                payload = self._take_sasl()
                return None if payload is None else decode.sasl_initial(payload)
            case Phase.SASL_RESPONSE:
                payload = self._take_sasl()
                return None if payload is None else decode.sasl_response(payload)
            case _:
                return self._take_session_message()

    def _take_sasl(self) -> bytes | None:
        if self._frames.next_type not in (b"", b"p"):
            raise Rejected("expected a SASL message", sqlstate=PROTOCOL)
        frame = self._frames.message(MAX_SASL)
        if frame is not None and frame.payload is None:
            raise Rejected("SASL message is too long", sqlstate=PROTOCOL)
        return None if frame is None else frame.payload

    def _take_session_message(self) -> m.SessionMessage | None:
        while (type := self._frames.next_type) in _KNOWN_TYPES:
            frame = self._frames.message(self._max_message)
            if frame is None:
                return None
            if type not in decode.IGNORED_TYPES:
                return self._read(frame)
        if type:
            raise Rejected(f"invalid frontend message type {type[0]}", sqlstate=PROTOCOL)
        return None

    def _read(self, frame: Frame) -> m.SessionMessage:
        simple = frame.type in decode.SIMPLE_TYPES
        if frame.payload is None:
            return m.Unreadable(simple, TOO_COMPLEX, f"message is too long: at most {self._max_message} bytes")
        try:
            return decode.session_message(frame.type, frame.payload)
        except Rejected as error:
            return m.Unreadable(simple, error.sqlstate, error.message)


_KNOWN_TYPES = decode.SESSION_TYPES.keys() | decode.IGNORED_TYPES


def _kind(event: m.FrontendMessage) -> type[m.FrontendMessage]:
    """What the tables know a message as."""
    if isinstance(event, m.Unreadable):
        return m.Query if event.simple else m.Parse
    return type(event)


def _said(message: m.BackendMessage) -> type[m.BackendMessage]:
    """What the tables know an answer as."""
    if isinstance(message, m.Raw) and message.moves:
        return m.ReadyForQuery if message.type == b"Z" else m.ErrorResponse
    return type(message)
