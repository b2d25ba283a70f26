"""The server under clients that are slow, silent, greedy, early or hostile, seen from raw sockets."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest
from wire_server import SSL_REQUEST, FakeSession, Raw, Running, frame, make_certificate, serving, startup, wait_for

from dpsql.server import channel
from dpsql.server.limits import Limits
from dpsql.server.listen import Server
from dpsql.server.tls import Certificate

ROW = [b"T", b"D", b"C", b"Z"]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder)
    return Certificate(folder / "server.crt", folder / "server.key")


@pytest.fixture(scope="module")
def encrypted(certificate: Certificate) -> Iterator[Running]:
    with serving(certificate) as running:
        yield running


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# --- the start -----------------------------------------------------------------------------------------------------


def test_login_tells_what_clients_want_to_know(server: Running) -> None:
    with Raw(server.port) as client:
        facts = client.login()
        assert facts["server_version"] == "15.14"
        assert facts["client_encoding"] == facts["server_encoding"] == "UTF8"
        assert facts["DateStyle"] == "ISO, MDY"
        assert facts["integer_datetimes"] == facts["standard_conforming_strings"] == "on"
        assert int(facts["pid"]) == server.sessions[-1].pid > 0
        assert len(facts["secret"]) == 8
        client.query("SELECT 1")
        assert client.answer() == ROW
        client.send(frame(b"X"))
        assert client.rest() == b""


def test_encryption_requests_of_a_plain_server(server: Running) -> None:
    with Raw(server.port) as client:
        client.send(struct.pack("!ihh", 8, 1234, 5680))
        assert client.read(1) == b"N"
        client.send(SSL_REQUEST)
        assert client.read(1) == b"N"
        client.login()


@pytest.mark.parametrize(
    "data",
    [struct.pack("!I", length) + b"\0\3\0\0" for length in (0, 3, 10_001, 2**31, 2**32 - 1)]
    + [SSL_REQUEST + startup(), b"GET / HTTP/1.1\r\n\r\n"],
)
def test_hostile_start(server: Running, data: bytes) -> None:
    with Raw(server.port) as client:
        client.send(data)
        assert b"C08P01\0" in client.rest()


def test_bytes_after_ssl_request_are_not_carried_into_tls(encrypted: Running) -> None:
    with Raw(encrypted.port) as client:
        client.send(SSL_REQUEST + startup())
        answer = client.rest()
        assert answer[:1] == b"E"
        assert b"C08P01\0" in answer


@pytest.mark.parametrize(
    ("data", "sqlstate"),
    [(startup(user=""), "28000"), (startup(version=2 << 16), "0A000"), (startup(database="nowhere"), "3D000")],
)
def test_refused_startups(server: Running, data: bytes, sqlstate: str) -> None:
    with Raw(server.port) as client:
        client.send(data)
        if sqlstate == "3D000":
            client.prove()
        fields = client.fields()
        assert (fields["S"], fields["C"]) == ("FATAL", sqlstate)
        assert client.rest() == b""


def test_newer_protocol_is_negotiated_down(server: Running) -> None:
    with Raw(server.port) as client:
        client.send(startup(version=3 << 16 | 2, **{"_pq_.x": "1"}))
        assert client.message() == (b"v", struct.pack("!ii", 3 << 16, 1) + b"_pq_.x\0")
        client.prove()
        client.answer()
    assert server.sessions[-1].parameters == (("user", "alice"),)
    assert server.sessions[-1].database == "alice"


@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_failed_proofs_look_alike(server: Running, user: str) -> None:
    with Raw(server.port) as client:
        client.send(startup(user=user))
        client.prove("wrong")
        fields = client.fields()
        assert (fields["S"], fields["C"]) == ("FATAL", "28P01")
        assert fields["M"] == f'password authentication failed for user "{user}"'
        assert client.rest() == b""


def test_plain_text_is_for_this_machine_only(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "is_loopback", lambda peer: False)
    with Raw(server.port) as client:
        client.send(startup())
        fields = client.fields()
        assert (fields["C"], fields["H"]) == ("28000", "Connect with sslmode=require.")


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        (("127.0.0.1", 5), True), (("127.9.9.9", 5), True), (("::1", 5, 0, 0), True),
        (("::ffff:127.0.0.1", 5, 0, 0), True), (("10.0.0.1", 5), False), (("::ffff:10.0.0.1", 5, 0, 0), False),
        (("fe80::1%eth0", 5, 0, 2), False), (None, False), ("", False),
    ],
)  # fmt: skip
def test_loopback(peer: object, local: bool) -> None:
    assert channel.is_loopback(peer) is local


# --- TLS -----------------------------------------------------------------------------------------------------------


def test_early_bytes_survive_the_change_to_tls(encrypted: Running) -> None:
    """The StartupMessage comes in one segment with the end of the handshake; the ClientHello byte by byte."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting().wrap_bio(incoming, outgoing)
    with Raw(encrypted.port) as client:
        client.send(SSL_REQUEST)
        assert client.read(1) == b"S"
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        for byte in outgoing.read():
            client.send(bytes((byte,)))
        while True:
            incoming.write(client.socket.recv(65536))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                client.send(outgoing.read())
        tls.write(startup())
        client.send(outgoing.read())
        assert read_tls(client, tls, incoming)[:1] == b"R"


