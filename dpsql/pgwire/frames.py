"""Bytes to frames. Decides where a message ends; a length is judged before anything is kept for it.

Must never read a payload. A frame that is too long but not absurd is passed over as its bytes come in.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from dpsql.errors import PROTOCOL, Rejected

MAX_SKIPPED = 64 << 20
"""A longer frame is no honest mistake."""

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True)
class Frame:
    """A message as sent: its type byte (empty for a first packet), and its payload, None if it was too long."""

    type: bytes
    payload: bytes | None


class Frames:
    """The part of the byte stream that has come in and is not taken yet."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skip = 0

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def partial(self) -> bool:
        """Whether something has begun."""
        return bool(self._buffer) or self._skip > 0

    @property
    def next_type(self) -> bytes:
        """The type byte of the next message, empty if nothing has come of it."""
        return bytes(self._buffer[:1])

    def receive(self, data: bytes) -> None:
        """Takes bytes in any pieces."""
        dropped = min(self._skip, len(data))
        self._skip -= dropped
        self._buffer += memoryview(data)[dropped:]

    def first_packet(self, most: int) -> bytes | None:
        """The payload of a packet without a type, or None until it is complete. Raises Rejected for a bad length."""
        length = self._length(0)
        if length is None:
            return None
        if not 8 <= length <= most:
            raise Rejected("invalid length of startup packet", sqlstate=PROTOCOL)
        return self._payload(0, length)

    def message(self, most: int) -> Frame | None:
        """The next typed message, or None until it is complete; without payload if that is over `most` bytes.

        Raises Rejected for a length that cannot be true.
        """
        length = self._length(1)
        if length is None:
            return None
        if not 4 <= length <= MAX_SKIPPED:
            raise Rejected("invalid message length", sqlstate=PROTOCOL)
        type = self.next_type
        if length > most:
            self._pass_over(1 + length)
            return Frame(type, None)
        payload = self._payload(1, length)
        return None if payload is None else Frame(type, payload)

    def clear(self) -> None:
        self._buffer.clear()
        self._skip = 0

    def _length(self, at: int) -> int | None:
        if len(self._buffer) < at + _LENGTH.size:
            return None
        length: int = _LENGTH.unpack_from(self._buffer, at)[0]
        return length

    def _payload(self, at: int, length: int) -> bytes | None:
        end = at + length
        if len(self._buffer) < end:
            return None
        payload = bytes(self._buffer[at + _LENGTH.size : end])
        del self._buffer[:end]
        return payload

    def _pass_over(self, count: int) -> None:
        self._skip = max(0, count - len(self._buffer))
        del self._buffer[:count]
