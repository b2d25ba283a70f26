"""The public server of a policy, from the wheel: started, found, restarted, closed.

The server asks for no password: whoever reaches its socket is the proxy, which has asked for it already.

Decides who starts the server: the first process of a policy, in a folder beside the ledger that is kept for the next
start; others of the same policy use that one; where there is no such place, one of their own that goes with them. A
folder is used again only if it holds the same (its name says what) and was closed in order. What it must never do:
leave a process behind, or hand out a server that holds another policy's public half.
"""

from __future__ import annotations

import json
import os
import threading
import time
from hashlib import sha256
from pathlib import Path

from dpsql.errors import Failed
from dpsql.policy.schema import Schema
from dpsql.public import folder as folders
from dpsql.public import shadow, walls
from dpsql.public.build import fill
from dpsql.public.folder import Lock
from dpsql.public.groups import Group, groups, owner, role_of
from dpsql.public.load import PublicRows, Snapshot, marks
from dpsql.public.postmaster import MEMORY, SETTINGS, Postmaster, alone, answers, make, start
from dpsql.public.wheel import Programs, identity, programs, within_reach

LAYOUT = 1
"""Rises with every change of what a folder holds that its key does not say."""
PATIENCE = 60.0
"""Seconds that another process of the policy may take to make its server ready."""
_CLOSED, _READY = "closed", "ready"


class PublicServer:
    """A running public server; safe to use from several threads.

    Raises Rejected where there is nothing to start it from, Failed where it does not start.
    """

    def __init__(self, schema: Schema, rows: PublicRows | None = None, memory: int = MEMORY) -> None:
        self._schema = schema
        self._rows = Snapshot() if rows is None else rows
        self._memory = memory
        self._groups = groups(schema)
        self._who = identity()
        self._programs = programs()
        self._guard = threading.RLock()
        self._home = folders.home_of(schema.policy, self._who)
        self._lock: Lock | None = None
        self._server: Postmaster | None = None
        self._databases = {user: group.database for group in self._groups for user in group.users}
        self.owner = owner(schema.policy)
        self.key = public_key(schema, self._groups, self._rows, _postgres(self._programs))
        self.socket = Path()
        self.version = ""
        self._open()

    @property
    def database(self) -> str:
        """That of those who see all."""
        return self._groups[0].database

    @property
    def address(self) -> str:
        return f"host={self.socket.parent}"

    @property
    def pid(self) -> int | None:
        """Of the server's main process, where this process started it."""
        return None if self._server is None else self._server.pid

    def role_of(self, user: str) -> str:
        return role_of(user)

    def password_of(self, user: str) -> str | None:
        """None: the server asks for none."""
        return None

    def database_of(self, user: str) -> str:
        return self._databases[user]

    def alive(self) -> bool:
        """Whether it takes connections."""
        return (self._server is None or self._server.alive()) and answers(self.socket)

    def clients(self) -> int:
        """How many sessions there are, of all processes; 0 where another process started it."""
        return 0 if self._server is None else self._server.clients()

    def restart(self) -> None:
        """After a crash: a new server in a fresh folder. Nothing happens where it runs, or runs again by itself."""
        with self._guard:
            if self.alive():
                return
            self._stop(at_once=True)
            self._open()

    def close(self) -> None:
        with self._guard:
            self._stop(at_once=False)

    def __enter__(self) -> PublicServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._home is not None and time.monotonic() < deadline:
            self._lock = folders.take(self._home, self.key)
            if self._lock is not None:
                folders.clean(self._home, self.key)
                return self._kept(self._home, self._lock)
            if self._found(self._home / self.key):
                return None
            time.sleep(0.05)
        return self._passing()

    def _kept(self, home: Path, lock: Lock) -> None:
        """Ours: as it was left, if it was closed in order, or made anew."""
        closed, again = lock.folder / _CLOSED, False
        try:
            again = closed.exists()
            closed.unlink(missing_ok=True)
            (lock.folder / _READY).unlink(missing_ok=True)
            if again:
                self._start(home, lock.folder, passing=False)
        except (Failed, OSError):
            again = False
        try:
            if not again:
                self._anew(home, lock.folder, passing=False)
            self._say(lock.folder)
        except BaseException:
            self._stop(at_once=True)
            raise

    def _passing(self) -> None:
        folder = folders.new_folder(self._who)
        self._anew(folder, folder, passing=True)

    def _anew(self, home: Path, folder: Path, *, passing: bool) -> None:
        if not passing:
            folders.empty(folder, self._who)
        place = folders.place_in(folder, self._who, passing=passing)
        found = within_reach(self._programs, self._who, home)
        try:
            make(found, place, self.owner)
            alone(found, place, self.owner, walls.wall_ddl())
            self._begin(start(found, place, self._memory))
            fill(f"{self.address} user={self.owner}", self._schema, self._groups, self._rows)
        except BaseException:
            self._stop(at_once=True)
            folders.drop(place)
            raise

    def _start(self, home: Path, folder: Path, *, passing: bool) -> None:
        place = folders.place_in(folder, self._who, passing=passing)
        found = within_reach(self._programs, self._who, home)
        self._begin(start(found, place, self._memory))

    def _begin(self, server: Postmaster) -> None:
        self._server, self.socket = server, server.place.socket
        self.version = server.version()

    def _say(self, folder: Path) -> None:
        """Tells other processes of the policy where it is."""
        said = json.dumps({"socket": str(self.socket), "version": self.version})
        written = folder / f"{_READY}.new"
        written.write_text(said, encoding="utf-8")
        written.replace(folder / _READY)

    def _found(self, folder: Path) -> bool:
        """Whether another process runs one here."""
        try:
            said = json.loads((folder / _READY).read_text(encoding="utf-8"))
            place, version = Path(said["socket"]), str(said["version"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        if not answers(place):
            return False
        self._server, self.socket, self.version = None, place, version
        return True

    def _stop(self, *, at_once: bool) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop(at_once=at_once)
            folders.drop(server.place)
        lock, self._lock = self._lock, None
        if lock is not None:
            (lock.folder / _READY).unlink(missing_ok=True)
            if server is not None and not at_once and not server.crashed:
                (lock.folder / _CLOSED).touch()
            lock.release()


def public_key(schema: Schema, found: tuple[Group, ...], rows: PublicRows, postgres: str) -> str:
    """A name for all that a public server holds: equal names, equal contents."""
    parts: list[object] = [LAYOUT, postgres, schema.policy.dataset, schema.policy.epoch, owner(schema.policy)]
    parts += [walls.wall_ddl(), marks(schema, rows)]
    for group in found:
        parts += [group.database, group.users, group.views, shadow.shadow_ddl(schema, group.tables)]
        parts += [shadow.key_ddl(group.tables), shadow.estimates(schema, group.tables)]
    return sha256(repr(parts).encode(errors="surrogatepass")).hexdigest()[:24]


def _postgres(found: Programs) -> str:
    return repr((found.wheel, os.geteuid(), sorted(SETTINGS.items())))
