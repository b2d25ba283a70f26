"""Payloads of frontend messages to values. Decides whether a payload is well formed; must never trust a count in it.

A failure is Rejected: 08P01 where the bytes do not make up the message, 22021 where a string is not UTF-8, 0A000 for
another protocol version. The frame around it is sound, so after authentication the connection can go on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from dpsql.errors import NOT_SUPPORTED, PROTOCOL, Rejected
from dpsql.pgwire import messages as m

INVALID_ENCODING = "22021"

_CANCEL_REQUEST = (1234, 5678)
_SSL_REQUEST = (1234, 5679)
_GSSENC_REQUEST = (1234, 5680)
_MAX_SECRET = 256


def _malformed(what: str) -> Rejected:
    return Rejected(f"invalid message format: {what}", sqlstate=PROTOCOL)


@dataclass(slots=True)
class _Reader:
    """A cursor over one payload. Every read checks what is left before it takes anything."""

    data: bytes
    at: int = 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise _malformed("it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def numbers(self, layout: str) -> tuple[int, ...]:
        layout = "!" + layout
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def number(self, code: str) -> int:
        return self.numbers(code)[0]

    def many(self, code: str) -> tuple[int, ...]:
        return self.numbers(f"{self.number('H')}{code}")

    def raw_string(self) -> bytes:
        end = self.data.find(b"\0", self.at)
        if end < 0:
            raise _malformed("a string has no end")
        text = self.data[self.at : end]
        self.at = end + 1
        return text

    def string(self) -> str:
        try:
            return self.raw_string().decode("utf-8")
        except UnicodeDecodeError:
            raise Rejected('invalid byte sequence for encoding "UTF8"', sqlstate=INVALID_ENCODING) from None

    def target(self) -> m.StatementOrPortal:
        match self.take(1):
            case b"S":
                return "S"
            case b"P":
                return "P"
        raise _malformed("neither a statement nor a portal")

    def nullable(self) -> bytes | None:
        length = self.number("i")
        return None if length == -1 else self.take(length)

    def end(self) -> None:
        if self.at != len(self.data):
            raise _malformed("it is longer than its content")


def first_packet(payload: bytes) -> m.FirstPacket:
    """A packet without type byte, as it comes before authentication."""
    reader = _Reader(payload)
    version = (reader.number("H"), reader.number("H"))
    packet: m.FirstPacket
    if version == _SSL_REQUEST:
        packet = m.SSLRequest()
    elif version == _GSSENC_REQUEST:
        packet = m.GSSENCRequest()
    elif version == _CANCEL_REQUEST:
        packet = _cancel_request(reader)
    else:
        packet = _startup(reader, version)
    reader.end()
    return packet


def _cancel_request(reader: _Reader) -> m.CancelRequest:
    packet = m.CancelRequest(reader.number("i"), reader.rest())
    if not 4 <= len(packet.secret) <= _MAX_SECRET:
        raise _malformed("the length of a cancel key")
    return packet


def _startup(reader: _Reader, version: tuple[int, int]) -> m.Startup:
    if version[0] != 3:
        raise Rejected(
            f"unsupported frontend protocol {version[0]}.{version[1]}: server supports 3.0", sqlstate=NOT_SUPPORTED
        )
    parameters: dict[str, str] = {}
    while name := reader.string():
        if name in parameters:
            raise _malformed("a startup parameter is given twice")
        parameters[name] = reader.string()
    return m.Startup(version, tuple(parameters.items()))


def sasl_initial(payload: bytes) -> m.SaslInitial:
    """The payload of the first `p` message."""
    reader = _Reader(payload)
    message = m.SaslInitial(reader.string(), reader.nullable())
    reader.end()
    return message


def sasl_response(payload: bytes) -> m.SaslResponse:
    """The payload of the second `p` message."""
    return m.SaslResponse(payload)


def session_message(type: bytes, payload: bytes) -> m.SessionMessage:
    """A message after authentication. `type` must be in `SESSION_TYPES`."""
    reader = _Reader(payload)
    message = SESSION_TYPES[type](reader)
    reader.end()
    return message


def _query(reader: _Reader) -> m.Query:
    return m.Query(reader.string())


def _parse(reader: _Reader) -> m.Parse:
    return m.Parse(reader.string(), reader.string(), reader.many("I"))


def _bind(reader: _Reader) -> m.Bind:
    portal, statement, formats = reader.string(), reader.string(), reader.many("H")
    values = tuple(reader.nullable() for _ in range(reader.number("H")))
    return m.Bind(portal, statement, formats, values, reader.many("H"))


def _describe(reader: _Reader) -> m.Describe:
    return m.Describe(reader.target(), reader.string())


def _execute(reader: _Reader) -> m.Execute:
    portal, max_rows = reader.string(), reader.number("i")
    return m.Execute(portal, max(max_rows, 0))


def _close(reader: _Reader) -> m.Close:
    return m.Close(reader.target(), reader.string())


def _function_call(reader: _Reader) -> m.FunctionCall:
    function = reader.number("I")
    reader.rest()
    return m.FunctionCall(function)


SESSION_TYPES: dict[bytes, Callable[[_Reader], m.SessionMessage]] = {
    b"Q": _query,
    b"P": _parse,
    b"B": _bind,
    b"D": _describe,
    b"E": _execute,
    b"C": _close,
    b"H": lambda _: m.Flush(),
    b"S": lambda _: m.Sync(),
    b"F": _function_call,
    b"X": lambda _: m.Terminate(),
}
SIMPLE_TYPES = frozenset((b"Q", b"F"))
IGNORED_TYPES = frozenset((b"d", b"c", b"f"))
"""Copy messages of a client: there is no COPY FROM, and Postgres too ignores them outside of one."""
