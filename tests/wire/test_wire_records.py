"""TLS between buffers in memory, with a client of the standard library at the other end."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from wire_server import make_certificate

from dpsql.server.records import Records
from dpsql.server.tls import load


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    folder: Path = tmp_path_factory.mktemp("records")
    make_certificate(folder)
    return load(folder / "server.crt", folder / "server.key").context


class Client:
    """The other end."""

    def __init__(self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)

    def shake(self) -> bytes:
        """What the handshake has to say next; nothing at its end."""
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def say(self, data: bytes) -> bytes:
        self.tls.write(data)
        return self.outgoing.read()

    def hear(self, data: bytes) -> bytes:
        self.incoming.write(data)
        heard = b""
        while True:
            try:
                part = self.tls.read(65536)
            except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
                return heard
            if not part:
                return heard
            heard += part


def opened(context: ssl.SSLContext, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> tuple[Records, Client]:
    records, client = Records(context), Client(version)
    while said := client.shake():
        assert records.receive(said) == b""
        client.incoming.write(records.due())
    assert records.open
    return records, client


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_ways_in_any_pieces(context: ssl.SSLContext, version: ssl.TLSVersion) -> None:
    records, client = opened(context, version)
    random = Random(1)
    for size in (1, 100, 16_384, 16_385, 300_000):
        said = random.randbytes(size)
        sealed, heard = client.say(said), b""
        while sealed:
            piece = random.randrange(1, len(sealed) + 1) if size < 1000 else 10_000
            heard += records.receive(sealed[:piece])
            sealed = sealed[piece:]
        assert heard == said
        assert client.hear(records.send(said)) == said
    assert records.due() == b""


def test_a_client_that_says_the_end(context: ssl.SSLContext) -> None:
    records, client = opened(context)
    last = client.say(b"last")
    with pytest.raises(ssl.SSLError):
        client.tls.unwrap()
    assert records.receive(last + client.outgoing.read()) == b"last"
    assert records.ended
    client.incoming.write(records.close())
    client.tls.unwrap()


def test_the_end_is_said(context: ssl.SSLContext) -> None:
    records, client = opened(context)
    client.incoming.write(records.send(b"bye") + records.close())
    assert (client.tls.read(9), client.tls.read(9)) == (b"bye", b"")


def test_broken_bytes_are_refused(context: ssl.SSLContext) -> None:
    records, client = opened(context)
    sealed = bytearray(client.say(b"SELECT 1"))
    sealed[-1] ^= 1
    with pytest.raises(ssl.SSLError):
        records.receive(bytes(sealed))
    with pytest.raises(ssl.SSLError):
        records.receive(client.say(b"SELECT 2"))


def test_what_is_no_tls_is_refused(context: ssl.SSLContext) -> None:
    records = Records(context)
    with pytest.raises(ssl.SSLError):
        records.receive(b"GET / HTTP/1.1\r\n\r\n")
    assert not records.open


def test_writing_never_waits_for_the_client(context: ssl.SSLContext) -> None:
    assert context.options & ssl.OP_NO_RENEGOTIATION
