"""`dpsql query`: asks one text of statements and prints the answers. Decides formats only."""

from __future__ import annotations

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from dpsql.commands.local import Result, open_session, run
from dpsql.errors import DpsqlError
from dpsql.pgwire.values import WireValue


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--user", "-u", required=True, help="The user of the policy whose budget pays.")
@click.option("--format", "style", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("--epsilon", help="What the statement may cost; the default is the role's.")
@click.argument("sql")
def query(policy: Path, user: str, style: str, epsilon: str | None, sql: str) -> None:
    """Answer SQL (or standard input, if SQL is -) as a user of POLICY."""
    text = sys.stdin.read() if sql == "-" else sql
    settings = (("dpsql.epsilon", epsilon),) if epsilon is not None else ()
    with open_session(policy, user, settings) as session:
        try:
            for result in run(session, text):
                _print(result, style)
        except DpsqlError as error:
            show_position(text, error)
            raise


def show_position(text: str, error: DpsqlError) -> None:
    """The line of the statement that an error points at, as psql shows it."""
    if error.position is None:
        return
    before = text[: error.position - 1]
    start = before.rfind("\n") + 1
    line = text[start:].split("\n", 1)[0]
    number = before.count("\n") + 1
    prefix = f"LINE {number}: "
    click.echo(prefix + line, err=True)
    click.echo(" " * (len(prefix) + error.position - 1 - start) + "^", err=True)


def _print(result: Result, style: str) -> None:
    if result.columns:
        {"table": _table, "csv": _csv, "json": _json}[style](result)
    elif result.tag:
        click.echo(result.tag, err=True)
    for notice in result.notices:
        click.echo(f"NOTICE: {notice}", err=True)


def _table(result: Result) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(result.columns):
        numbers = all(isinstance(row[index], int | float | Decimal | None) for row in result.rows)
        table.add_column(name, justify="right" if numbers and result.rows else "left")
    for row in result.rows:
        table.add_row(*("" if value is None else str(value) for value in row))
    console = Console()
    console.print(table)
    console.print(f"({len(result.rows)} row{'' if len(result.rows) == 1 else 's'})", style="dim")


def _csv(result: Result) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(["" if value is None else value for value in row] for row in result.rows)


def _json(result: Result) -> None:
    rows = [dict(zip(result.columns, (plain(v) for v in row), strict=True)) for row in result.rows]
    click.echo(json.dumps(rows, indent=2, ensure_ascii=False))


def plain(value: WireValue) -> object:
    """A value as JSON has it: numbers as numbers, the rest as text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral() else float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [plain(v) for v in value] if isinstance(value, tuple) else str(value)
