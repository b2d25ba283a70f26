"""A structured fuzzer: valid sessions of clients, broken in every way a byte stream can be. Not a test itself.

Sessions are made of what clients send (their traced statements, in the simple and in the extended protocol, with
parameters of every type in both formats), then mutated: bits, bytes, counts, lengths, types, whole frames and their
order, and cut into pieces anywhere. `drive` is the server's part without sockets and threads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from session_fakes import COLUMNS, ROWS, FakeEngine

from dpsql.errors import INTERNAL, DpsqlError, Rejected
from dpsql.pgwire import messages as m
from dpsql.pgwire.auth import Scram, make_verifier
from dpsql.pgwire.connection import Connection
from dpsql.server.workers import Inbox, Turn
from dpsql.session.ports import Answer, CancelToken, Parameters, Settings
from dpsql.session.session import Session
from dpsql.types import Again, Relation

TRACES = Path(__file__).parent / "client_queries.sql"
OIDS = (
    0,
    16,
    17,
    18,
    19,
    20,
    21,
    23,
    25,
    26,
    114,
    700,
    701,
    1043,
    1082,
    1083,
    1114,
    1184,
    1186,
    1700,
    2950,
    3802,
    1007,
    1009,
)
TYPES = b"QPBDECHSXFpdcf"
COMMANDS = (
    "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT a", "ROLLBACK TO a", "RELEASE a", "SET dpsql.epsilon = 0.5",
    "SHOW ALL", "RESET ALL", "DISCARD ALL", "DECLARE c CURSOR WITH HOLD FOR SELECT city FROM t", "FETCH 3 FROM c",
    "MOVE ALL c", "CLOSE c", "PREPARE p AS SELECT $1", "EXECUTE p(1)", "DEALLOCATE p", "EXPLAIN SELECT 1 FROM t",
    "COPY (SELECT city FROM t) TO STDOUT (FORMAT csv, HEADER)", "COPY (SELECT city FROM t) TO STDOUT WITH BINARY",
    "SELECT 1 FROM t; SELECT missing FROM t; SELECT 2 FROM t", "", ";", "SET TIME ZONE 'UTC'", "LISTEN a", "UNLISTEN *",
)  # fmt: skip
_VERIFIER = make_verifier("secret", iterations=1)


@dataclass
class Engine(FakeEngine):
    """Keeps nothing, so that memory that grows is the session's."""

    def answer(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: CancelToken
    ) -> Answer:
        self._check(text, offset)
        return Answer(Relation(COLUMNS, ROWS), ("price 1",), None if "now" in text else Again(1, ("replay",), 1))

    def recalled(self, user: str, text: str, again: Again) -> bool:
        return True


@cache
def statements() -> tuple[str, ...]:
    """What clients were seen to ask, commands of a session, and questions to the fake engine."""
    traced = [text.strip() for text in TRACES.read_text().split(";;")]
    asked = ("SELECT city, n FROM t", "SELECT city FROM t WHERE n > $1 AND city = $2", "SELECT now() FROM t")
    return (*(text for text in traced if text and len(text) < 3000), *COMMANDS * 8, *asked * 30)


