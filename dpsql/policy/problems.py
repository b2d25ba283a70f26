"""Problems of a policy: collected all at once, each with its place, what is wrong, and what to write instead.

Decides how a problem reads. Its text comes from the policy file and the backend's catalog only, and must never hold
a password or a data value.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dpsql.errors import BAD_PARAMETER, Rejected

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]

OPEN = "is open"
"""What is wrong with a decision that a draft leaves to a person."""


@dataclass(frozen=True, slots=True)
class Problem:
    """`line` is 1-based; 0 where the problem has no place in the file. `key` is dotted; empty for the whole file."""

    file: str
    line: int
    key: str
    what: str
    fix: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        key = f"{self.key}: " if self.key else ""
        return f"{place}: {key}{self.what}; {self.fix}"


class PolicyError(Rejected):
    """The policy is refused. `problems` holds all that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)), sqlstate=BAD_PARAMETER, hint=_next(self.problems))


def _next(problems: tuple[Problem, ...]) -> str | None:
    """What to do with a draft whose decisions are open."""
    count = sum(problem.what == OPEN for problem in problems)
    if not count:
        return None
    decisions = "1 decision is" if count == 1 else f"{count} decisions are"
    file = problems[0].file
    return f"{decisions} open: write your answer in place of each word DECIDE, then run: dpsql check {file}"


@dataclass(slots=True)
class Problems:
    """Collects problems of one file and finds their lines. Paths in `guessed` were filled in; they are not blamed.

    `undecided`: where the file leaves a decision open.
    """

    file: str
    lines: Lines = field(default_factory=dict)
    found: list[Problem] = field(default_factory=list)
    guessed: list[Path] = field(default_factory=list)
    undecided: list[Path] = field(default_factory=list)

    def add(self, path: Path, what: str, fix: str) -> None:
        if any(path[: len(guess)] == guess for guess in self.guessed):
            return
        problem = Problem(self.file, self.line(path), dotted(path), what, fix)
        if problem not in self.found:
            self.found.append(problem)

    def line(self, path: Path) -> int:
        """The line of the path, or of its nearest parent that stands in the file."""
        parents = (path[:length] for length in range(len(path), -1, -1))
        return next((self.lines[parent] for parent in parents if parent in self.lines), 0)

    def refuse_if_any(self) -> None:
        if self.found:
            raise PolicyError(sorted(self.found, key=lambda problem: problem.line))


def dotted(path: Path) -> str:
    """`("tables", "t", "values", 0)` -> `tables.t.values[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The fix for an unknown name: the nearest known one, else the list of them."""
    names = sorted(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if nearest:
        return f"did you mean `{nearest[0]}`?"
    if not names:
        return "remove it"
    return f"use one of {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
