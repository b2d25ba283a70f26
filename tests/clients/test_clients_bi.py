"""What BI tools send, in their order and through their drivers; each file of `bi` says what comes of its statements.

Metabase and DBeaver use pgjdbc, Tableau and Power BI psqlODBC (or Npgsql, whose query for types any driver can send),
Grafana lib/pq.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from clients_world import PASSWORD, Served
from test_clients_others import HERE, JDBC, ODBC, run

ROWS = "Rows of a private table are never returned."
GO_PACKAGES = Path("/usr/share/gocode")


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, and what comes of it: nothing, `rows N`, `some` rows, `any` rows, `error`, or `error SQLSTATE`."""

    text: str
    outcome: str

    def agrees(self, outcome: str) -> bool:
        match self.outcome:
            case "any" | "some":
                return outcome.startswith("rows ") and (self.outcome == "any" or outcome != "rows 0")
            case "error 42501" if "SELECT" in self.text.upper():
                return outcome.startswith(self.outcome) and ROWS in outcome
            case expected if expected.startswith("error"):
                return outcome.startswith(expected)
            case expected:
                return outcome == expected


def steps(tool: str) -> list[Step]:
    parts = re.split(r"^;;(.*)\n", (HERE / "bi" / f"{tool}.sql").read_text(), flags=re.MULTILINE)
    return [Step(text.strip(), outcome.strip()) for text, outcome in zip(parts[::2], parts[1::2], strict=False)]


def judge(tool: str, outcomes: Sequence[str]) -> None:
    expected = steps(tool)
    assert len(outcomes) == len(expected)
    wrong = [(step, found) for step, found in zip(expected, outcomes, strict=True) if not step.agrees(found)]
    assert wrong == []


# --- any driver ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["metabase", "dbeaver", "tableau", "powerbi", "grafana"])
def test_sequence(served: Served, tool: str) -> None:
    """Asked again, the whole sequence gives the same and costs nothing."""
    with psycopg.connect(served.dsn, autocommit=True) as client:
        first = [outcome(client, step.text) for step in steps(tool)]
        spent = client.execute("SELECT whose, rho_spent, delta_spent FROM dpsql.budget").fetchall()
        again = [outcome(client, step.text) for step in steps(tool)]
        assert client.execute("SELECT whose, rho_spent, delta_spent FROM dpsql.budget").fetchall() == spent
    judge(tool, [found for found, _ in first])
    assert again == first


def outcome(client: psycopg.Connection[Any], text: str) -> tuple[str, list[Any]]:
    try:
        cursor = client.execute(text.encode())
        rows = cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        return f"error {error.sqlstate} {error}", []
    return f"rows {len(rows)}" if cursor.description else "", rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ctid, x.* FROM public.orders x",
        "COPY (SELECT state FROM orders WHERE ctid BETWEEN '(0,0)'::tid AND '(9,0)'::tid) TO STDOUT (FORMAT binary)",
        "SELECT xmin, COUNT(*) FROM orders GROUP BY xmin",
    ],
)
def test_scans_by_place(served: Served, text: str) -> None:
    """How tools page through a table, or find the row to edit."""
    with psycopg.connect(served.dsn, autocommit=True) as client:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="where rows are stored"):
            client.execute(text.encode())
        assert client.execute("SELECT 1").fetchone() == (1,)


