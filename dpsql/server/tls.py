"""The server's certificate: the TLS context, its channel binding, and a new one when the files change."""

from __future__ import annotations

import hashlib
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

_log = logging.getLogger(__name__)
_WEAK = frozenset(("md5", "sha1"))


@dataclass(frozen=True, slots=True)
class Tls:
    """What one connection is encrypted with. `binding` is None where the certificate's signature names no hash."""

    context: ssl.SSLContext
    binding: bytes | None


def load(certificate: Path, key: Path) -> Tls:
    """Reads a chain and its key, both PEM. Raises OSError, ssl.SSLError or ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # so that writing never waits for the client
    context.set_alpn_protocols(["postgresql"])
    context.load_cert_chain(certificate, key)
    return Tls(context, end_point(certificate.read_bytes()))


def end_point(pem: bytes) -> bytes | None:
    """tls-server-end-point (RFC 5929, section 4.1): the certificate's hash by its own signature's, at least SHA-256."""
    certificate = x509.load_pem_x509_certificate(pem)
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in _WEAK else algorithm.name
    return hashlib.new(name, certificate.public_bytes(Encoding.DER)).digest()


class Certificate:
    """The certificate's files, read again when one of them has changed; a bad pair leaves the last good one in use."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._paths = (certificate, key)
        self._seen = self._stamps()
        self._tls = load(certificate, key)

    def current(self) -> Tls:
        """What a new connection is to use."""
        stamps = self._stamps()
        if stamps != self._seen:
            self._seen = stamps
            try:
                self._tls = load(*self._paths)
                _log.info("certificate reloaded")
            except (OSError, ValueError) as error:
                _log.error("certificate not reloaded, the last one stays in use: %s", type(error).__name__)
        return self._tls

    def _stamps(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_stamp, self._paths))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_ino, facts.st_size
