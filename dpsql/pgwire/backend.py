"""Backend messages from their bytes: what the command line, which has no client between it and a session, reads.

Decides the layout of those that carry something; the others are passed over.

Source: PostgreSQL documentation, chapter "Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import cast

from dpsql.pgwire import messages as m

_LENGTH = struct.Struct("!i")
_FIELD = struct.Struct("!IhIhih")


def messages(replies: Iterator[m.BackendMessage]) -> Iterator[m.BackendMessage]:
    """Replies with those that are passed on as frames taken apart."""
    for reply in replies:
        if isinstance(reply, m.Raw):
            yield from decoded(reply.data)
        else:
            yield reply


def decoded(data: bytes) -> Iterator[m.BackendMessage]:
    """The messages of whole frames."""
    at = 0
    while at < len(data):
        kind, end = data[at : at + 1], at + 1 + _LENGTH.unpack_from(data, at + 1)[0]
        read = _READ.get(kind)
        if read is not None:
            yield read(data[at + 5 : end])
        at = end


def _row_description(payload: bytes) -> m.RowDescription:
    fields, at = list[m.Field](), 2
    for _ in range(struct.unpack_from("!H", payload)[0]):
        end = payload.index(b"\0", at)
        table, column, oid, size, modifier, format = _FIELD.unpack_from(payload, end + 1)
        fields.append(m.Field(payload[at:end].decode(), oid, size, modifier, format, table, column))
        at = end + 1 + _FIELD.size
    return m.RowDescription(tuple(fields))


def _data_row(payload: bytes) -> m.DataRow:
    values, at = list[bytes | None](), 2
    for _ in range(struct.unpack_from("!H", payload)[0]):
        length = _LENGTH.unpack_from(payload, at)[0]
        at += _LENGTH.size
        values.append(None if length < 0 else payload[at : at + length])
        at += max(length, 0)
    return m.DataRow(tuple(values))


def _diagnostic(payload: bytes) -> dict[str, str]:
    return {part[:1].decode(): part[1:].decode() for part in payload.split(b"\0") if part}


def _error(payload: bytes) -> m.ErrorResponse:
    return m.ErrorResponse(*_told(_diagnostic(payload)))


def _notice(payload: bytes) -> m.NoticeResponse:
    return m.NoticeResponse(*_told(_diagnostic(payload)))


def _told(found: dict[str, str]) -> tuple[str, str, str, str | None, str | None, int | None]:
    position = found.get("P")
    at = int(position) if position is not None and position.isdecimal() else None
    return found.get("S", ""), found.get("C", ""), found.get("M", ""), found.get("D"), found.get("H"), at


def _text(payload: bytes) -> str:
    return payload.rstrip(b"\0").decode()


def _parameter_status(payload: bytes) -> m.ParameterStatus:
    name, value = payload[:-1].split(b"\0")
    return m.ParameterStatus(name.decode(), value.decode())


def _parameters(payload: bytes) -> m.ParameterDescription:
    count = struct.unpack_from("!H", payload)[0]
    return m.ParameterDescription(struct.unpack_from(f"!{count}I", payload, 2))


def _copy_out(payload: bytes) -> m.CopyOutResponse:
    count = struct.unpack_from("!H", payload, 1)[0]
    return m.CopyOutResponse(payload[0], struct.unpack_from(f"!{count}H", payload, 3))


_READ: dict[bytes, Callable[[bytes], m.BackendMessage]] = {
    b"T": _row_description,
    b"D": _data_row,
    b"C": lambda payload: m.CommandComplete(_text(payload)),
    b"E": _error,
    b"N": _notice,
    b"S": _parameter_status,
    b"t": _parameters,
    b"H": _copy_out,
    b"d": m.CopyData,
    b"c": lambda _: m.CopyDone(),
    b"Z": lambda payload: m.ReadyForQuery(cast(m.TransactionStatus, payload.decode())),
    b"I": lambda _: m.EmptyQueryResponse(),
    b"1": lambda _: m.ParseComplete(),
    b"2": lambda _: m.BindComplete(),
    b"3": lambda _: m.CloseComplete(),
    b"n": lambda _: m.NoData(),
    b"s": lambda _: m.PortalSuspended(),
}
