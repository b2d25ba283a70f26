"""`dpsql init`: drafts a policy from a database's catalog.

Decides where the draft goes and what a newcomer is told to do next. It reads names, types and constraints; data values
only under `--profile-with-epsilon`, through the proxy's own mechanisms, debited like any other statement.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import click

from dpsql.backends.outline import read_outline
from dpsql.backends.parquet import copy_parquet
from dpsql.commands.init_profile import profile
from dpsql.errors import BAD_PARAMETER, UNDEFINED_COLUMN, Rejected
from dpsql.policy.amounts import MAX_EPSILON
from dpsql.policy.draft import Plan, Source, dataset_name, draft, plan
from dpsql.policy.draft_relations import relations
from dpsql.policy.draft_units import candidates
from dpsql.policy.outline import Outline
from dpsql.policy.undecided import DECIDE

_PASSWORD = re.compile(r"(^|&)password=[^&]*")


@dataclass(frozen=True, slots=True)
class _Place:
    """The source as given, the URL that is read, and the one for the policy, without a password."""

    given: str
    url: str
    stem: str
    file: Path | None
    notes: tuple[str, ...] = ()

    def backend(self, beside: Path) -> str:
        if self.file is None:
            return _without_password(self.url)
        return f"duckdb:{os.path.relpath(self.file.resolve(), beside.resolve())}"


@click.command()
@click.argument("source")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="The policy file; without it, standard output.")
@click.option("--force", is_flag=True, help="Overwrite the policy file.")
@click.option("--unit", help="Whom to protect: TABLE.COLUMN, or `row` only if nobody has two rows.")
@click.option("--schema", "schemas", multiple=True, metavar="NAME", help="Only tables of this schema; may be repeated.")
@click.option("--into", type=click.Path(path_type=Path), help="For Parquet: the new DuckDB file to copy them into.")
@click.option("--profile-with-epsilon", "epsilon", help="Measure bounds and values; spends this of the budget.")
def init(
    source: str,
    output: Path | None,
    force: bool,
    unit: str | None,
    schemas: tuple[str, ...],
    into: Path | None,
    epsilon: str | None,
) -> None:
    """Draft a policy for SOURCE: a DuckDB file, Parquet (a file or a folder), or postgresql://...

    \b
      dpsql init shop.duckdb -o shop.yaml
      dpsql init sales/ --into sales.duckdb -o sales.yaml
      dpsql init postgresql://reader@localhost/clinic -o clinic.yaml
    """
    if output is not None and output.exists() and not force:
        hint = "Name another file with -o, or overwrite it with --force."
        raise Rejected(f"There is a file {output} already.", sqlstate=BAD_PARAMETER, hint=hint)
    amount = None if epsilon is None else _amount(epsilon)
    place = _place(source, into)
    outline = read_outline(place.url, schemas)
    made = _plan(outline, unit)
    folder = Path() if output is None else output.parent
    name = dataset_name(place.stem if output is None else output.stem)
    told = Source(place.given, place.backend(folder), name, _shown(output), place.notes)
    measured = None
    if amount is not None:
        if output is None:
            raise click.UsageError("--profile-with-epsilon needs --output: its ledger is kept beside the policy.")
        measured = profile(made, place.url, name, output, amount)
    text = draft(made, told, measured)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
    _next(made, text, output)


def _shown(output: Path | None) -> str:
    return "policy.yaml" if output is None else str(output)


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(0)
    if not amount.is_finite() or not 0 < amount <= MAX_EPSILON:
        raise click.BadParameter(f"write a number above 0, not {text!r}", param_hint="--profile-with-epsilon")
    return amount


def _place(source: str, into: Path | None) -> _Place:
    if source.startswith(("postgresql://", "postgres://")):
        notes = _password_notes(source)
        return _Place(_without_password(source), source, urlsplit(source).path.strip("/") or "postgres", None, notes)
    if "://" in source:
        hint = "Name a DuckDB file, Parquet (a file or a folder), or postgresql://..."
        raise Rejected("The source is of no known kind.", sqlstate=BAD_PARAMETER, hint=hint)
    path = Path(source.removeprefix("duckdb:")).expanduser()
    if path.is_dir() or path.suffix.lower() == ".parquet":
        path = _copied(path, into)
    elif into is not None:
        raise click.UsageError("--into is for Parquet only: a DuckDB file is served where it is.")
    return _Place(str(path), f"duckdb:{path.absolute()}", path.stem, path)


def _copied(source: Path, into: Path | None) -> Path:
    """The DuckDB file made from Parquet: the proxy serves a locked database file and reads no other files."""
    if not source.exists():
        raise Rejected(f"There is no {source}.", sqlstate=BAD_PARAMETER)
    if into is None:
        hint = f"Copy them into one first: dpsql init {source} --into {source.stem or 'data'}.duckdb"
        raise Rejected("dpsql serves DuckDB files, not Parquet.", sqlstate=BAD_PARAMETER, hint=hint)
    tables = copy_parquet(source, into)
    click.echo(
        f"{into}: made, with {len(tables)} table{'' if len(tables) == 1 else 's'}: {', '.join(tables)}", err=True
    )
    return into


def _password_notes(url: str) -> tuple[str, ...]:
    if not urlsplit(url).password and not _PASSWORD.search(urlsplit(url).query):
        return ()
    return ("The password is not kept here: put it into ~/.pgpass, or set PGPASSWORD for each dpsql command.",)


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    query = _PASSWORD.sub("", parts.query).strip("&")
    return urlunsplit(parts._replace(netloc=login.partition(":")[0] + at + host, query=query))


def _plan(outline: Outline, unit: str | None) -> Plan:
    try:
        return plan(outline, unit)
    except KeyError:
        ranked = candidates(outline, relations(outline))
        known = ", ".join(c.place for c in ranked[:5]) or "none that its name tells of"
        message = f"There is no column {unit}: --unit takes TABLE.COLUMN."
        raise Rejected(message, sqlstate=UNDEFINED_COLUMN, hint=f"Columns that look like one: {known}.") from None


def _next(made: Plan, text: str, output: Path | None) -> None:
    """What was drafted, and the next command."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    count = sum(len(re.findall(rf"\b{DECIDE}\b", line.split(" # ")[0])) for line in lines)
    whom = "each row" if made.chosen is None else f"one {made.chosen.name} ({made.chosen.place})"
    where = "the draft" if output is None else str(output)
    click.echo(f"{where}: protects {whom}; {count} decisions are open, each marked {DECIDE}", err=True)
    if output is None:
        click.echo("Next: put it into a file, for example by -o policy.yaml", err=True)
    else:
        click.echo(f"Next: dpsql check {output}", err=True)
