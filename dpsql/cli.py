"""The command line: groups the commands and turns errors into one clear line and an exit code.

Exit 0 on success, 1 on refusal or failure, 2 on wrong usage.
"""

from __future__ import annotations

import importlib
import sys

import click

from dpsql import __version__
from dpsql.commands.examples import with_examples
from dpsql.errors import DpsqlError

COMMANDS = {
    "demo": "dpsql.commands.demo:demo",
    "init": "dpsql.commands.init:init",
    "check": "dpsql.commands.check:check",
    "serve": "dpsql.commands.serve:serve",
    "shell": "dpsql.commands.shell:shell",
    "query": "dpsql.commands.query:query",
    "explain": "dpsql.commands.explain:explain",
    "budget": "dpsql.commands.budget:budget",
    "audit": "dpsql.commands.audit:audit",
    "refresh": "dpsql.commands.refresh:refresh",
    "ledger": "dpsql.commands.ledger:ledger",
    "password": "dpsql.commands.password:password",
    "import": "dpsql.commands.import_:import_",
}


class Commands(click.Group):
    """Loads a command when it is used, so that `dpsql --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name].split(":")
        command = getattr(importlib.import_module(module), name)
        return with_examples(command, cmd_name) if isinstance(command, click.Command) else None


@click.command(cls=Commands)
@click.version_option(__version__, prog_name="dpsql")
def dpsql() -> None:
    """Answer aggregate SQL with differential privacy, over the PostgreSQL wire protocol."""


with_examples(dpsql, "")


def main() -> None:
    """The console script."""
    try:
        dpsql(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(1)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(1)
    except DpsqlError as error:
        click.echo(_line(error), err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)


def _line(error: DpsqlError) -> str:
    hint = f"\nHINT: {error.hint}" if error.hint else ""
    return f"dpsql: {error.message}{hint}"