def test_bytes_that_are_no_tls_end_the_connection(encrypted: Running) -> None:
    for junk in (b"\x16\x03\x01\0\x05hello", b"GET / HTTP/1.1\r\n\r\n", startup(), b"\0" * 100_000):
        with Raw(encrypted.port) as client:
            client.send(SSL_REQUEST)
            assert client.socket.recv(1) == b"S"
            client.send(junk)
            with suppress(ConnectionError):
                while client.socket.recv(65536):
                    pass
    with psycopg.connect(encrypted.dsn(sslmode="require")) as client_of_ours:
        assert client_of_ours.execute("SELECT 1").fetchone() is not None


def test_a_handshake_that_hangs_does_not_hold_up_the_end(certificate: Certificate) -> None:
    with ExitStack() as clients:
        with serving(certificate) as running:
            for _ in range(3):
                client = clients.enter_context(Raw(running.port))
                client.send(SSL_REQUEST)
                assert client.read(1) == b"S"
                client.send(b"\x16\x03\x01")
            begun = time.monotonic()
        assert time.monotonic() - begun < 10


def read_tls(client: Raw, tls: ssl.SSLObject, incoming: ssl.MemoryBIO) -> bytes:
    while True:
        try:
            return tls.read(65536)
        except ssl.SSLWantReadError:
            incoming.write(client.socket.recv(65536))


def test_pending_handshakes_block_nobody(encrypted: Running) -> None:
    with Raw(encrypted.port) as silent, Raw(encrypted.port) as confused:
        silent.send(SSL_REQUEST)
        assert silent.read(1) == b"S"
        confused.send(SSL_REQUEST)
        assert confused.read(1) == b"S"
        confused.send(startup())
        confused.rest()
        with psycopg.connect(encrypted.dsn(sslmode="require")) as client:
            assert client.execute("SELECT 1").fetchone() == (1,)


def test_certificate_is_reloaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    make_certificate(tmp_path)
    certificate = Certificate(tmp_path / "server.crt", tmp_path / "server.key")
    first = certificate.current()
    assert certificate.current() is first
    (tmp_path / "server.crt").write_text("broken")
    assert certificate.current() is first
    make_certificate(tmp_path)
    os.utime(tmp_path / "server.crt", ns=(1, 1))
    second = certificate.current()
    assert second is not first
    assert second.binding != first.binding
    (tmp_path / "server.key").unlink()
    assert certificate.current() is second
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO", "ERROR"]


def test_new_connections_get_the_new_certificate(tmp_path: Path) -> None:
    make_certificate(tmp_path)
    certificate = Certificate(tmp_path / "server.crt", tmp_path / "server.key")
    with serving(certificate) as running, psycopg.connect(running.dsn(sslmode="require")) as old:
        make_certificate(tmp_path)
        root = {"sslmode": "verify-full", "sslrootcert": tmp_path / "server.crt", "channel_binding": "require"}
        with psycopg.connect(running.dsn(**root)) as new:
            assert new.execute("SELECT 1").fetchone() == (1,)
        assert old.execute("SELECT 1").fetchone() == (1,)


# --- deadlines -----------------------------------------------------------------------------------------------------

HASTY = Limits(startup=0.3, auth=0.3, message=0.3, idle=1.0, write=0.5)


@pytest.fixture(scope="module")
def hasty(certificate: Certificate) -> Iterator[Running]:
    with serving(certificate, HASTY) as running:
        yield running


@pytest.mark.parametrize("data", [b"", startup()[:3], SSL_REQUEST, startup(), startup() + b"p"])
def test_silence_before_login_is_cut_off(hasty: Running, data: bytes) -> None:
    with Raw(hasty.port) as client:
        client.send(data)
        began = time.monotonic()
        client.rest()
        assert time.monotonic() - began < 4


