"""Broken walls are seen: each mutant is a server with one wall less, and a statement that would then succeed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from public_fakes import schema_at

from dpsql.public import shadow, walls
from dpsql.public.server import PublicServer

pytestmark = pytest.mark.slow

_Mutate = Callable[[tuple[str, ...]], tuple[str, ...]]


def _without(part: str, instead: str = "") -> _Mutate:
    def mutated(lines: tuple[str, ...]) -> tuple[str, ...]:
        assert any(part in line for line in lines), "the mutant changes nothing"
        return tuple(line.replace(part, instead) for line in lines)

    return mutated


WALLS = [
    ("SELECT pg_temp.shut();", "SELECT 1;", "SELECT pg_advisory_lock(1)"),
    ("REVOKE USAGE ON LANGUAGE plpgsql, sql FROM PUBLIC;", "", "DO $$ BEGIN NULL; END $$"),
    ("'a.usesysid = (SELECT", "'true OR a.usesysid = (SELECT",
     "SELECT 1 / count(*) FROM pg_stat_activity WHERE usename <> 'alice'"),
    ("SELECT pg_temp.own_rows('pg_roles', 'oid');", "", "SELECT 1 / count(*) FROM pg_roles WHERE rolname = 'carol'"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "instead", "hostile"), WALLS)
def test_a_missing_wall_lets_a_hostile_statement_through(
    part: str, instead: str, hostile: str, reachable_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = walls.wall_ddl()
    for lines, holds in ((whole, True), (_without(part, instead)(whole), False)):
        monkeypatch.setattr(walls, "wall_ddl", lambda lines=lines: lines)
        with (
            PublicServer(schema_at(reachable_folder)) as server,
            psycopg.connect(server.address, user="carol", dbname=server.database),
            psycopg.connect(server.address, user="alice", dbname=server.database) as connection,
        ):
            if holds:
                with pytest.raises((errors.InsufficientPrivilege, errors.DivisionByZero)):
                    connection.execute(hostile)
            else:
                connection.execute(hostile)


def test_a_shadow_with_a_right_to_read_would_answer(reachable_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = shadow.shadow_ddl
    monkeypatch.setattr(shadow, "shadow_ddl", lambda *of: _without("GRANT REFERENCES", "GRANT SELECT")(whole(*of)))
    with (
        PublicServer(schema_at(reachable_folder)) as server,
        psycopg.connect(server.address, user="alice", dbname=server.database) as connection,
    ):
        assert connection.execute("SELECT count(*) FROM customers").fetchall() == [(0,)]
