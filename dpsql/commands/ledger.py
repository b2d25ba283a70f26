"""`dpsql ledger`: making, verifying, copying and restoring the ledger of a policy's dataset.

Decides what an operator is told. Making a ledger is this command's business alone; no other command does it, and what
needs the operator's word is asked for by an option, never assumed.
"""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click

from dpsql.ledger import Report, anchor_of, copies, home_of, init_ledger, open_ledger, verify_ledger
from dpsql.ledger.balance import Reading, reading_of
from dpsql.ledger.clock import SECOND
from dpsql.ledger.home import Home
from dpsql.ledger.opening import verify as verify_home
from dpsql.ledger.words import plain, rounded_up
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.types import Cost


@click.group()
def ledger() -> None:
    """Make, verify, copy and restore the ledger of all that was asked and spent."""


@ledger.command(short_help="Make the ledger of a new dataset.")
@click.argument("policy", type=click.Path(path_type=Path))
def init(policy: Path) -> None:
    """Make the ledger of a new dataset; or the anchor, or the file at its side, that an existing one lacks.

    The latter is your word that the ledger is the newest copy.
    """
    loaded = load(policy)
    head = init_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)
    made = "made" if head.count == 1 else "kept, as the newest copy by your word"
    click.echo(f"ledger of {loaded.dataset}: {made} at {home_of(loaded.ledger, loaded.dataset).name}")
    if loaded.ledger_anchor:
        click.echo(f"anchor: {loaded.ledger_anchor}; keep it on another disk than the ledger")
    else:
        click.echo(
            "no ledger_anchor in the policy: an older copy of the ledger with its own head, or an older state of a "
            "server's database, could not be told from the newest"
        )
    click.echo(f"Next: dpsql serve {policy}", err=True)


@ledger.command(short_help="Verify every entry, and print the totals.")
@click.argument("policy", type=click.Path(path_type=Path))
def verify(policy: Path) -> None:
    """Verify every entry and release, and print the head and the totals."""
    loaded = load(policy)
    report = verify_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)
    click.echo("\n".join(_lines(report, reading_of(loaded))))
    beside = home_of(loaded.ledger, loaded.dataset).beside
    if beside is not None and not beside.exists():
        click.echo(f"warning: {beside} is missing: it may be an older copy, and is not served", err=True)


@ledger.command(short_help="Show whether the clock is ahead of what the ledger believes.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.option(
    "--accept", is_flag=True, help="The clock is right: believe it from now on, and write so into the ledger."
)
def clock(policy: Path, accept: bool) -> None:
    """Show how far the clock is ahead of what the ledger believes; budget windows open late by as much."""
    loaded = load(policy)
    with closing(open_ledger(loaded.ledger, loaded.dataset, loaded.ledger_anchor)) as opened:
        if accept:
            entry = opened.accept_clock()
            click.echo(f"accepted: it is {time_of(entry.at)}, as entry {entry.id} says")
        else:
            click.echo(f"the clock is {opened.behind() / SECOND:.0f} s ahead of the ledger's time")


@ledger.command(short_help="Print all entries as lines of JSON, for auditors.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="A new file instead of standard output.")
def export(policy: Path, output: Path | None) -> None:
    """Print all entries as lines of JSON, for auditors; privacy events in dp_accounting's terms."""
    loaded = load(policy)
    with output.open("x") if output is not None else nullcontext(sys.stdout) as file:
        for line in copies.export(*_place(loaded), reading_of(loaded)):
            file.write(f"{line}\n")


@ledger.command(short_help="Copy the ledger to a new FILE, and verify the copy.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
def backup(policy: Path, file: Path) -> None:
    """Copy the ledger to a new FILE while it is served, and verify the copy."""
    loaded = load(policy)
    report = copies.backup(*_place(loaded), file)
    click.echo(f"backup of {report.dataset}: {file}, {report.head.count} entries, head {report.head.hash}")


@ledger.command(short_help="Put a backup in the place of a ledger that is gone or broken.")
@click.argument("policy", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--accept-loss", is_flag=True, help="Restore FILE although later entries are, or may be, lost.")
def restore(policy: Path, file: Path, accept_loss: bool) -> None:
    """Put the backup FILE in the place of a ledger that is gone or broken."""
    loaded = load(policy)
    restored, reading = copies.restore(*_place(loaded), file, accept_loss=accept_loss), reading_of(loaded)
    click.echo("\n".join(_lines(restored.report, reading)))
    if restored.lost is None:
        click.echo("nothing was left that could tell what was spent after the backup: it is not counted")
    elif restored.lost:
        charged = _amounts(restored.charged, reading(None, restored.charged))
        click.echo(f"{restored.lost} entries are lost; debited from the dataset for them: {charged}")
    if restored.lost != 0:
        click.echo("if the data have changed since the backup, run `dpsql refresh`: that they had may be lost as well")


@ledger.command(short_help="Bring an older ledger's tables to this version's layout.")
@click.argument("policy", type=click.Path(path_type=Path))
def migrate(policy: Path) -> None:
    """Bring an older ledger's tables to this version's layout; make a backup first."""
    home, dataset, anchor = _place(load(policy))
    before, after = home.migrate()
    verify_home(home, dataset, anchor)
    click.echo(f"layout {before} is now {after}, verified" if before != after else f"layout {after} already, verified")


def _place(policy: Policy) -> tuple[Home, str, Path | None]:
    return home_of(policy.ledger, policy.dataset), policy.dataset, anchor_of(policy.ledger_anchor)


def time_of(at: int) -> str:
    """A time of the ledger as text."""
    return datetime.fromtimestamp(at / SECOND, UTC).isoformat(timespec="seconds")


def _lines(report: Report, reading: Reading) -> list[str]:
    return [
        f"ledger of {report.dataset}: verified",
        f"entries   {report.head.count} ({report.debits} debits, {report.releases} releases)",
        f"head      {report.head.hash}",
        f"dataset   {_amounts(report.dataset_spent, reading(None, report.dataset_spent))}",
        *(f"account   {account}: {_amounts(spent, reading(account, spent))}" for account, spent in report.accounts),
    ]


def _amounts(spent: Cost, epsilon: Decimal) -> str:
    """As `dpsql budget show` tells them; the gate's own rho where it is one."""
    if spent == Cost():
        return "nothing"
    rho = f" (rho {rounded_up(spent.rho)})" if spent.rho else ""
    return f"epsilon {plain(epsilon)}{rho}, delta for keys {rounded_up(spent.delta)}"
