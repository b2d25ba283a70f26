"""Where the public server's folder is, and who may use it: one process at a time starts a server in one.

Decides: beside the ledger, under a name that says what is in it, so that a folder is right or is not found. The
holder of its lock runs the server and says in a file where; others of the same policy use that one. Any doubt, and it
is thrown away. What it must never do: let two servers run in one folder, or trust one that others could have made.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from dpsql.policy.model import Policy
from dpsql.public.postmaster import SOCKET, Place, give, remove
from dpsql.public.wheel import Identity, reachable

_LONGEST_SOCKET = 100
"""Bytes; a path of a socket may have 103 on some systems."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A folder that is ours until the lock is given up, or this process ends."""

    folder: Path
    descriptor: int

    def release(self) -> None:
        os.close(self.descriptor)


def home_of(policy: Policy, who: Identity | None) -> Path | None:
    """The folder of all servers of this policy, made where it is missing; None: there is no place to keep one."""
    scheme, _, rest = policy.ledger.partition(":")
    beside = Path(rest) if scheme == "sqlite" else policy.path
    wanted = beside.with_name(f"{beside.name}-public")
    return _made(wanted, who) or _kept_elsewhere(wanted, who)


_FOR = "for"
"""The file that says beside which ledger a folder would be."""


def _elsewhere(wanted: Path) -> Path:
    """Where the ledger's folder cannot be written to, or the server's user cannot pass through it."""
    name = sha256(str(wanted.absolute()).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"dpsql-{os.geteuid()}-{name}"


def _kept_elsewhere(wanted: Path, who: Identity | None) -> Path | None:
    """Removes those of ledgers whose folder is gone."""
    for other in Path(tempfile.gettempdir()).glob(f"dpsql-{os.geteuid()}-*"):
        with contextlib.suppress(OSError):
            if _ours(other, who) and not Path((other / _FOR).read_text(encoding="utf-8")).parent.is_dir():
                clean(other, "")
                shutil.rmtree(other, ignore_errors=True)
    home = _made(_elsewhere(wanted), who)
    if home is not None:
        (home / _FOR).write_text(str(wanted.absolute()), encoding="utf-8")
    return home


def _made(folder: Path, who: Identity | None) -> Path | None:
    try:
        if not folder.parent.is_dir() or not reachable(folder, who):
            return None
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        return folder if _ours(folder, who) and os.access(folder, os.W_OK) else None
    except OSError:
        return None


def _ours(folder: Path, who: Identity | None) -> bool:
    """Not a link, not another's, and closed to everybody but us, and the server's own group where it has one."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    if who is not None:
        os.chown(folder, -1, who.gid)
    folder.chmod(0o710 if who is not None else 0o700)
    return True


def new_folder(who: Identity | None) -> Path:
    """A passing one, for a server that nobody else uses."""
    folder = Path(tempfile.mkdtemp(prefix="dpsql-"))
    _ours(folder, who)
    return folder


def take(home: Path, key: str) -> Lock | None:
    """The lock on the folder of this key; None while another has it."""
    path = home / f"{key}.lock"
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return Lock(home / key, descriptor)
        os.close(descriptor)


def clean(home: Path, key: str) -> None:
    """Removes folders of other keys, which nobody uses."""
    for path in home.glob("*.lock"):
        if path.stem == key:
            continue
        lock = take(home, path.stem)
        if lock is not None:
            remove(lock.folder)
            path.unlink(missing_ok=True)
            lock.release()


def empty(folder: Path, who: Identity | None) -> None:
    """The folder, new, with nothing in it."""
    remove(folder)
    folder.mkdir(mode=0o700, parents=True)
    _ours(folder, who)


def place_in(folder: Path, who: Identity | None, *, passing: bool) -> Place:
    """The server's places in a folder. Sockets lie elsewhere where their path would be too long."""
    sockets, others = folder / "s", [folder] if passing else []
    if len(str(sockets / SOCKET)) > _LONGEST_SOCKET:
        sockets = Path(tempfile.mkdtemp(prefix="dpsql-s-"))
        others.append(sockets)
        _ours(sockets, who)
        sockets /= "s"
    sockets.mkdir(mode=0o700, exist_ok=True)
    give(sockets, who)
    data = folder / "data"
    if not data.exists():
        data.mkdir(mode=0o700)
        give(data, who)
    return Place(data, sockets, folder / "log", who, tuple(others))


def drop(place: Place) -> None:
    """What goes with the server."""
    for folder in place.passing:
        shutil.rmtree(folder, ignore_errors=True)