def test_a_message_has_a_deadline_however_it_trickles(hasty: Running) -> None:
    with Raw(hasty.port) as client:
        client.login()
        began = time.monotonic()
        try:
            for byte in frame(b"Q", b"x" * 100):
                client.send(bytes((byte,)))
                time.sleep(0.05)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert time.monotonic() - began < 4


def test_idle_sessions_end_with_a_word(hasty: Running) -> None:
    with Raw(hasty.port) as client:
        client.login()
        fields = client.fields()
        assert (fields["S"], fields["C"]) == ("FATAL", "57P05")


def test_who_does_not_read_is_cut_off(hasty: Running) -> None:
    with Raw(hasty.port) as client:
        client.login()
        client.query("BIG 100000")
        session = hasty.sessions[-1]
        assert wait_for(lambda: session.rows_sent > 0)
        time.sleep(1.0)
        assert session.rows_sent < 50_000
        client.rest()


# --- caps ----------------------------------------------------------------------------------------------------------


def test_too_many_sessions() -> None:
    with serving(limits=Limits(sessions=2)) as running, ExitStack() as stack:
        clients = [stack.enter_context(Raw(running.port)) for _ in range(3)]
        clients[0].login()
        clients[1].login()
        clients[2].send(startup())
        clients[2].prove()
        assert clients[2].fields()["C"] == "53300"
        clients[0].socket.close()
        assert wait_for(lambda: can_login(running))


def test_too_many_sessions_of_one_user() -> None:
    with serving(limits=Limits(user_sessions=2)) as running, ExitStack() as stack:
        clients = [stack.enter_context(Raw(running.port)) for _ in range(3)]
        clients[0].login()
        clients[1].login()
        clients[2].send(startup())
        clients[2].prove()
        assert clients[2].fields()["C"] == "53300"
        clients[0].socket.close()
        assert wait_for(lambda: can_login(running))


def test_a_failed_login_waits_for_its_answer() -> None:
    with serving(limits=Limits(failure=0.5)) as running, Raw(running.port) as client:
        client.send(startup())
        started = time.monotonic()
        client.prove("wrong")
        assert client.fields()["C"] == "28P01"
        assert time.monotonic() - started >= 0.5


def can_login(running: Running) -> bool:
    with Raw(running.port) as client:
        try:
            client.login()
        except AssertionError:
            return False
        return True


def test_too_many_that_have_not_logged_in() -> None:
    with serving(limits=Limits(pending=3)) as running, ExitStack() as stack:
        waiting = [stack.enter_context(Raw(running.port)) for _ in range(3)]
        with Raw(running.port) as client:
            assert client.fields()["C"] == "53300"
        waiting[0].socket.close()
        assert wait_for(lambda: can_login(running))


def test_silent_clients_block_nobody() -> None:
    with serving(limits=Limits(workers=1)) as running, ExitStack() as stack:
        clients = [stack.enter_context(Raw(running.port)) for _ in range(60)]
        for client in clients[:50]:
            client.send(startup())
        greedy = clients[50]
        greedy.login()
        greedy.query("BIG 20000")
        session = running.sessions[-1]
        assert wait_for(lambda: session.rows_sent > 100)
        with psycopg.connect(running.dsn()) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        assert session.rows_sent < 20_000
        assert greedy.answer().count(b"D") == 20_000


# --- statements ----------------------------------------------------------------------------------------------------


def test_conversation_byte_by_byte(server: Running) -> None:
    with Raw(server.port) as client:
        client.login()
        for byte in frame(b"Q", b"SELECT 1\0") * 2:
            client.send(bytes((byte,)))
        assert client.answer() == ROW
        assert client.answer() == ROW


def test_a_burst_of_statements(server: Running) -> None:
    with Raw(server.port) as client:
        client.login()
        client.send(frame(b"Q", b"SELECT 1\0") * 200 + frame(b"X"))
        assert [client.answer() for _ in range(200)] == [ROW] * 200
        assert client.rest() == b""


def test_answers_do_not_wait_for_the_next_statement(server: Running) -> None:
    with Raw(server.port) as client:
        client.login()
        client.send(frame(b"Q", b"SELECT 1\0") + frame(b"Q", b"SLEEP\0"))
        assert client.answer() == ROW
        server.sessions[-1].cancel()


