"""A small dataset with its ledger, a proxy over it, and a shell in a terminal of 80 columns."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pexpect
import pyte
from rich.console import Console

from dpsql.ledger import init_ledger
from dpsql.policy.load import load
from dpsql.shell.local import Local
from dpsql.shell.loop import new_state
from dpsql.shell.state import State

COMMAND = [sys.executable, "-c", "from dpsql.cli import main; main()"]
PASSWORD = "alice-demo"
VERIFIER = (
    "SCRAM-SHA-256$4096:wMALGx+Whfg8qbbSxO54Xw==$E9gSx0D9I6Sk/KBxcqTc7kFEXxiK7A49nl/nYlyfSNI=:"
    "ML73k/ZY3lyKXWZyNb71d5wy/5EbW/GkAMN2dddym2M="
)
POLICY = f"""
dpsql: 1
dataset: shops
backend: duckdb:shops.duckdb
ledger: sqlite:shops.ledger
privacy: {{unit: person, units: 2000, max_groups: 1, max_rows_per_group: 2, budget: {{epsilon: 20, delta: 1e-6}}}}
tables:
  visits:
    unit: uid
    columns:
      shop: {{type: text, values: [bakery, butcher, florist]}}
      amount: {{type: integer, lower: 0, upper: 100}}
      day: {{type: integer}}
      a_rather_long_column_name_for_a_note: {{type: text}}
  streets: {{public: true}}
roles:
  analyst: {{budget: {{epsilon: 10, delta: 1e-7}}, epsilon: 1, max_epsilon: 8}}
users:
  ann: {{role: analyst, password: "{VERIFIER}"}}
"""


def make_world(folder: Path) -> Path:
    """The policy's path; database and ledger stand beside it."""
    with duckdb.connect(str(folder / "shops.duckdb")) as connection:
        connection.execute(
            """CREATE TABLE visits AS
            SELECT i AS uid, ['bakery', 'butcher', 'florist'][i % 3 + 1] AS shop, CAST(i % 50 AS INTEGER) AS amount,
                   CAST(i % 7 AS INTEGER) AS day, 'note' AS a_rather_long_column_name_for_a_note
            FROM range(2000) AS t(i)"""
        )
        connection.execute("CREATE TABLE streets AS SELECT i AS number, 'street ' || i AS name FROM range(300) AS t(i)")
    path = folder / "policy.yaml"
    path.write_text(POLICY)
    policy = load(path)
    init_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    return path


@dataclass(frozen=True, slots=True)
class Screen:
    """A state whose console writes into `file`."""

    state: State
    file: io.StringIO

    def text(self) -> str:
        """What was written since the last call."""
        found = self.file.getvalue()
        self.file.seek(0)
        self.file.truncate()
        return found


@contextmanager
def opened(policy: Path, width: int = 80, user: str = "ann") -> Iterator[Screen]:
    """A shell without a terminal: what it prints is kept. It asks nothing."""
    connection = Local(policy, user)
    try:
        file = io.StringIO()
        state = new_state(connection, Console(file=file, width=width, highlight=False), interactive=True)
        state.interactive = False
        state.look_around()
        yield Screen(state, file)
    finally:
        connection.close()


@contextmanager
def proxy(policy: Path, port: int = 0) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """`dpsql serve` in a process of its own, and its port."""
    log = policy.with_suffix(".log")
    with log.open("wb") as output:
        command = [*COMMAND, "serve", str(policy), "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 60
        found = None
        while found is None:
            assert time.monotonic() < deadline, log.read_text()
            assert process.poll() is None, log.read_text()
            found = re.search(r"^dpsql: dataset \S+ on \S+:(\d+)$", log.read_text(), re.MULTILINE)
            time.sleep(0.05)
        yield int(found[1]), process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Terminal:
    """A shell in a pseudo-terminal, its screen read as a person would see it."""

    def __init__(self, arguments: list[str], folder: Path, columns: int = 80, lines: int = 50) -> None:
        environment = {**os.environ, "DPSQL_HISTORY": str(folder / "history"), "TERM": "xterm-256color"}
        environment.pop("PGPASSWORD", None)
        self._screen = pyte.HistoryScreen(columns, lines, history=1000, ratio=0.5)
        self._stream = pyte.Stream(self._screen)
        self._child = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], "shell", *arguments],
            env=environment,
            dimensions=(lines, columns),
            encoding="utf-8",
            timeout=60,
        )

    def send(self, text: str) -> None:
        self._child.send(text)

    def type(self, line: str) -> None:
        self.send(line + "\r")

    def wait(self, pattern: str, seconds: float = 60) -> str:
        """The screen, once it shows the pattern."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.text()):
            assert time.monotonic() < deadline, f"{pattern!r} is not on the screen:\n{self.text()}"
            self._read()
        return self.text()

    def _read(self) -> None:
        try:
            data = self._child.read_nonblocking(65536, timeout=0.2)
        except pexpect.TIMEOUT:
            return
        except pexpect.EOF:
            return
        if "\x1b[6n" in data:  # a terminal tells where its cursor is
            self._child.send(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")
        self._stream.feed(data)

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def clear(self) -> None:
        """Ctrl-L: an empty screen with the prompt on top."""
        self.send("\x0c")
        self.wait(r"\A\w+=>")

    def leave(self) -> int:
        """The exit status after \\q."""
        self.type("\\q")
        self._child.expect(pexpect.EOF)
        self._child.close()
        return int(self._child.exitstatus or 0)

    def close(self) -> None:
        self._child.close(force=True)


@contextmanager
def terminal(arguments: list[str], folder: Path) -> Iterator[Terminal]:
    made = Terminal(arguments, folder)
    try:
        yield made
    finally:
        made.close()
