"""The layout of backend messages, by example."""

from __future__ import annotations

import struct

import pytest

from dpsql.errors import Rejected
from dpsql.pgwire import messages as m
from dpsql.pgwire.encode import encode

CASES: list[tuple[m.BackendMessage, bytes]] = [
    (m.AuthenticationOk(), b"R\0\0\0\x08\0\0\0\0"),
    (m.AuthenticationSasl(("A", "B")), b"R\0\0\0\x0d\0\0\0\x0aA\0B\0\0"),
    (m.AuthenticationSaslContinue(b"x"), b"R\0\0\0\x09\0\0\0\x0bx"),
    (m.AuthenticationSaslFinal(b"x"), b"R\0\0\0\x09\0\0\0\x0cx"),
    (m.NegotiateProtocolVersion(0, ("_pq_.a",)), b"v\0\0\0\x13\0\x03\0\0\0\0\0\x01_pq_.a\0"),
    (m.ParameterStatus("a", "b"), b"S\0\0\0\x08a\0b\0"),
    (m.BackendKeyData(1, b"abcd"), b"K\0\0\0\x0c\0\0\0\x01abcd"),
    (m.ReadyForQuery("T"), b"Z\0\0\0\x05T"),
    (
        m.RowDescription((m.Field("n", 1700, -1, 655366, 1, 16384, 2),)),
        b"T\0\0\0\x1a\0\x01n\0" + struct.pack("!IHIhih", 16384, 2, 1700, -1, 655366, 1),
    ),
    (m.DataRow((b"ab", None, b"")), b"D\0\0\0\x14\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0"),
    (m.DataRow(()), b"D\0\0\0\x06\0\0"),
    (m.Raw(b"Z", b"Z\0\0\0\x05I", True), b"Z\0\0\0\x05I"),
    (m.CommandComplete("SELECT 1"), b"C\0\0\0\x0dSELECT 1\0"),
    (m.EmptyQueryResponse(), b"I\0\0\0\x04"),
    (m.ParseComplete(), b"1\0\0\0\x04"),
    (m.BindComplete(), b"2\0\0\0\x04"),
    (m.CloseComplete(), b"3\0\0\0\x04"),
    (m.NoData(), b"n\0\0\0\x04"),
    (m.PortalSuspended(), b"s\0\0\0\x04"),
    (m.ParameterDescription((20, 25)), b"t\0\0\0\x0e\0\x02\0\0\0\x14\0\0\0\x19"),
    (m.CopyOutResponse(1, (1, 1)), b"H\0\0\0\x0b\x01\0\x02\0\x01\0\x01"),
    (m.CopyData(b"x"), b"d\0\0\0\x05x"),
    (m.CopyDone(), b"c\0\0\0\x04"),
    (m.NoticeResponse("NOTICE", "00000", "hi"), b"N\0\0\0\x20SNOTICE\0VNOTICE\0C00000\0Mhi\0\0"),
    (
        m.ErrorResponse("ERROR", "42601", "m", "d", "h", 3),
        b"E\0\0\0\x26SERROR\0VERROR\0C42601\0Mm\0Dd\0Hh\0P3\0\0",
    ),
]


@pytest.mark.parametrize(("message", "data"), CASES, ids=lambda value: type(value).__name__)
def test_layout(message: m.BackendMessage, data: bytes) -> None:
    assert encode(message) == data


def test_every_message_has_an_example() -> None:
    assert {type(message) for message, _ in CASES} == set(m.BackendMessage.__args__)


def test_text_that_cannot_be_sent_breaks_no_frame() -> None:
    data = encode(m.ErrorResponse("ERROR", "42601", "a\0b\ud800"))
    assert b"Ma?b?\0" in data
    assert struct.unpack("!i", data[1:5])[0] == len(data) - 1


def test_error_response() -> None:
    error = Rejected("no", sqlstate="42601", hint="h", detail="d", position=4)
    assert m.error_response(error) == m.ErrorResponse("ERROR", "42601", "no", "d", "h", 4)
