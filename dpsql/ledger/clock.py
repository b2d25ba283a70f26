"""What time it is for the ledger: never earlier than its last entry, and never later than can be shown.

Budget windows open by this time, so whoever moves the clock must gain nothing. Decides how much of what the wall clock
says is believed:

- back: the time of the last entry stands until the clock has caught up;
- forward, while the machine runs: at most what its boot clock, which nobody sets, says has passed since the last entry
  (and a thousandth more, so that a clock that was slow catches up);
- forward, where that cannot be known (the machine was restarted, or another machine wrote the last entry): at most
  `GRACE`. Such days are borrowed: when the clock is right again, the ledger's time stands until they are over;
- further: only by the operator's word, `dpsql ledger clock --accept`, which is an entry of its own.

What is not believed only delays windows; it never loses a debit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

SECOND: Final = 1_000_000
GRACE: Final = 7 * 86_400 * SECOND
SLACK: Final = 1000
"""One part in so many may be believed beyond what the boot clock shows."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The clocks now, in microseconds. `boot` names this run of the machine, "" if it has no name."""

    wall: int
    boot: str
    up: int

    def __str__(self) -> str:
        return f"{self.boot} {self.up}"


def reading() -> Reading:
    return Reading(time.time_ns() // 1000, _boot(), up())


def up() -> int:
    """Microseconds since the machine started, sleep included where the system tells it."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return (time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)) // 1000


@lru_cache(maxsize=1)
def _boot() -> str:
    try:
        return hashlib.sha256(Path("/proc/sys/kernel/random/boot_id").read_bytes()).hexdigest()[:12]
    except OSError:
        return ""


def since(state: str) -> int | None:
    """Microseconds since the boot clock stood so, as an entry names it; None if it was another boot's or machine's."""
    boot, _, then = state.partition(" ")
    now = reading()
    return now.up - int(then) if boot and boot == now.boot and then.isdigit() and int(then) <= now.up else None


class Clock:
    """The ledger's time in one process; knows when it saw the ledger's last entry, in its own boot clock.

    Begins with that entry's time and the state of the clock that it names.
    """

    def __init__(self, last: int, state: str, read: Callable[[], Reading] = reading) -> None:
        self._read = read
        now = read()
        boot, _, up = state.partition(" ")
        if boot and boot == now.boot and int(up) <= now.up:
            self._at, self._up = last, int(up)
        else:
            self._at, self._up = min(max(now.wall, last), last + GRACE), now.up

    def now(self, last: int) -> tuple[int, str]:
        """The ledger's time, given its last entry's, and the clock's name and state for the next one."""
        now = self._read()
        passed = max(0, now.up - self._up)
        most = self._at + passed + passed // SLACK
        if last > most:  # by another process, or by the operator's word
            self._at, self._up, most = last, now.up, last
        return max(last, min(now.wall, most)), str(now)

    def behind(self, last: int) -> int:
        """How far the wall clock is ahead of what is believed; windows are late by as much."""
        return max(0, self._read().wall - self.now(last)[0])