NPGSQL_TYPES = """
SELECT version();

SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid
FROM (
    -- Arrays have typtype=b - this subquery identifies them by their typreceive and converts their typtype to a
    -- We first do this for the type (innerest-most subquery), and then for its element type
    SELECT
        typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind,
        elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind,
        CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype,
        typ.typcategory AS typcategory
    FROM (
        SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid,
            CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
            CASE
                WHEN proc.proname='array_recv' THEN typ.typelem
                WHEN typ.typtype='r' THEN rngsubtype
                WHEN typ.typtype='m' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid)
                WHEN typ.typtype='d' THEN typ.typbasetype
            END AS elemtypoid,
            typ.typcategory
        FROM pg_type AS typ
        LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
        LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive
        LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)
    ) AS typ
    LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid
    LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid)
    LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive
) AS t
JOIN pg_namespace AS ns ON (ns.oid = typnamespace)
WHERE
    (
    typtype IN ('b', 'r', 'm', 'e', 'd') OR -- Base, range, multirange, enum, domain
    (typtype = 'c' AND relkind='c') OR -- User-defined free-standing composites (not table composites) by default
    (typtype = 'p' AND typname IN ('record', 'void', 'unknown')) OR -- Some special supported pseudo-types
    (typtype = 'a' AND (  -- Array of...
        elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR -- Array of base, range, multirange, enum, domain
        (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR -- Arrays of special supported pseudo-types
        (elemtyptype = 'c' AND elemrelkind='c') -- Array of user-defined free-standing composites by default
    )))
ORDER BY CASE
       WHEN typtype IN ('b', 'e', 'p') THEN 0           -- First base types, enums, pseudo-types
       WHEN typtype = 'c' THEN 1                        -- Composites after (fields loaded later in 2nd pass)
       WHEN typtype = 'r' THEN 2                        -- Ranges after
       WHEN typtype = 'm' THEN 3                        -- Multiranges after
       WHEN typtype = 'd' AND elemtyptype <> 'a' THEN 4 -- Domains over non-arrays after
       WHEN typtype = 'a' THEN 5                        -- Arrays after
       WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6  -- Domains over arrays last
END;

-- Load field definitions for (free-standing) composite types
SELECT typ.oid, att.attname, att.atttypid
FROM pg_type AS typ
JOIN pg_namespace AS ns ON (ns.oid = typ.typnamespace)
JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
JOIN pg_attribute AS att ON (att.attrelid = typ.typrelid)
WHERE
  (typ.typtype = 'c' AND cls.relkind='c') AND
  attnum > 0 AND     -- Don't load system attributes
  NOT attisdropped
ORDER BY typ.oid, att.attnum;

-- Load enum fields
SELECT pg_type.oid, enumlabel
FROM pg_enum
JOIN pg_type ON pg_type.oid=enumtypid
ORDER BY oid, enumsortorder;
"""
"""Power BI Desktop's other driver, Npgsql, sends this in one message when it connects."""


def test_npgsql_loads_its_types(served: Served) -> None:
    with psycopg.connect(served.dsn, autocommit=True) as client:
        cursor = client.execute(NPGSQL_TYPES.encode())
        results = []
        while True:
            results.append(cursor.fetchall())
            if not cursor.nextset():
                break
    version, types, fields, labels = results
    assert version[0][0].startswith("PostgreSQL 1")
    names = {row[2]: row for row in types}
    assert {"bool", "int8", "numeric", "text", "timestamp", "_text", "int4range", "record"} <= set(names)
    assert names["_text"][3:] == ("a", False, 25)
    assert fields == labels == []


# --- Metabase and DBeaver: pgjdbc ----------------------------------------------------------------------------------


@pytest.mark.skipif(not JDBC.exists() or shutil.which("javac") is None, reason="pgjdbc is not installed")
@pytest.mark.parametrize("tool", ["metabase", "dbeaver"])
def test_over_pgjdbc(served: Served, tmp_path: Path, tool: str) -> None:
    run(["javac", "-cp", str(JDBC), "-d", str(tmp_path), str(HERE / "Sequence.java")])
    url = f"jdbc:postgresql://localhost:{served.port}/shop"
    command = ["java", "-cp", f"{JDBC}:{tmp_path}", "Sequence", url, str(served.ca), str(HERE / "bi" / f"{tool}.sql")]
    *outcomes, dates, page, cancelled = run(command).splitlines()
    judge(tool, outcomes)
    assert (dates, page, cancelled) == ("dates 3", "page 25", "cancelled 57014")


# --- Tableau and Power BI: psqlODBC --------------------------------------------------------------------------------


