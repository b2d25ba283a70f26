"""One Postgres process tree in a folder: made, started, watched, stopped.

Decides its settings: no network, nothing kept safe on disk (nothing in it is worth keeping), nothing logged of what
clients ask, and limits: memory per process, temporary files, no background workers. A child process holds the end of
a pipe and stops the server as soon as this process is gone, however it ended. What it must never do: leave a process
behind, or start in a folder in which one still runs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from dpsql.errors import Failed
from dpsql.public.wheel import Identity, Programs, process_options

PORT = 5432
SOCKET = f".s.PGSQL.{PORT}"
MEMORY = 2 * 2**30
"""Bytes of address space that one process of the server may have; a Postgres that does nothing takes some 200 MB."""
START_SECONDS = 30.0
STOP_SECONDS = 8.0
"""Postgres itself kills what does not stop within five."""

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "max_connections": "300",
    "max_locks_per_transaction": "256",
    "superuser_reserved_connections": "5",
    "max_worker_processes": "0",
    "max_parallel_workers": "0",
    "max_wal_senders": "0",
    "max_prepared_transactions": "0",
    "max_replication_slots": "0",
    "max_logical_replication_workers": "0",
    "wal_level": "minimal",
    "fsync": "off",
    "full_page_writes": "off",
    "checkpoint_timeout": "1h",
    "min_wal_size": "2MB",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "track_counts": "off",
    "bgwriter_lru_maxpages": "0",
    "shared_buffers": "32MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "32MB",
    "temp_file_limit": "1GB",
    "jit": "off",
    "io_method": "sync",
    "huge_pages": "off",
    "dynamic_shared_memory_type": "mmap",
    "client_connection_check_interval": "1s",
    "restart_after_crash": "on",
    "log_min_messages": "fatal",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "logging_collector": "off",
    "event_source": "dpsql",
    "cluster_name": "dpsql",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "password_encryption": "scram-sha-256",
    "allow_alter_system": "off",
}
_RECENT = {"io_method": 18, "allow_alter_system": 17}
"""Settings that came with a version of Postgres."""

_HBA = "local all all trust\n"
"""Whoever may enter the socket's folder is the proxy, or runs as the user that the server runs as."""

_BLANK = re.compile(r"\n\s*\n")
_WATCH = 'read _; kill -QUIT "$1" 2>/dev/null; shift; [ $# = 0 ] || { sleep 1; rm -rf -- "$@"; }'
_LIMITED = 'ulimit -c 0; ulimit -v "$1"; shift; exec "$@"'


@dataclass(frozen=True, slots=True)
class Place:
    """A server's folders: `data` is Postgres's own, `sockets` holds its socket. `passing`: go with the server."""

    data: Path
    sockets: Path
    log: Path
    who: Identity | None
    passing: tuple[Path, ...] = ()

    @property
    def socket(self) -> Path:
        return self.sockets / SOCKET


class Postmaster:
    """A running server."""

    def __init__(
        self, program: str, place: Place, process: subprocess.Popen[bytes], watcher: subprocess.Popen[bytes]
    ) -> None:
        self.place = place
        self._program = program
        self._process = process
        self._watcher = watcher

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def crashed(self) -> bool:
        """Whether it ended in any other way than in order."""
        return self._process.returncode not in (0, None)

    def version(self) -> str:
        return subprocess.run(
            [self._program, "--version"], capture_output=True, text=True, check=True, env={}, timeout=10
        ).stdout.split()[-1]

    def clients(self) -> int:
        """How many sessions there are."""
        with contextlib.suppress(psutil.Error):
            return sum(_serves(child) for child in psutil.Process(self.pid).children())
        return 0

    def stop(self, *, at_once: bool = False) -> None:
        """Ends all its processes. Orderly, so that the folder may serve again, unless `at_once`."""
        self._watcher.kill()
        self._watcher.wait()
        if self._watcher.stdin is not None:
            self._watcher.stdin.close()
        if self.alive():
            self._process.send_signal(signal.SIGQUIT if at_once else signal.SIGINT)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        end_all(self.place.data)


def make(programs: Programs, place: Place, superuser: str) -> None:
    """Postgres's folder, new. Raises Failed."""
    command = [programs.at("initdb"), "-D", str(place.data), "-U", superuser, "-E", "UTF8", "--auth=trust"]
    command += ["--locale=C", "--no-sync", "--no-instructions", "--no-data-checksums", "--wal-segsize=1"]
    if _major(programs) >= 17:
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    done = subprocess.run(
        command, cwd=place.data.parent, capture_output=True, timeout=120, check=False, **process_options(place.who)
    )
    if done.returncode != 0:
        raise Failed(f"initdb: {done.stderr.decode(errors='replace').strip()[-500:]}")
    _write(place, "pg_hba.conf", _HBA)
    _write(place, "postgresql.auto.conf", "")
    _write(place, "postgresql.conf", "".join(f"{n} = '{v}'\n" for n, v in _settings(programs, place)))


