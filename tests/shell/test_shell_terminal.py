"""A person at a terminal of 80 columns: what they type, and what stands on the screen afterwards."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell_world import PASSWORD, Terminal, make_world, proxy, stop, terminal

SLOW = "SELECT count(*) FROM generate_series(1, 100000) a CROSS JOIN generate_series(1, 100000) b CROSS JOIN streets c;"
"""Minutes, if nobody stops it."""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("shell"))


@pytest.fixture
def screen(policy: Path, tmp_path: Path) -> Iterator[Terminal]:
    with terminal([str(policy)], tmp_path) as made:
        made.wait(r"shops=>")
        yield made


def test_a_first_visit(screen: Terminal, tmp_path: Path) -> None:
    text = screen.wait(r"ann · epsilon \d\S* of 10 left · a statement: epsilon 1")
    assert "shops as ann" in text
    assert "statements of epsilon 1 still fit." in text
    screen.type("SELECT shop,")
    screen.wait(r"shops->")
    screen.type("count(*) AS n FROM visits GROUP BY shop;")
    lines = screen.wait(r"Price: epsilon 1;").splitlines()
    assert any(line.split() == ["shop", "n", "95", "%", "error"] for line in lines)
    screen.type("\\chart")
    screen.wait("░ is the 95 % error")
    screen.clear()
    screen.type("\\d visits")
    screen.wait("privacy unit")
    screen.clear()
    screen.type("SELECT nothing FROM visits;")
    text = screen.wait("HINT:")
    assert "Traceback" not in text
    screen.type("SELECT 1; -- my password is 1234")
    screen.wait(r"\(1 row\)")
    assert screen.leave() == 0
    history = tmp_path / "history"
    assert "+SELECT shop,\n+count(*)" in history.read_text()
    assert "1234" not in history.read_text()
    assert stat.S_IMODE(os.stat(history).st_mode) == 0o600


def test_a_command_amid_a_statement(screen: Terminal) -> None:
    """As in psql: the command runs, the statement goes on."""
    screen.type("SELECT shop,")
    screen.wait(r"shops->")
    screen.type("\\d visits")
    screen.wait("privacy unit")
    screen.type("count(*) AS found FROM visits GROUP BY shop;")
    screen.wait(r"\(3 rows\)")
    screen.type("SELECT shop,")
    screen.wait(r"shops->")
    assert screen.leave() == 0


def test_tab_completes_and_enter_takes_it(screen: Terminal) -> None:
    screen.send("SELECT count(*) FROM vis\t")
    screen.wait(r"FROM visits")
    screen.send(" WHERE shop = 'b\t")
    screen.wait(r"bakery +value of shop")
    screen.send("\t\r")
    screen.type("';")
    screen.wait(r"\(1 row\)")


def test_ctrl_c_stops_a_statement_and_keeps_the_session(screen: Terminal) -> None:
    screen.type(SLOW)
    screen.wait("Waiting for the database")
    screen.send("\x03")
    screen.wait(r"Stopped: .*\n*.*stays *\n?spent")
    screen.send("half a line\x03")
    screen.type("SELECT 1 AS one;")
    screen.wait(r"\(1 row\)")


def test_an_expensive_statement_is_asked_about(screen: Terminal) -> None:
    screen.type("\\epsilon 5")
    screen.wait("A statement costs epsilon 5")
    screen.type("SELECT sum(amount) FROM visits;")
    screen.wait(r"This takes epsilon 5, \d+% of what is left of your budget\.")
    screen.send("n\r")
    screen.wait("Not asked; nothing is spent.")
    screen.clear()
    screen.type("\\confirm off")
    screen.wait("asks nothing")
    screen.type("SELECT sum(amount) FROM visits;")
    screen.wait("Price: epsilon 5")


def test_a_table_that_is_too_wide_becomes_blocks(screen: Terminal) -> None:
    columns = ", ".join(f"number AS a_name_of_a_column_{i}" for i in range(6))
    screen.type(f"SELECT {columns} FROM streets ORDER BY number LIMIT 2;")
    text = screen.wait(r"\(2 rows\)")
    assert "── 1 of 2" in text
    assert "a_name_of_a_column_5  0" in text


def test_a_lost_proxy_is_told_and_found_again(policy: Path, tmp_path: Path) -> None:
    with (
        proxy(policy) as (port, process),
        terminal([f"postgresql://127.0.0.1:{port}/shops", "--user", "ann"], tmp_path) as screen,
    ):
        screen.wait("Password of ann: ?")
        screen.type(PASSWORD)
        screen.wait(r"shops=>")
        assert PASSWORD not in screen.text()
        screen.type(SLOW.replace("a.number", "2 * a.number"))
        screen.wait("Waiting for the database")
        screen.send("\x03")
        screen.wait("Stopped: ")
        stop(process)
        screen.type("SELECT 1 AS one;")
        screen.wait(r"ERROR: The connection is lost")
        screen.wait("The next statement tries to connect")
        with proxy(policy, port):
            screen.type("SELECT 2 AS two;")
            screen.wait(r"\(1 row\)")
            assert "Traceback" not in screen.text()
            assert screen.leave() == 0
