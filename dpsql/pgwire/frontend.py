"""Frontend messages to bytes: what a session says to the public server. Decides the layout of each, and nothing else.

Source: PostgreSQL documentation, chapter "Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from dpsql.pgwire import messages as m

_PROTOCOL: Final = 3 << 16
_CANCEL: Final = 1234 << 16 | 5678
_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)

SYNC: Final = b"S\0\0\0\4"
FLUSH: Final = b"H\0\0\0\4"
TERMINATE: Final = b"X\0\0\0\4"


def startup(parameters: Iterable[tuple[str, str]]) -> bytes:
    """The StartupMessage of protocol 3.0."""
    payload = b"".join(_string(name) + _string(value) for name, value in parameters) + b"\0"
    return struct.pack("!ii", len(payload) + 8, _PROTOCOL) + payload


def cancel(pid: int, secret: bytes) -> bytes:
    """The CancelRequest, a connection's only packet."""
    return struct.pack("!iii", 12 + len(secret), _CANCEL, pid) + secret


def query(text: str) -> bytes:
    return _frame(b"Q", _string(text))


def parse(message: m.Parse) -> bytes:
    types = struct.pack(f"!H{len(message.types)}I", len(message.types), *message.types)
    return _frame(b"P", _string(message.name) + _string(message.text) + types)


def bind(message: m.Bind) -> bytes:
    values = b"".join(_NULL if v is None else _LENGTH.pack(len(v)) + v for v in message.parameters)
    return _frame(
        b"B",
        _string(message.portal)
        + _string(message.statement)
        + _codes(message.parameter_formats)
        + struct.pack("!H", len(message.parameters))
        + values
        + _codes(message.result_formats),
    )


def describe(message: m.Describe) -> bytes:
    return _frame(b"D", message.kind.encode() + _string(message.name))


def execute(message: m.Execute) -> bytes:
    return _frame(b"E", _string(message.portal) + _LENGTH.pack(message.max_rows))


def close(message: m.Close) -> bytes:
    return _frame(b"C", message.kind.encode() + _string(message.name))


def _codes(codes: tuple[int, ...]) -> bytes:
    return struct.pack(f"!H{len(codes)}H", len(codes), *codes)


def _string(text: str) -> bytes:
    return text.encode("utf-8") + b"\0"


def _frame(type: bytes, payload: bytes) -> bytes:
    return type + _LENGTH.pack(len(payload) + 4) + payload
