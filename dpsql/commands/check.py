"""`dpsql check`: is the policy sound, does it fit the backend, and what does it promise?

Decides what is printed. It debits nothing, shows no private data, and never prints a password's verifier.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import click

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.errors import DpsqlError, Rejected
from dpsql.ledger import home_of, open_ledger
from dpsql.ledger.folding import caution
from dpsql.policy.advice import policy_advice
from dpsql.policy.changes import changes, refusal, terms
from dpsql.policy.force import text_of
from dpsql.policy.load import json_schema, load
from dpsql.policy.model import Policy
from dpsql.policy.problems import Problems, dotted
from dpsql.policy.promise import lost_nulls, promise, warnings
from dpsql.policy.schema import Schema, SchemaTable


@click.command()
@click.argument("policy", type=click.Path(path_type=Path), required=False)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the policy file, for editors.")
@click.option("--offline", is_flag=True, help="Do not compare with the backend.")
@click.option("--against", type=click.Path(path_type=Path), help="Say what POLICY changes for whom, compared to this.")
@click.option("--advise", is_flag=True, help="Say what costs accuracy, and what would help.")
@click.option("--accept", is_flag=True, help="Put into the ledger that POLICY may promise less than before.")
def check(policy: Path | None, schema: bool, offline: bool, against: Path | None, advise: bool, accept: bool) -> None:
    """Check POLICY, compare it with the backend, and say what it promises to whom."""
    if schema:
        click.echo(json.dumps(json_schema(), indent=2))
        return
    if policy is None:
        raise click.UsageError("Missing argument 'POLICY'.")
    loaded = load(policy)
    if against is not None or accept:
        _compare_policies(loaded, against, accept)
        return
    found = None if offline else _compare(loaded)
    click.echo("\n".join((*promise(loaded), "", *_backend(loaded, found))))
    for warning in (*warnings(loaded), *_cautions(loaded), *(lost_nulls(found) if found is not None else ())):
        click.echo(f"warning: {warning}", err=True)
    if advise and found is None:
        raise click.UsageError("--advise compares the policy with the backend: leave out --offline.")
    if advise and found is not None:
        click.echo("\n".join(("", *_advice(found))))
    if found is not None:
        click.echo(f"Next: {_next(loaded, policy)}", err=True)


def _cautions(policy: Policy) -> list[str]:
    """Of the store that keeps the ledger."""
    known = caution() if policy.ledger.startswith("sqlite:") else None
    return [known] if known else []


def _advice(schema: Schema) -> list[str]:
    """What costs accuracy: each with its place in the policy, as problems have."""
    place = Problems(str(schema.policy.path.name), schema.policy.lines)
    found = policy_advice(schema)
    if not found:
        return ["Nothing that the policy alone tells costs accuracy. EXPLAIN advises on a statement."]
    return ["What costs accuracy (judged by the policy alone, never by data; EXPLAIN advises on a statement)"] + [
        f"  {place.file}:{place.line(advice.path)}: {dotted(advice.path)}: {advice.text}" for advice in found
    ]


def _next(loaded: Policy, file: Path) -> str:
    """The command that follows on the way to a served dataset."""
    try:
        made = home_of(loaded.ledger, loaded.dataset).exists()
    except DpsqlError:
        made = False
    return f"dpsql serve {file}" if made else f"dpsql ledger init {file}"


def _compare_policies(new: Policy, against: Path | None, accept: bool) -> None:
    """Print what changes. Raises Rejected if the new policy promises less and the operator does not say so."""
    found = () if against is None else changes(terms(load(against)), terms(new))
    for change in found:
        click.echo(str(change))
    if against is not None and not found:
        click.echo("nothing changes")
    if problem := refusal(found, accept):
        raise Rejected(f"{new.path}: {problem}", hint="If that is meant, `--accept` puts your word into the ledger.")
    if accept:
        with closing(open_ledger(new.ledger, new.dataset, new.ledger_anchor)) as ledger:
            entry = ledger.accept(text_of(new))
        click.echo(f"accepted, entry {entry.id}: the next reload or start takes the policy over")


def _compare(policy: Policy) -> Schema:
    with closing(open_backend(policy.backend, policy.timezone)) as backend:
        return inspect(backend, policy)


def _backend(policy: Policy, schema: Schema | None) -> list[str]:
    if schema is None:
        return ["The policy is sound. It was not compared with the backend."]
    tables = [f"  {line}" for table in schema.tables.values() for line in _verified(policy, table)]
    return ["The policy is sound and fits the backend", *tables]


def _verified(policy: Policy, table: SchemaTable) -> list[str]:
    """What the backend was found to guarantee, and what the proxy's SQL enforces instead."""
    if table.rows is not None:
        return [f"{table.name}: public, {len(table.rows.rows):,} rows"]
    words = [f"{table.name}: {len(table.columns)} columns"]
    if table.key is not None:
        words.append(f"key {', '.join(table.key)} verified")
    if table.max_rows == 1 and not policy.privacy.is_row:
        words.append("one row a unit " + ("verified" if table.one_row_per_unit else "enforced by clipping"))
    return [", ".join(words)]
