"""The session in docs/shell.md, typed again: the same screens but for the noise."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from shell_world import opened

from dpsql.ledger import init_ledger
from dpsql.policy.load import load
from dpsql.shell.commands import COMMANDS
from dpsql.shell.evaluate import evaluate

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "shell.md").read_text("utf-8")


def typed() -> list[tuple[str, str]]:
    """What is typed, and the screen below it."""
    block = re.search(r"^```text\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert block is not None
    found = []
    for part in re.split(r"^nyc-flights=> ", block[1], flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        more = 1 + sum(line.startswith("nyc-flights-> ") for line in lines)
        text = "\n".join(line.removeprefix("nyc-flights-> ") for line in lines[:more])
        found.append((text, "\n".join(lines[more:])))
    return found


def shape(screen: str) -> str:
    """Digits, bars and blanks depend on the noise."""
    return re.sub(r"-?\d[\d.]*", "#", re.sub(r"[\s─█░]+", " ", screen)).strip()


def test_the_session_is_as_shown(flights_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(flights_file, tmp_path)
    path = Path(shutil.copy(ROOT / "policies" / "nyc-flights.yaml", tmp_path))
    policy = load(path)
    init_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    with opened(path, user="alice") as screen:
        for text, shown in typed():
            assert evaluate(screen.state, text)
            # An interval may be cut at a bound in one run and not in another.
            assert re.sub("# to #", "± #", shape(screen.text())) == re.sub("# to #", "± #", shape(shown)), text
    assert (tmp_path / "miles.csv").read_text().startswith("miles,miles_low,miles_high\n")


def test_every_command_is_documented() -> None:
    for name in COMMANDS:
        assert f"`\\{name}" in DOCUMENT, name
