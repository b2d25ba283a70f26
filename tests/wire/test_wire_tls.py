"""TLS at the start of a connection: early, late and broken bytes, handshakes that hang, certificates that change."""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
import pytest
from wire_server import SSL_REQUEST, Raw, Running, certificate_in, make_certificate, serving, startup

from dpsql.server.tls import Certificate


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate_in(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def encrypted(certificate: Certificate) -> Iterator[Running]:
    with serving(certificate) as running:
        yield running


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_bytes_after_ssl_request_are_not_carried_into_tls(encrypted: Running) -> None:
    with Raw(encrypted.port) as client:
        client.send(SSL_REQUEST + startup())
        answer = client.rest()
        assert answer[:1] == b"E"
        assert b"C08P01\0" in answer


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
    certificate = certificate_in(tmp_path)
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
    told = [record.levelname for record in caplog.records if record.name == "dpsql.server.tls"]
    assert told == ["ERROR", "INFO", "ERROR"]


def test_new_connections_get_the_new_certificate(tmp_path: Path) -> None:
    certificate = certificate_in(tmp_path)
    with serving(certificate) as running, psycopg.connect(running.dsn(sslmode="require")) as old:
        make_certificate(tmp_path)
        root = {"sslmode": "verify-full", "sslrootcert": tmp_path / "server.crt", "channel_binding": "require"}
        with psycopg.connect(running.dsn(**root)) as new:
            assert new.execute("SELECT 1").fetchone() == (1,)
        assert old.execute("SELECT 1").fetchone() == (1,)
