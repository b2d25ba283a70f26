"""`dpsql shell`: a query shell over a served proxy, or over a policy opened right here."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from dpsql.shell.connection import Connection

_URL = re.compile(r"postgres(ql)?://", re.IGNORECASE)

EPILOG = """
\b
Examples:
  dpsql shell policy.yaml --user alice
  dpsql shell postgresql://alice@127.0.0.1:6432/nyc-flights
  dpsql shell policy.yaml -u alice -c "SELECT count(*) FROM flights"
  dpsql shell policy.yaml -u alice < questions.sql > answers.csv

A password comes from PGPASSWORD or ~/.pgpass, or is asked for.
"""


@click.command(epilog=EPILOG)
@click.argument("target", metavar="POLICY|URL")
@click.option("--user", "-u", help="The user who asks and whose budget pays; may be part of the URL.")
@click.option("--command", "-c", "commands", multiple=True, metavar="SQL", help="Run this and leave; may be repeated.")
def shell(target: str, user: str | None, commands: tuple[str, ...]) -> None:
    """Ask a dataset in a shell: SQL with completion, error bars, charts and prices.

    POLICY is opened in this process; URL, postgresql://..., is a proxy that serves. From a pipe, answers are CSV.
    """
    _log_in_one_line()
    from dpsql.shell.batch import run_batch

    with _connection(target, user) as connection:
        if commands:
            lines = [line for text in commands for line in _ended(text).splitlines(keepends=True)]
            run_batch(connection, lines, sys.stdout, tables=sys.stdout.isatty())
        elif sys.stdin.isatty() and sys.stdout.isatty():
            from dpsql.shell.loop import interact

            interact(connection)
        else:
            run_batch(connection, sys.stdin, sys.stdout, tables=False)


def _ended(text: str) -> str:
    """Each -c is whole: a missing semicolon is added."""
    stripped = text.strip()
    return stripped + ("\n" if stripped.startswith("\\") or stripped.endswith(";") else "\n;\n")


@contextmanager
def _connection(target: str, user: str | None) -> Iterator[Connection]:
    connection: Connection
    if _URL.match(target):
        from dpsql.shell.remote import Remote

        connection = Remote(target, user, _ask_password if sys.stdin.isatty() else None)
    else:
        from dpsql.shell.local import Local

        connection = Local(Path(target), user)
    try:
        yield connection
    finally:
        connection.close()


def _ask_password(user: str) -> str:
    return str(click.prompt(f"Password of {user}", hide_input=True, err=True, default="", show_default=False))


def _log_in_one_line() -> None:
    """Faults of an engine in this process are told in a line on stderr, without a traceback."""

    class Line(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return f"{record.levelname}: {record.getMessage()}".replace("\n", " ")

    handler = logging.StreamHandler()
    handler.setFormatter(Line())
    handler.setLevel(logging.WARNING)
    log = logging.getLogger("dpsql")
    log.addHandler(handler)
    log.propagate = False
