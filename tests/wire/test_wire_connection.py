"""The state machine: any split gives the same events, hostile bytes end it, phases follow the tables."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_server import SSL_REQUEST, frame, startup

from dpsql.errors import PROTOCOL, TOO_COMPLEX, Rejected
from dpsql.pgwire import messages as m
from dpsql.pgwire.connection import MAX_MESSAGE, MAX_SASL, OURS, RECEIVED, Connection, Phase
from dpsql.pgwire.frames import MAX_SKIPPED

GSSENC_REQUEST = struct.pack("!ihh", 8, 1234, 5680)
SASL_INITIAL = frame(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", 9) + b"n,,n=,r=a")
SASL_RESPONSE = frame(b"p", b"c=biws,r=a,p=AAAA")
ERROR = m.ErrorResponse("ERROR", "42601", "no")


def query(text: str) -> bytes:
    return frame(b"Q", text.encode() + b"\0")


PARSE = frame(b"P", b"s\0SELECT $1\0" + struct.pack("!HI", 1, 23))
BIND = frame(b"B", b"\0s\0" + struct.pack("!HHHi1siHH", 1, 1, 2, 1, b"x", -1, 1, 0))
SESSION = (
    query("SELECT 1")
    + PARSE
    + BIND
    + frame(b"D", b"Ss\0")
    + frame(b"E", b"\0" + struct.pack("!i", 5))
    + frame(b"C", b"P\0")
    + frame(b"H")
    + frame(b"S")
    + query("Grüße")
    + frame(b"d", b"ignored")
    + frame(b"P", b"bad")
    + PARSE
    + frame(b"S")
    + frame(b"F", struct.pack("!I", 7) + b"rest")
    + frame(b"X")
)
EVENTS: list[m.FrontendMessage] = [
    m.Query("SELECT 1"),
    m.Parse("s", "SELECT $1", (23,)),
    m.Bind("", "s", (1,), (b"x", None), (0,)),
    m.Describe("S", "s"),
    m.Execute("", 5),
    m.Close("P", ""),
    m.Flush(),
    m.Sync(),
    m.Query("Grüße"),
    m.Unreadable(False, PROTOCOL, "invalid message format: a string has no end"),
    m.Sync(),
    m.FunctionCall(7),
    m.Terminate(),
]
ANSWERS: dict[type[m.FrontendMessage], m.BackendMessage] = {
    m.Startup: m.AuthenticationSasl(("SCRAM-SHA-256",)),
    m.SaslInitial: m.AuthenticationSaslContinue(b""),
    m.SaslResponse: m.AuthenticationOk(),
    m.Query: m.ReadyForQuery("I"),
    m.FunctionCall: m.ReadyForQuery("I"),
    m.Sync: m.ReadyForQuery("I"),
    m.Unreadable: ERROR,
}


def drive(connection: Connection) -> list[m.FrontendMessage]:
    """All events that come out, each answered."""
    events: list[m.FrontendMessage] = []
    while (event := connection.next_event()) is not None:
        events.append(event)
        if isinstance(event, m.SSLRequest | m.GSSENCRequest):
            connection.send_encryption(False)
        elif type(event) in ANSWERS:
            connection.send(ANSWERS[type(event)])
        if connection.phase is Phase.STARTING:
            connection.send(m.ReadyForQuery("I"))
    return events


def ready() -> Connection:
    connection = Connection()
    for data in (startup(), SASL_INITIAL, SASL_RESPONSE):
        connection.receive(data)
        drive(connection)
    assert connection.phase is Phase.READY
    return connection


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(1, 40), max_size=60))
def test_any_split_gives_the_same_events(sizes: list[int]) -> None:
    connection, events, at = ready(), [], 0
    for size in (*sizes, len(SESSION)):
        connection.receive(SESSION[at : at + size])
        events += drive(connection)
        at += size
    assert events == EVENTS
    assert connection.closed


def test_one_byte_at_a_time_from_the_start() -> None:
    connection, events = Connection(), []
    for stage in (GSSENC_REQUEST, SSL_REQUEST, startup(database="d"), SASL_INITIAL, SASL_RESPONSE, SESSION):
        for at in range(len(stage)):
            connection.receive(stage[at : at + 1])
            events += drive(connection)
    assert events == [
        m.GSSENCRequest(),
        m.SSLRequest(),
        m.Startup((3, 0), (("user", "alice"), ("database", "d"))),
        m.SaslInitial("SCRAM-SHA-256", b"n,,n=,r=a"),
        m.SaslResponse(b"c=biws,r=a,p=AAAA"),
        *EVENTS,
    ]


def test_cancel_request() -> None:
    connection = Connection()
    connection.receive(struct.pack("!ihhi4s", 16, 1234, 5678, 77, b"abcd"))
    assert connection.next_event() == m.CancelRequest(77, b"abcd")
    assert connection.closed


# --- hostile bytes -------------------------------------------------------------------------------------------------


def refused(connection: Connection, data: bytes) -> Rejected:
    connection.receive(data)
    with pytest.raises(Rejected) as caught:
        connection.next_event()
    assert connection.closed
    assert connection.buffered == 0
    connection.receive(b"more")
    assert connection.next_event() is None
    return caught.value


@pytest.mark.parametrize("length", [0, 3, 7, 10_001, 2**31, 2**32 - 1])
def test_hostile_startup_length(length: int) -> None:
    assert refused(Connection(), struct.pack("!II", length, 196608)).sqlstate == PROTOCOL


@pytest.mark.parametrize("length", [0, 3, MAX_SKIPPED + 1, 2**31, 2**32 - 1])
def test_hostile_message_length(length: int) -> None:
    assert refused(ready(), b"Q" + struct.pack("!I", length)).sqlstate == PROTOCOL


def packet(major: int, minor: int, rest: bytes = b"") -> bytes:
    return struct.pack("!ihh", 8 + len(rest), major, minor) + rest


@pytest.mark.parametrize(
    "data",
    [
        packet(2, 0),
        packet(1234, 5681),
        packet(1234, 5678, b"\0\0\0\1"),
        packet(1234, 5678, b"\0\0\0\1" + b"x" * 257),
        packet(1234, 5679, b"\0\0\0\1"),
        packet(3, 0),
        packet(3, 0, b"user\0a\0"),
        packet(3, 0, b"user\0a"),
        packet(3, 0, b"user\0a\0\0\0"),
        packet(3, 0, b"user\0a\0user\0b\0\0"),
        packet(3, 0, b"user\0\xff\xff\0\0"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_bad_first_packet(data: bytes) -> None:
    refused(Connection(), data)


@pytest.mark.parametrize("data", [b"Z\0\0\0\4", frame(b"p", b"late"), startup(), SSL_REQUEST, b"\xff"])
def test_message_that_may_not_come(data: bytes) -> None:
    assert refused(ready(), data).sqlstate == PROTOCOL


def authenticating() -> Connection:
    connection = Connection()
    connection.receive(startup())
    drive(connection)
    return connection


def test_only_sasl_messages_during_authentication() -> None:
    assert refused(authenticating(), b"Q").sqlstate == PROTOCOL
    assert refused(authenticating(), frame(b"p", b"x" * MAX_SASL)).sqlstate == PROTOCOL
    assert refused(authenticating(), frame(b"p", b"SCRAM-SHA-256\0\0\0\0\xff")).sqlstate == PROTOCOL


def test_nothing_is_read_while_it_is_our_turn() -> None:
    connection = Connection()
    connection.receive(startup() + SASL_INITIAL)
    assert isinstance(connection.next_event(), m.Startup)
    assert connection.next_event() is None
    connection.send(m.AuthenticationSasl(("SCRAM-SHA-256",)))
    assert isinstance(connection.next_event(), m.SaslInitial)


@pytest.mark.parametrize("accept", [True, False])
def test_bytes_after_ssl_request_drop_the_connection(accept: bool) -> None:
    connection = Connection()
    connection.receive(SSL_REQUEST + startup())
    assert connection.next_event() == m.SSLRequest()
    with pytest.raises(Rejected):
        connection.send_encryption(accept)
    assert connection.closed


def test_encryption_is_asked_for_once() -> None:
    connection = Connection()
    connection.receive(SSL_REQUEST)
    connection.next_event()
    assert connection.send_encryption(True) == b"S"
    assert refused(connection, GSSENC_REQUEST).sqlstate == PROTOCOL
    connection = Connection()
    connection.receive(SSL_REQUEST)
    connection.next_event()
    assert connection.send_encryption(False) == b"N"
    assert refused(connection, SSL_REQUEST).sqlstate == PROTOCOL


# --- well-framed nonsense leaves the connection usable -------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "simple", "sqlstate"),
    [
        (frame(b"Q", b"\xff\0"), True, "22021"),
        (frame(b"Q", b"no end"), True, PROTOCOL),
        (frame(b"Q", b"a\0b\0"), True, PROTOCOL),
        (frame(b"D", b"X\0"), False, PROTOCOL),
        (frame(b"P", b"\0\0" + struct.pack("!H", 9)), False, PROTOCOL),
        (frame(b"B", b"\0\0" + struct.pack("!HHi", 0, 1, -2)), False, PROTOCOL),
        (frame(b"B", b"\0\0" + struct.pack("!HH", 0, 65535)), False, PROTOCOL),
        (frame(b"S", b"x"), False, PROTOCOL),
    ],
)
def test_unreadable(data: bytes, simple: bool, sqlstate: str) -> None:
    connection = ready()
    connection.receive(data + frame(b"S"))
    event = connection.next_event()
    assert isinstance(event, m.Unreadable)
    assert (event.simple, event.sqlstate) == (simple, sqlstate)
    connection.send(ERROR)
    if simple:
        connection.send(m.ReadyForQuery("I"))
    assert connection.next_event() == m.Sync()


def test_long_message_is_passed_over_without_being_kept() -> None:
    connection, rest = ready(), 5_000_000 - 5
    connection.receive(b"Q" + struct.pack("!I", 5_000_000 - 1))
    event = connection.next_event()
    assert isinstance(event, m.Unreadable)
    assert event.sqlstate == TOO_COMPLEX
    connection.send(m.ReadyForQuery("I"))
    while rest:
        size = min(rest, 100_000)
        connection.receive(b"(" * size)
        rest -= size
        assert connection.buffered == 0
        assert connection.next_event() is None
    connection.receive(query("SELECT 1"))
    assert connection.next_event() == m.Query("SELECT 1")


def test_longest_message_is_read() -> None:
    connection = ready()
    text = "x" * (MAX_MESSAGE - 5)
    connection.receive(query(text))
    assert connection.next_event() == m.Query(text)


def test_error_in_extended_protocol_skips_to_sync() -> None:
    connection = ready()
    connection.receive(PARSE + BIND + query("SELECT 1") + BIND + frame(b"S") + query("SELECT 1"))
    assert isinstance(connection.next_event(), m.Parse)
    connection.send(ERROR)
    assert connection.next_event() == m.Sync()
    connection.send(m.ReadyForQuery("I"))
    assert connection.next_event() == m.Query("SELECT 1")


def test_error_in_simple_query_skips_nothing() -> None:
    connection = ready()
    connection.receive(query("a") + query("b"))
    connection.next_event()
    connection.send(ERROR)
    assert connection.next_event() is None
    connection.send(m.ReadyForQuery("I"))
    assert connection.next_event() == m.Query("b")


def test_fatal_error_ends_it() -> None:
    connection = ready()
    connection.receive(query("a"))
    connection.send(m.ErrorResponse("FATAL", "57P01", "bye"))
    assert connection.next_event() is None
    assert connection.closed


def test_tables_move_only_out_of_the_clients_turns() -> None:
    assert not {phase for phase, _ in RECEIVED} & OURS


# --- fuzz ----------------------------------------------------------------------------------------------------------

TYPES = st.sampled_from([bytes((code,)) for code in b"QPBDECHSFXdcfpZ\0\xff"])
FRAMES = st.builds(frame, TYPES, st.binary(max_size=40))


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAMES | st.sampled_from([PARSE, BIND, query("a"), frame(b"S")]) | st.binary(max_size=9), max_size=12))
def test_fuzzed_frames(frames: list[bytes]) -> None:
    connection = ready()
    for data in frames:
        connection.receive(data)
        try:
            drive(connection)
        except Rejected:
            assert connection.closed


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_fuzzed_first_packets(payload: bytes, framed: bool) -> None:
    connection = Connection()
    connection.receive(struct.pack("!I", len(payload) + 4) + payload if framed else payload)
    try:
        connection.next_event()
    except Rejected:
        assert connection.closed