def alone(programs: Programs, place: Place, superuser: str, lines: Sequence[str]) -> None:
    """Runs statements in `template1` before the server's first start. Raises Failed.

    What is made now has numbers below those of users' objects, so that clients take it for Postgres's own: pg_dump
    leaves it out, and reads views of the catalog only if they are Postgres's own.
    """
    command = [programs.at("postgres"), "--single", "-j", "-O", "-D", str(place.data), "-c", "exit_on_error=true"]
    script = ";\n\n".join(_BLANK.sub("\n", line).strip().rstrip(";") for line in lines) + ";\n\n"
    done = subprocess.run(
        [*command, "template1"],
        cwd=place.data.parent,
        input=script.encode(),
        capture_output=True,
        timeout=120,
        check=False,
        **process_options(place.who, PGUSER=superuser),
    )
    if done.returncode != 0:
        raise Failed(f"postgres --single: {done.stderr.decode(errors='replace').strip()[-500:]}")


def _major(programs: Programs) -> int:
    digits = programs.folder.parent.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 16


def _settings(programs: Programs, place: Place) -> Iterator[tuple[str, str]]:
    for name, value in SETTINGS.items():
        if _major(programs) >= _RECENT.get(name, 0):
            yield name, value
    yield "unix_socket_directories", str(place.sockets)


def _write(place: Place, name: str, text: str) -> None:
    (place.data / name).write_text(text, encoding="utf-8")


def start(programs: Programs, place: Place, memory: int = MEMORY) -> Postmaster:
    """Starts it and waits until it takes connections. Raises Failed."""
    end_all(place.data)
    (place.data / "postmaster.pid").unlink(missing_ok=True)
    with place.log.open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LIMITED, "dpsql", str(memory // 1024), programs.at("postgres"), "-D", str(place.data)],
            cwd=place.data,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **process_options(place.who),
        )
    server = Postmaster(programs.at("postgres"), place, process, _watch(process.pid, place))
    try:
        _wait(server)
    except BaseException:
        server.stop(at_once=True)
        raise
    return server


def _watch(pid: int, place: Place) -> subprocess.Popen[bytes]:
    """Reads from a pipe that only we hold: it ends when we do, by whatever signal."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "dpsql-watch", str(pid), *map(str, place.passing)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _wait(server: Postmaster) -> None:
    deadline, pause = time.monotonic() + START_SECONDS, 0.005
    while time.monotonic() < deadline:
        if not server.alive():
            raise Failed(f"postgres did not start: {tail(server.place.log)}")
        if answers(server.place.socket) and _ready(server.place):
            return
        time.sleep(pause)
        pause = min(0.05, pause * 1.2)
    raise Failed(f"postgres was not ready in time: {tail(server.place.log)}")


def _ready(place: Place) -> bool:
    """The last line of its pid file says so."""
    with contextlib.suppress(OSError):
        return (place.data / "postmaster.pid").read_text(encoding="utf-8").rstrip().endswith("ready")
    return False


def answers(path: Path) -> bool:
    """Whether something listens at the socket."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(str(path))
    except OSError:
        return False
    return True


def tail(log: Path) -> str:
    with contextlib.suppress(OSError):
        return log.read_text(encoding="utf-8", errors="replace").strip()[-500:]
    return ""


def _serves(process: psutil.Process) -> bool:
    """Whether it is a client's: its title says where from."""
    with contextlib.suppress(psutil.Error):
        return any("[local]" in part for part in process.cmdline())
    return False


def processes_in(data: Path) -> list[psutil.Process]:
    """All processes of a server: each works in its folder, and a backend leaves the server's process group."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith("postgres") and process.cwd() == str(data):
                found.append(process)
    return found


def end_all(data: Path) -> None:
    """Kills what is left of a server whose main process died, or that an earlier run has left behind."""
    left = processes_in(data.resolve())
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(left, timeout=STOP_SECONDS)


def remove(folder: Path) -> None:
    """A folder that nothing works in any more."""
    end_all(folder / "data")
    shutil.rmtree(folder, ignore_errors=True)


def give(path: Path, who: Identity | None) -> None:
    """Makes the path the server's own."""
    if who is not None:
        os.chown(path, who.uid, who.gid)
