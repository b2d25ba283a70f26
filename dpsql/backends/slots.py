"""Time slots: what depends on private rows takes a multiple of `server.time_slot`, so that its time tells less.

Decides how long an answer is held back, and nothing else. The slots count from the start of what is held, not from the
clock's own multiples: a client that chooses when to ask could else move the border of a slot over the time that is to
be hidden, and measure it as finely as it likes. For the same reason the time limit, which a client may set, is moved on
to the end of its slot; and what is cancelled inside of a slot is never kept, or asking again (free or not) would tell
whether it had been done by then. Zero turns slots off.

The work counts as longer by a random part of a slot, drawn anew each time. Else a client that makes its work end at the
border of a slot, which it can try out on public rows, would see of each answer on which side the work fell: a tenth of
a millisecond could be told. So the number of slots is larger by one with a probability that grows with the time taken:
d more seconds are seen in d/slot of all answers, whatever the client does, and each of them costs it budget.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dpsql.backends import Cancel


@contextmanager
def slotted(slot: float, deadline: float, cancel: Cancel) -> Iterator[float]:
    """Holds the block's end, also by an error, until the end of its slot; gives the deadline that the block is to keep.

    `slot` in seconds, `deadline` by the monotonic clock. Raises Rejected 57014 if a cancel came meanwhile.
    """
    if not slot:
        yield deadline
        return
    start = time.monotonic()
    try:
        yield start + _whole(deadline - start, slot)
    finally:
        stopped = threading.Event()
        with cancel.interrupting(stopped.set):
            stopped.wait(start + held(time.monotonic() - start, slot) - time.monotonic())
        if stopped.is_set():
            with cancel.interrupting(stopped.set):  # which raises what a cancel is answered with
                pass


def held(worked: float, slot: float) -> float:
    """How long the answer to so many seconds of work takes."""
    return _whole(worked + part_of(slot), slot)


def _whole(seconds: float, slot: float) -> float:
    """The least multiple of the slot that is no less, and at least one."""
    return max(math.ceil(seconds / slot), 1) * slot


def part_of(slot: float) -> float:
    """A random part of a slot, to the nanosecond."""
    return secrets.randbelow(int(slot * 1e9)) / 1e9
