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
from dpsql.policy.load import json_schema, load
from dpsql.policy.model import Policy
from dpsql.policy.promise import promise, warnings
from dpsql.policy.schema import Schema, SchemaTable


@click.command()
@click.argument("policy", type=click.Path(path_type=Path), required=False)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the policy file, for editors.")
@click.option("--offline", is_flag=True, help="Do not compare with the backend.")
def check(policy: Path | None, schema: bool, offline: bool) -> None:
    """Check POLICY, compare it with the backend, and say what it promises to whom."""
    if schema:
        click.echo(json.dumps(json_schema(), indent=2))
        return
    if policy is None:
        raise click.UsageError("Missing argument 'POLICY'.")
    loaded = load(policy)
    found = None if offline else _compare(loaded)
    click.echo("\n".join((*promise(loaded), "", *_backend(loaded, found))))
    for warning in warnings(loaded):
        click.echo(f"warning: {warning}", err=True)


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
