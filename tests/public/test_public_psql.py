"""What psql and pg_dump ask of a catalog is answered behind the walls."""

from __future__ import annotations

import subprocess

import pytest

from dpsql.public.server import PublicServer
from dpsql.public.wheel import programs

_LETTERS = (
    "l l+ d d+ dS da dA dA+ dAc dAf dAo dAp db dc dconfig dC dd dD ddp des dew df df+ dF dFd dFp dFt dg dg+ di+ dl dL "
    "dL+ dn+ do dO dp dP drds drg dRp dRs dt+ dT+ du dv+ dx dX dy z conninfo encoding dS+ dfS+ dTS+ doS+"
)
COMMANDS = tuple(f"\\{letters}" for letters in _LETTERS.split())


def _run(server: PublicServer, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = {"PGHOST": str(server.socket.parent), "PGUSER": "alice", "PGDATABASE": server.database, "PAGER": "cat"}
    command = [programs().at(program), *arguments]
    return subprocess.run(command, env=where, capture_output=True, text=True, check=False, timeout=60)


def test_every_backslash_command_answers(server: PublicServer) -> None:
    objects = [r"\d customers", r"\d+ sales.orders", r"\d+ grown", r"\sv names", r"\dt+ *.*", r"\dconfig+ *"]
    failed = []
    for command in (*COMMANDS, *objects):
        done = _run(server, "psql", "-X", "-c", command)
        if done.returncode or done.stderr:
            failed.append((command, done.stderr))
    assert failed == []


def test_psql_shows_keys_and_comments(server: PublicServer) -> None:
    text = _run(server, "psql", "-X", "-c", r"\d+ customers").stdout
    for part in ('"customers_pkey" PRIMARY KEY', "FOREIGN KEY (country) REFERENCES countries(code)", "From 0 to 120"):
        assert part in text


@pytest.mark.parametrize("arguments", [("-s",), ("-s", "-t", "countries")])
def test_the_schema_can_be_dumped(server: PublicServer, arguments: tuple[str, ...]) -> None:
    """Except where pg_dump locks tables: that takes a right to read them."""
    done = _run(server, "pg_dump", *arguments)
    if arguments == ("-s",):
        assert "permission denied for table" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert "CREATE TABLE public.countries" in done.stdout
        assert "pg_catalog." not in done.stdout.replace("pg_catalog.set_config", "")
