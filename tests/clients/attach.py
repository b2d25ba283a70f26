"""Runs statements in a DuckDB that is attached to the proxy; the interpreter is one with the `postgres` extension.

Reads a JSON list of statements, writes a JSON list of their rows, or of the error's text. Not a test itself.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import duckdb


def outcome(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    try:
        return connection.execute(text).fetchall()
    except duckdb.Error as error:
        return str(error)


def main() -> None:
    (extension,) = Path(sys.prefix).glob("lib/python3*/site-packages/**/postgres_scanner.duckdb_extension")
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"ATTACH '{sys.argv[1]}' AS shop (TYPE postgres, READ_ONLY)")
        json.dump([outcome(connection, text) for text in json.load(sys.stdin)], sys.stdout, default=str)


if __name__ == "__main__":
    main()
