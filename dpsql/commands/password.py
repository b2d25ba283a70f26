"""`dpsql password`: a password -> the verifier that goes into the policy.

Decides how the password is read. It is never echoed, logged, stored or taken from the command line, where other
users of the machine could see it.
"""

from __future__ import annotations

import sys

import click

from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.pgwire.auth import make_verifier

MAX_LENGTH = 1024


@click.command()
@click.option("--stdin", is_flag=True, help="Read the password from standard input (one line) instead of asking.")
def password(stdin: bool) -> None:
    """Print a SCRAM-SHA-256 verifier, as Postgres stores it, of a password."""
    click.echo(make_verifier(_checked(_read_line() if stdin else _ask())))


def _ask() -> str:
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def _read_line() -> str:
    return sys.stdin.readline(MAX_LENGTH + 2).removesuffix("\n").removesuffix("\r")


def _checked(text: str) -> str:
    if not text or "\x00" in text or len(text) > MAX_LENGTH:
        message = f"A password has 1 to {MAX_LENGTH} characters and no NUL."
        raise Rejected(message, sqlstate=BAD_PARAMETER, hint="Choose another one.")
    return text
