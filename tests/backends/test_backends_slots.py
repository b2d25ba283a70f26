"""Time slots: what is held ends at their multiples, whatever became of it, and a cancel is answered at once."""

from __future__ import annotations

import threading
import time

import pytest

from dpsql.backends.slots import slotted
from dpsql.errors import Rejected
from dpsql.session.ports import CancelToken

SLOT = 0.2


def took(work: float, *, slot: float = SLOT, fails: bool = False) -> float:
    start = time.monotonic()
    try:
        with slotted(slot, start + 60, CancelToken()):
            time.sleep(work)
            if fails:
                raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    return time.monotonic() - start


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("work", "slots"), [(0.0, 1), (0.1, 1), (0.25, 2)])
def test_multiples(work: float, slots: int, fails: bool) -> None:
    assert slots * SLOT <= took(work, fails=fails) < (slots + 0.9) * SLOT


def test_off() -> None:
    assert took(0.0, slot=0.0) < 0.1


@pytest.mark.parametrize(("limit", "slots"), [(0.01, 1), (0.2, 1), (0.21, 2), (-1.0, 1)])
def test_a_time_limit_ends_with_its_slot(limit: float, slots: int) -> None:
    """Else a client could set one, and learn by its error whether the work had taken longer."""
    start = time.monotonic()
    with slotted(SLOT, start + limit, CancelToken()) as end:
        assert end - start == pytest.approx(slots * SLOT, abs=0.05)


def test_a_cancel_is_answered_at_once_and_nothing_is_kept() -> None:
    kept: list[int] = []
    cancel = CancelToken()
    threading.Timer(0.1, cancel.cancel).start()
    start = time.monotonic()
    with pytest.raises(Rejected) as error:
        hold(cancel, kept)
    assert error.value.sqlstate == "57014"
    assert time.monotonic() - start < 2
    assert kept == []


def hold(cancel: CancelToken, kept: list[int]) -> None:
    """The work is done long before the cancel comes; as the engine, it keeps what it got only after the slot."""
    with slotted(30, time.monotonic() + 60, cancel):
        pass
    kept.append(1)
