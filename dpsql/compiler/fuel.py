"""What compiling one statement may cost: a tank of steps that every loop over values and trees draws from.

The limits of text and tokens bound what a statement says, not what follows from it: a format of 50 KB times every day
of a domain, each join's condition looked at for each table. A step is about a microsecond of work, wherever it is
spent, so that the tank bounds the whole of it. It is counted, not timed: whether a statement is refused with 54001
hangs on its text, the policy and the public tables alone. Every thousand steps the caller's `stop` is asked, which ends
the work of a client that has cancelled, left, or run out of time.

Nothing here may change what a statement compiles to, only whether it is compiled to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from dpsql.errors import TOO_COMPLEX, Rejected

MOST_STEPS = 1_000_000
"""Above two hundred times what the statements of the manual and of business intelligence tools take."""
_LOOK = 1_000


def _never() -> None:
    """Nobody stops what has no deadline and no client."""


@dataclass(slots=True)
class Tank:
    """Steps left; at `mark` it is looked whether to go on."""

    left: int
    mark: int
    stop: Callable[[], None]

    def look(self) -> None:
        if self.left < 0:
            hint = "Use fewer or shorter expressions, formats and joins, or ask in several statements."
            raise Rejected("The statement is too complex.", sqlstate=TOO_COMPLEX, hint=hint)
        self.mark = max(self.left - _LOOK, 0)
        self.stop()


_TANK: ContextVar[Tank | None] = ContextVar("tank", default=None)


@contextmanager
def metered(stop: Callable[[], None] = _never) -> Iterator[None]:
    """The block's work draws from one tank; inside of another such block, from that one's.

    `stop` raises what the client is told where the work is no longer wanted.
    """
    if _TANK.get() is not None:
        yield
        return
    token = _TANK.set(Tank(MOST_STEPS, MOST_STEPS - _LOOK, stop))
    try:
        yield
    finally:
        _TANK.reset(token)


def spend(steps: int = 1) -> None:
    """Takes so many steps before they are made. Raises Rejected 54001 where none are left, and what `stop` raises."""
    tank = _TANK.get()
    if tank is not None:
        tank.left -= steps
        if tank.left < tank.mark:
            tank.look()


def spent() -> int:
    """What has been taken so far."""
    tank = _TANK.get()
    return 0 if tank is None else MOST_STEPS - tank.left
