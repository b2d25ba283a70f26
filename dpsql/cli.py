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
    "demo": ("demo:demo", "See the main job end to end on real data; `demo attacks`."),
    "init": ("init:init", "Draft a policy for a database, without reading its data."),
    "check": ("check:check", "Check a policy, and say in words what it promises."),
    "ledger": ("ledger:ledger", "Make, verify, copy and restore the ledger."),
    "serve": ("serve:serve", "Serve a policy to PostgreSQL clients."),
    "shell": ("shell:shell", "Ask in a shell, with error bars, charts and prices."),
    "query": ("query:query", "Ask one statement."),
    "explain": ("explain:explain", "Show a statement's noise and price, without asking it."),
    "budget": ("budget:budget", "Show budgets; grant more, or revoke some."),
    "audit": ("audit:audit", "Print who asked what when, and what it cost."),
    "refresh": ("refresh:refresh", "Record that the data have changed."),
    "password": ("password:password", "Print the verifier of a password, for a policy."),
    "import": ("import_:import_", "Convert another system's description of a dataset."),
}
"""Where each command is, below dpsql.commands, and what it does in a line."""


class Commands(click.Group):
    """Loads a command when it is used, and none for the list of them, so that `dpsql --help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        command = getattr(importlib.import_module(f"dpsql.commands.{module}"), name)
        return with_examples(command, cmd_name) if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


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
    except OSError as error:
        if error.filename is None:
            raise
        click.echo(f"dpsql: {error.filename}: {error.strerror}\nHINT: Check the path and its permissions.", err=True)
        sys.exit(1)


def _line(error: DpsqlError) -> str:
    parts = (("DETAIL", error.detail), ("HINT", error.hint))
    return "\n".join(
        [
            f"dpsql: {error.message}",
            *getattr(error, "__notes__", ()),
            *(f"{name}: {text}" for name, text in parts if text),
        ]
    )
