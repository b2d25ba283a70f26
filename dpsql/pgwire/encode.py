"""Backend messages to bytes. Decides the layout of each; must never look at what a value means."""

from __future__ import annotations

from dpsql.pgwire.messages import BackendMessage


def encode(message: BackendMessage) -> bytes:
    """The message's frame: type byte, length, payload."""
    raise NotImplementedError
