"""The second place for the ledger's head: one small file that tells an old copy of a ledger from the newest.

It is written after each commit, so it may lag behind the ledger by what a crash cut off, but is never ahead of it. A
ledger that does not hold the entry named here is an older copy, or another ledger, and must not be served.
Rewritten in place at a fixed length under a lock, so that no reader sees half of it; synced at a start only, since an
anchor that lags proves a little less and costs each statement nothing.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import ETIMEDOUT
from pathlib import Path
from typing import Final

from dpsql.ledger.guard import PATIENCE
from dpsql.ledger.model import Head, LedgerError, LedgerUnavailable
from dpsql.types import Cost

_LINE: Final = re.compile(r"dpsql-anchor 1 ([0-9a-f]{64}) ([0-9]{20}) ([0-9a-f]{64})((?: [0-9]{40}){3})\n")
_LENGTH: Final = len("dpsql-anchor 1 ") + 64 + 1 + 20 + 1 + 64 + 3 * 41 + 1

_NAP: Final = 0.002
"""Seconds between attempts to hold it; whoever else does lets go at once."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What an anchor says: which ledger (the hash of its first entry), the newest head that it has seen, and what the
    dataset had spent by then, so that a restored backup can count it even where the entries are lost."""

    ledger: str
    head: Head
    spent: Cost


def create(path: Path, mark: Mark) -> None:
    """Write a new anchor durably. Raises LedgerError if there is a file already or it cannot be written."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, _encode(mark))
            os.fsync(file)
        finally:
            os.close(file)
    except FileExistsError:
        raise LedgerError(f"the anchor {path} exists already") from None
    except OSError as error:
        raise LedgerError(f"the anchor {path} cannot be written: {error.strerror}") from None


def read(path: Path) -> Mark:
    """What the anchor says. Raises LedgerError if it is missing or is not one."""
    with _locked(path, os.O_RDONLY) as file:
        return _decode(path, os.pread(file, _LENGTH + 1, 0))


def hold(path: Path) -> int:
    """The anchor as an open file that nobody else reads or moves on until it is closed. Raises LedgerError.

    TimeoutError where a program that has stopped, say, keeps it: whoever holds it keeps the ledger from all others.
    """
    with _faults(path):
        file = os.open(path, os.O_RDWR)
    try:
        with _faults(path):
            deadline = time.monotonic() + PATIENCE
            while not (held := _is_held(file)) and time.monotonic() < deadline:
                time.sleep(_NAP)
        if not held:
            raise TimeoutError(ETIMEDOUT, f"another program keeps {path} locked")
    except BaseException:
        os.close(file)
        raise
    return file


def _is_held(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def says(path: Path, file: int, expected: Mark) -> Mark:
    """What a held anchor says: mostly what is expected, which is told without reading its parts."""
    with _faults(path):
        data = os.pread(file, _LENGTH + 1, 0)
    return expected if data == _encode(expected) else _decode(path, data)


def put(path: Path, file: int, mark: Mark) -> None:
    """Let a held anchor, which is not ahead of this mark, say it."""
    with _faults(path):
        os.pwrite(file, _encode(mark), 0)


def replace(path: Path, mark: Mark) -> None:
    """Write an anchor anew, whatever it said: only by the operator's word. Raises LedgerError."""
    path.unlink(missing_ok=True)
    create(path, mark)


def advance(path: Path, mark: Mark) -> None:
    """Move the anchor on to this head durably, unless another process has moved it further. Raises LedgerError."""
    with _locked(path, os.O_RDWR) as file:
        known = _decode(path, os.pread(file, _LENGTH + 1, 0))
        if known.ledger != mark.ledger:
            raise LedgerError(f"the anchor {path} belongs to another ledger")
        if known.head.count < mark.head.count:
            os.pwrite(file, _encode(mark), 0)
        os.fsync(file)


def _encode(mark: Mark) -> bytes:
    spent = f"{mark.spent.epsilon:040d} {mark.spent.rho:040d} {mark.spent.delta:040d}"
    return f"dpsql-anchor 1 {mark.ledger} {mark.head.count:020d} {mark.head.hash} {spent}\n".encode("ascii")


def _decode(path: Path, data: bytes) -> Mark:
    match = _LINE.fullmatch(data.decode("latin-1"))
    if match is None:
        raise LedgerError(f"the anchor {path} is damaged", hint="Restore it, or the ledger and it, from a backup.")
    return Mark(match[1], Head(int(match[2]), match[3]), Cost(*(int(amount) for amount in match[4].split())))


@contextmanager
def _locked(path: Path, flags: int) -> Iterator[int]:
    with _faults(path):
        file = os.open(path, flags)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise LedgerUnavailable(
            f"the anchor {path} is missing, so the ledger cannot prove that it is the newest copy",
            hint="Restore the anchor; if this is the newest ledger for certain, `dpsql ledger init` makes a new one.",
        ) from None
    except OSError as error:
        raise LedgerUnavailable(f"the anchor {path} cannot be used: {error.strerror}") from None
