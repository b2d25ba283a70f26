"""Clients in other languages: pgjdbc, psqlODBC, node's drivers, and pgbouncer in front."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from clients_world import PASSWORD, Served

HERE = Path(__file__).parent
JDBC = Path("/usr/share/java/postgresql.jar")
ODBC = Path("/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so")
NODE_CLIENTS = Path(os.environ.get("NODE_CLIENTS", "/opt/dpsql-clients"))
ORDERS = ["user_id", "state", "product", "amount", "qty", "created_at", "d", "flag"]


def run(command: list[str], **environment: str) -> str:
    more = {**os.environ, "PGPASSWORD": PASSWORD, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --- pgjdbc --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not JDBC.exists() or shutil.which("javac") is None, reason="pgjdbc is not installed")
def test_pgjdbc(served: Served, tmp_path: Path) -> None:
    path = f"{JDBC}:{tmp_path}"
    run(["javac", "-cp", str(JDBC), "-d", str(tmp_path), str(HERE / "Browse.java")])
    url = f"jdbc:postgresql://localhost:{served.port}/shop"
    found = dict(line.split(": ", 1) for line in run(["java", "-cp", path, "Browse", url, str(served.ca)]).splitlines())
    assert found == JDBC_FINDS


JDBC_FINDS = {
    "tables": "[countries, orders, users, v_orders]",
    "columns": f"[{', '.join(ORDERS)}]",
    "remarks": "[From 0.00 to 100.00]",
    "keys": "[id]",
    "imported": "[countries]",
    "exported": "[users]",
    "cross": "[country]",
    "indexes": "[users_pkey]",
    "schemas": "[dpsql, information_schema, pg_catalog, public]",
    "catalogs": "[shop]",
    "privileges": f"[{', '.join(['orders'] * 9)}]",
    "column privileges": f"[{', '.join(['state'] * 8)}]",
    "best row": "[id]",
    "versions": "[ctid]",
    "table types": "[FOREIGN TABLE, INDEX, MATERIALIZED VIEW, PARTITIONED INDEX, PARTITIONED TABLE, SEQUENCE, "
    "SYSTEM INDEX, SYSTEM TABLE, SYSTEM TOAST INDEX, SYSTEM TOAST TABLE, SYSTEM VIEW, TABLE, TEMPORARY INDEX, "
    "TEMPORARY SEQUENCE, TEMPORARY TABLE, TEMPORARY VIEW, TYPE, VIEW]",
    "udts": "[countries, orders, users, v_orders]",
    "many types": "[true]",
    "functions": "[3]",
    "parameters": "[true]",
    "procedures": "[]",
    "procedure columns": "[]",
    "client info": "[true]",
    "names": "[63, 32, 18.4]",
    "keywords": "[true]",
    "result columns": "[int8, numeric]",
    "base column": "[2]",
    "parameter types": "[varchar]",
    "answers": "[1]",
    "list": "[1]",
    "fetched": "[3]",
    "at most": "[2]",
    "refused": "[42501]",
    "after": "[1]",
    "timeout": "[57014]",
    "after timeout": "[1]",
    "valid": "[true]",
}


# --- psqlODBC ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not ODBC.exists() or shutil.which("isql") is None, reason="psqlODBC is not installed")
@pytest.mark.parametrize("declare", [0, 1])
def test_psqlodbc(served: Served, tmp_path: Path, declare: int) -> None:
    (tmp_path / "odbc.ini").write_text(
        f"[shop]\nDriver = {ODBC}\nServername = localhost\nPort = {served.port}\nDatabase = shop\nUsername = alice\n"
        f"Password = {PASSWORD}\nSSLmode = verify-full\nUseDeclareFetch = {declare}\nFetch = 2\n"
    )
    script = (
        "SELECT state, COUNT(*) FROM orders GROUP BY state\n" * 7
        + "SELECT * FROM orders\nSELECT 'after'\nhelp\nhelp orders\n"
    )
    environment = {**os.environ, "ODBCINI": str(tmp_path / "odbc.ini"), "PGSSLROOTCERT": str(served.ca)}
    command = ["isql", "-b", "-d|", "shop", "alice", PASSWORD]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, env=environment)
    lines = done.stdout.splitlines()
    states = [line for line in lines if line.startswith(("new|", "paid|", "sent|"))]
    assert len(states) == 21
    assert len(set(states)) == 3
    assert "after" in lines
    assert any("|orders|TABLE" in line for line in lines)
    assert any("|orders|amount|" in line for line in lines)


# --- node ----------------------------------------------------------------------------------------------------------

NODE_FINDS: Mapping[str, Mapping[str, Any]] = {
    "pg": {
        "states": ["new", "paid", "sent"],
        "same": 1,
        "listed": 1,
        "code": "42501",
        "both": 2,
        "late": "57014",
        "pooled": 5,
    },
    "pg-cursor": {"sizes": [2, 1, 0]},
    "postgres": {
        "states": ["new", "paid", "sent"],
        "same": 1,
        "listed": 1,
        "sizes": [2, 1],
        "code": "42501",
        "inside": 1,
    },
    "knex": {"same": 1, "has": True, "columns": ORDERS, "code": "42501"},
}


@pytest.mark.parametrize("name", NODE_FINDS)
def test_node(served: Served, name: str) -> None:
    if shutil.which("node") is None or not (NODE_CLIENTS / "node_modules" / name).exists():
        pytest.skip(f"node's {name} is not installed")
    command = ["node", str(HERE / "browse.cjs"), served.url, str(served.ca), name]
    assert json.loads(run(command, NODE_CLIENTS=str(NODE_CLIENTS))) == NODE_FINDS[name]


# --- pgbouncer -----------------------------------------------------------------------------------------------------


@contextmanager
def bouncer(served: Served, folder: Path) -> Iterator[int]:
    """pgbouncer in session mode on a free port, which logs in to the proxy over TLS."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shutil.copy(served.ca, folder / "ca.crt")
    (folder / "users.txt").write_text(f'"alice" "{PASSWORD}"\n')
    (folder / "bouncer.ini").write_text(
        f"[databases]\nshop = host=localhost port={served.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = scram-sha-256\nauth_file = {folder}/users.txt\npool_mode = session\n"
        f"server_tls_sslmode = verify-full\nserver_tls_ca_file = {folder}/ca.crt\nunix_socket_dir =\n"
        f"server_reset_query = DISCARD ALL\nserver_check_query = select 1\nserver_check_delay = 0\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        for path in (folder, *folder.parents[:-1]):
            path.chmod(path.stat().st_mode | 0o055)
    command = [str(shutil.which("pgbouncer")), str(folder / "bouncer.ini")]
    process = subprocess.Popen(command, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="pgbouncer is not installed")
def test_pgbouncer(served: Served, tmp_path: Path) -> None:
    with bouncer(served, tmp_path) as port:
        dsn = f"host=127.0.0.1 port={port} user=alice password={PASSWORD} dbname=shop"
        answers = set()
        for _ in range(3):
            with _patiently(dsn) as client:
                answers |= {
                    client.execute("SELECT COUNT(*) FROM orders WHERE qty > %s", (2,)).fetchone() for _ in range(7)
                }
                client.execute("SET application_name = 'x'")
        assert len(answers) == 1


def _patiently(dsn: str) -> psycopg.Connection[tuple[Any, ...]]:
    deadline = time.monotonic() + 10
    while True:
        try:
            return psycopg.connect(dsn, autocommit=True)
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