@pytest.fixture
def odbc(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Any]]:
    """Connects with or without cursors."""
    pyodbc = pytest.importorskip("pyodbc")
    if not ODBC.exists():
        pytest.skip("psqlODBC is not installed")
    monkeypatch.setenv("PGSSLROOTCERT", str(served.ca))
    clients = []

    def connect(declare: int) -> Any:
        where = f"Servername=localhost;Port={served.port};Database=shop;Uid=alice;Pwd={PASSWORD};SSLmode=verify-full"
        options = f"UseDeclareFetch={declare};Fetch=2;BoolsAsChar=0"
        clients.append(pyodbc.connect(f"DRIVER={ODBC};{where};{options}", autocommit=True))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


def odbc_outcome(client: Any, text: str) -> str:
    pyodbc = pytest.importorskip("pyodbc")
    try:
        with client.cursor() as cursor:
            cursor.execute(text)
            return f"rows {len(cursor.fetchall())}" if cursor.description else ""
    except pyodbc.Error as error:
        return f"error {error.args[0]} {error.args[1]}"


@pytest.mark.parametrize("declare", [0, 1])
@pytest.mark.parametrize("tool", ["tableau", "powerbi"])
def test_over_psqlodbc(odbc: Callable[[int], Any], tool: str, declare: int) -> None:
    client = odbc(declare)
    judge(tool, [odbc_outcome(client, step.text) for step in steps(tool)])


def test_odbc_catalog(odbc: Callable[[int], Any]) -> None:
    """The functions by which both fill their navigators."""
    with odbc(0).cursor() as cursor:
        tables = {(row.table_name, row.table_type) for row in cursor.tables(schema="public")}
        assert tables == {("countries", "TABLE"), ("orders", "TABLE"), ("users", "TABLE"), ("v_orders", "VIEW")}
        columns = {row.column_name: row.type_name for row in cursor.columns(table="orders", schema="public")}
        assert columns["amount"] == "numeric"
        assert columns["created_at"] == "timestamp"
        assert [row.column_name for row in cursor.primaryKeys("users", schema="public")] == ["id"]
        (key,) = cursor.foreignKeys(foreignTable="users", foreignSchema="public").fetchall()
        assert (key.pktable_name, key.fkcolumn_name) == ("countries", "country")
        assert len(cursor.statistics("users", schema="public").fetchall()) >= 1
        assert len(cursor.getTypeInfo().fetchall()) > 10


def test_odbc_parameters_and_cancel(odbc: Callable[[int], Any]) -> None:
    pyodbc = pytest.importorskip("pyodbc")
    client = odbc(1)
    with client.cursor() as cursor:
        text = "SELECT state, COUNT(*) FROM orders WHERE qty > ? AND product = ? GROUP BY state"
        answers = {str(cursor.execute(text, 1, "pen").fetchall()) for _ in range(7)}
        assert len(answers) == 1
        timer = threading.Timer(0.3, cursor.cancel)
        timer.start()
        with pytest.raises(pyodbc.Error):
            cursor.execute("SELECT COUNT(*) FROM pg_attribute a, pg_attribute b, pg_attribute c").fetchall()
        timer.join()
    assert odbc_outcome(client, "SELECT 1") == "rows 1"


# --- Grafana: lib/pq -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(
    shutil.which("go") is None or not (GO_PACKAGES / "src/github.com/lib/pq").exists(), reason="lib/pq is not installed"
)
def test_over_lib_pq(served: Served, tmp_path: Path) -> None:
    program = str(tmp_path / "sequence")
    environment = {"HOME": os.environ.get("HOME", str(tmp_path)), "PATH": os.environ["PATH"], "CGO_ENABLED": "0"}
    subprocess.run(
        ["go", "build", "-o", program, str(HERE / "sequence.go")],
        check=True,
        timeout=300,
        env={**environment, "GO111MODULE": "off", "GOPATH": str(GO_PACKAGES)},
    )
    dsn = served.dsn.replace("channel_binding=require", "")
    *outcomes, cancelled, after = run([program, dsn, str(HERE / "bi" / "grafana.sql")]).splitlines()
    judge("grafana", outcomes[:-7])
    assert outcomes[-7:] == ["prepared rows 2"] * 7
    assert cancelled.startswith(("cancelled error 57014", "cancelled error context deadline exceeded"))
    assert after == "after rows 1"
