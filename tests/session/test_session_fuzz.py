"""Broken byte streams: whatever comes, a connection answers or ends by the protocol, and keeps no memory of it."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from random import Random

import pytest
from session_fuzz import Drive, login

TURNS = 12


def fuzz(drive: Drive, seed: int, frames: int) -> None:
    random = Random(seed)
    while drive.frames < frames:
        drive.run(random, TURNS)


def resident() -> int:
    """Bytes of this process's memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_frames() -> None:
    drive = Drive()
    fuzz(drive, 20_240_601, 20_000)
    assert drive.ends > 100
    assert drive.answered > 4000


def test_logins() -> None:
    random = Random(7)
    proofs = sum(login(random) for _ in range(5000))
    assert 1000 < proofs < 4000


@pytest.mark.slow
def test_a_million_frames() -> None:
    """Memory after a tenth of them is memory after all."""
    drive = Drive()
    fuzz(drive, 1, 100_000)
    before = resident()
    fuzz(drive, 2, 1_000_000)
    assert resident() - before < 16 << 20
