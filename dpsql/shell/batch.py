"""Statements from a pipe or from `-c`: answers as CSV (tables on a terminal), notices on stderr, stop at an error.

Decides that nothing here asks a question or draws a colour, and that an error is one line that names its place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console

from dpsql.errors import DpsqlError, Rejected
from dpsql.shell.ask import ask
from dpsql.shell.commands import Leave, run_command
from dpsql.shell.connection import Connection, is_complete, pieces
from dpsql.shell.export import write_csv
from dpsql.shell.loop import new_state
from dpsql.shell.render import show
from dpsql.shell.results import Result
from dpsql.shell.state import State

WIDTH = 120
"""Columns of what is no CSV, such as \\budget, where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A command or statements, and the line of the input on which they begin."""

    text: str
    line: int


def run_batch(connection: Connection, lines: Iterable[str], out: TextIO, *, tables: bool) -> None:
    """Runs all that the lines hold. Raises Rejected, its text with the line, at the first error."""
    console = Console(file=out, highlight=False) if tables else _plain(out)
    state = new_state(connection, console, interactive=tables)
    state.interactive = False
    state.tables = ()
    for chunk in chunks(lines):
        try:
            _run(state, chunk.text, out, tables=tables)
        except Leave:
            return
        except DpsqlError as error:
            raise _one_line(error, chunk) from None


def _plain(out: TextIO) -> Console:
    return Console(file=out, highlight=False, no_color=True, width=WIDTH, force_terminal=False)


def chunks(lines: Iterable[str]) -> Iterator[Chunk]:
    """Commands stand on a line of their own; statements end with a semicolon, or with the input."""
    text, first = "", 1
    for number, line in enumerate(lines, 1):
        if not text.strip():
            text, first = "", number
            if line.lstrip().startswith("\\"):
                yield Chunk(line.strip(), number)
                continue
        text += line if line.endswith("\n") else line + "\n"
        if text.strip() and is_complete(text):
            yield Chunk(text, first)
            text = ""
    if text.strip():
        yield Chunk(text, first)


def _run(state: State, text: str, out: TextIO, *, tables: bool) -> None:
    if text.startswith("\\"):
        if not state.tables:
            state.look_around()
        run_command(state, text)
        return
    for piece in pieces(text):
        try:
            result = ask(state, piece.text)
        except DpsqlError as error:
            if error.position is not None:
                error.position += piece.offset
            raise
        if result is not None:
            _print(state, result, out, tables=tables)


def _print(state: State, result: Result, out: TextIO, *, tables: bool) -> None:
    if tables:
        show(state.console, result, state.options.x, state.options.rows)
    elif result.copied:
        out.write(result.copied.decode("utf-8", "replace"))
    elif result.columns:
        write_csv(result, out)
    out.flush()
    for notice in result.notices:
        print(f"NOTICE: {notice}", file=sys.stderr)


def _one_line(error: DpsqlError, chunk: Chunk) -> Rejected:
    """The error with its line in the input, and its hint behind it."""
    line = chunk.line
    if error.position is not None:
        line += chunk.text[: error.position - 1].count("\n")
    message = f"line {line}: {error.message}" + ("" if error.message.endswith(".") else ".")
    if error.hint:
        message += f" {error.hint}"
    return Rejected(" ".join(message.split()), sqlstate=error.sqlstate)
