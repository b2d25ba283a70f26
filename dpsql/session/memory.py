"""Replies that may be given again, byte for byte: what a dashboard asks over and over costs a look-up.

Decides what may be kept: whole turns (one Query, or Parse to Sync) outside of a transaction, of one query that the
engine answered from what is stored, and that leave the session as they found it. It must never keep a reply that could
be another one the next time: whatever else a client says, settings above all, empties it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dpsql.pgwire import messages as wire
from dpsql.pgwire.encode import encode
from dpsql.pgwire.messages import BackendMessage, SessionMessage
from dpsql.session import replies
from dpsql.session.asked import Prepared
from dpsql.types import Again

MAX_REPLY: Final = 32 << 10
MAX_REPLIES: Final = 64


@dataclass(frozen=True, slots=True)
class Reply:
    """`unnamed`: the unnamed statement that the turn leaves, None for none; it counts only if `replaces`."""

    data: bytes
    text: str
    again: Again
    replaces: bool
    unnamed: Prepared | None


@dataclass(slots=True)
class Turn:
    """What is known of the turn so far. `lasting`: it may be given again. `harmless`: it changes nothing kept."""

    said: list[bytes] = field(default_factory=list)
    size: int = 0
    lasting: bool = True
    harmless: bool = False
    replaces: bool = False
    ended: bool = False
    text: str = ""
    again: Again | None = None


class Memory:
    """One session's. `follow` wraps the answer to each message; `keep` is then told the bytes that were answered."""

    def __init__(self) -> None:
        self._replies: dict[bytes, Reply] = {}
        self._turn = Turn()
        self._turns = 0

    def get(self, asked: bytes) -> Reply | None:
        return self._replies.get(asked)

    def ran(self, text: str, again: Again | None) -> None:
        """A query has been answered by the engine; `again`: and may be so again."""
        turn = self._turn
        turn.lasting = turn.lasting and again is not None and turn.again is None
        turn.harmless, turn.text, turn.again = True, text, again

    def follow(self, event: SessionMessage, answers: Iterator[BackendMessage]) -> Iterator[BackendMessage]:
        if self._turn.ended:
            self._turn = Turn()
        self._look(event)
        for message in answers:
            self._note(message)
            yield message
        if isinstance(event, wire.Query | wire.Sync):
            self._turn.ended = True
            self._turns += 1
            if not self._turn.harmless:
                self._replies.clear()

    def _note(self, message: BackendMessage) -> None:
        turn = self._turn
        if not turn.lasting:
            return
        if not isinstance(message, wire.Raw) or (message.moves and message.type == b"E"):
            turn.lasting = False
            return
        turn.said.append(message.data)
        turn.size += len(message.data)
        turn.lasting = turn.size <= MAX_REPLY

    def _look(self, event: SessionMessage) -> None:
        turn = self._turn
        match event:
            case wire.Query() | wire.Parse(name=""):
                turn.replaces = True
            case wire.Bind(portal="", statement=name):
                turn.lasting = turn.lasting and (bool(name) or turn.replaces)
            case wire.Describe() | wire.Execute(portal="", max_rows=0) | wire.Sync() | wire.Flush():
                pass
            case _:
                turn.lasting = False

    def keep(self, asked: bytes, unnamed: Prepared | None) -> None:
        """What has been answered came as `asked`, all of it and nothing else; empty if that is not known."""
        turn, turns, self._turns = self._turn, self._turns, 0
        if not asked or turns != 1 or not turn.ended:
            # Part of a turn, or several: what follows cannot be told from these bytes.
            turn.lasting = False
        if not turn.lasting or turn.again is None or turn.said[-1] != b"Z\0\0\0\5I":
            return
        if len(self._replies) < MAX_REPLIES:
            data = _with(b"".join(turn.said), turn.again.notices)
            self._replies[asked] = Reply(data, turn.text, turn.again, turn.replaces, unnamed)


def _with(data: bytes, notices: tuple[str, ...]) -> bytes:
    """The frames with these notices, before the command's tag, in the place of those that were told the first time."""
    told = b"".join(encode(replies.notice(text)) for text in notices)
    made, at = bytearray(), 0
    while at < len(data):
        end = at + 1 + int.from_bytes(data[at + 1 : at + 5])
        kind = data[at : at + 1]
        if kind == b"C":
            made += told
        if kind != b"N":
            made += data[at:end]
        at = end
    return bytes(made)
