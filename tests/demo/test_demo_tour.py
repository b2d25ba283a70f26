"""The demo as its users run it: a whole tour over what an earlier one left, and a proxy that stays until told to go."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

DEMO = (sys.executable, "-c", "from dpsql.cli import main; main()", "demo")


def test_the_tour_shows_it_all(tmp_path: Path) -> None:
    folder = tmp_path / "dpsql-demo"
    folder.mkdir()
    for name in ("flights.ledger", "flights.duckdb"):
        (folder / name).write_text("an earlier demo's")
    done = subprocess.run(DEMO, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for expected in (
        "true value (demo only)",
        "334,264",
        "Price: epsilon 1; ",
        "Replay of a stored release",
        "ERROR 42501",
        "ERROR 53400",
        "HINT: ",
        "Price: epsilon 1 (rho ",
    ):
        assert expected in done.stdout
    assert "58000" not in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not [line for line in done.stdout.splitlines() if len(line.rstrip()) > 80]
    found = re.search(r"inside (\d+) of\s+(\d+)\s+intervals", done.stdout)
    assert found is not None
    assert int(found[2]) >= 30
    assert int(found[1]) >= 0.6 * int(found[2])  # of 95 % intervals: misses by chance with a probability below 1e-8


def test_serving_until_told_to_go(tmp_path: Path) -> None:
    with subprocess.Popen([*DEMO, "--serve"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = _address(process)
            with psycopg.connect(f"{address} password=alice-demo", autocommit=True) as connection:
                counted = connection.execute("SELECT count(*) FROM flights").fetchone()
            assert counted is not None
            assert 300_000 < counted[0] < 370_000
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(f"{address} password=alice-demo")


def _address(process: subprocess.Popen[str]) -> str:
    """The address in the psql command that is printed."""
    assert process.stdout is not None
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = re.search(r'PGPASSWORD=alice-demo psql "(.*)"', process.stdout.readline())
        if found is not None:
            return found[1]
    raise AssertionError("no psql command")
