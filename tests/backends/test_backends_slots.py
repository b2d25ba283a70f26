"""Time slots: what is held ends at their multiples, whatever became of it, and a cancel is answered at once."""

from __future__ import annotations

import threading
import time

import pytest

from dpsql.backends import slots
from dpsql.backends.slots import slotted
from dpsql.errors import Rejected
from dpsql.session.ports import CancelToken

SLOT = 0.2


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work takes as long as it takes."""
    monkeypatch.setattr(slots, "part_of", lambda slot: 0.0)


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


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("work", "count"), [(0.0, 1), (0.1, 1), (0.25, 2)])
def test_multiples(work: float, count: int, fails: bool) -> None:
    assert count * SLOT <= took(work, fails=fails) < (count + 0.9) * SLOT


def _longer(worked: float) -> float:
    """In which part of 4,000 answers the work takes two slots."""
    return sum(slots.held(worked, SLOT) > 1.5 * SLOT for _ in range(4000)) / 4000


@pytest.mark.parametrize("share", [0.2, 0.8, 0.95])
def test_a_second_slot_is_as_likely_as_the_first_is_full(share: float) -> None:
    """So no border of a slot tells on which side of it the work ended. Within 5 standard deviations."""
    assert abs(_longer(share * SLOT) - share) < 5 * (share * (1 - share) / 4000) ** 0.5


@pytest.mark.usefixtures("exact")
def test_mutant_without_chance_the_border_tells() -> None:
    assert (_longer(0.999 * SLOT), _longer(1.001 * SLOT)) == (0, 1)


def test_every_part_of_a_slot_is_drawn() -> None:
    parts = [slots.part_of(0.25) for _ in range(2000)]
    assert 0 <= min(parts) < 0.01
    assert 0.24 < max(parts) < 0.25


def test_off() -> None:
    assert took(0.0, slot=0.0) < 0.1


@pytest.mark.parametrize(("limit", "count"), [(0.01, 1), (0.2, 1), (0.21, 2), (-1.0, 1)])
def test_a_time_limit_ends_with_its_slot(limit: float, count: int) -> None:
    """Else a client could set one, and learn by its error whether the work had taken longer."""
    start = time.monotonic()
    with slotted(SLOT, start + limit, CancelToken()) as end:
        assert end - start == pytest.approx(count * SLOT, abs=0.05)


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
