"""What the shell needs of a connection, and how a text becomes single statements.

Decides nothing about SQL: a text is split at its semicolons by the rules of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from dpsql.compiler.tokens import Token, scan
from dpsql.errors import Rejected
from dpsql.shell.results import Result

CONNECTION_FAILURE = "08006"


class Lost(Rejected):
    """The connection is gone, or could not be made."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, sqlstate=CONNECTION_FAILURE, hint=hint)


class Connection(Protocol):
    """One session of one user."""

    @property
    def user(self) -> str: ...

    @property
    def dataset(self) -> str: ...

    def run(self, statement: str) -> Result:
        """One statement's result. Raises Rejected (with position) or Failed as the engine does, and Lost."""
        ...

    def cancel(self) -> None:
        """Stops what runs now; called from another thread."""
        ...

    def reopen(self) -> None:
        """Connects again, as a new session. Raises Lost."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a text, and where it begins there."""

    text: str
    offset: int


def pieces(text: str) -> tuple[Piece, ...]:
    """The statements of a text, without their semicolons. Raises Rejected where its tokens do not end."""
    return tuple(_pieces(text, scan(text).tokens))


def _pieces(text: str, tokens: tuple[Token, ...]) -> Iterator[Piece]:
    start: int | None = None
    end = 0
    for token in tokens:
        if token.is_symbol(";"):
            if start is not None:
                yield Piece(text[start:end], start)
            start = None
        else:
            start = token.start if start is None else start
            end = token.end
    if start is not None:
        yield Piece(text[start:end], start)


def is_complete(text: str) -> bool:
    """Whether Enter runs the text: a command, or statements that end with a semicolon outside of quotes."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped.lower() in WORDS or command_below(text) is not None:
        return True
    try:
        tokens = scan(text).tokens
    except Rejected as error:
        return "unterminated" not in error.message and stripped.endswith(";")
    return bool(tokens) and tokens[-1].is_symbol(";")


def command_below(text: str) -> tuple[str, str] | None:
    """The text above its last line, and that line, where it is a command below a statement: outside of quotes."""
    above, _, last = text.rstrip().rpartition("\n")
    if not last.lstrip().startswith("\\") or not above.strip() or above.lstrip().startswith("\\"):
        return None
    try:
        scan(above)
    except Rejected as error:
        if "unterminated" in error.message:
            return None
    return above, last.strip()


WORDS = ("quit", "exit", "help")
"""What psql, too, understands without a backslash."""
