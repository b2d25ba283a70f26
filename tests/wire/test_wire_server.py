"""The server under clients that are slow, silent, greedy, early or hostile, seen from raw sockets."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from wire_server import SSL_REQUEST, FakeSession, Raw, Running, frame, serving, startup, wait_for

from dpsql.server import channel
from dpsql.server.limits import Limits
from dpsql.server.listen import Server

ROW = [b"T", b"D", b"C", b"Z"]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving() as running:
        yield running


# --- the start -----------------------------------------------------------------------------------------------------


def test_login_tells_what_clients_want_to_know(server: Running) -> None:
    with Raw(server.port) as client:
        facts = client.login()
        assert facts["server_version"] == "18.4"
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
