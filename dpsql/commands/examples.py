"""An example of each command, for the end of its `--help`. One place, so that none is forgotten and all look alike."""

from __future__ import annotations

from collections.abc import Mapping

import click

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": ("dpsql demo", "dpsql shell policy.yaml --user alice"),
    "demo": ("dpsql demo", "dpsql demo --serve"),
    "demo attacks": ("dpsql demo attacks",),
    "check": ("dpsql check policy.yaml", "dpsql check new.yaml --against policy.yaml"),
    "serve": ("dpsql serve policy.yaml", "dpsql serve policy.yaml --listen 127.0.0.1:6432 --metrics 9187"),
    "query": (
        'dpsql query policy.yaml --user alice "SELECT count(*) FROM flights"',
        "dpsql query policy.yaml -u alice --format csv - < question.sql > answer.csv",
    ),
    "explain": ('dpsql explain policy.yaml --user alice "SELECT avg(distance) FROM flights"',),
    "budget": ("dpsql budget show policy.yaml",),
    "budget show": ("dpsql budget show policy.yaml --user alice",),
    "budget grant": ("dpsql budget grant policy.yaml --user alice --epsilon 0.5",),
    "budget revoke": ("dpsql budget revoke policy.yaml --user alice --epsilon 0.5",),
    "audit": ("dpsql audit policy.yaml --since 2024-01-01", "dpsql audit policy.yaml --trail audit.jsonl --user alice"),
    "refresh": ("dpsql refresh policy.yaml",),
    "ledger": ("dpsql ledger verify policy.yaml",),
    "ledger init": ("dpsql ledger init policy.yaml",),
    "ledger verify": ("dpsql ledger verify policy.yaml",),
    "ledger backup": ("dpsql ledger backup policy.yaml monday.ledger",),
    "ledger clock": ("dpsql ledger clock policy.yaml",),
    "ledger export": ("dpsql ledger export policy.yaml --output entries.jsonl",),
    "ledger migrate": ("dpsql ledger migrate policy.yaml",),
    "ledger restore": ("dpsql ledger restore policy.yaml monday.ledger",),
    "password": ("dpsql password", "dpsql password --stdin < password.txt"),
    "import": ("dpsql import smartnoise metadata.yaml",),
    "import smartnoise": ("dpsql import smartnoise metadata.yaml",),
}
"""By the command's words; those whose help shows one in its text need none."""


def with_examples(command: click.Command, path: str) -> click.Command:
    """The command, its --help ending with examples, and so those below it."""
    lines = EXAMPLES.get(path)
    if lines is not None and command.epilog is None and "dpsql " + path not in (command.help or ""):
        command.epilog = (
            "\b\nExample" + ("s" if len(lines) > 1 else "") + ":\n" + "\n".join(f"  {line}" for line in lines)
        )
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_examples(below, f"{path} {name}".strip())
    return command
