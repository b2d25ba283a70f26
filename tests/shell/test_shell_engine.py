"""The shell's parts over a real engine: commands, errors, pipes, and the transports that must agree."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import click
import pytest
from shell_world import COMMAND, PASSWORD, Screen, make_world, opened, proxy

from dpsql.cli import COMMANDS, dpsql
from dpsql.errors import Rejected
from dpsql.ledger import open_ledger
from dpsql.policy.load import load
from dpsql.shell.batch import run_batch
from dpsql.shell.connection import Connection, Lost
from dpsql.shell.evaluate import evaluate
from dpsql.shell.local import Local, open_session, run
from dpsql.shell.prices import accounts, price_of
from dpsql.shell.remote import Remote
from dpsql.shell.results import shown

GROUPED = "SELECT shop, count(*) AS n FROM visits GROUP BY shop"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return make_world(tmp_path)


@pytest.fixture
def screen(policy: Path) -> Iterator[Screen]:
    with opened(policy) as made:
        yield made


def typed(screen: Screen, text: str) -> str:
    evaluate(screen.state, text)
    return screen.text()


# --- statements and commands ---------------------------------------------------------------------------------------


def test_an_answer_has_its_error_bars_and_its_price(screen: Screen) -> None:
    lines = typed(screen, GROUPED + ";").splitlines()
    assert lines[0].split() == ["shop", "n", "95", "%", "error"]
    assert lines[2].split()[0] == "bakery"
    assert lines[2].split()[2] == "±"
    assert lines[-2] == "(3 rows)"
    assert re.fullmatch(r"Price: epsilon 1; epsilon 9[.]\d+ of 10 left[.]", lines[-1])
    assert "Replay of a stored release" in typed(screen, GROUPED + ";")


def test_a_grant_counts_once(policy: Path) -> None:
    loaded = load(policy)
    ledger = open_ledger(loaded.ledger, loaded.dataset)
    ledger.grant("ann", Decimal(3))
    ledger.close()
    with opened(policy) as made:
        assert accounts(made.state.connection)[0].epsilon == 13


def test_the_error_bars_are_those_of_the_statement_that_asks_for_them(policy: Path) -> None:
    asked = (
        "SELECT shop, count(*) AS n, dp_interval_low(count(*)) AS low, dp_interval_high(count(*)) AS high FROM visits"
    )
    with open_session(policy, "ann", (("dpsql.error_bars", "on"),)) as session:
        (found,) = run(session, f"{asked} GROUP BY shop")
    assert found.columns == ("shop", "n", "low", "high", "n_low", "n_high")
    assert all(row[2:4] == row[4:6] for row in found.rows)


def test_commands_tell_what_they_should(screen: Screen) -> None:
    assert "a_rather_long_column_nam" in typed(screen, "\\d")
    described = typed(screen, "\\d visits")
    assert "one of" in described
    assert "0 to 100" in described
    assert "privacy unit" in described
    assert "no bounds" in described
    assert re.search(r"\n\d\d+ statements of epsilon 1 still fit[.]\n", typed(screen, "\\budget"))
    assert "nothing has been asked" in typed(screen, "\\history").lower()
    typed(screen, GROUPED + ";")
    assert "epsilon 1   SELECT shop" in typed(screen, "\\history")
    assert "Price: epsilon 1" in typed(screen, "\\explain")
    assert "█" in typed(screen, "\\chart")
    assert "A statement costs epsilon 0.5." in typed(screen, "\\epsilon 0.5")
    assert "A statement costs epsilon 1." in typed(screen, "\\epsilon default")
    assert "Rows are always shown as blocks." in typed(screen, "\\x")
    assert "── 1 of 3" in typed(screen, GROUPED + ";")
    assert "blocks" in typed(screen, "\\set")
    assert "\\export FILE" in typed(screen, "\\help")
    assert "Time:" in (typed(screen, "\\timing on") and typed(screen, "SELECT 1;"))


def test_every_wrong_command_says_what_would_be_right(screen: Screen) -> None:
    assert "Did you mean \\budget?" in typed(screen, "\\budgt")
    assert "Tables are streets, visits." in typed(screen, "\\d nothing")
    assert "on or off" in typed(screen, "\\confirm maybe")
    assert "Options are chart" in typed(screen, "\\set colour blue")
    assert "whole number" in typed(screen, "\\set rows many")
    assert "There is no result yet." in typed(screen, "\\chart")
    assert "There is no last statement yet." in typed(screen, "\\explain")
    assert "above the 8" in typed(screen, "\\epsilon 9")
    assert "ERROR" in typed(screen, "\\epsilon much")


def test_an_error_points_into_what_was_typed(screen: Screen) -> None:
    lines = typed(screen, "SELECT 1;\nSELECT sum(day)\nFROM visits;").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("LINE 2: "))
    assert lines[at] == "LINE 2: SELECT sum(day)"
    assert lines[at + 1].index("^") == lines[at].index("day")
    assert any(line.startswith("HINT:") for line in lines)
    lines = typed(screen, "\\explain SELECT sum(day) FROM visits").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("LINE 1: "))
    assert lines[at + 1].index("^") == lines[at].index("day")


def test_nothing_ends_the_shell_but_leaving(screen: Screen) -> None:
    for text in (
        "SELECT",
        "'",
        "\\",
        "\\d 'x",
        "SELECT * FROM visits;",
        "COPY visits FROM STDIN;",
        "\x00;",
        "BEGIN; x;",
    ):
        assert evaluate(screen.state, text)
    assert "Traceback" not in screen.text()
    for text in ("\\q", "quit", "exit;"):
        assert not evaluate(screen.state, text)


def test_a_statement_that_was_answered_before_has_no_price(screen: Screen) -> None:
    connection = screen.state.connection
    assert price_of(connection, GROUPED).epsilon == 1
    connection.run(GROUPED)
    assert price_of(connection, GROUPED).free
    assert price_of(connection, GROUPED + " ORDER BY n LIMIT 1").free
    assert not price_of(connection, "SELECT count(*) FROM visits WHERE amount > 3").free
    assert price_of(connection, "SELECT count(*) FROM streets").free
    assert [account.whose for account in accounts(connection)] == ["ann", "dataset"]


def test_explaining_spends_nothing(screen: Screen) -> None:
    before = accounts(screen.state.connection)
    typed(screen, "\\explain " + GROUPED)
    price_of(screen.state.connection, GROUPED)
    typed(screen, "\\epsilon 0.1")
    assert accounts(screen.state.connection) == before


# --- pipes ---------------------------------------------------------------------------------------------------------


def piped(policy: Path, text: str) -> str:
    connection, out = Local(policy, "ann"), io.StringIO()
    try:
        run_batch(connection, text.splitlines(keepends=True), out, tables=False)
    finally:
        connection.close()
    return out.getvalue()


def test_a_pipe_gives_csv(policy: Path) -> None:
    lines = piped(policy, GROUPED + ";\nSELECT 1\n  AS one").splitlines()
    assert lines[0] == "shop,n"
    assert [line.split(",")[0] for line in lines[1:4]] == ["bakery", "butcher", "florist"]
    assert lines[4:] == ["one", "1"]
    assert piped(policy, "COPY (SELECT 1 AS one) TO STDOUT;") == "1\n"


def test_a_pipe_stops_at_the_first_error_and_names_its_line(policy: Path) -> None:
    with pytest.raises(Rejected) as error:
        piped(policy, "SELECT 1;\n\nSELECT\n  nothing\nFROM visits;\nSELECT 2;")
    assert error.value.message.startswith('line 4: column "nothing" does not exist.')
    assert "\n" not in error.value.message
    with pytest.raises(Rejected, match=r"^line 2: There is no command"):
        piped(policy, "SELECT 1;\n\\nothing\n")


def command(policy: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], input=stdin, capture_output=True, text=True, timeout=120)


def test_the_command_line(policy: Path) -> None:
    made = command(policy, "shell", str(policy), "-c", "SELECT 1 AS one", "-c", "\\d streets")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("one\n1\n")
    assert "\x1b" not in made.stdout
    made = command(policy, "shell", str(policy), stdin="SELECT nothing FROM visits;")
    assert made.returncode == 1
    assert made.stdout == ""
    assert made.stderr.startswith("dpsql: line 1: column")
    assert made.stderr.count("\n") == 1
    made = command(policy, "shell", "postgresql://ann@127.0.0.1:1/shops", stdin="SELECT 1;")
    assert made.returncode == 1
    assert made.stderr.startswith("dpsql: No connection:")
    assert "Traceback" not in made.stderr


def test_query_shows_error_bars_in_tables_and_only_what_is_asked_elsewhere(policy: Path) -> None:
    asked = ["query", str(policy), "-u", "ann"]
    assert "± " in command(policy, *asked, GROUPED).stdout
    assert list(json.loads(command(policy, *asked, "--format", "json", GROUPED).stdout)[0]) == ["shop", "n"]
    barred = GROUPED.replace("AS n", "AS n, dp_interval_low(count(*)) AS low")
    assert command(policy, *asked, "--format", "csv", barred).stdout.startswith("shop,n,low\n")


# --- over the wire -------------------------------------------------------------------------------------------------


def test_both_transports_say_the_same(policy: Path) -> None:
    texts = [
        GROUPED,
        "SELECT * FROM streets ORDER BY number LIMIT 2",
        "SELECT now() IS NULL AS b, NULL AS n, 1.50 AS d, DATE '2020-02-03' AS t, TRUE AS y",
        "SHOW dpsql.epsilon",
        "COPY (SELECT 1 AS one) TO STDOUT",
    ]
    with proxy(policy) as (port, _):
        remote = Remote(f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/shops", None, None)
        assert (remote.user, remote.dataset) == ("ann", "shops")
        over_wire = [_told(remote, text) for text in texts]
        with pytest.raises(Rejected) as refused:
            remote.run("SELECT sum(day) FROM visits")
        remote.close()
    local = Local(policy, "ann")
    assert [_told(local, text) for text in texts] == over_wire
    with pytest.raises(Rejected) as here:
        local.run("SELECT sum(day) FROM visits")
    local.close()
    for name in ("message", "sqlstate", "hint", "position"):
        assert getattr(here.value, name) == getattr(refused.value, name)


def _told(connection: Connection, text: str) -> tuple[object, ...]:
    connection.run("SET dpsql.error_bars = on")
    found = connection.run(text)
    return found.columns, found.rows, found.types, found.tag.split()[0], found.copied, shown(found.columns)


def test_a_wrong_password_and_a_lost_connection_are_told_in_a_line(policy: Path) -> None:
    asked: list[str] = []

    def answer(user: str) -> str:
        asked.append(user)
        return PASSWORD

    with proxy(policy) as (port, process):
        url = f"postgresql://127.0.0.1:{port}/shops"
        with pytest.raises(Lost, match=r'^No connection: password authentication failed for user "ann"$'):
            Remote(f"{url}?user=ann&password=wrong", None, None)
        remote = Remote(url, "ann", answer)
        assert asked == ["ann"]
        remote.run("SELECT 1")
        process.terminate()
        process.wait(30)
        with pytest.raises(Lost, match=r"^The connection is lost: [^\n]+[.]$"):
            remote.run("SELECT 1")
        with pytest.raises(Lost):
            remote.reopen()
    with proxy(policy, port):
        remote.reopen()
        assert remote.run("SELECT 1").rows == ((1,),)
        assert asked == ["ann"]
        remote.close()


# --- help ----------------------------------------------------------------------------------------------------------


def _leaves(group: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            below = group.get_command(context, name)
            assert below is not None
            yield from _leaves(below, (*path, name))


def test_the_help_of_every_command_has_an_example() -> None:
    assert "shell" in COMMANDS
    for path, each in _leaves(dpsql, ()):
        text = each.get_help(click.Context(each, info_name="X"))
        words = " ".join(("dpsql", *path))
        assert any(line.strip().startswith(words) for line in text.splitlines()), words


def test_the_shells_of_the_system_complete_the_commands() -> None:
    script = Path(sys.executable).parent / "dpsql"
    for name in ("bash", "zsh", "fish"):
        environment = {**os.environ, "_DPSQL_COMPLETE": f"{name}_source"}
        made = subprocess.run([script], env=environment, capture_output=True, text=True, timeout=60)
        assert "_DPSQL_COMPLETE" in made.stdout, made.stderr
