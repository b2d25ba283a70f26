"""The demo's tour: an analyst's statements over the wire, and beside each answer the true value for comparison.

Decides what is printed, in 80 columns. Answers come through the proxy alone; true values come from the database file,
opened here a second time, which no analyst can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import psycopg
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from dpsql.commands.demo_steps import AFTER, EXHAUST, STEPS, Step
from dpsql.errors import INTERNAL, Rejected

TRUE = "true value (demo only)"

Row = tuple[object, ...]
Connection = psycopg.Connection[Row]


@dataclass(slots=True)
class Tour:
    """What a tour holds: the analyst's connection, the file read directly, and how often a bar held the truth."""

    client: Connection
    truth: duckdb.DuckDBPyConnection
    console: Console
    notices: list[str] = field(default_factory=list)
    compared: int = 0
    inside: int = 0


def tour(database: Path, **address: str | int) -> None:
    """Asks every statement of the demo and prints what came back. A refusal is shown; a lost connection is Rejected."""
    console = Console(highlight=False)
    try:
        with _connected(database, console, address) as made:
            console.print(f"Connected as {address['user']}: epsilon 1 a statement unless set otherwise, 15 in all.")
            for number, step in enumerate(STEPS, 1):
                _show(made, number, step)
            _exhaust(made, len(STEPS) + 1)
            _show(made, len(STEPS) + 2, AFTER)
            _summary(made)
    except psycopg.OperationalError as error:
        raise Rejected(f"The connection to the proxy failed: {error}", sqlstate=INTERNAL) from None


@contextmanager
def _connected(database: Path, console: Console, address: dict[str, str | int]) -> Iterator[Tour]:
    client: Connection = psycopg.connect(make_conninfo("", **address), autocommit=True)
    with closing(client), closing(duckdb.connect(str(database), read_only=True)) as truth:
        truth.execute("CREATE TEMP VIEW flights AS SELECT * FROM flights.main.flights WHERE tailnum IS NOT NULL")
        made = Tour(client, truth, console)
        client.add_notice_handler(lambda notice: made.notices.append(notice.message_primary or ""))
        yield made


def _show(made: Tour, number: int, step: Step) -> None:
    _head(made, number, step)
    try:
        columns, rows = _ask(made, step.sql)
    except psycopg.Error as error:
        _refused(made, error)
        return
    if columns == ("QUERY PLAN",):
        for (line,) in rows:
            made.console.print(str(line), style="cyan", markup=False)
    else:
        made.console.print(_table(made, step, columns, rows))
    _notices(made)


def _head(made: Tour, number: int, step: Step) -> None:
    made.console.print(f"\n[bold]{number}. {step.title}[/bold]")
    text = "".join(f"{line};\n" for line in (*step.settings, step.sql))
    made.console.print(Syntax(text.rstrip(), "sql", theme="ansi_dark", background_color="default", word_wrap=True))
    for setting in step.settings:
        made.client.execute(setting.encode())


def _ask(made: Tour, sql: str) -> tuple[tuple[str, ...], list[Row]]:
    made.notices.clear()
    cursor = made.client.execute(sql.encode())
    return tuple(column.name for column in cursor.description or ()), cursor.fetchall()


def _notices(made: Tour) -> None:
    for notice in made.notices:
        made.console.print(notice, style="green", markup=False)


def _refused(made: Tour, error: psycopg.Error) -> None:
    found = error.diag
    made.console.print(f"ERROR {found.sqlstate}: {found.message_primary}", style="red", markup=False)
    if found.message_detail:
        made.console.print(f"DETAIL: {found.message_detail}", style="yellow", markup=False)
    if found.message_hint:
        made.console.print(f"HINT: {found.message_hint}", style="yellow", markup=False)


def _table(made: Tour, step: Step, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    barred = "low" in columns
    truths = _truths(made, step)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns[: step.keys]:
        table.add_column(name)
    for name in columns[step.keys : step.keys + 1] if barred or truths else columns[step.keys :]:
        table.add_column(name, justify="right")
    if barred:
        table.add_column("95 % interval", justify="right", style="dim")
    if truths:
        table.add_column(TRUE, justify="right", style="magenta")
    for row in rows:
        table.add_row(*_cells(made, step, row, barred, truths))
    return table


def _truths(made: Tour, step: Step) -> dict[Row, object]:
    """The true value of each key."""
    if step.exact is None:
        return {}
    return {tuple(row[:-1]): row[-1] for row in made.truth.execute(step.exact).fetchall()}


def _cells(made: Tour, step: Step, row: Row, barred: bool, truths: dict[Row, object]) -> Iterator[str]:
    keys, values = row[: step.keys], row[step.keys :]
    true = truths.get(keys)
    yield from map(_shown, keys)
    if not truths and not barred:
        yield from map(_shown, values)
        return
    yield _shown(values[0])
    if barred:
        low, high = (float(str(bar)) for bar in values[1:3])
        yield f"{_shown(_like(low, values[0]))} to {_shown(_like(high, values[0]))}"
        if true is not None:
            made.compared += 1
            made.inside += int(low <= float(str(true)) <= high)
    if truths:
        yield _shown(true)


def _like(bar: float, value: object) -> object:
    return round(bar) if isinstance(value, int) else bar


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,}"
        case float() | Decimal():
            number = float(value)
            return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:,.1f}"
        case datetime():
            return value.date().isoformat()
        case _:
            return str(value)


def _exhaust(made: Tour, number: int) -> None:
    _head(made, number, EXHAUST)
    for month in range(1, 13):
        try:
            _, rows = _ask(made, EXHAUST.sql.replace("month = 1", f"month = {month}"))
        except psycopg.Error as error:
            made.console.print(f"month = {month}:")
            _refused(made, error)
            return
        made.console.print(f"month = {month}: {_shown(rows[0][0])}  ", end="")
        _notices(made)


def _summary(made: Tour) -> None:
    columns, rows = _ask(made, "SHOW dpsql.budget")
    table = Table(box=None, pad_edge=False, header_style="bold")
    shown = columns[:4]
    for name in shown:
        table.add_column(name)
    for row in rows:
        table.add_row(*(str(value) for value in row[: len(shown)]))
    made.console.print("\n[bold]What was spent, by SHOW dpsql.budget[/bold]")
    made.console.print(table)
    made.console.print(
        "Spent and left add up to more than the whole: privacy losses add up more slowly than the epsilons that name"
        " them.\n"
        f"\nThe true value lay inside {made.inside} of {made.compared} intervals of 95 %. They speak of the noise; what"
        " clipping takes away (outliers, the busiest aircraft) comes on top, depends on the data and is not told."
    )
