"""One public server for each module of tests, in a folder that Postgres's own user can reach."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow
from public_fakes import Connect, schema_at

from dpsql.public.server import PublicServer


@pytest.fixture(scope="module")
def reachable_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dpsql-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def server(reachable_folder: Path) -> Iterator[PublicServer]:
    with PublicServer(schema_at(reachable_folder)) as server:
        yield server


@pytest.fixture
def connect(server: PublicServer) -> Iterator[Connect]:
    """Connections as a user, as the proxy makes them; closed at the end."""
    made: list[psycopg.Connection[TupleRow]] = []

    def connected(user: str = "alice", **options: object) -> psycopg.Connection[TupleRow]:
        connection = psycopg.connect(
            server.address,
            user=server.role_of(user),
            dbname=server.database_of(user),
            autocommit=True,
            **options,  # type: ignore[arg-type]
        )
        made.append(connection)
        return connection

    yield connected
    for connection in made:
        connection.close()
