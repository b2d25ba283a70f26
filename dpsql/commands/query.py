"""`dpsql query`: asks one text of statements and prints the answers. Decides formats only."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console

from dpsql.errors import DpsqlError
from dpsql.shell.evaluate import pointed
from dpsql.shell.export import as_json, write_csv
from dpsql.shell.local import open_session, run
from dpsql.shell.render import table
from dpsql.shell.results import Result

UNBOUNDED = 100_000
"""The width of a table that goes to no terminal."""


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--user", "-u", required=True, help="The user of the policy whose budget pays.")
@click.option("--format", "style", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
@click.option("--epsilon", help="What the statement may cost; the default is the role's.")
@click.argument("sql")
def query(policy: Path, user: str, style: str, epsilon: str | None, sql: str) -> None:
    """Answer SQL (or standard input, if SQL is -) as a user of POLICY.

    Tables show the 95 % error of each value. CSV and JSON hold what the statement asks for, dp_interval_low(...) and
    dp_interval_high(...) among it.
    """
    text = sys.stdin.read() if sql == "-" else sql
    settings = [("dpsql.epsilon", epsilon)] if epsilon is not None else []
    if style == "table":
        settings.append(("dpsql.error_bars", "on"))
    with open_session(policy, user, tuple(settings)) as session:
        try:
            for result in run(session, text):
                _print(result, style)
        except DpsqlError as error:
            note_position(text, error)
            raise


def note_position(text: str, error: DpsqlError) -> None:
    """Notes of the error: the line of the statement that it points at, and the caret, as psql shows them."""
    for line in pointed(text, error.position):
        error.add_note(line)


def _print(result: Result, style: str) -> None:
    if result.copied:
        click.echo(result.copied, nl=False)
    if result.columns:
        _rows(result, style)
    elif result.tag:
        click.echo(result.tag, err=True)
    for notice in result.notices:
        click.echo(f"NOTICE: {notice}", err=True)


def _rows(result: Result, style: str) -> None:
    match style:
        case "csv":
            write_csv(result, sys.stdout)
        case "json":
            click.echo(as_json(result))
        case _:
            console = Console(highlight=False)
            if console.is_terminal:
                console.print(table(result, console.width))
            else:
                wide = Console(highlight=False, width=UNBOUNDED)
                wide.print(table(result, UNBOUNDED, "off"))
