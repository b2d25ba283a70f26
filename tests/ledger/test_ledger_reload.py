"""A new policy while clients stay connected: what changes, who is told, what is refused, and who has to leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner

from dpsql.commands.check import check
from dpsql.commands.ledger import ledger as ledger_command
from dpsql.errors import Rejected
from dpsql.ledger import Kind, open_ledger
from dpsql.pgwire.auth import make_verifier
from dpsql.policy.changes import changes, leaving, refusal, terms
from dpsql.policy.load import load
from dpsql.policy.model import Policy

VERIFIER = make_verifier("secret")
POLICY = f"""
dpsql: 1
dataset: flights
backend: duckdb:flights.duckdb
ledger: sqlite:flights.ledger
privacy:
  unit: uid
  units: 4000
  max_groups: 2
  max_rows_per_group: 1
  budget: {{epsilon: 4, delta: 1e-6}}
tables:
  people: {{unit: uid, columns: {{age: {{type: integer, lower: 0, upper: 120}}}}}}
  codes: {{unit: uid, columns: {{}}}}
roles:
  analyst: {{budget: {{epsilon: 2, delta: 1e-6}}, window: month, shared: true, max_epsilon: 1, tables: [people]}}
  single: {{budget: {{epsilon: 2, delta: 1e-6}}}}
  owner: {{owner: true}}
users:
  alice: {{role: analyst, password: "{VERIFIER}"}}
  bob: {{role: single, password: "{VERIFIER}"}}
  olga: {{role: owner}}
