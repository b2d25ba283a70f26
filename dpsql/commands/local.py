"""A session without a socket, as commands use it: its home is the shell's local connection."""

from __future__ import annotations

from dpsql.shell.local import open_session, run
from dpsql.shell.results import Result

__all__ = ["Result", "open_session", "run"]
