"""Backend messages to bytes. Decides the layout of each; must never look at what a value means."""

from __future__ import annotations

import struct
from typing import assert_never

from dpsql.pgwire import messages as m

_LENGTH = struct.Struct("!i")
_NULL = _LENGTH.pack(-1)
_AUTHENTICATION_OK = 0
_AUTHENTICATION_SASL = 10
_AUTHENTICATION_SASL_CONTINUE = 11
_AUTHENTICATION_SASL_FINAL = 12
_MAJOR = 3


def encode(message: m.BackendMessage) -> bytes:
    """The message's frame: type byte, length, payload."""
    match message:
        case m.Raw(_, data):
            return data
        case m.DataRow(values):
            return _frame(b"D", _data_row(values))
        case m.RowDescription(fields):
            return _frame(b"T", _INT16.pack(len(fields)) + b"".join(map(_field, fields)))
        case m.ErrorResponse():
            return _frame(b"E", _diagnostic(message))
        case m.NoticeResponse():
            return _frame(b"N", _diagnostic(message))
        case m.CommandComplete(tag):
            return _frame(b"C", _string(tag))
        case m.ReadyForQuery(status):
            return _frame(b"Z", status.encode())
        case m.ParameterStatus(name, value):
            return _frame(b"S", _string(name) + _string(value))
        case m.ParameterDescription(types):
            return _frame(b"t", struct.pack(f"!H{len(types)}I", len(types), *types))
        case m.BackendKeyData(pid, secret):
            return _frame(b"K", _LENGTH.pack(pid) + secret)
        case m.CopyOutResponse(format, columns):
            return _frame(b"H", struct.pack(f"!bH{len(columns)}H", format, len(columns), *columns))
        case m.CopyData(data):
            return _frame(b"d", data)
        case (
            m.AuthenticationOk()
            | m.AuthenticationSasl()
            | m.AuthenticationSaslContinue()
            | m.AuthenticationSaslFinal()
            | m.NegotiateProtocolVersion()
        ):
            return _opening(message)
        case _:
            return _EMPTY[type(message)]


_INT16 = struct.Struct("!H")
_FIELD = struct.Struct("!IHIhih")


def _frame(type: bytes, payload: bytes) -> bytes:
    return type + _LENGTH.pack(len(payload) + 4) + payload


_EMPTY: dict[type[m.BackendMessage], bytes] = {
    m.EmptyQueryResponse: _frame(b"I", b""),
    m.ParseComplete: _frame(b"1", b""),
    m.BindComplete: _frame(b"2", b""),
    m.CloseComplete: _frame(b"3", b""),
    m.NoData: _frame(b"n", b""),
    m.PortalSuspended: _frame(b"s", b""),
    m.CopyDone: _frame(b"c", b""),
}


def _string(text: str) -> bytes:
    """Zero-terminated; what cannot be sent, a NUL or half a surrogate, becomes `?`."""
    return text.replace("\0", "?").encode("utf-8", "replace") + b"\0"


def _data_row(values: tuple[bytes | None, ...]) -> bytes:
    parts = [_INT16.pack(len(values))]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _field(field: m.Field) -> bytes:
    numbers = (field.table_oid, field.column, field.type_oid, field.type_size, field.type_modifier, field.format)
    return _string(field.name) + _FIELD.pack(*numbers)


def _diagnostic(message: m.ErrorResponse | m.NoticeResponse) -> bytes:
    fields = {
        b"S": message.severity,
        b"V": message.severity,
        b"C": message.sqlstate,
        b"M": message.message,
        b"D": message.detail,
        b"H": message.hint,
        b"P": None if message.position is None else str(message.position),
    }
    return b"".join(code + _string(text) for code, text in fields.items() if text is not None) + b"\0"


def _opening(
    message: m.AuthenticationOk
    | m.AuthenticationSasl
    | m.AuthenticationSaslContinue
    | m.AuthenticationSaslFinal
    | m.NegotiateProtocolVersion,
) -> bytes:
    match message:
        case m.AuthenticationOk():
            return _frame(b"R", _LENGTH.pack(_AUTHENTICATION_OK))
        case m.AuthenticationSasl(mechanisms):
            return _frame(b"R", _LENGTH.pack(_AUTHENTICATION_SASL) + b"".join(map(_string, mechanisms)) + b"\0")
        case m.AuthenticationSaslContinue(data):
            return _frame(b"R", _LENGTH.pack(_AUTHENTICATION_SASL_CONTINUE) + data)
        case m.AuthenticationSaslFinal(data):
            return _frame(b"R", _LENGTH.pack(_AUTHENTICATION_SASL_FINAL) + data)
        case m.NegotiateProtocolVersion(minor, options):
            numbers = struct.pack("!ii", _MAJOR << 16 | minor, len(options))
            return _frame(b"v", numbers + b"".join(map(_string, options)))
        case _:
            assert_never(message)
