"""`dpsql explain`: what a statement would release, with which noise, at what price. Spends nothing."""

from __future__ import annotations

from pathlib import Path

import click

from dpsql.commands.query import note_position
from dpsql.errors import DpsqlError
from dpsql.shell.local import open_session, run


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--user", "-u", required=True, help="The user of the policy who would ask.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--epsilon", help="What the statement may cost; the default is the role's.")
@click.argument("sql")
def explain(policy: Path, user: str, style: str, epsilon: str | None, sql: str) -> None:
    """Show the releases, keys, bounds, noise and price of SQL, without asking it."""
    settings = (("dpsql.epsilon", epsilon),) if epsilon is not None else ()
    prefix = f"EXPLAIN (FORMAT {style.upper()}) "
    with open_session(policy, user, settings) as session:
        try:
            for result in run(session, prefix + sql):
                for (line,) in result.rows:
                    click.echo(line)
        except DpsqlError as error:
            if error.position is not None:
                error.position = max(error.position - len(prefix), 1)
            note_position(sql, error)
            raise
