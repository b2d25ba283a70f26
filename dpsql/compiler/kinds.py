"""The kinds of statement that exist here: a closed set of frozen classes, made by `statements.split`.

Decides what may be said about a statement before anything is parsed. It must never grow a way to carry a text that
still holds comments, nor a statement that is not meant to be run (that is `Unsupported`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dpsql.errors import Rejected


@dataclass(frozen=True, slots=True)
class Empty:
    pass


@dataclass(frozen=True, slots=True)
class Select:
    """A query. `text` has blanks for comments and for the options' clause; it begins at `offset` of the whole text.

    `options` are those of SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...), as written, names in lower case.
    """

    text: str
    offset: int
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Explain:
    query: Select
    format: Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Begin:
    tag: Literal["BEGIN", "START TRANSACTION"]


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Rollback:
    pass


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class Set:
    """`value` None is DEFAULT; a list of values is joined by a comma and a blank, as Postgres shows it."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class SetCharacteristics:
    """SET TRANSACTION, SET SESSION CHARACTERISTICS, SET CONSTRAINTS: accepted; there is one way to read here."""


@dataclass(frozen=True, slots=True)
class Show:
    """`name` is `all` for SHOW ALL."""

    name: str


@dataclass(frozen=True, slots=True)
class Reset:
    """`name` is `all` for RESET ALL."""

    name: str


@dataclass(frozen=True, slots=True)
class Discard:
    what: Literal["ALL", "PLANS", "SEQUENCES", "TEMP"]


@dataclass(frozen=True, slots=True)
class Prepare:
    name: str
    types: tuple[str, ...]
    query: Select


@dataclass(frozen=True, slots=True)
class ExecutePrepared:
    """The arguments are literals in their text form; None is NULL."""

    name: str
    arguments: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Deallocate:
    """`name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Listening:
    """LISTEN, UNLISTEN, NOTIFY: accepted, and nothing ever arrives."""

    tag: Literal["LISTEN", "UNLISTEN", "NOTIFY"]


@dataclass(frozen=True, slots=True)
class Declare:
    """`scroll` None: neither SCROLL nor NO SCROLL was written."""

    name: str
    query: Select
    hold: bool = False
    scroll: bool | None = None
    binary: bool = False


Direction = Literal["forward", "backward", "absolute", "relative"]


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH, or MOVE if `move`. `count` None is ALL."""

    name: str
    direction: Direction
    count: int | None
    move: bool = False


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """`name` None is ALL."""

    name: str | None


@dataclass(frozen=True, slots=True)
class CopyOut:
    """COPY ... TO STDOUT. `options` as written, names in lower case: header, delimiter, null, quote, escape."""

    query: Select
    format: Literal["text", "csv", "binary"]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement that is never run. `position` counts characters of the whole text from 1."""

    verb: str
    sqlstate: str
    message: str
    hint: str | None = None
    position: int | None = None

    def error(self) -> Rejected:
        return Rejected(self.message, sqlstate=self.sqlstate, hint=self.hint, position=self.position)


Statement = (
    Empty
    | Select
    | Explain
    | Begin
    | Commit
    | Rollback
    | Savepoint
    | ReleaseSavepoint
    | RollbackTo
    | Set
    | SetCharacteristics
    | Show
    | Reset
    | Discard
    | Prepare
    | ExecutePrepared
    | Deallocate
    | Listening
    | Declare
    | Fetch
    | CloseCursor
    | CopyOut
    | Unsupported
)
