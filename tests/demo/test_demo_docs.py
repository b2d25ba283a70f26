"""The documents stay true: statements, refusals and commands are run, policies checked, links and tests looked up.

The manual of SQL shows golden cases, which `tests/golden` compares.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.cli import dpsql
from dpsql.commands.demo import DATABASE, PASSWORD, USER, Place, prepare, proxy
from dpsql.policy.load import load
from dpsql.shell.local import open_session, run

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
MANUAL = ROOT / "docs" / "sql.md"
Client = psycopg.Connection[tuple[object, ...]]


def fenced(kind: str, *documents: Path) -> list[str]:
    """The fenced blocks of a kind, in order."""
    pattern = re.compile(rf"^```{kind}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for path in documents or DOCUMENTS for block in pattern.findall(path.read_text("utf-8"))]


def sessions() -> list[tuple[str, str]]:
    """Statements of the psql sessions shown, each with the lines below it."""
    found = []
    for block in fenced("console"):
        for part in re.split(r"^nyc-flights=> ", block, flags=re.MULTILINE)[1:]:
            statement, _, output = part.partition(";\n")
            found.append((re.sub(r"\nnyc-flights-> ", "\n", statement), output))
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return prepare(tmp_path_factory.mktemp("docs"))


@pytest.fixture(scope="module")
def client(place: Place) -> Iterator[Client]:
    with proxy(place, "127.0.0.1:0") as running:
        address = f"host={running.host} port={running.port} user={USER} password={PASSWORD} dbname={DATABASE}"
        with psycopg.connect(address, autocommit=True) as connection:
            yield connection


def test_statements_are_answered(client: Client) -> None:
    blocks = fenced("sql", *(path for path in DOCUMENTS if path != MANUAL))
    statements = [s for block in blocks for s in block.split(";\n") if s.strip()]
    assert len(statements) > 5
    for statement in statements:
        assert client.execute(statement.encode()).fetchall(), statement


def test_sessions_are_as_shown(client: Client) -> None:
    """The same columns, number of rows and refusals; values differ by their noise."""
    assert len(sessions()) > 5
    for statement, shown in sessions():
        lines = ["|".join(part.strip() for part in line.split("|")) for line in shown.splitlines()]
        for line in _told(client, statement):
            assert line in lines, statement


def _told(client: Client, statement: str) -> list[str]:
    """Lines that psql prints whatever the noise is, without the blanks around columns."""
    try:
        cursor = client.execute(statement.encode())
    except psycopg.Error as error:
        return [f"ERROR:  {error.diag.message_primary}", f"HINT:  {error.diag.message_hint}"]
    return ["|".join(column.name for column in cursor.description or ()), f"({cursor.rowcount} rows)"]


def test_commands_run(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(place.folder, tmp_path, dirs_exist_ok=True)
    shutil.copy(place.policy, tmp_path / "policy.yaml")
    monkeypatch.chdir(tmp_path)
    commands = [line for block in fenced("shell") for line in block.splitlines()]
    assert len(commands) > 5
    for command in commands:
        done = CliRunner().invoke(dpsql, shlex.split(command)[1:])
        assert done.exit_code == 0, f"{command}: {done.output}"


def test_python_runs(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    (script,) = fenced("python", ROOT / "README.md")
    exec(script.replace("port=6432", f"port={client.info.port}"), {})
    assert "EWR" in capsys.readouterr().out


def test_policies_fit_the_demo(place: Place) -> None:
    for number, text in enumerate(fenced("yaml")):
        path = place.folder / f"shown-{number}.yaml"
        path.write_text(text, "utf-8")
        policy = load(path)
        with closing(open_backend(policy.backend, policy.timezone)) as backend:
            inspect(backend, policy)


def test_explain_has_the_documented_members(place: Place) -> None:
    document = (ROOT / "docs" / "explain.md").read_text("utf-8")
    with open_session(place.policy, USER) as session:
        sql = "EXPLAIN (FORMAT JSON) SELECT dest, avg(dep_delay), count(*) FROM flights GROUP BY dest"
        ((text,),) = next(iter(run(session, sql))).rows
    for name in _members(json.loads(str(text))):
        assert f"`{name}`" in document, name


def _members(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _members(part)


def test_links_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_named_tests_exist() -> None:
    for path in DOCUMENTS:
        for file, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", path.read_text("utf-8")):
            assert (ROOT / file).is_file(), f"{path.name}: {file}"
            assert not name or f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{path.name}: {file}::{name}"
