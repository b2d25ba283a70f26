"""Parquet files -> a new DuckDB file, which the proxy can serve.

Decides which file becomes which table and how types that the proxy does not read are stored. It copies; it shows
nothing of what it copies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import duckdb

from dpsql.errors import BAD_PARAMETER, Rejected

_STORED = {
    "TINYINT": "SMALLINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
}
"""What a value becomes that the proxy would not read; what does not fit becomes NULL."""


def parquet_tables(source: Path) -> Mapping[str, str]:
    """The table that each file, or each folder of parts, becomes: its name and the pattern of its files.

    A folder with files gives a table a file, and one for each folder below it. Raises Rejected if there are none.
    """
    if source.is_file():
        found = {_name(source): str(source)}
    else:
        found = {_name(file): str(file) for file in sorted(source.glob("*.parquet"))}
        parts = (folder for folder in sorted(source.iterdir()) if folder.is_dir() and any(folder.rglob("*.parquet")))
        found |= {_name(folder): str(folder / "**" / "*.parquet") for folder in parts}
    if not found:
        raise Rejected(f"There are no *.parquet files in {source}.", sqlstate=BAD_PARAMETER)
    return found


def _name(path: Path) -> str:
    return re.sub(r"\W+", "_", path.name.removesuffix(".parquet").split("=")[0]).strip("_") or "data"


def copy_parquet(source: Path, into: Path) -> tuple[str, ...]:
    """Make the DuckDB file `into` from the Parquet files; the tables' names. Raises Rejected if it exists."""
    if into.exists():
        raise Rejected(f"There is a file {into} already.", sqlstate=BAD_PARAMETER, hint="Name a new file.")
    tables = parquet_tables(source)
    partial = into.with_name(f"{into.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with duckdb.connect(str(partial)) as connection:
            for name, pattern in tables.items():
                _copy(connection, name, pattern)
        os.replace(partial, into)
    except duckdb.Error as error:
        raise Rejected(f"The Parquet files cannot be read ({type(error).__name__}).", sqlstate=BAD_PARAMETER) from None
    finally:
        partial.unlink(missing_ok=True)
    return tuple(tables)


def _copy(connection: duckdb.DuckDBPyConnection, name: str, pattern: str) -> None:
    described = connection.execute("DESCRIBE SELECT * FROM read_parquet($1)", [pattern]).fetchall()
    columns = ", ".join(_column(str(column), str(of)) for column, of, *_ in described)
    connection.execute(f"CREATE TABLE {_quoted(name)} AS SELECT {columns} FROM read_parquet($1)", [pattern])


def _column(name: str, of: str) -> str:
    stored = _STORED.get(of)
    return _quoted(name) if stored is None else f"TRY_CAST({_quoted(name)} AS {stored}) AS {_quoted(name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
