"""Which rows a FETCH or MOVE covers and where the cursor stands after it. Pure arithmetic on row numbers."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.compiler.kinds import Fetch
from dpsql.errors import Rejected

NOT_SCROLLABLE = "55000"


@dataclass(frozen=True, slots=True)
class Move:
    """The rows covered, by index from 0, and the new position: 0 before the first row, total + 1 behind the last."""

    rows: range
    position: int


def move(fetch: Fetch, position: int, total: int, scroll: bool | None) -> Move:
    """Raises Rejected 55000 for going back in a NO SCROLL cursor."""
    result = _move(fetch, position, total)
    first = result.rows.start + 1 if result.rows else result.position
    if scroll is False and (first <= position and (result.rows or result.position < position)):
        raise Rejected(
            "cursor can only scan forward", sqlstate=NOT_SCROLLABLE, hint="Declare it with SCROLL option to go back."
        )
    return result


def _move(fetch: Fetch, position: int, total: int) -> Move:
    match fetch.direction:
        case "forward":
            return _along(position, total, fetch.count)
        case "backward":
            return _along(position, total, None if fetch.count is None else -fetch.count, back=fetch.count is None)
        case "absolute":
            count = fetch.count or 0
            return _to(count if count >= 0 else total + 1 + count, total)
        case "relative":
            return _to(position + (fetch.count or 0), total)


def _to(target: int, total: int) -> Move:
    """One row, or none beyond either end."""
    if 1 <= target <= total:
        return Move(range(target - 1, target), target)
    return Move(range(0), 0 if target < 1 else total + 1)


def _along(position: int, total: int, count: int | None, back: bool = False) -> Move:
    """`count` rows onward, backward if negative; None is all of them."""
    if count == 0:
        return _to(position, total)
    if back or (count is not None and count < 0):
        stop = 0 if count is None else max(position - 1 + count, 0)
        rows = range(position - 2, stop - 1, -1) if position >= 2 else range(0)
        return Move(rows, 0 if count is None or position + count < 1 else position + count)
    last = total if count is None else min(position + count, total)
    end = total + 1 if count is None or position + count > total else last
    return Move(range(min(position, total), last), end)
