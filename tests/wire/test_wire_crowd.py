"""A crowd of clients before a server with fake sessions: nobody waits for those that are silent or do not read."""

from __future__ import annotations

import gc
import os
import time

import pytest
from wire_crowd import Crowd, ask, burden, connect_and_leave, resident
from wire_server import Running, serving, wait_for


def settled(running: Running) -> bool:
    """Nobody is there any more."""
    return not running.server._clients


@pytest.mark.parametrize(
    "crowd", [Crowd(15, 20, 10), pytest.param(Crowd(50, 100, 49), marks=pytest.mark.slow)], ids=str
)
def test_crowd(crowd: Crowd) -> None:
    with serving() as running:
        with burden(running.port, crowd, "BIG 20000"):
            greedy = running.sessions[-1]
            assert wait_for(lambda: greedy.rows_sent > 0)
            took = ask(running.port, crowd.asking, 5, "SELECT 1")
            assert max(took) < 20
            time.sleep(0.2)
            assert greedy.rows_sent < 8_000  # what fits into the system's buffers, and one portion
        assert wait_for(lambda: settled(running))


@pytest.mark.parametrize("times", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_nothing_is_left_of_those_who_have_gone(times: int) -> None:
    """Memory after a first hundred is memory after all; no task, key or socket stays."""
    with serving() as running:
        connect_and_leave(running.port, 100)
        assert wait_for(lambda: settled(running))
        running.sessions.clear()
        gc.collect()
        before, files = resident(os.getpid()), len(os.listdir("/proc/self/fd"))
        connect_and_leave(running.port, times)
        assert wait_for(lambda: settled(running))
        running.sessions.clear()
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= files + 2
        assert not running.server._keys._open
        assert not running.server._by_user
        assert resident(os.getpid()) - before < 8 << 20
