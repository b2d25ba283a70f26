"""The line editor: history, highlighting, completion, Enter that knows when a statement is complete.

Decides what reaches the history file: nothing that speaks of passwords, and the file is the user's alone.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.styles import Style
from pygments.lexers.sql import PostgresLexer

from dpsql.shell import screens
from dpsql.shell.completion import ShellCompleter
from dpsql.shell.connection import is_complete
from dpsql.shell.state import State

_SECRET = re.compile(r"password|scram-sha-256", re.IGNORECASE)
STYLE = Style.from_dict(
    {"bottom-toolbar": "noreverse fg:ansibrightblack", "prompt": "bold", "continuation": "fg:ansibrightblack"}
)


class PrivateHistory(FileHistory):
    """A history file that leaves out whatever speaks of a password."""

    def store_string(self, string: str) -> None:
        if not _SECRET.search(string):
            super().store_string(string)


def history_path() -> Path:
    """DPSQL_HISTORY, else a file in the user's state folder."""
    if named := os.environ.get("DPSQL_HISTORY"):
        return Path(named).expanduser()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "dpsql" / "history"


def open_history(path: Path) -> History:
    """The history file, for the user's eyes only; a history in memory where there can be none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        return PrivateHistory(str(path))
    except OSError:
        return InMemoryHistory()


def prompt_session(state: State) -> PromptSession[str]:
    """The editor of one run of the shell."""
    dataset = state.connection.dataset

    def continuation(width: int, line_number: int, wrap_count: int) -> AnyFormattedText:
        shown = "" if wrap_count else f"{dataset}-> "
        return [("class:continuation", shown[-width:].rjust(width))]

    def toolbar() -> AnyFormattedText:
        return screens.toolbar(state.budgets, state.usual, state.connection.user)

    return PromptSession(
        [("class:prompt", f"{dataset}=> ")],
        history=open_history(history_path()),
        multiline=True,
        prompt_continuation=continuation,
        lexer=PygmentsLexer(PostgresLexer),
        completer=ThreadedCompleter(ShellCompleter(state)),
        complete_while_typing=False,
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=False,
        key_bindings=_bindings(),
        bottom_toolbar=toolbar,
        style=STYLE,
        mouse_support=False,
        enable_suspend=True,
    )


def _bindings() -> KeyBindings:
    keys = KeyBindings()

    @Condition
    def choosing() -> bool:
        state = get_app().current_buffer.complete_state
        return state is not None and state.current_completion is not None

    @Condition
    def complete() -> bool:
        return is_complete(get_app().current_buffer.text)

    @keys.add("enter", filter=choosing, eager=True)
    def take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("enter", filter=complete & ~choosing)
    def run(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys
