"""`dpsql refresh`: the operator's word that the data have changed.

Decides what a new epoch needs: the policy still fits the backend, as at a start, and an entry of the ledger. What was
spent stays spent: people who were in the old data are protected by one promise for all epochs.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import click

from dpsql.engine import open_engine
from dpsql.policy.load import load


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
def refresh(policy: Path) -> None:
    """Record that the data of POLICY have changed: stored answers of before are not given again."""
    with closing(open_engine(load(policy))) as engine:
        entry = engine.ledger.refresh()
        click.echo(f"{engine.policy.dataset}: new data from entry {entry.id} on; what was spent stays spent")
        click.echo("a proxy that is serving asks the new data from now on")
