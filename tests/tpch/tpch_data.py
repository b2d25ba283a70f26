"""TPC-H as one DuckDB file, made by tpchgen-cli; and its 22 statements in their original text."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Final

import duckdb

HERE: Final = Path(__file__).parent
KEYS: Final = {
    "customer": "c_custkey", "orders": "o_orderkey", "lineitem": "l_orderkey, l_linenumber", "part": "p_partkey",
    "supplier": "s_suppkey", "partsupp": "ps_partkey, ps_suppkey", "nation": "n_nationkey", "region": "r_regionkey",
}  # fmt: skip
_TEXT: Final = re.sub(r"^--.*\n", "", (HERE / "queries.sql").read_text())
QUERIES: Final = {number: part.strip() for number, part in enumerate((p for p in _TEXT.split(";") if p.strip()), 1)}


def generator() -> str | None:
    """The program that makes the data, beside this Python or on the path."""
    return shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) or shutil.which("tpchgen-cli")


def build(database: Path, scale: Decimal) -> None:
    """The eight tables with their keys. Raises SystemExit without the generator."""
    program = generator()
    if program is None:
        raise SystemExit("tpchgen-cli is not installed")
    with tempfile.TemporaryDirectory(dir=database.parent) as made, duckdb.connect(str(database)) as connection:
        subprocess.run([program, "parquet", "-s", str(scale), f"--output-dir={made}"], check=True, capture_output=True)
        for table, key in KEYS.items():
            source = f"'{Path(made) / table}.parquet'"
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            columns = ", ".join(f"{name} {kind}" for name, kind, *_ in described)
            connection.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key}))")
            connection.execute(f"INSERT INTO {table} SELECT * FROM {source}")
