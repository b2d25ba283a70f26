"""The public server of an engine: opened by the first session, kept as long as the policy's public half is the same.

Decides when one is started, and when it ends: a policy that is taken over goes on with the old one where its public
half is the same; else sessions stay where they are, and the old one goes with the last of them. Safe to use from
several threads.
"""

from __future__ import annotations

import threading
from typing import Final

from dpsql.errors import NOT_SUPPORTED, Rejected
from dpsql.policy.schema import Schema
from dpsql.public.place import Place
from dpsql.public.server import Public as Server
from dpsql.public.server import holds, open_public

_LOOK: Final = 2.0
"""Seconds between looks whether anybody is left in a server that is to go."""


class Public:
    """Of one schema. `open` starts or finds the server, and starts it again where it has ended."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lock = threading.Lock()
        self._server: Server | None = None
        self._closed = threading.Event()

    def open(self) -> Server:
        """Raises Rejected or Failed where there is none to be had."""
        with self._lock:
            if self._server is None:
                self._server = open_public(self._schema)
            elif not self._server.alive():
                self._server.restart()
            return self._server

    def place(self, user: str) -> Place:
        """Where a session of the user lives. Raises as `open`."""
        server = self.open()
        if server.socket is None:
            hint = "Name one that this machine reaches by a Unix socket: `public: postgresql:///?host=/run/postgresql`."
            raise Rejected("a public server over the network is not supported", sqlstate=NOT_SUPPORTED, hint=hint)
        return Place(str(server.socket), server.database_of(user), server.role_of(user))

    def serves(self, schema: Schema) -> bool:
        """Whether another policy's public half is the same."""
        return holds(self._schema) == holds(schema)

    def retire(self) -> None:
        """Closes it when the last session has left, in whichever process: another policy is in force."""
        threading.Thread(target=self._linger, daemon=True, name="dpsql-public").start()

    def _linger(self) -> None:
        while not self._closed.wait(_LOOK):
            with self._lock:
                server = self._server
            if server is None or not server.clients():
                self.close()

    def close(self) -> None:
        """At once, whoever is inside."""
        self._closed.set()
        with self._lock:
            server, self._server = self._server, None
            if server is not None:
                server.close()
