"""Time slots: what depends on private rows takes a multiple of `server.time_slot`, so that its time tells less.

Decides how long an answer is held back, and nothing else. The slots count from the start of what is held, not from the
clock's own multiples: a client that chooses when to ask could else move the border of a slot over the time that is to
be hidden, and measure it as finely as it likes. For the same reason the time limit, which a client may set, is moved on
to the end of its slot; and what is cancelled inside of a slot is never kept, or asking again (free or not) would tell
whether it had been done by then. Zero turns slots off.
"""

from __future__ import annotations

import math
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
            stopped.wait(start + _whole(time.monotonic() - start, slot) - time.monotonic())
        if stopped.is_set():
            with cancel.interrupting(stopped.set):  # which raises what a cancel is answered with
                pass


def _whole(seconds: float, slot: float) -> float:
    """The least multiple of the slot that is no less, and at least one."""
    return max(math.ceil(seconds / slot), 1) * slot
