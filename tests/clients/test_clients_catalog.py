"""Every catalog statement that 25 clients were seen to send, here and on a real Postgres 15 with the same schema.

Names, types and rows are the same, or the difference is listed below with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from clients_postgres import BINARIES, build, postgres
from clients_world import Served

from dpsql.catalog.routing import route
from dpsql.compiler import kinds
from dpsql.compiler.statements import split
from dpsql.errors import Rejected

pytestmark = pytest.mark.skipif(not BINARIES.exists(), reason="Postgres 15 is not installed")

TRACES = Path(__file__).parents[1] / "catalog" / "client_queries.sql"
TRACED_OIDS = {"16385": "orders", "16391": "orders", "16384": "users", "16398": "users", "16394": "v_orders"}
IDS = """
SELECT oid::int8, 'class ' || relname FROM pg_class WHERE oid >= 16382
UNION ALL SELECT oid::int8, 'constraint ' || conname FROM pg_constraint WHERE oid >= 16382
UNION ALL SELECT oid::int8, 'schema ' || nspname FROM pg_namespace WHERE oid >= 16382
"""

TYPES = {2205: 25, 24: 25, 194: 25, 2278: 25, 1034: 1009}
"""regclass, regproc, pg_node_tree and void are sent as text, aclitem[] as text[]: they are only ever shown."""

NOT_HERE = re.compile(
    r"template[01]|pg_toast|'columns', 'dpsql'|'dpsql', 'columns'|pg_database_owner|'public', 'dpsql'\)$"
)
"""Rows of what only one of the two has: template databases, toast, dpsql's own view; who owns schema public."""

ROWS = {
    "version()": "the server's own name",
    "pg_backend_pid()": "a number of its own",
    "pg_table_size": "sizes are constants here: they would tell of the data",
    "pg_database_size": "sizes are constants here: they would tell of the data",
    "relpages": "sizes are constants here: they would tell of the data",
    "pg_get_viewdef": "the view as the policy has it, not as Postgres would format it",
    "relacl": "privileges are not listed: the policy's roles decide",
    "pg_catalog.pg_type": "the row types of the system's own relations are left out",
    "WITH ranges": "the row types of the system's own relations are left out",
    "from pg_type": "the row types of the system's own relations are left out",
    "pg_attribute\nORDER": "the system's indexes and toast tables are left out",
    "pg_indexes": "the system's indexes are left out",
    "INNER JOIN pg_catalog.pg_class cls": "helpers of information_schema are left out",
    "c.relkind = ANY($1)": "helpers of information_schema are left out",
    "'pg_class' and column_name": "information_schema lists the user's relations only",
    "p.proargnames": "the row types of the system's own relations are left out",
    "FUNCTION_SCHEM": "functions have no comments here",
    "information_schema.tables where": "no table can be written to",
    "information_schema.columns where": "no column can be written to; access to domains and collations is not shown",
    "SELECT columns.*": "no column can be written to; access to domains and collations is not shown",
    "t.typtype = 'd'": "every type is visible",
    "pg_tablespace_location": "a NULL identifier stays NULL here",
    "toast.": "there are no storage options",
}
"""Statements whose rows are not compared, by a part of their text, and why."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two servers; `ids` are its own OIDs by name."""

    client: psycopg.Connection[Any]
    ids: Mapping[str, str]

    def ask(self, text: str, values: list[str]) -> tuple[list[tuple[str, int]], list[tuple[str | None, ...]]]:
        text = re.sub(r"\b163\d\d\b", lambda found: self.ids[f"class {TRACED_OIDS[found[0]]}"], text)
        result = self.client.pgconn.exec_params(text.encode(), [value.encode() for value in values])
        assert result.status == psycopg.pq.ExecStatus.TUPLES_OK, f"{result.error_message.decode()}: {text}"
        columns = [(_decoded(result.fname(at)), result.ftype(at)) for at in range(result.nfields)]
        names = {number: name for name, number in self.ids.items()}
        rows = [
            tuple(_shown(result.get_value(row, at), names) for at in range(result.nfields))
            for row in range(result.ntuples)
        ]
        return columns, rows


def _decoded(name: bytes | None) -> str:
    return (name or b"").decode()


def _shown(value: bytes | None, names: Mapping[str, str]) -> str | None:
    """A value as text; bounds of arrays that begin at 0 are not shown here."""
    text = None if value is None else re.sub(r"^\[0:\d+\]=", "", value.decode())
    return None if text is None else names.get(text, text)


@pytest.fixture(scope="module")
def sides(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with ExitStack() as stack:
        dsn = stack.enter_context(postgres(tmp_path_factory.mktemp("real") / "postgres"))
        build(dsn, served)
        clients = [stack.enter_context(psycopg.connect(each, autocommit=True)) for each in (served.dsn, dsn)]
        clients[1].execute("SET ROLE alice")
        ours, theirs = (Side(client, {name: str(oid) for oid, name in client.execute(IDS)}) for client in clients)
        yield ours, theirs


def statements() -> list[str]:
    """The traced statements that the catalog answers, each once."""
    parts = TRACES.read_text(encoding="utf-8").split("\n;;\n")
    texts = ["\n".join(line for line in part.splitlines() if not line.startswith("-- =====")) for part in parts]
    found: dict[str, None] = {}
    for statement in (getattr(statement, "query", statement) for text in texts for statement in split(text)):
        if (
            isinstance(statement, kinds.Select)
            and _is_catalog(statement.text)
            and parameters(statement.text) is not None
        ):
            found[statement.text] = None
    return list(found)


def _is_catalog(text: str) -> bool:
    try:
        return route(text).tree is not None
    except Rejected:
        return False


def parameters(text: str) -> list[str] | None:
    """Values for a statement that takes some; None where a driver's own values are not known."""
    known = {
        "to_regtype($1)": "hstore",
        "any($1::oid[])": "{1007,1009,3904}",
        "set_config": "off",
        "relkind = ANY($1)": "{r,v}",
        "$1::regclass": "orders",
        "information_schema": "orders",
    }
    if "$1" not in text:
        return []
    found = [value for part, value in known.items() if part in text]
    return found[:1] if found and "$2" not in text else None


def difference(ours: Side, theirs: Side, text: str) -> str:
    """What of the answers differs without being listed; empty if nothing does."""
    values = parameters(text) or []
    (columns, rows), (expected_columns, expected_rows) = (side.ask(text, values) for side in (ours, theirs))
    announced = [(name, TYPES.get(type, type)) for name, type in expected_columns]
    if columns != announced:
        return f"columns {columns}, not {announced}"
    if any(part in text for part in ROWS):
        return ""
    kept, expected = ([row for row in each if not NOT_HERE.search(str(row))] for each in (rows, expected_rows))
    if re.search(r"order by[^()]*$", text, re.IGNORECASE) is None:
        kept, expected = sorted(kept, key=str), sorted(expected, key=str)
    return "" if kept == expected else f"rows {set(kept) ^ set(expected) or 'in another order'}"


def test_as_on_postgres(sides: tuple[Side, Side]) -> None:
    texts = statements()
    assert len(texts) > 140
    found = {text: difference(*sides, text) for text in texts}
    assert {text: how for text, how in found.items() if how} == {}
