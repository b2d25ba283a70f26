"""Many clients at once, most of them a burden: silent, stuck in their login, idle, not reading. Not a test itself."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from wire_server import PASSWORD, SSL_REQUEST, Raw, frame, startup

STARTS = (b"", startup()[:3], SSL_REQUEST[:5], startup(), startup() + frame(b"p")[:3])
"""How a client may fall silent before it has logged in."""


@dataclass(frozen=True)
class Crowd:
    """How many of each kind there are."""

    silent: int
    idle: int
    asking: int

    @property
    def all(self) -> int:
        return self.silent + self.idle + self.asking + 1


@contextmanager
def burden(port: int, crowd: Crowd, statement: str, password: str = PASSWORD) -> Iterator[Raw]:
    """The clients that do not ask: silent ones, idle ones, and one, which is given, that never reads."""
    with ExitStack() as stack:
        for at in range(crowd.silent):
            client = stack.enter_context(Raw(port))
            client.send(STARTS[at % len(STARTS)])
        for _ in range(crowd.idle):
            stack.enter_context(Raw(port)).login(password)
        greedy = stack.enter_context(Raw(port))
        greedy.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.login(password)
        greedy.send(frame(b"Q", statement.encode() + b"\0") * 50)
        yield greedy


def ask(port: int, clients: int, times: int, statement: str, password: str = PASSWORD) -> list[float]:
    """Seconds of each statement of so many clients at once, logins included."""
    took: list[float] = []

    def one() -> None:
        began = time.monotonic()
        with Raw(port) as client:
            client.login(password)
            for _ in range(times):
                client.query(statement)
                types = client.answer()
                assert b"D" in types, types
                took.append(time.monotonic() - began)
                began = time.monotonic()

    threads = [threading.Thread(target=one) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(took) == clients * times
    return took


def connect_and_leave(port: int, times: int, password: str = PASSWORD) -> None:
    """Comes and goes in every way: a question and a goodbye, a plain hang-up, a reset, half a login."""
    for at in range(times):
        with Raw(port) as client:
            if at % 4 == 3:
                client.send(STARTS[at // 4 % len(STARTS)])
                continue
            client.login(password)
            if at % 4 == 2:
                client.query("SELECT 1")
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                continue
            client.query("SELECT 1")
            client.answer()
            if at % 4:
                client.send(frame(b"X"))


def resident(pid: int) -> int:
    """Bytes of a process's memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
