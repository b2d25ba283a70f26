"""One statement on its way: the price told first where it is high, a sign of life while it runs, Ctrl-C to stop it.

Decides when a lost connection is made anew. A statement is never sent a second time by itself: it may have been paid.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from rich.text import Text

from dpsql.compiler.tokens import scan
from dpsql.errors import CANCELLED, DpsqlError, Rejected
from dpsql.shell.connection import Lost
from dpsql.shell.prices import expensive, price_of
from dpsql.shell.results import Result
from dpsql.shell.state import Asked, State

Made = TypeVar("Made")

PATIENCE = 0.4
"""Seconds before a spinner shows: quick answers come without a flicker."""

_PRICED = ("select", "with", "(", "values", "table")
_PRICE = re.compile(r"^Price: (epsilon \S+?)(?: for a first view)?( for \d+ of \d+ releases)?[,;]")


def ask(state: State, statement: str) -> Result | None:
    """The statement's result; None where the user was asked and said no. Raises DpsqlError."""
    if state.broken:
        reconnect(state)
    asks = state.interactive and state.options.confirm and not state.in_transaction
    if asks and not _agreed(state, statement):
        return None
    started = time.monotonic()
    result = waited(state, lambda: state.connection.run(statement))
    state.in_transaction = _in_transaction(state, result)
    if first_word(statement) in ("set", "reset", "discard"):
        _remember_setting(state, statement)
    else:
        _remember(state, statement, result, time.monotonic() - started)
    return result


def _remember(state: State, statement: str, result: Result, seconds: float) -> None:
    price = _price(result)
    if result.columns and first_word(statement) in _PRICED:
        state.last, state.last_statement = result, statement
        state.asked.append(Asked(statement, price, seconds))
    if state.interactive and price.startswith("epsilon"):
        state.look_at_budget()


def _in_transaction(state: State, result: Result) -> bool:
    """Between BEGIN and its end, where an EXPLAIN that is refused would end the transaction."""
    word = result.tag.partition(" ")[0]
    return word in ("BEGIN", "START") or (state.in_transaction and word not in ("COMMIT", "ROLLBACK"))


def _remember_setting(state: State, statement: str) -> None:
    if first_word(statement) == "discard":
        state.settings.clear()
    state.settings.append(statement)


def _price(result: Result) -> str:
    for notice in result.notices:
        if found := _PRICE.match(notice):
            return found[1] + (" (part)" if found[2] else "")
        if notice.startswith(("Replay", "Derived")):
            return "replay, free"
    return "free"


def first_word(statement: str) -> str:
    """The statement's first word in lower case, or symbol; empty where it has none."""
    try:
        tokens = scan(statement).tokens
    except Rejected:
        return ""
    return tokens[0].text if tokens else ""


# --- the price first -----------------------------------------------------------------------------------------------


def _agreed(state: State, statement: str) -> bool:
    if first_word(statement) not in _PRICED:
        return True
    try:
        price = waited(state, lambda: price_of(state.connection, statement))
        reason = expensive(price, state.usual, state.budgets)
    except DpsqlError as error:
        if isinstance(error, Lost) or was_cancelled(error):
            raise
        return True  # what is wrong with the statement, it will say itself, free of charge
    if reason is None:
        return True
    state.console.print(Text(reason, style="yellow"))
    try:
        answer = state.console.input("Ask it? [y/N] ", markup=False)
    except (EOFError, KeyboardInterrupt):
        answer = ""
        state.console.print()
    return answer.strip().lower() in ("y", "yes")


# --- waiting -------------------------------------------------------------------------------------------------------


def waited(state: State, work: Callable[[], Made]) -> Made:
    """What the work gives, done in a thread; Ctrl-C asks the backend to stop, and the answer to that is waited for."""
    if not state.interactive:
        return work()
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work)
        if not _done(state, future, PATIENCE):
            with state.console.status(Text("Waiting for the database; Ctrl-C cancels.", style="dim"), spinner="dots"):
                while not _done(state, future, None):
                    pass
        return future.result()


def _done(state: State, future: Future[Made], timeout: float | None) -> bool:
    try:
        future.exception(timeout)
    except TimeoutError:
        return False
    except KeyboardInterrupt:
        state.connection.cancel()
        return False
    return True


def was_cancelled(error: DpsqlError) -> bool:
    """Whether the error is the answer to a Ctrl-C."""
    return error.sqlstate == CANCELLED


# --- connecting again ----------------------------------------------------------------------------------------------


def reconnect(state: State) -> None:
    """A new session with the settings of the lost one. Raises Lost."""
    state.broken = True
    state.connection.reopen()
    state.in_transaction = False
    for setting in state.settings:
        state.connection.run(setting)
    state.broken = False
