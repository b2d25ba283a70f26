"""A text that was typed: statements and commands run one after the other, their results printed.

Decides that nothing typed ends the shell but a wish to leave: every error is shown in the proxy's own words.
"""

from __future__ import annotations

import time

from rich.text import Text

from dpsql.errors import DpsqlError
from dpsql.shell.ask import ask, reconnect, was_cancelled
from dpsql.shell.chart import can_chart, chart
from dpsql.shell.commands import Leave, run_command
from dpsql.shell.connection import WORDS, Lost, Piece, pieces
from dpsql.shell.render import show
from dpsql.shell.results import Result
from dpsql.shell.state import State


def evaluate(state: State, text: str) -> bool:
    """Runs what was typed and prints it; False to leave the shell."""
    stripped = text.strip()
    if stripped.rstrip(";").lower() in WORDS:
        stripped = "\\" + stripped.rstrip(";").lower()
    try:
        if stripped.startswith("\\"):
            run_command(state, stripped)
        else:
            _statements(state, text)
    except Leave:
        return False
    except Lost as error:
        _reconnected(state, error)
    except DpsqlError as error:
        show_error(state, error, stripped if stripped.startswith("\\") else text)
    except KeyboardInterrupt:
        state.console.print(Text("Stopped.", style="yellow"))
    except Exception as error:  # a fault of the shell's own must not cost the session
        state.console.print(Text(f"ERROR: the shell failed: {type(error).__name__}: {error}", style="red"))
    return True


def _statements(state: State, text: str) -> None:
    """All statements up to the first that fails."""
    for piece in pieces(text):
        started = time.monotonic()
        try:
            result = ask(state, piece.text)
        except DpsqlError as error:
            raise _moved(error, piece) from None
        if result is None:
            state.console.print(Text("Not asked; nothing is spent.", style="dim"))
            return
        _show(state, result)
        if state.options.timing:
            state.console.print(Text(f"Time: {1000 * (time.monotonic() - started):.0f} ms", style="dim"))


def _moved(error: DpsqlError, piece: Piece) -> DpsqlError:
    if error.position is not None:
        error.position += piece.offset
    return error


def _show(state: State, result: Result) -> None:
    options = state.options
    show(state.console, result, options.x, options.rows)
    if options.chart and can_chart(result):
        state.console.print(chart(result, state.console.width))
    for notice in result.notices:
        state.console.print(Text(notice, style="dim"))


def show_error(state: State, error: DpsqlError, text: str) -> None:
    """What is wrong, where, and what to do instead."""
    if was_cancelled(error):
        state.console.print(Text(f"Stopped: {error.message}. What it had reserved stays spent.", style="yellow"))
        return
    state.console.print(Text(f"ERROR: {error.message}", style="red"))
    for line in pointed(text, error.position):
        state.console.print(Text(line), soft_wrap=True)
    if error.detail:
        state.console.print(Text(f"DETAIL: {error.detail}", style="dim"))
    if error.hint:
        state.console.print(Text(f"HINT: {error.hint}", style="cyan"))


def pointed(text: str, position: int | None) -> tuple[str, ...]:
    """The line of the text that an error points at, and a caret below, as psql shows them."""
    if position is None or not 0 < position <= len(text) + 1:
        return ()
    before = text[: position - 1]
    start = before.rfind("\n") + 1
    line = text[start:].split("\n", 1)[0]
    prefix = f"LINE {before.count(chr(10)) + 1}: "
    return prefix + line, " " * (len(prefix) + position - 1 - start) + "^"


def _reconnected(state: State, error: Lost) -> None:
    """Says that the connection is gone, and makes it anew where that works."""
    state.console.print(Text(f"ERROR: {error.message}", style="red"))
    try:
        if state.broken:  # the error is that of an attempt to connect again
            raise error
        reconnect(state)
    except DpsqlError as second:
        if second is not error:
            state.console.print(Text(second.message, style="red"))
        state.console.print(Text("The next statement tries to connect again; \\q leaves.", style="cyan"))
        return
    state.console.print(Text("Connected again; the settings are as before. Ask once more: ↑", style="cyan"))
