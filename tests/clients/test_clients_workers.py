"""Several workers over TLS: real clients on each, and a cancel that comes encrypted to any of them."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from clients_world import make_shop, serving

SLOW = "SELECT COUNT(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b, pg_namespace"


def test_workers_over_tls(tmp_path: Path) -> None:
    with serving(make_shop(tmp_path), "--workers", "2") as served, ExitStack() as stack:
        clients = [stack.enter_context(psycopg.connect(served.dsn, autocommit=True)) for _ in range(4)]
        assert len({one.info.backend_pid >> 25 for one in clients}) == 2
        text = "SELECT state, COUNT(*) FROM orders GROUP BY state"
        answers = [one.execute(text).fetchall() for one in clients for _ in range(7)]
        assert all(answer == answers[0] for answer in answers)
        for one in clients:
            timer = threading.Timer(0.2, one.cancel_safe)
            timer.start()
            began = time.monotonic()
            with pytest.raises(psycopg.errors.QueryCanceled):
                one.execute(SLOW)
            assert time.monotonic() - began < 4
            timer.join()
