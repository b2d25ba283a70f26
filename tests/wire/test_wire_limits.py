"""Limits of the server: deadlines of slow and silent clients, and how many may come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

import psycopg
import pytest
from wire_server import SSL_REQUEST, FakeSession, Raw, Running, certificate_in, frame, serving, startup, wait_for

from dpsql.server.limits import Limits

HASTY = Limits(startup=0.3, auth=0.3, message=0.3, idle=1.0, write=0.5)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(certificate_in(tmp_path_factory.mktemp("tls")), HASTY) as running:
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


def test_one_user_leaves_threads_to_others() -> None:
    """All but one user's statements wait for a thread of that user's share; logins wait for none."""
    with serving(limits=Limits(workers=4)) as running, ExitStack() as stack:
        clients = [stack.enter_context(Raw(running.port)) for _ in range(8)]
        for client in clients:
            client.login()
            client.query("SLEEP")
        assert wait_for(lambda: sum(s.sleeping.is_set() for s in running.sessions) == 2)
        with psycopg.connect(running.dsn(user="bob", password="staple")) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
        assert sum(s.sleeping.is_set() for s in running.sessions) == 2
        for _ in range(4):
            asleep = [s for s in running.sessions if s.sleeping.is_set()]
            for session in asleep:
                session.cancel()
            assert wait_for(partial(_all_awake, asleep))
            time.sleep(0.1)
        assert not running.server._workers._shares


def _all_awake(sessions: list[FakeSession]) -> bool:
    return not any(session.sleeping.is_set() for session in sessions)
