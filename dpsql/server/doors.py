"""The listening sockets of several workers' parent, and how a client goes from them to a worker.

The parent accepts and hands each client's socket to the worker that has the fewest. So connections spread evenly
however few they are (the kernel's choice among sockets of one port, or a race for one socket, does not), none waits
in the queue of a worker that has died, and a port is free as soon as the parent has closed it. Must never read a byte
of a client: what is asked, and TLS, is the worker's business.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_BACKLOG: Final = 512
_BATCH: Final = 64
"""Clients that are let in before others are looked after."""
_PAUSE: Final = 0.5
"""Seconds without accepting after the system had no room for another socket."""

_log = logging.getLogger(__name__)


def listen(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host. Raises OSError, and then none is open."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[socket.socket] = []
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            made.append(socket.socket(family, socket.SOCK_STREAM))
            made[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made[-1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made[-1].bind(address)
            made[-1].listen(_BACKLOG)
            made[-1].setblocking(False)
    except OSError:
        for one in made:
            one.close()
        raise
    return made


class Doors:
    """Accepts while it is `open`; `take` gets each client, and says whether anyone could. Closed, clients wait."""

    def __init__(self, sockets: list[socket.socket], take: Callable[[socket.socket], bool]) -> None:
        self._sockets = sockets
        self._take = take
        self._open = False

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._sockets[0].getsockname()[:2]
        return host, port

    def open(self) -> None:
        if not self._open and self._sockets:
            self._open = True
            for one in self._sockets:
                asyncio.get_running_loop().add_reader(one, self._accept, one)

    def shut(self) -> None:
        """Lets nobody in for now: who comes waits in the system's queue."""
        self._open = False
        for one in self._sockets:
            asyncio.get_running_loop().remove_reader(one)

    def close(self) -> None:
        """For good: the port is free."""
        self.shut()
        for one in self._sockets:
            one.close()
        self._sockets = []

    def _accept(self, one: socket.socket) -> None:
        for _ in range(_BATCH):
            if not self._open:
                return
            try:
                client, _ = one.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.error("no client is let in for a moment: %s", error.strerror)
                self.shut()
                asyncio.get_running_loop().call_later(_PAUSE, self.open)
                return
            with client:
                if not self._take(client):
                    _log.error("a client was turned away: no worker took it")


def hand(client: socket.socket, over: socket.socket) -> bool:
    """Gives a client's socket to the process at the other end; false if it is gone, or takes none at the moment."""
    try:
        socket.send_fds(over, [b"c"], [client.fileno()])
    except OSError:
        return False
    return True


def receive(over: socket.socket, take: Callable[[socket.socket], None], ended: Callable[[], None]) -> None:
    """Gives `take` each client that `hand` sends, from now on; `ended` is called when the other end has closed."""
    over.setblocking(False)
    loop = asyncio.get_running_loop()

    def ready() -> None:
        with suppress(BlockingIOError, InterruptedError):
            data, descriptors, _, _ = socket.recv_fds(over, 1, 1)
            if not data:
                loop.remove_reader(over)
                ended()
            for descriptor in descriptors:
                take(socket.socket(fileno=descriptor))

    loop.add_reader(over, ready)
