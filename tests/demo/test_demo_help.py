"""Every command's --help fits 80 columns, cuts no line off, and shows an example."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from dpsql.cli import COMMANDS, dpsql


def _paths() -> list[tuple[str, ...]]:
    context = click.Context(dpsql)
    found: list[tuple[str, ...]] = [()]
    for name in COMMANDS:
        command = dpsql.get_command(context, name)
        found.append((name,))
        found += [(name, below) for below in command.commands] if isinstance(command, click.Group) else []
    return found


@pytest.mark.parametrize("path", _paths(), ids=" ".join)
def test_help_fits_and_shows_an_example(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(dpsql, [*path, "--help"], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert not [line for line in lines if len(line) > 80]
    assert not [line for line in lines if re.search(r"\w\.\.\.$", line)]
    assert f"    dpsql {' '.join(path)}".rstrip() in shown.output