def frame(type: bytes, payload: bytes = b"") -> bytes:
    return type + struct.pack("!i", len(payload) + 4) + payload


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def turn(random: Random) -> list[bytes]:
    """The frames of one valid turn."""
    statement = random.choice(statements())
    if random.random() < 0.3:
        return [frame(b"Q", text(statement))]
    name, portal = random.choice(("", "", "s1", "s2")), random.choice(("", "", "p1"))
    count = statement.count("$1") + statement.count("$2")
    oids = [random.choice((0, 25, 25, random.choice(OIDS))) for _ in range(random.choice((0, count)))]
    frames = [frame(b"P", text(name) + text(statement) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))]
    if random.random() < 0.5:
        frames.append(frame(b"D", b"S" + text(name)))
    formats = [random.randrange(2) for _ in range(random.choice((0, 1, count)))]
    bind = text(portal) + text(name) + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
    bind += struct.pack("!H", count) + b"".join(parameter(random) for _ in range(count))
    wanted = [random.randrange(2) for _ in range(random.choice((0, 1, 2)))]
    frames.append(frame(b"B", bind + struct.pack(f"!H{len(wanted)}H", len(wanted), *wanted)))
    if random.random() < 0.5:
        frames.append(frame(b"D", b"P" + text(portal)))
    frames.append(frame(b"E", text(portal) + struct.pack("!i", random.choice((0, 0, 1, 3, 7)))))
    if random.random() < 0.2:
        frames.append(frame(b"C", random.choice((b"S" + text(name), b"P" + text(portal)))))
    if random.random() < 0.2:
        frames.append(frame(b"H"))
    return [*frames, frame(b"S")]


def parameter(random: Random) -> bytes:
    """Sometimes right by chance: the lengths are those that types have."""
    if random.random() < 0.1:
        return struct.pack("!i", -1)
    if random.random() < 0.5:
        return struct.pack("!i", 1) + b"7"
    value = random.choice((
        b"1", b"-1.5e3", b"t", b"2024-01-01", b"{1,2,NULL}", b'{"a":1}', b"1 day 02:00:00", b"NaN", b"infinity",
        random.randbytes(random.choice((0, 1, 2, 4, 8, 12, 16, 20, 24))), b"\x7f" + b"\xff" * 7, b"\0" * 16,
        struct.pack("!hhHhhh", 2, 1, 0x4000, 3, 10, 5000), struct.pack("!iiIii", 1, 0, 23, 2, 1) + b"\0\0\0\4\0\0\0\1",
    ))  # fmt: skip
    return struct.pack("!i", len(value)) + value


def mutated(frames: list[bytes], random: Random) -> bytes:
    """The frames with a few things wrong. Half of all streams stay whole frames, so that depth is reached."""
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        at = random.randrange(len(frames))
        one = bytearray(frames[at])
        match random.randrange(9):
            case 0 if len(one) > 5:  # a byte of the payload
                one[random.randrange(5, len(one))] = random.randrange(256)
            case 1 if len(one) > 7:  # a count or a length in it
                place = random.randrange(5, len(one) - 1)
                one[place : place + 2] = random.choice((b"\xff\xff", b"\x7f\xff", b"\0\0", b"\x80\0"))
            case 2 if len(one) > 5:  # a shorter payload, in a sound frame
                frames[at] = frame(bytes(one[:1]), bytes(one[5 : random.randrange(5, len(one))]))
                continue
            case 3:  # a longer one
                frames[at] = frame(bytes(one[:1]), bytes(one[5:]) + random.randbytes(random.randrange(1, 9)))
                continue
            case 4:  # another message
                one[0] = random.choice(TYPES)
            case 5:
                frames.insert(random.randrange(len(frames) + 1), bytes(one))
            case 6:
                random.shuffle(frames)
                continue
            case 7 if random.random() < 0.3:  # the frame's own length: the stream is out of step
                one[1:5] = struct.pack("!i", random.choice((-1, 0, 3, 5, 100, 1 << 21, 1 << 30)))
            case 8 if random.random() < 0.3:
                one[random.randrange(len(one))] ^= 1 << random.randrange(8)
        frames[at if at < len(frames) else -1] = bytes(one)
    return b"".join(frames)


def pieces(data: bytes, random: Random) -> Iterator[bytes]:
    """The stream as the network might deliver it."""
    while data:
        size = random.choice((1, 5, len(data), len(data), random.randrange(1, len(data) + 1)))
        yield data[:size]
        data = data[size:]