"""


def written(directory: Path, *edits: tuple[str, str], name: str = "flights.yaml") -> Path:
    text = POLICY
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = directory / name
    path.write_text(text)
    return path


def edited(directory: Path, *edits: tuple[str, str]) -> Policy:
    return load(written(directory, *edits, name="new.yaml"))


LISTED = "{type: text, values: [a, 'b, c'], nullable: true}"
ADDED = "tables.codes.columns.kind: absent -> type text, values ('a', 'b, c'), nullable True (everybody)"


@pytest.mark.parametrize(
    ("old", "new", "told", "weaker"),
    [
        ("{epsilon: 4,", "{epsilon: 5,", "weaker: privacy.budget.epsilon: 4 -> 5 (everybody)", True),
        ("{epsilon: 4,", "{epsilon: 3,", "privacy.budget.epsilon: 4 -> 3 (everybody)", False),
        ("max_groups: 2", "max_groups: 3", "privacy.max_groups: 2 -> 3 (everybody)", False),
        ("unit: uid\n  units", "unit: person\n  units", "weaker: privacy.unit: uid -> person (everybody)", True),
        ("max_rows_per_group: 1", "max_rows_per_group: 1\n  replay: shared", "weaker: privacy.replay", True),
        ("window: month", "window: day", "weaker: roles.analyst.window: month -> day (alice)", True),
        ("window: month", "window: year", "roles.analyst.window: month -> year (alice)", False),
        ("window: month, ", "", "roles.analyst.window: month -> none (alice)", False),
        ("shared: true", "shared: false", "weaker: roles.analyst.shared: True -> False (alice)", True),
        ("max_epsilon: 1", "max_epsilon: 2", "weaker: roles.analyst.max_epsilon: 1 -> 2 (alice)", True),
        ("max_epsilon: 1, ", "", "weaker: roles.analyst.max_epsilon: 1 -> none (alice)", True),
        ("tables: [people]", "tables: [people, codes]", "weaker: roles.analyst.tables", True),
        (", tables: [people]", "", "weaker: roles.analyst.tables: people -> all (alice)", True),
        ("  codes: {unit: uid, columns: {}}", "  codes: {public: true}", "weaker: tables.codes", True),
        ("  codes: {unit: uid", "  codes: {unit: other", "weaker: tables.codes", True),
        ("upper: 120", "upper: 130", "tables.people.columns.age: upper 120 -> 130 (everybody)", False),
        ("codes: {unit: uid, columns: {}}", f"codes: {{unit: uid, columns: {{kind: {LISTED}}}}}", ADDED, False),
        ("alice: {role: analyst", "alice: {role: single", "weaker: users.alice: analyst -> single", True),
        ("olga: {role: owner}", "olga: {role: owner}\n  new: {role: single}", "users.new: absent -> single", False),
        ("  olga: {role: owner}\n", "", "users.olga: owner -> absent", False),
        ("single: {budget", "single: {owner: true, budget", "weaker: roles.single.owner: False -> True (bob)", True),
        ("sqlite:flights.ledger", "sqlite:other.ledger", "cannot change: ledger:", True),
        ("dataset: flights", "dataset: others", "cannot change: dataset: flights -> others (everybody)", True),
    ],
)
def test_what_changes(old: str, new: str, told: str, weaker: bool, tmp_path: Path) -> None:
    before = load(written(tmp_path))
    found = changes(terms(before), terms(edited(tmp_path, (old, new))))
    assert str(found[0]).startswith(told)
    assert (refusal(found, accepted=False) is not None) == weaker
    assert (refusal(found, accepted=True) is not None) == found[0].fixed


@pytest.mark.parametrize("name", ["codes", "codes.key", "a.b", "a%2Eb", "codes.columns.age"])
def test_names_with_dots_hide_nothing(name: str, tmp_path: Path) -> None:
    """Terms are named with dots between their parts: a table's or a role's own name must not look like one."""
    private, public = f'  "{name}": {{unit: uid, columns: {{}}}}', f'  "{name}": {{public: true}}'
    extra = "" if name == "codes" else "\n  codes: {unit: uid, columns: {age: {type: integer}}}"
    old = written(tmp_path, ("  codes: {unit: uid, columns: {}}", private + extra), ("single", f'"{name}"'))
    before = terms(load(old))
    text = old.read_text()
    for edit in ((private, public), ("{budget: {epsilon: 2, delta: 1e-6}}", "{budget: {epsilon: 3, delta: 1e-6}}")):
        assert edit[0] in text
        new = tmp_path / "new.yaml"
        new.write_text(text.replace(*edit))
        (change,) = changes(before, terms(load(new)))
        assert change.weaker, change
        assert change.whom == ("everybody" if edit[0] is private else "bob")


@pytest.mark.parametrize(
    ("roles", "weaker"),
    [
        ("analyst: {budget: {epsilon: 2, delta: 1e-6}, tables: [people]}", True),
        ("analyst: {budget: {epsilon: 2, delta: 1e-6}, max_epsilon: 1}", True),
        ("analyst: {budget: {epsilon: 2, delta: 1e-6}}", False),
    ],
)
def test_another_role_allows_more(roles: str, weaker: bool, tmp_path: Path) -> None:
    """What a role may not be given unasked, a user may not be given by another role either."""
    old = POLICY[POLICY.index("  analyst: {") : POLICY.index("  single:")]
    before = edited(tmp_path, (old, f"  {roles}\n"))
    after = edited(tmp_path, (old, f"  {roles}\n"), ("alice: {role: analyst", "alice: {role: single"))
    (change,) = changes(terms(before), terms(after))
    assert change.weaker == weaker


def test_a_new_column_with_free_counts_is_weaker(tmp_path: Path) -> None:
    response = "columns: {age: {type: text, randomized_response: {epsilon: 1, values: [a, b]}}}"
    after = edited(tmp_path, ("codes: {unit: uid, columns: {}}", f"codes: {{unit: uid, {response}}}"))
    (change,) = changes(terms(load(written(tmp_path))), terms(after))
    assert change.weaker


def test_nothing_changes_and_no_secret_is_told(tmp_path: Path) -> None:
    policy = load(written(tmp_path))
    assert changes(terms(policy), terms(policy)) == ()
    assert "SCRAM" not in json.dumps(terms(policy))


def test_who_has_to_leave(tmp_path: Path) -> None:
    before = load(written(tmp_path))
    locked = f'bob: {{role: single, password: "{VERIFIER}"}}', "bob: {role: single}"
    assert list(leaving(before, edited(tmp_path, locked))) == ["bob"]
    assert list(leaving(before, edited(tmp_path, ("  olga: {role: owner}\n", "")))) == ["olga"]
    assert list(leaving(before, edited(tmp_path, ("{epsilon: 4,", "{epsilon: 3,")))) == []


def test_check_against(tmp_path: Path) -> None:
    old = str(written(tmp_path))
    new = str(written(tmp_path, ("{epsilon: 4,", "{epsilon: 5,"), name="new.yaml"))
    CliRunner().invoke(ledger_command, ["init", old], catch_exceptions=False)
    result = CliRunner().invoke(check, [new, "--against", old])
    assert "weaker: privacy.budget.epsilon: 4 -> 5" in result.output
    assert isinstance(result.exception, Rejected)
    assert "nothing changes" in CliRunner().invoke(check, [old, "--against", old], catch_exceptions=False).output
    assert "accepted, entry 2" in CliRunner().invoke(check, [new, "--against", old, "--accept"]).output


@contextmanager
def serving(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int, Path]]:
    """The proxy as a process, over new data and a new ledger if there are none: itself, its port, its log."""
    if not (path.parent / "flights.duckdb").exists():
        with duckdb.connect(str(path.parent / "flights.duckdb")) as database:
            database.execute(
                "CREATE TABLE people AS SELECT range AS uid, (range % 80)::INTEGER AS age FROM range(2000)"
            )
            database.execute("CREATE TABLE codes AS SELECT range AS uid FROM range(10)")
        CliRunner().invoke(ledger_command, ["init", str(path)], catch_exceptions=False)
    log = path.parent / "log"
    program = "from dpsql.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", str(path), "--listen", "127.0.0.1:0", *options]
    with log.open("w") as file, subprocess.Popen(command, stderr=file, text=True) as process:
        try:
            yield process, int(waited(log, "dpsql: dataset").rsplit(":", 1)[1]), log
        finally:
            process.terminate()


def waited(log: Path, what: str, count: int = 1) -> str:
    """The line of the log that says so, once it is there."""
    for _ in range(1200):
        lines = [line for line in log.read_text().splitlines() if what in line]
        if len(lines) >= count:
            return lines[count - 1]
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def connected(port: int, user: str, password: str = "secret") -> psycopg.Connection[tuple[object, ...]]:
    conninfo = f"host=127.0.0.1 port={port} user={user} password={password} dbname=flights"
    return psycopg.connect(conninfo, autocommit=True)


def test_reload(tmp_path: Path) -> None:
    path = written(tmp_path)
    with serving(path) as (process, port, log), connected(port, "alice") as alice, connected(port, "bob") as bob:
        alice.execute("SELECT COUNT(*) FROM people")
        spent = [row[2] for row in alice.execute("SHOW dpsql.budget")]

        written(tmp_path, ("{epsilon: 4,", "{epsilon: 5,"))  # promises less
        os.kill(process.pid, signal.SIGHUP)
        assert "promises less" in waited(log, "reload refused")
        assert alice.execute("SHOW dpsql.budget").fetchall()[1][1] == 4

        path.write_text("dpsql: 2")  # no policy at all
        os.kill(process.pid, signal.SIGHUP)
        waited(log, "reload refused", 2)
        assert alice.execute("SHOW dpsql.budget").fetchall()[1][1] == 4

        written(tmp_path, ("{epsilon: 4,", "{epsilon: 3,"), (f'bob: {{role: single, password: "{VERIFIER}"}}', ""))
        os.kill(process.pid, signal.SIGHUP)
        assert "sessions ended: 1" in waited(log, "reload: ")
        after = alice.execute("SHOW dpsql.budget").fetchall()
        assert (after[1][1], [row[2] for row in after]) == (3, spent)
        with pytest.raises(psycopg.OperationalError, match="no longer allows this session"):
            bob.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connected(port, "bob")

        written(tmp_path, ("{epsilon: 4,", "{epsilon: 5,"))
        result = CliRunner().invoke(check, [str(path), "--accept"], catch_exceptions=False)
        assert "accepted" in result.output
        os.kill(process.pid, signal.SIGHUP)
        waited(log, "reload: ", 2)
        assert alice.execute("SHOW dpsql.budget").fetchall()[1][1] == 5
        assert alice.execute("SELECT COUNT(*) FROM people").fetchall()
    opened = open_ledger(load(path).ledger, "flights")
    kinds = [entry.kind for entry in opened.entries() if entry.kind not in (Kind.DEBIT, Kind.RECORD)]
    opened.close()
    assert kinds == [Kind.OPEN, Kind.POLICY, Kind.POLICY, Kind.ACCEPT, Kind.POLICY]
