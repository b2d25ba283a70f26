"""All problems of a statement in one refusal: the first as the error itself, each other with its place in the DETAIL.

Decides what counts as a problem of its own. A part that can only fail because another one has (a column of a table that
does not exist) raises a `FollowUp`, which is never reported beside the problem that it follows from. The same sentence
is said once. Limits end the search: what exceeds them is not looked at further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from dpsql.errors import TOO_COMPLEX, Rejected

MAX_SHOWN = 20

T = TypeVar("T")


class FollowUp(Rejected):
    """A consequence of a problem that is reported elsewhere."""


class Problems:
    """The refusals found so far in parts that do not depend on each other."""

    def __init__(self) -> None:
        self.found: list[Rejected] = []

    def catch(self, part: Callable[[], T]) -> T | None:
        """The part's result; None where it is refused."""
        try:
            return part()
        except Rejected as error:
            if error.sqlstate == TOO_COMPLEX:
                raise
            self.found.append(error)
            return None

    def check(self) -> None:
        """Raises all of them as one, if there are any."""
        if self.found:
            raise _one(self.found)


def together(parts: Iterable[Callable[[], T]]) -> list[T]:
    """All results, or one refusal that holds every problem found."""
    problems = Problems()
    made = [problems.catch(part) for part in parts]
    problems.check()
    return [each for each in made if each is not None]


def _one(found: Iterable[Rejected]) -> Rejected:
    every = [single for error in found for single in _flat(error)]
    real = [error for error in every if not isinstance(error, FollowUp)] or every[:1]
    said: dict[str, Rejected] = {}
    for error in sorted(real, key=_place):
        said.setdefault(error.message, error)
    first, *others = said.values()
    first.others = tuple(others)
    return first


def _flat(error: Rejected) -> Iterator[Rejected]:
    others, error.others = error.others, ()
    yield error
    yield from others


def _place(error: Rejected) -> tuple[bool, int]:
    return error.position is None, error.position or 0


def detailed(error: Rejected, text: str, offset: int = 0) -> Rejected:
    """The refusal with its other problems as DETAIL, each at line:column, each hint once.

    `offset`: where in its first line the text begins.
    """
    if not error.others:
        return error
    lines, said = [], {error.hint, None}
    for other in error.others[:MAX_SHOWN]:
        hint = "" if other.hint in said else f" ({other.hint})"
        lines.append(f"Also{_at(other, text, offset)}: {other.message}{hint}")
        said.add(other.hint)
    more = len(error.others) - MAX_SHOWN
    error.detail = "\n".join([*lines, *([f"And {more} more."] if more > 0 else [])])
    return error


def _at(error: Rejected, text: str, offset: int) -> str:
    if error.position is None:
        return ""
    before = text[: error.position - 1]
    line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1) + 1
    return f" at {line + 1}:{column + (offset if line == 0 else 0)}"