@dataclass
class Drive:
    """A server's part of one connection after another. Raises what is neither an answer nor an end by protocol."""

    engine: Engine = field(default_factory=Engine)
    frames: int = 0
    ends: int = 0
    answered: int = 0

    def run(self, random: Random, turns: int) -> None:
        """One connection, until its end or for so many turns."""
        with closing(Session(self.engine, "alice")) as session:
            self._turns(random, turns, session)

    def _turns(self, random: Random, turns: int, session: Session) -> None:
        connection = opened()
        inbox = Inbox(connection, session)
        for _ in range(turns):
            made = turn(random)
            if random.random() < 0.3:  # else most of a session is spent in a failed transaction
                made.append(frame(b"Q", text("ROLLBACK")))
            self.frames += len(made)
            try:
                for piece in pieces(mutated(made, random), random):
                    if (known := inbox.known(piece)) is not None:
                        self._look(known)
                        continue
                    inbox.receive(piece)
                    self._answer(connection, session, inbox)
            except Rejected:
                self.ends += 1
                return
            if connection.closed:
                return

    def _answer(self, connection: Connection, session: Session, inbox: Inbox) -> None:
        while (event := connection.next_event()) is not None and not isinstance(event, m.Terminate):
            assert isinstance(event, m.SessionMessage)
            turn = Turn(connection, session, event)
            while not turn.finished:
                self._look(turn.portion(1 << 16))
            inbox.answered()

    def _look(self, data: bytes) -> None:
        """Whole frames, and none that tells of a fault of ours."""
        self.answered += 1
        at = 0
        while at < len(data):
            (length,) = struct.unpack_from("!i", data, at + 1)
            if data[at : at + 1] == b"E":
                assert b"C" + INTERNAL.encode() + b"\0" not in data[at : at + 1 + length], data[at : at + 1 + length]
            at += 1 + length
        assert at == len(data)


def opened() -> Connection:
    """A connection after its login."""
    connection = Connection()
    connection.receive(struct.pack("!ii", 20, 196608) + b"user\0alice\0\0")
    assert isinstance(connection.next_event(), m.Startup)
    connection.send(m.AuthenticationSasl(("SCRAM-SHA-256",)))
    connection.receive(frame(b"p", b"SCRAM-SHA-256\0\0\0\0\0"))
    connection.next_event()
    connection.send(m.AuthenticationSaslContinue(b""))
    connection.receive(frame(b"p", b""))
    connection.next_event()
    for answer in (m.AuthenticationOk(), m.ReadyForQuery("I")):
        connection.send(answer)
    assert connection.at_rest
    return connection


def login(random: Random) -> bool:
    """A mutated login; whether it got as far as a proof. Raises what is not a DpsqlError."""
    connection = Connection()
    startup = b"user\0alice\0database\0demo\0options\0-c a=b\0_pq_.x\x001\0\0"
    packet = struct.pack("!ii", len(startup) + 8, random.choice((196608, 196610))) + startup
    bare = "n=,r=abc"
    initial = f"n,,{bare}".encode()
    scram = Scram("alice", _VERIFIER, b"key", nonce="server")
    proof = f"c=biws,r=abcserver,p={'A' * 43}=".encode()
    steps = [
        [random.choice((b"", struct.pack("!ihh", 8, 1234, 5679))) + packet],
        [frame(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(initial)) + initial)],
        [frame(b"p", proof)],
    ]
    broken = random.randrange(4)
    try:
        for at, step in enumerate(steps):
            connection.receive(mutated(step, random) if at == broken else b"".join(step))
            while (event := connection.next_event()) is not None:
                _reply(connection, scram, event)
    except DpsqlError as error:
        return error.sqlstate == "28P01"
    return False


def _reply(connection: Connection, scram: Scram, event: m.FrontendMessage) -> None:
    match event:
        case m.SSLRequest() | m.GSSENCRequest():
            connection.send_encryption(False)
        case m.Startup():
            connection.send(scram.mechanisms)
        case m.SaslInitial():
            connection.send(scram.challenge(event))
        case m.SaslResponse():
            connection.send(scram.verdict(event))
