"""Replies that may be given again, byte for byte: what a dashboard asks over and over costs a look-up.

Decides what may be kept: whole turns (one Query, or Parse to Sync) outside of a transaction, that read stored releases
or public tables only, and leave the session as they found it. It must never keep a reply that could be another one
the next time, nor outlive a change of settings or of prepared statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dpsql.pgwire import messages as wire
from dpsql.pgwire.encode import encode
from dpsql.pgwire.messages import BackendMessage, SessionMessage
from dpsql.session import replies
from dpsql.session.prepared import Prepared
from dpsql.types import Again

MAX_REPLY = 32 << 10
MAX_REPLIES = 64
_ROW = 7
"""Bytes of a DataRow without cells."""

_PLAIN = (
    wire.RowDescription,
    wire.DataRow,
    wire.CommandComplete,
    wire.ParseComplete,
    wire.BindComplete,
    wire.ParameterDescription,
    wire.ReadyForQuery,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """`unnamed` is the unnamed statement that the turn leaves, None for none; it counts only if `replaces`."""

    data: bytes
    text: str
    again: Again
    replaces: bool
    unnamed: Prepared | None


@dataclass(slots=True)
class Turn:
    """What is known of the turn so far. `lasting`: it may be given again. `harmless`: it changes nothing kept.

    `size`: at least so many bytes. What is too long to be kept is not even gathered: `keep` encodes what is here, in
    the event loop.
    """

    messages: list[BackendMessage] = field(default_factory=list)
    size: int = 0
    lasting: bool = True
    harmless: bool = True
    replaces: bool = False
    ended: bool = False
    text: str = ""
    again: Again | None = None

    def gather(self, message: BackendMessage) -> None:
        if isinstance(message, wire.DataRow):
            self.size += sum(len(cell) for cell in message.values if cell is not None) + _ROW
        self.lasting = self.lasting and isinstance(message, _PLAIN) and self.size <= MAX_REPLY
        if self.lasting:
            self.messages.append(message)
        else:
            self.messages.clear()


class Memory:
    """One session's. `follow` wraps the answer to each message; `keep` is then told the bytes that were answered."""

    def __init__(self) -> None:
        self._replies: dict[bytes, Reply] = {}
        self._turn = Turn()
        self._turns = 0

    def get(self, asked: bytes) -> Reply | None:
        return self._replies.get(asked)

    def ran(self, text: str, again: Again | None, harmless: bool) -> None:
        """A statement has run: a query that may be given again, another query, or something else."""
        turn = self._turn
        turn.harmless = turn.harmless and harmless
        turn.lasting = turn.lasting and again is not None and turn.again is None
        turn.text, turn.again = text, again
        turn.messages += map(replies.notice, again.notices if again is not None else ())

    def follow(self, event: SessionMessage, answers: Iterator[BackendMessage]) -> Iterator[BackendMessage]:
        if self._turn.ended:
            self._turn = Turn()
        self._look(event)
        for message in answers:
            turn = self._turn
            if not isinstance(message, wire.NoticeResponse):
                turn.gather(message)
            yield message
        if isinstance(event, wire.Query | wire.Sync):
            self._turn.ended = True
            self._turns += 1
            if not self._turn.harmless:
                self._replies.clear()

    def _look(self, event: SessionMessage) -> None:
        turn = self._turn
        match event:
            case wire.Query():
                turn.replaces = True
            case wire.Parse(name=""):
                turn.replaces = True
            case wire.Bind(portal="", statement=name):
                turn.lasting = turn.lasting and (bool(name) or turn.replaces)
            case wire.Describe() | wire.Execute(portal="", max_rows=0) | wire.Sync() | wire.Flush():
                pass
            case _:
                turn.lasting = turn.harmless = False

    def keep(self, asked: bytes, unnamed: Prepared | None) -> None:
        """What has been answered came as `asked`, all of it and nothing else; empty if that is not known."""
        turn, turns, self._turns = self._turn, self._turns, 0
        if not asked or turns != 1 or not turn.ended:
            # Part of a turn, or several: what follows cannot be told from these bytes.
            turn.lasting = False
        if not turn.lasting or turn.again is None or turn.messages[-1] != wire.ReadyForQuery("I"):
            return
        data = b"".join(map(encode, turn.messages))
        if len(data) <= MAX_REPLY and len(self._replies) < MAX_REPLIES:
            self._replies[asked] = Reply(data, turn.text, turn.again, turn.replaces, unnamed)
