"""A real server with a fake session behind it, for the tests of the wire. Not a test itself."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dpsql.errors import DpsqlError, Rejected
from dpsql.pgwire import messages as m
from dpsql.pgwire import values
from dpsql.pgwire.auth import make_verifier
from dpsql.server.limits import Limits
from dpsql.server.listen import Server
from dpsql.server.tls import Certificate
from dpsql.session.ports import OwnSessions
from dpsql.types import INT4, Column

USER, PASSWORD = "alice", "correct horse"
USERS = {USER: make_verifier(PASSWORD), "bob": make_verifier("staple")}
ROW = "x" * 1000
_PIDS = count(1)
REPORTED = {
    "server_version": "18.4",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}


@dataclass
class FakeSession:
    """Answers SELECT 1, echoes parameters, sleeps until cancelled, fails, and sends big results."""

    user: str
    database: str
    parameters: tuple[tuple[str, str], ...]
    mine: OwnSessions
    pid: int = field(default_factory=lambda: next(_PIDS))
    cancelled: threading.Event = field(default_factory=threading.Event)
    sleeping: threading.Event = field(default_factory=threading.Event)
    statements: dict[str, m.Parse] = field(default_factory=dict)
    bound: m.Bind = field(default_factory=lambda: m.Bind("", ""))
    rows_sent: int = 0
    asked: list[bytes] = field(default_factory=list)

    def greeting(self) -> tuple[m.BackendMessage, ...]:
        reported = {**REPORTED, "session_authorization": self.user}
        return tuple(m.ParameterStatus(name, value) for name, value in reported.items())

    def recall(self, asked: bytes) -> bytes | None:
        return None

    def remember(self, asked: bytes) -> None:
        self.asked.append(asked)

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        pass

    def handle(self, event: m.SessionMessage) -> Iterator[m.BackendMessage]:
        try:
            yield from self._handle(event)
        except DpsqlError as error:
            yield m.error_response(error)
            if isinstance(event, m.Query) or (isinstance(event, m.Unreadable) and event.simple):
                yield m.ReadyForQuery("I")

    def _handle(self, event: m.SessionMessage) -> Iterator[m.BackendMessage]:
        match event:
            case m.Query(text):
                yield from self._query(text)
                yield m.ReadyForQuery("I")
            case m.Parse(name):
                if event.text == "FAIL":
                    raise Rejected("no such statement", sqlstate="42601", position=1)
                self.statements[name] = event
                yield m.ParseComplete()
            case m.Bind():
                self.bound = event
                yield m.BindComplete()
            case m.Describe(kind, name):
                yield from self._describe(kind, name)
            case m.Execute():
                yield m.DataRow(tuple(self._echo()))
                yield m.CommandComplete("SELECT 1")
            case m.Close():
                yield m.CloseComplete()
            case m.Sync():
                yield m.ReadyForQuery("I")
            case m.FunctionCall():
                raise Rejected("no functions")
            case m.Unreadable():
                raise Rejected(event.message, sqlstate=event.sqlstate)
            case m.Flush() | m.Terminate():
                pass

    def _query(self, text: str) -> Iterator[m.BackendMessage]:
        match text.strip().rstrip(";").upper().split():
            case []:
                yield m.EmptyQueryResponse()
            case ["SELECT", "1"]:
                yield m.RowDescription((values.field(Column("?column?", INT4)),))
                yield m.DataRow((b"1",))
                yield m.CommandComplete("SELECT 1")
            case ["SELECT", "USER"]:
                yield m.RowDescription((values.field(Column("user", INT4)),))
                yield m.DataRow((self.user.encode(),))
                yield m.CommandComplete("SELECT 1")
            case ["SLEEP"]:
                self._sleep()
            case ["BIG", rows]:
                yield from self._big(int(rows))
            case ["CRASH"]:
                raise ZeroDivisionError(f"secret {4710 + 1}")
            case [command, *_] if command in ("BEGIN", "COMMIT", "ROLLBACK", "SET"):
                yield m.CommandComplete(command)
            case _:
                raise Rejected(
                    "syntax error", sqlstate="42601", position=1, hint="Say SELECT 1.", detail="There is no other."
                )

    def _sleep(self) -> None:
        self.cancelled.clear()
        self.sleeping.set()
        stopped = self.cancelled.wait(20)
        self.sleeping.clear()
        if stopped:
            raise Rejected("canceling statement due to user request", sqlstate="57014")

    def _big(self, rows: int) -> Iterator[m.BackendMessage]:
        yield m.RowDescription((m.Field("x", 25, -1),))
        for _ in range(rows):
            self.rows_sent += 1
            yield m.DataRow((ROW.encode(),))
        yield m.CommandComplete(f"SELECT {rows}")

    def _types(self, statement: str) -> list[int]:
        parse = self.statements[statement]
        wanted = parse.text.count("$")
        return [oid or 25 for oid in (*parse.types, *(0,) * wanted)[:wanted]]

    def _describe(self, kind: str, name: str) -> Iterator[m.BackendMessage]:
        statement = name if kind == "S" else self.bound.statement
        oids = self._types(statement)
        if kind == "S":
            yield m.ParameterDescription(tuple(oids))
        formats = values.formats(self.bound.result_formats if kind == "P" else (), len(oids))
        columns = [Column(f"c{i}", values.type_of(oid)) for i, oid in enumerate(oids)]
        yield m.RowDescription(tuple(map(values.field, columns, formats)))

    def _echo(self) -> Iterator[bytes | None]:
        oids = self._types(self.bound.statement)
        incoming = values.formats(self.bound.parameter_formats, len(oids))
        outgoing = values.formats(self.bound.result_formats, len(oids))
        for oid, data, code, back in zip(oids, self.bound.parameters, incoming, outgoing, strict=True):
            yield values.encode_value(values.decode_value(data, oid, code), values.type_of(oid), back)


@dataclass
class Running:
    """A server that runs in a thread of its own."""

    server: Server
    loop: asyncio.AbstractEventLoop
    sessions: list[FakeSession]

    @property
    def port(self) -> int:
        return self.server.address[1]

    def dsn(self, **more: object) -> str:
        fields: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": USER,
            "password": PASSWORD,
            "dbname": "flights",
            "connect_timeout": 10,
        }
        return " ".join(f"{key}='{value}'" for key, value in (fields | more).items())


@contextmanager
def serving(tls: Certificate | None = None, limits: Limits | None = None) -> Iterator[Running]:
    """A server on a free port of this machine, stopped at the end."""
    sessions: list[FakeSession] = []

    def make(user: str, database: str, parameters: tuple[tuple[str, str], ...], mine: OwnSessions) -> FakeSession:
        if database == "nowhere":
            raise Rejected('database "nowhere" does not exist', sqlstate="3D000")
        sessions.append(FakeSession(user, database, parameters, mine))
        return sessions[-1]

    server = Server(make, lambda: USERS, ("127.0.0.1", 0), tls, limits)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield Running(server, loop, sessions)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def make_certificate(folder: Path, name: str = "localhost") -> Path:
    """A self-made certificate `server.crt` with its key `server.key`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name), x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pkcs8 = serialization.PrivateFormat.PKCS8
    private = key.private_bytes(serialization.Encoding.PEM, pkcs8, serialization.NoEncryption())
    (folder / "server.key").write_bytes(private)
    (folder / "server.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "server.crt"


def startup(user: str = USER, version: int = 196608, **parameters: str) -> bytes:
    """A StartupMessage."""
    pairs = b"".join(f"{key}\0{value}\0".encode() for key, value in {"user": user, **parameters}.items())
    return struct.pack("!ii", len(pairs) + 9, version) + pairs + b"\0"


def frame(type: bytes, payload: bytes = b"") -> bytes:
    return type + struct.pack("!i", len(payload) + 4) + payload


SSL_REQUEST = struct.pack("!ihh", 8, 1234, 5679)


class Raw:
    """A client that sends what it likes."""

    def __init__(self, port: int) -> None:
        self.socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=10)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count and (more := self.socket.recv(count - len(data))):
            data += more
        return data

    def message(self) -> tuple[bytes, bytes]:
        """The next message's type and payload; empty at the end."""
        head = self.read(5)
        return (head[:1], self.read(struct.unpack("!i", head[1:])[0] - 4)) if len(head) == 5 else (b"", b"")

    def login(self, password: str = PASSWORD) -> dict[str, str]:
        """Startup and SCRAM; what ParameterStatus says, and `pid` and `secret` in hex."""
        self.send(startup())
        self.prove(password)
        facts: dict[str, str] = {}
        while (message := self.message())[0] != b"Z":
            if message[0] == b"S":
                name, value = message[1].decode().split("\0")[:2]
                facts[name] = value
            elif message[0] == b"K":
                facts |= {"pid": str(struct.unpack("!i", message[1][:4])[0]), "secret": message[1][4:].hex()}
            elif message[0] in (b"E", b""):
                raise AssertionError(message)
        return facts

    def prove(self, password: str = PASSWORD) -> None:
        assert self.message()[0] == b"R"
        bare = "n=,r=abc"
        initial = f"n,,{bare}".encode()
        self.send(frame(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(initial)) + initial))
        first = self.message()[1][4:].decode()
        nonce, salt, iterations = (part[2:] for part in first.split(",", 2))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
        key = hmac.digest(salted, b"Client Key", "sha256")
        unproved = f"c=biws,r={nonce}"
        signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{first},{unproved}".encode(), "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        self.send(frame(b"p", f"{unproved},p={proof}".encode()))

    def query(self, text: str) -> None:
        self.send(frame(b"Q", text.encode() + b"\0"))

    def answer(self) -> list[bytes]:
        """The types of the messages up to ReadyForQuery, or to the end."""
        types: list[bytes] = []
        while not types or types[-1] not in (b"Z", b""):
            types.append(self.message()[0])
        return types

    def fields(self) -> dict[str, str]:
        """The fields of an ErrorResponse, which must come next among notices and statuses."""
        while (message := self.message())[0] not in (b"E", b""):
            pass
        return {part[:1]: part[1:] for part in message[1].decode().split("\0") if part}

    def rest(self) -> bytes:
        """All up to the end of the connection; a reset is an end too."""
        data = b""
        try:
            while more := self.socket.recv(65536):
                data += more
        except (ConnectionResetError, ssl.SSLError):
            pass
        return data


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether the condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def certificate_in(folder: Path) -> Certificate:
    """A self-made one, as the server reads it."""
    make_certificate(folder)
    return Certificate(folder / "server.crt", folder / "server.key")
