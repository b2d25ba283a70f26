"""The documents stay true: statements, refusals and commands are run, policies checked, links and tests looked up.

Every block of code in them is run, here or where `RUN_BY` says, or stands in `NOT_RUN` with the reason.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest
from click.testing import CliRunner
from demo_documents import DOCS, DOCUMENTS, ROOT, blocks, fenced, titled

from dpsql.backends import open_backend
from dpsql.backends.inspect import inspect
from dpsql.cli import dpsql
from dpsql.commands.demo import DATABASE, PASSWORD, USER, Place, prepare, proxy
from dpsql.policy.load import load
from dpsql.shell.local import open_session, run

MANUAL, QUICKSTART = DOCS / "sql.md", DOCS / "quickstart.md"
Client = psycopg.Connection[tuple[object, ...]]
CONNECTING = "tests/demo/test_demo_connect.py"
RUN_BY: Mapping[str, str] = {
    "README.md console": "test_sessions_are_as_shown",
    "README.md python": "test_python_runs",
    "README.md sh": f"{CONNECTING}::test_psql",
    "README.md sql": "test_statements_are_answered",
    "README.md text": "test_the_layout_is_there",
    "README.md yaml": "test_policies_fit_the_demo",
    "attacks.md sh": "tests/demo/test_demo_attacks.py::test_the_screen_fits_and_tells",
    "choosing.md sql": "test_statements_are_answered",
    "connect.md python": f"{CONNECTING}::test_pandas",
    "connect.md r": f"{CONNECTING}::test_r",
    "connect.md sh": f"{CONNECTING}::test_psql",
    "connect.md text JDBC": f"{CONNECTING}::test_jdbc_url",
    "connect.md text ODBC": f"{CONNECTING}::test_odbc_string",
    "connect.md text SQLAlchemy": f"{CONNECTING}::test_superset_url",
    "explain.md shell": "test_commands_run",
    "local-model.md sql survey.sql": "test_the_local_model_answers",
    "local-model.md yaml survey.yaml": "test_the_local_model_answers",
    "operating.md shell": "test_commands_run",
    "policy.md yaml": "test_policies_fit_the_demo",
    "shell.md sh": "test_lines_for_a_terminal_run",
    "shell.md shell": "test_commands_run",
    "shell.md text": "tests/shell/test_shell_docs.py::test_the_session_is_as_shown",
    "sql.md sql": "tests/golden/test_golden_manual.py",
}
NOT_RUN: Mapping[str, str] = {
    "CONTRIBUTING.md": "make's targets install what they need first; continuous integration runs them",
    "README.md": "make's targets install what they need first; what they run is in tests/demo/test_demo_tour.py",
    "attacks.md text": "one run's figures; tests/demo/test_demo_attacks.py holds their bounds",
}


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
    for name in ("policy.yaml", "new.yaml"):
        shutil.copy(place.policy, tmp_path / name)
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


def test_lines_for_a_terminal_run(place: Place, client: Client, tmp_path: Path) -> None:
    """Other shells than bash may not be there: for them the scripts are made."""
    shutil.copytree(place.folder, tmp_path, dirs_exist_ok=True)
    shutil.copy(place.policy, tmp_path / "policy.yaml")
    (tmp_path / "questions.sql").write_text("SELECT origin, count(*) FROM flights GROUP BY origin;\n", "utf-8")
    over_url, piped, completing = fenced("sh", DOCS / "shell.md")
    url = over_url.strip().replace("6432", str(client.info.port))
    assert _typed(f"{url} < questions.sql", tmp_path).startswith("origin,count\n")
    _typed(piped, tmp_path)
    assert (tmp_path / "answers.csv").read_text("utf-8").startswith("origin,count\n")
    bash, zsh, fish = completing.splitlines()
    assert "-F _dpsql_completion dpsql" in _typed(f"{bash}\ncomplete -p dpsql", tmp_path)
    assert _typed(zsh.replace("eval", "echo"), tmp_path).startswith("#compdef dpsql")
    assert "complete --no-files --command dpsql" in _typed(fish.replace("| source", ""), tmp_path)


def _typed(line: str, folder: Path) -> str:
    """What the line prints in bash, with dpsql on the path."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PGPASSWORD": PASSWORD}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_local_model_answers(tmp_path: Path) -> None:
    page, policy = DOCS / "local-model.md", tmp_path / "survey.yaml"
    with duckdb.connect(str(tmp_path / "survey.duckdb")) as connection:
        connection.execute("CREATE TABLE survey (person integer, age integer, answer varchar)")
        connection.execute(
            "INSERT INTO survey SELECT i, 40, ['never', 'once', 'often'][1 + i % 3] FROM range(999) t (i)"
        )
    policy.write_text(SURVEY + titled("survey.yaml", page), "utf-8")
    assert CliRunner().invoke(dpsql, ["ledger", "init", str(policy)]).exit_code == 0
    for statement in titled("survey.sql", page).splitlines():
        done = CliRunner().invoke(dpsql, ["query", str(policy), "--user", "alice", statement])
        assert done.exit_code == 0, f"{statement}: {done.exception}"
        assert "Price" not in done.stderr


SURVEY = """
dpsql: 1
dataset: survey
backend: duckdb:survey.duckdb
privacy: {unit: person, units: 999, max_groups: 1, max_rows_per_group: 1, budget: {epsilon: 1, delta: 1e-8}}
roles: {analyst: {budget: {epsilon: 1, delta: 1e-9}}}
users: {alice: {role: analyst}}
"""


def test_the_layout_is_there() -> None:
    (layout,) = [block.text for block in blocks(ROOT / "README.md") if block.language == "text"]
    named = [word for line in layout.splitlines() for word in re.findall(r"[\w/]+(?:/|\.py)(?=[\s:;,]|$)", line)]
    assert len(named) > 10
    for name in named:
        assert (ROOT / name).exists() or (ROOT / "dpsql" / name).exists(), name


def test_every_block_is_run_or_says_why_not() -> None:
    found = {block.place for block in blocks() if block.document != QUICKSTART}
    assert found == {*RUN_BY, *NOT_RUN}
    for place, test in RUN_BY.items():
        file, _, name = test.rpartition("::") if "::" in test else (test, "", "") if "/" in test else ("", "", test)
        text = (ROOT / file if file else Path(__file__)).read_text("utf-8")
        assert not name or f"def {name}(" in text, place


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
