"""A real Postgres 15 with the schema that the proxy shows, empty. Not a test itself."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from clients_world import Served

BINARIES = Path("/usr/lib/postgresql/15/bin")

SCHEMA = """
CREATE TABLE countries (code TEXT PRIMARY KEY, name TEXT);
CREATE TABLE users (id BIGINT PRIMARY KEY, country TEXT REFERENCES countries, age INTEGER, active BOOLEAN);
CREATE TABLE orders (user_id BIGINT, state TEXT, product TEXT, amount NUMERIC(10, 2), qty INTEGER,
    created_at TIMESTAMP, d DATE, flag BOOLEAN);
CREATE VIEW v_orders AS SELECT state, amount FROM orders WHERE flag;
CREATE SCHEMA dpsql;
CREATE ROLE alice LOGIN;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO alice;
"""


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The connection string of a server's database `shop`, whose superuser is called dpsql."""
    data = folder / "data"
    folder.mkdir(mode=0o755)
    user = _unprivileged(folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _run(user, "initdb", "-D", str(data), "-U", "dpsql", "--locale=C.UTF-8", "-E", "UTF8", "-A", "trust", "-N")
    options = f"-F -p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c timezone=UTC"
    _run(user, "pg_ctl", "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        dsn = f"host=127.0.0.1 port={port} user=dpsql"
        with psycopg.connect(f"{dsn} dbname=template1", autocommit=True) as connection:
            connection.execute("CREATE DATABASE shop")
            connection.execute("DROP DATABASE postgres")
        yield f"{dsn} dbname=shop"
    finally:
        _run(user, "pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def _unprivileged(folder: Path) -> str | None:
    """Postgres does not run as root; then it runs as its own user."""
    if os.getuid() != 0:
        return None
    shutil.chown(folder, "postgres")
    for parent in folder.parents[:-1]:
        if parent.stat().st_uid == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    return "postgres"


def _run(user: str | None, name: str, *arguments: str) -> None:
    command = [str(BINARIES / name), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, user=user, cwd="/", timeout=60)


def build(dsn: str, served: Served) -> None:
    """Makes the schema, with the comments that the proxy shows."""
    with psycopg.connect(served.dsn) as proxy, psycopg.connect(dsn) as connection:
        connection.execute(SCHEMA.encode())
        for text in _comments(proxy):
            connection.execute(text.encode())


def _comments(proxy: psycopg.Connection[tuple[str, ...]]) -> Iterator[str]:
    found = proxy.execute(
        "SELECT c.relkind, c.relname, a.attname, d.description FROM pg_description d"
        " JOIN pg_class c ON c.oid = d.objoid "
        "LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid AND d.objsubid > 0"
    ).fetchall()
    for kind, relation, column, text in found:
        what = f"COLUMN {relation}.{column}" if column else f"{'VIEW' if kind == 'v' else 'TABLE'} {relation}"
        quoted = text.replace("'", "''")
        yield f"COMMENT ON {what} IS '{quoted}'"
