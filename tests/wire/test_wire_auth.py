"""SCRAM by RFC 7677's vector, by a client written for the test, and what it must refuse."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.errors import Rejected
from dpsql.pgwire import auth
from dpsql.pgwire import messages as m

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
VERIFIER = auth.make_verifier("pencil", SALT)
KEY = b"k" * 32
BINDING = b"b" * 32


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_vector_of_rfc_7677() -> None:
    scram = auth.Scram("user", VERIFIER, KEY, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = scram.challenge(m.SaslInitial("SCRAM-SHA-256", b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))
    assert first.data == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = scram.verdict(
        m.SaslResponse(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
    )
    assert final.data == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def login(
    scram: auth.Scram,
    password: str = "pencil",
    header: str = "n,,",
    bare: str = "n=,r=abc",
    mechanism: str = auth.SCRAM,
    binding: bytes = b"",
    nonce: str | None = None,
    extension: str = "",
) -> m.AuthenticationSaslFinal:
    """A client's side of the exchange."""
    first = scram.challenge(m.SaslInitial(mechanism, (header + bare).encode())).data.decode()
    server_nonce, salt, iterations = (part[2:] for part in first.split(",", 2))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    unproved = f"c={b64(header.encode() + binding)},r={server_nonce if nonce is None else nonce}{extension}"
    transcript = f"{bare},{first},{unproved}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), transcript, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = scram.verdict(m.SaslResponse(f"{unproved},p={b64(proof)}".encode()))
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    assert final.data == f"v={b64(hmac.digest(server_key, transcript, 'sha256'))}".encode()
    return final


def scram(binding: bytes | None = None, stored: str | None = VERIFIER) -> auth.Scram:
    return auth.Scram("alice", stored, KEY, binding)


def test_logins() -> None:
    login(scram())
    login(scram(), header="y,,")
    login(scram(), bare="n=someone else,r=abc,x=extension", extension=",e=1")
    login(scram(BINDING))
    login(scram(BINDING), header="p=tls-server-end-point,,", mechanism=auth.SCRAM_PLUS, binding=BINDING)


def test_mechanisms() -> None:
    assert scram().mechanisms == m.AuthenticationSasl(("SCRAM-SHA-256",))
    assert scram(BINDING).mechanisms == m.AuthenticationSasl(("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"))


def refusal(exchange: auth.Scram, **changes: str | bytes) -> Rejected:
    with pytest.raises(Rejected) as caught:
        login(exchange, **changes)  # type: ignore[arg-type]
    return caught.value


def test_wrong_password_and_unknown_user() -> None:
    wrong, unknown = refusal(scram(), password="pen"), refusal(scram(stored=None))
    assert wrong.sqlstate == unknown.sqlstate == "28P01"
    assert wrong.message == unknown.message == 'password authentication failed for user "alice"'


def test_a_downgrade_is_seen() -> None:
    assert refusal(scram(BINDING), header="y,,").sqlstate == "08P01"


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": "SCRAM-SHA-1"},
        {"mechanism": auth.SCRAM_PLUS},
        {"header": "p=tls-server-end-point,,"},
        {"header": "n,a=bob,"},
        {"header": "x,,"},
        {"bare": "m=1,n=,r=abc"},
        {"bare": "n=,r="},
        {"bare": "n=,r=a\x7f"},
        {"bare": "n=,r=Ü"},
        {"bare": "r=abc"},
        {"nonce": "abc"},
        {"nonce": "replayed"},
        {"binding": b"x"},
    ],
)
def test_broken_messages(changes: dict[str, str | bytes]) -> None:
    assert refusal(scram(), **changes).sqlstate == "08P01"


@pytest.mark.parametrize(
    ("header", "binding"),
    [("p=tls-server-end-point,,", b"other"), ("p=tls-unique,,", BINDING), ("n,,", b""), ("y,,", b"")],
)
def test_broken_channel_binding(header: str, binding: bytes) -> None:
    error = refusal(scram(BINDING), mechanism=auth.SCRAM_PLUS, header=header, binding=binding)
    assert error.sqlstate == "08P01"


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"c=biws", b"c=!,r=x,p=x", b"c=biws,r=%b,p=AAAA", b"c=biw,r=%b,p=AAAA", b"c=biws,r=%b,p=A"]
)
def test_broken_proof(data: bytes) -> None:
    exchange = scram()
    first = exchange.challenge(m.SaslInitial(auth.SCRAM, b"n,,n=,r=abc")).data
    nonce = first.split(b",")[0][2:]
    with pytest.raises(Rejected) as caught:
        exchange.verdict(m.SaslResponse(data.replace(b"%b", nonce)))
    assert caught.value.sqlstate == "08P01"


def test_a_proof_is_good_once() -> None:
    first, second = scram(), scram()
    challenges = [each.challenge(m.SaslInitial(auth.SCRAM, b"n,,n=,r=abc")).data for each in (first, second)]
    assert challenges[0] != challenges[1]


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_fuzzed_messages(first: bytes, final: bytes) -> None:
    exchange = scram()
    with pytest.raises(Rejected):
        exchange.challenge(m.SaslInitial(auth.SCRAM, first))
    exchange.challenge(m.SaslInitial(auth.SCRAM, b"n,,n=,r=abc"))
    with pytest.raises(Rejected):
        exchange.verdict(m.SaslResponse(final))


def test_verifier_round_trip() -> None:
    verifier = auth.parse_verifier(VERIFIER)
    assert str(verifier) == VERIFIER
    assert (verifier.iterations, verifier.salt) == (4096, SALT)
    assert auth.make_verifier("pencil") != auth.make_verifier("pencil")


@pytest.mark.parametrize(
    "text",
    ["", "md5abc", VERIFIER[:-1], VERIFIER + "x", VERIFIER.replace("4096", "0"), VERIFIER.replace("4096", "99999999"),
     "SCRAM-SHA-256$4096:AA==$AA==:AA=="],
)  # fmt: skip
def test_bad_verifier(text: str) -> None:
    with pytest.raises(Rejected) as caught:
        auth.parse_verifier(text)
    assert caught.value.sqlstate == "22023"
    assert not text or text not in caught.value.message


def test_mocked_salt_is_stable_and_as_long_as_a_real_one() -> None:
    key = auth.mock_key({"a": VERIFIER}.values())
    mock = auth.mock_verifier("mallory", key)
    assert mock == auth.mock_verifier("mallory", auth.mock_key([VERIFIER]))
    assert mock.salt != auth.mock_verifier("trudy", key).salt
    real = auth.parse_verifier(auth.make_verifier("x"))
    assert (len(mock.salt), mock.iterations) == (len(real.salt), real.iterations)


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("\u0007", "\u0007"),
        ("\u0627\u0031", "\u0627\u0031"),
        ("a\u00a0b", "a b"),
        ("\u00ad", "\u00ad"),
    ],
)
def test_saslprep(password: str, prepared: str) -> None:
    """RFC 4013, section 3; what it prohibits is taken as it is."""
    assert auth.prepare(password) == prepared.encode()
