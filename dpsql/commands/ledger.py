"""`dpsql ledger`: making and verifying the ledger of a policy's dataset.

Decides what an operator is told. Making a ledger is this command's business alone; no other command does it.
"""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click

from dpsql.ledger import Report, init_ledger, open_ledger, verify_ledger
from dpsql.ledger.clock import SECOND
from dpsql.ledger.words import rounded_up
from dpsql.policy.load import load
from dpsql.types import Cost


@click.group()
def ledger() -> None:
    """Make and verify the ledger of all that was asked and spent."""


@ledger.command()
@click.argument("policy", type=click.Path(path_type=Path))
def init(policy: Path) -> None:
    """Make the ledger of a new dataset, or the anchor that an existing one lacks."""
    loaded = load(policy)
    head = init_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)
    made = "made" if head.count == 1 else "kept, its anchor made"
    click.echo(f"ledger of {loaded.dataset}: {made} at {loaded.ledger}")
    if loaded.ledger_anchor:
        click.echo(f"anchor: {loaded.ledger_anchor}; keep it on another disk than the ledger")
    else:
        click.echo(
            "no ledger_anchor in the policy: an old copy of the whole directory could not be told from the newest"
        )


@ledger.command()
@click.argument("policy", type=click.Path(path_type=Path))
def verify(policy: Path) -> None:
    """Verify every entry and release, and print the head and the totals."""
    loaded = load(policy)
    report = verify_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)
    click.echo("\n".join(_lines(report)))


@ledger.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--accept", is_flag=True, help="The clock is right: believe it from now on. An entry.")
def clock(policy: Path, accept: bool) -> None:
    """Show how far the clock is ahead of what the ledger believes; budget windows open late by as much."""
    loaded = load(policy)
    with closing(open_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)) as opened:
        if accept:
            entry = opened.accept_clock()
            click.echo(f"accepted: it is {time_of(entry.at)}, as entry {entry.id} says")
        else:
            click.echo(f"the clock is {opened.behind() / SECOND:.0f} s ahead of the ledger's time")


def time_of(at: int) -> str:
    """A time of the ledger as text."""
    return datetime.fromtimestamp(at / SECOND, UTC).isoformat(timespec="seconds")


def _lines(report: Report) -> list[str]:
    return [
        f"ledger of {report.dataset}: verified",
        f"entries   {report.head.count} ({report.debits} debits, {report.releases} releases)",
        f"head      {report.head.hash}",
        f"dataset   {_amounts(report.dataset_spent)}",
        *(f"account   {account}: {_amounts(spent)}" for account, spent in report.accounts),
    ]


def _amounts(spent: Cost) -> str:
    """All three amounts; epsilon counts only what has a pure one."""
    return f"rho {rounded_up(spent.rho)}, epsilon {rounded_up(spent.epsilon)}, delta {rounded_up(spent.delta)}"
