"""The backslash commands: which there are, what they do, and what they say when used wrongly.

None of them spends anything. Each takes the state and the rest of its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from dpsql.errors import BAD_PARAMETER, UNDEFINED_OBJECT, UNDEFINED_TABLE, DpsqlError, Rejected
from dpsql.shell import screens
from dpsql.shell.ask import waited
from dpsql.shell.chart import chart
from dpsql.shell.export import export
from dpsql.shell.prices import price_of_count
from dpsql.shell.results import Result, shown, without_empty_bars
from dpsql.shell.state import State


class Leave(Exception):
    """The user is done."""


@dataclass(frozen=True, slots=True)
class Command:
    usage: str
    meaning: str
    run: Callable[[State, str], None]


def run_command(state: State, line: str) -> None:
    """One line that begins with a backslash. Raises Rejected, or Leave."""
    name, _, rest = line.strip().removeprefix("\\").partition(" ")
    command = COMMANDS.get(ALIASES.get(name, name))
    if command is None:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        meant = f"Did you mean \\{close[0]}? " if close else ""
        known = " ".join(f"\\{known}" for known in COMMANDS)
        raise Rejected(f"There is no command \\{name}.", sqlstate=UNDEFINED_OBJECT, hint=f"{meant}There are {known}.")
    argument = rest.strip().removesuffix(";").strip()
    try:
        command.run(state, argument)
    except DpsqlError as error:
        if error.position is not None:
            error.position = error.position + line.index(argument) if argument else None
        raise


# --- looking -------------------------------------------------------------------------------------------------------


def _describe(state: State, name: str) -> None:
    if not name:
        state.console.print(screens.tables(state.tables, state.console.width))
        return
    wanted = name.strip('"')
    found = next((t for t in state.tables if t.name == wanted), None)
    found = found or next((t for t in state.tables if t.name == wanted.lower()), None)
    if found is None:
        known = ", ".join(t.name for t in state.tables)
        raise Rejected(f"There is no table {name}.", sqlstate=UNDEFINED_TABLE, hint=f"Tables are {known}.")
    state.console.print(screens.table(found))


def _budget(state: State, rest: str) -> None:
    state.look_at_budget()
    state.console.print(screens.budget(state.budgets, state.standard(), state.connection.user))


def _explain(state: State, sql: str) -> None:
    statement = sql or state.last_statement
    if not statement:
        raise Rejected("There is no last statement yet.", hint=r"\explain SELECT ...")
    shift = len("EXPLAIN ")
    try:
        result = waited(state, lambda: state.connection.run("EXPLAIN " + statement))
    except Rejected as error:
        if error.position is not None:
            error.position = max(error.position - shift, 1)
        raise
    for row in result.rows:
        state.console.print(Text(str(row[0])))


def _history(state: State, rest: str) -> None:
    state.console.print(screens.history(state.asked, state.console.width))


def _chart(state: State, rest: str) -> None:
    if rest in ("on", "off"):
        state.options.chart = rest == "on"
        state.console.print(f"Charts below grouped results are {rest}.")
        return
    state.console.print(chart(_last(state), state.console.width, rest.strip('"') or None))


def _last(state: State) -> Result:
    if state.last is None:
        raise Rejected("There is no result yet.", hint="Ask something first.")
    return state.last


def _export(state: State, name: str) -> None:
    if not name:
        raise Rejected("Say where to.", hint=r"\export result.csv, result.json or result.parquet")
    result = without_empty_bars(_last(state))
    path = Path(name).expanduser()
    export(result, path)
    rows, columns = len(result.rows), len(result.columns)
    words = f"{rows} row{'' if rows == 1 else 's'} of {columns} column{'' if columns == 1 else 's'} in {path}."
    if any(column.bar is not None for column in shown(result.columns)):
        words += " Columns that end with _low and _high are the ends of 95 % intervals."
    state.console.print(Text(words))


# --- settings ------------------------------------------------------------------------------------------------------


def _epsilon(state: State, value: str) -> None:
    private = [table.name for table in state.tables if not table.public]
    if not private:
        raise Rejected("You have no private table to ask.", hint="Ask the operator for a role with a budget.")
    before = state.connection.run("SHOW dpsql.epsilon").rows[0][0]
    statements = (f"SET dpsql.epsilon = {_literal(value)}", "SET dpsql.max_error = default") if value else ()
    for statement in statements:
        state.connection.run(statement)
    try:
        price = price_of_count(state.connection, private[0])
    except Rejected:
        state.connection.run(f"SET dpsql.epsilon = {_literal(str(before))}")
        raise
    state.settings += statements
    state.usual = price.epsilon if value else state.usual
    if not state.budgets:
        state.look_at_budget()
    state.console.print(screens.epsilon(price, state.budgets))


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _confirm(state: State, value: str) -> None:
    state.options.confirm = _switch("confirm", value, state.options.confirm)
    word = "asks before an expensive statement" if state.options.confirm else "asks nothing before a statement"
    state.console.print(f"The shell {word}.")


def _timing(state: State, value: str) -> None:
    state.options.timing = _switch("timing", value, state.options.timing)
    state.console.print(f"Times are {'shown' if state.options.timing else 'not shown'}.")


def _switch(name: str, value: str, before: bool) -> bool:
    """on, off, or the opposite of what it was."""
    if value.lower() not in ("", "on", "off"):
        raise Rejected(f"{name} is on or off, not {value}.", sqlstate=BAD_PARAMETER)
    return not before if not value else value.lower() == "on"


def _expanded(state: State, value: str) -> None:
    word = value.lower() or ("off" if state.options.x == "on" else "on")
    match word:
        case "on" | "off" | "auto":
            state.options.x = word
        case _:
            raise Rejected(f"x is on, off or auto, not {value}.", sqlstate=BAD_PARAMETER)
    words = {"on": "always shown as blocks", "off": "always a table", "auto": "blocks where a table is too wide"}
    state.console.print(f"Rows are {words[word]}.")


def _rows(state: State, value: str) -> None:
    if not value.isdecimal():
        raise Rejected(f"rows is a whole number, not {value or 'nothing'}.", sqlstate=BAD_PARAMETER, hint="0 is all.")
    state.options.rows = int(value)
    state.console.print(f"At most {value} rows are shown." if int(value) else "All rows are shown.")


def _set(state: State, rest: str) -> None:
    name, _, value = rest.partition(" ")
    if not name:
        state.console.print(screens.options(state.options))
        return
    if name not in SETTABLE:
        known = ", ".join(SETTABLE)
        hint = f"Options are {known}. Settings of the session are SQL: SET dpsql.epsilon = 0.5;"
        raise Rejected(f"There is no option {name}.", sqlstate=UNDEFINED_OBJECT, hint=hint)
    SETTABLE[name](state, value.strip())


def _set_chart(state: State, value: str) -> None:
    _chart(state, "on" if _switch("chart", value, state.options.chart) else "off")


SETTABLE: Mapping[str, Callable[[State, str], None]] = {
    "chart": _set_chart,
    "confirm": _confirm,
    "rows": _rows,
    "timing": _timing,
    "x": _expanded,
}


# --- the rest ------------------------------------------------------------------------------------------------------


def _help(state: State, rest: str) -> None:
    state.console.print(screens.help_page([(c.usage, c.meaning) for c in COMMANDS.values()]))


def _leave(state: State, rest: str) -> None:
    raise Leave


COMMANDS: Mapping[str, Command] = {
    "d": Command(r"\d [TABLE]", "the tables, or one table's columns: type, bounds, values, unit", _describe),
    "budget": Command(r"\budget", "what is spent, what is left, how many statements still fit", _budget),
    "explain": Command(
        r"\explain [SQL]", "noise and price of a statement, or of the last one; spends nothing", _explain
    ),
    "epsilon": Command(r"\epsilon [0.2|default]", "what a statement costs from now on: more is more exact", _epsilon),
    "chart": Command(
        r"\chart [COLUMN|on|off]", "the last result as bars; `on` draws below every grouped result", _chart
    ),
    "history": Command(r"\history", "this session's statements with their prices", _history),
    "export": Command(r"\export FILE", "the last result as FILE.csv, FILE.json or FILE.parquet", _export),
    "confirm": Command(r"\confirm [on|off]", "tell the price and ask before an expensive statement", _confirm),
    "x": Command(r"\x [auto|on|off]", "a block for each row instead of a table", _expanded),
    "timing": Command(r"\timing [on|off]", "show how long statements take", _timing),
    "set": Command(r"\set [OPTION VALUE]", "the shell's options, or one of them anew", _set),
    "help": Command(r"\help", "this page", _help),
    "q": Command(r"\q", "leave; Ctrl-D does too", _leave),
}
ALIASES: Mapping[str, str] = {"?": "help", "h": "help", "dt": "d", "d+": "d", "quit": "q", "exit": "q", "s": "history"}
