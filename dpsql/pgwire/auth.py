"""Who is there: SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, the server's side, without I/O (RFC 5802, RFC 7677, RFC 5929).

Decides whether a client has proved that it knows a user's password. The identity is the user of the StartupMessage;
the name inside the SASL messages is ignored, and an authorisation identity is refused. An unknown user is led through
the same messages with the same work, and fails at the end. Must never log or keep a password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from dpsql.errors import BAD_PARAMETER, BAD_PASSWORD, PROTOCOL, Rejected
from dpsql.pgwire import messages as m

SCRAM = "SCRAM-SHA-256"
SCRAM_PLUS = "SCRAM-SHA-256-PLUS"
ITERATIONS = 4096
"""Postgres's default; mocked users show the same."""
MAX_ITERATIONS = 10_000_000

_BINDING_TYPE = "tls-server-end-point"
_SALT_BYTES = 16
_NONCE_BYTES = 18
_VERIFIER = re.compile(r"SCRAM-SHA-256\$([1-9][0-9]{0,8}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
_FIRST = re.compile(
    r"(?P<gs2>(?P<flag>n|y|p=[A-Za-z0-9.-]+),(?P<authzid>a=[^,]*)?,)(?P<bare>n=[^,]*,r=(?P<nonce>[!-+\--~]+)(?:,.*)?)"
)
_FINAL = re.compile(
    r"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+)(?:,[^p][^,]*)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)


@dataclass(frozen=True, slots=True)
class Verifier:
    """What the server keeps instead of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = map(_encode64, (self.salt, self.stored_key, self.server_key))
        return f"{SCRAM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, salt: bytes | None = None, iterations: int = ITERATIONS) -> str:
    """A verifier as Postgres stores it in pg_authid."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", prepare(password), salt, iterations)
    stored_key = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
    return str(Verifier(iterations, salt, stored_key, _hmac(salted, b"Server Key")))


def parse_verifier(text: str) -> Verifier:
    """Raises Rejected 22023; the message does not hold the text."""
    match = _VERIFIER.fullmatch(text)
    try:
        salt, stored_key, server_key = map(_decode64, match.groups()[1:] if match else ())
    except ValueError:
        raise _bad_verifier() from None
    if match is None or not salt or len(stored_key) != 32 or len(server_key) != 32 or int(match[1]) > MAX_ITERATIONS:
        raise _bad_verifier()
    return Verifier(int(match[1]), salt, stored_key, server_key)


def mock_key(verifiers: Iterable[str]) -> bytes:
    """A secret that stays the same over restarts, so that a mocked salt does too."""
    return hashlib.sha256("\n".join(sorted(verifiers)).encode()).digest()


def mock_verifier(user: str, key: bytes) -> Verifier:
    """For an unknown user: a salt as stable as a real one, and keys that fit no password."""
    salt = _hmac(key, b"salt " + user.encode())[:_SALT_BYTES]
    return Verifier(ITERATIONS, salt, _hmac(key, b"stored " + user.encode()), _hmac(key, b"server " + user.encode()))


def bad_password(user: str) -> Rejected:
    """The one error of a failed proof, whatever the reason."""
    return Rejected(f'password authentication failed for user "{user}"', sqlstate=BAD_PASSWORD)


class Scram:
    """One exchange: `mechanisms`, then `challenge`, then `verdict`, each once.

    `stored` is the user's verifier; None stands for an unknown user. `binding` is the tls-server-end-point hash of
    the certificate where there is one; then, and only then, channel binding is offered, and a client that supports it
    must use it.
    Raises Rejected 22023 for a `stored` that is no verifier.
    """

    def __init__(
        self,
        user: str,
        stored: str | None,
        key: bytes,
        binding: bytes | None = None,
        nonce: str | None = None,
    ) -> None:
        self._user = user
        self._known = stored is not None
        mock = str(mock_verifier(user, key))
        self._verifier = parse_verifier(mock if stored is None else stored)
        self._binding = binding
        self._nonce = _encode64(secrets.token_bytes(_NONCE_BYTES)) if nonce is None else nonce
        self._expected_binding = b""
        self._transcript = ""

    @property
    def mechanisms(self) -> m.AuthenticationSasl:
        return m.AuthenticationSasl((SCRAM,) if self._binding is None else (SCRAM_PLUS, SCRAM))

    def challenge(self, message: m.SaslInitial) -> m.AuthenticationSaslContinue:
        """The server-first-message. Raises Rejected 08P01."""
        if message.mechanism not in self.mechanisms.mechanisms:
            raise _malformed("unknown SASL mechanism")
        match = _FIRST.fullmatch(_text(message.data or b""))
        if match is None or match["authzid"] is not None:
            raise _malformed("client-first-message")
        self._check_flag(match["flag"], message.mechanism)
        self._expected_binding = match["gs2"].encode()
        if message.mechanism == SCRAM_PLUS:
            self._expected_binding += self._binding or b""
        self._nonce = match["nonce"] + self._nonce
        answer = f"r={self._nonce},s={_encode64(self._verifier.salt)},i={self._verifier.iterations}"
        self._transcript = f"{match['bare']},{answer}"
        return m.AuthenticationSaslContinue(answer.encode())

    def verdict(self, message: m.SaslResponse) -> m.AuthenticationSaslFinal:
        """The server-final-message. Raises Rejected: 28P01 for a wrong proof, 08P01 for a broken message."""
        match = _FINAL.fullmatch(_text(message.data))
        if match is None:
            raise _malformed("client-final-message")
        if not hmac.compare_digest(match["nonce"], self._nonce):
            raise _malformed("nonce")
        if not hmac.compare_digest(_base64(match["binding"]), self._expected_binding):
            raise _malformed("channel binding does not match")
        transcript = f"{self._transcript},{match['unproved']}".encode()
        if not self._proves(_base64(match["proof"]), transcript):
            raise bad_password(self._user)
        signature = _hmac(self._verifier.server_key, transcript)
        return m.AuthenticationSaslFinal(f"v={_encode64(signature)}".encode())

    def _check_flag(self, flag: str, mechanism: str) -> None:
        """RFC 5802, section 6: the flag must fit the mechanism, and no one in between may have taken the offer away."""
        plus = mechanism == SCRAM_PLUS
        if plus != flag.startswith("p="):
            raise _malformed("channel binding flag does not fit the mechanism")
        if plus and flag != f"p={_BINDING_TYPE}":
            raise _malformed("unsupported channel binding type")
        if flag == "y" and self._binding is not None:
            raise _malformed("the client supports channel binding but thinks the server does not")

    def _proves(self, proof: bytes, transcript: bytes) -> bool:
        signature = _hmac(self._verifier.stored_key, transcript)
        if len(proof) != len(signature):
            raise _malformed("client proof")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        equal = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        return equal and self._known


def prepare(password: str) -> bytes:
    """SASLprep (RFC 4013); like libpq and Postgres, a password that it refuses is taken as it is."""
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    return (prepared if prepared and _permitted(prepared) else password).encode()


def _permitted(text: str) -> bool:
    if any(table(c) for c in text for table in _PROHIBITED):
        return False
    right_to_left = [stringprep.in_table_d1(c) for c in text]
    if not any(right_to_left):
        return True
    return right_to_left[0] and right_to_left[-1] and not any(map(stringprep.in_table_d2, text))


_PROHIBITED = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _encode64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _base64(text: str) -> bytes:
    try:
        return _decode64(text)
    except binascii.Error:
        raise _malformed("base64") from None


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("not UTF-8") from None


def _malformed(what: str) -> Rejected:
    return Rejected(f"malformed SCRAM message: {what}", sqlstate=PROTOCOL)


def _bad_verifier() -> Rejected:
    return Rejected(
        "not a SCRAM-SHA-256 verifier",
        sqlstate=BAD_PARAMETER,
        hint="`dpsql password` prints one; so does Postgres's pg_authid.rolpassword.",
    )