def test_flush_without_sync(server: Running) -> None:
    with Raw(server.port) as client:
        client.login()
        client.send(frame(b"P", b"s\0SELECT $1\0\0\0") + frame(b"D", b"Ss\0") + frame(b"H"))
        assert [client.message()[0] for _ in range(3)] == [b"1", b"t", b"T"]
        client.send(frame(b"P", b"\0FAIL\0\0\0") + frame(b"D", b"Ss\0") + frame(b"H"))
        assert client.message()[0] == b"E"
        client.send(frame(b"D", b"Ss\0") + frame(b"S"))
        assert client.message()[0] == b"Z"


def test_a_long_statement_is_refused_and_the_connection_goes_on(server: Running) -> None:
    with Raw(server.port) as client:
        client.login()
        began = time.monotonic()
        client.send(frame(b"Q", b"'" + b"x" * 5_000_000 + b"\0"))
        assert client.fields()["C"] == "54001"
        assert client.message() == (b"Z", b"I")
        client.query("SELECT 1")
        assert client.answer() == ROW
        assert time.monotonic() - began < 5


@pytest.mark.parametrize("data", [b"Q\0\0\0\0", b"Q\0\0\0\3", b"Q\x80\0\0\0", b"Q\xff\xff\xff\xff", b"\0" * 9])
def test_broken_frames_end_the_session(server: Running, data: bytes) -> None:
    with Raw(server.port) as client:
        client.login()
        client.send(data)
        fields = client.fields()
        assert (fields["S"], fields["C"]) == ("FATAL", "08P01")
        assert client.rest() == b""


def test_a_fault_of_ours_tells_nothing(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    with Raw(server.port) as client:
        client.login()
        client.query("CRASH")
        fields = client.fields()
        assert (fields["S"], fields["C"]) == ("FATAL", "58000")
        assert "4711" not in "".join(fields.values())
    assert "ZeroDivisionError" in caplog.text
    assert "4711" not in caplog.text


# --- cancel --------------------------------------------------------------------------------------------------------


def cancel(port: int, pid: int, secret: bytes) -> None:
    with Raw(port) as client:
        client.send(struct.pack("!ihhi", 12 + len(secret), 1234, 5678, pid) + secret)
        assert client.rest() == b""


def test_only_the_right_keys_cancel(server: Running) -> None:
    with Raw(server.port) as client:
        facts = client.login()
        session = server.sessions[-1]
        pid, secret = int(facts["pid"]), bytes.fromhex(facts["secret"])
        client.query("SLEEP")
        assert session.sleeping.wait(5)
        wrong = bytes((secret[0] ^ 1,)) + secret[1:]
        for keys in ((pid, wrong), (pid ^ 1, secret), (pid, secret + b"x"), (0, b"\0" * 4)):
            cancel(server.port, *keys)
        assert not session.cancelled.is_set()
        cancel(server.port, pid, secret)
        assert client.fields()["C"] == "57014"
        assert client.message() == (b"Z", b"I")


def test_cancel_works_when_every_worker_is_busy() -> None:
    with serving(limits=Limits(workers=1)) as running, Raw(running.port) as client:
        facts = client.login()
        client.query("SLEEP")
        assert running.sessions[-1].sleeping.wait(5)
        cancel(running.port, int(facts["pid"]), bytes.fromhex(facts["secret"]))
        assert client.fields()["C"] == "57014"


def test_nothing_new_begins_for_a_client_that_has_left() -> None:
    with serving(limits=Limits(workers=1)) as running:
        with Raw(running.port) as busy, Raw(running.port) as leaver:
            busy.login()
            blocking = running.sessions[-1]
            leaver.login()
            session = running.sessions[-1]
            busy.query("SLEEP")
            assert blocking.sleeping.wait(5)
            leaver.query("BIG 5")
            time.sleep(0.1)
            leaver.socket.close()
            assert wait_for(session.cancelled.is_set)
            blocking.cancel()
            busy.answer()
        assert session.rows_sent == 0


# --- the end -------------------------------------------------------------------------------------------------------


def test_stop_lets_everyone_go() -> None:
    with ExitStack() as stack:
        with serving() as running:
            idle, busy, waiting = (stack.enter_context(Raw(running.port)) for _ in range(3))
            idle.login()
            busy.login()
            session = running.sessions[-1]
            busy.query("SLEEP")
            assert session.sleeping.wait(5)
            waiting.send(startup())
        assert session.cancelled.is_set()
        for client in (idle, busy):
            assert client.fields()["C"] == "57P01"
            assert client.rest() == b""


def test_an_address_in_use_is_an_error(server: Running) -> None:
    async def start() -> None:
        other = Server(FakeSession, dict, server.server.address)
        with pytest.raises(OSError, match="in use"):
            await other.start()
        await other.stop()

    asyncio.run(start())
