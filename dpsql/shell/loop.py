"""The interactive shell: read, evaluate, print, until the user leaves."""

from __future__ import annotations

from rich.console import Console

from dpsql import __version__
from dpsql.errors import Rejected
from dpsql.shell import screens
from dpsql.shell.connection import Connection, command_below, is_complete
from dpsql.shell.evaluate import evaluate
from dpsql.shell.prompt import prompt_session
from dpsql.shell.state import State

BARS = "SET dpsql.error_bars = on"


def interact(connection: Connection) -> None:
    """Runs until the user leaves. Raises what the first look around raises; later errors are shown."""
    state = new_state(connection, Console(highlight=False), interactive=True)
    state.look_around()
    price = state.standard()
    greeting = screens.greeting(__version__, connection.dataset, connection.user, price, state.budgets)
    state.console.print(greeting)
    session = prompt_session(state)
    unfinished = ""
    while True:
        try:
            text = session.prompt(default=unfinished)
        except KeyboardInterrupt:
            unfinished = ""
            continue
        except EOFError:
            return
        unfinished, going_on = _entered(state, text)
        if not going_on:
            return


def _entered(state: State, text: str) -> tuple[str, bool]:
    """Evaluates what was typed; a command below an unfinished statement leaves that to be gone on with, as in psql."""
    above, command = command_below(text) or ("", text)
    if above and is_complete(above):
        evaluate(state, above)
        above = ""
    return f"{above}\n" if above else "", evaluate(state, command)


def new_state(connection: Connection, console: Console, *, interactive: bool) -> State:
    """A state whose results carry error bars, where the server knows how to send them."""
    state = State(connection, console, interactive)
    if interactive:
        try:
            connection.run(BARS)
        except Rejected:
            return state
        state.settings.append(BARS)
    return state
