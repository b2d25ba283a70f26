"""Results as files: CSV, JSON and Parquet, with every digit and with the error bars as columns of their own."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import IO

import duckdb

from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.pgwire.values import WireValue, encoder
from dpsql.shell.results import Result
from dpsql.types import Kind, SqlType

FORMATS = (".csv", ".json", ".parquet")


def export(result: Result, path: Path) -> None:
    """Writes the file, in place of one that is there. Raises Rejected for an unknown ending or an unwritable place."""
    ending = path.suffix.lower()
    try:
        match ending:
            case ".csv":
                with path.open("w", encoding="utf-8", newline="") as file:
                    write_csv(result, file)
            case ".json":
                path.write_text(as_json(result) + "\n", "utf-8")
            case ".parquet":
                _write_parquet(result, path)
            case _:
                known = ", ".join(FORMATS)
                raise Rejected(f"{path.name} does not say its format.", hint=f"End the name with {known}.")
    except OSError as error:
        raise Rejected(f"{path} cannot be written: {error.strerror}.", sqlstate=BAD_PARAMETER) from None
    except duckdb.Error:
        raise Rejected(f"{path} cannot be written as Parquet.", sqlstate=BAD_PARAMETER) from None


def write_csv(result: Result, file: IO[str]) -> None:
    """A line of names, then a line for each row; NULL is empty."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(["" if text is None else text for text in row] for row in _texts(result))


def _texts(result: Result) -> list[list[str | None]]:
    """The rows as Postgres writes them in text."""
    encoders = [encoder(type_) for type_ in result.types]
    return [[_text(encode(value)) for encode, value in zip(encoders, row, strict=True)] for row in result.rows]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def as_json(result: Result) -> str:
    """A list of objects. A name that comes twice gets a number, so that no column is lost."""
    names = _distinct(result.columns)
    rows = [dict(zip(names, (plain(value) for value in row), strict=True)) for row in result.rows]
    return json.dumps(rows, indent=2, ensure_ascii=False)


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    made: list[str] = []
    for name in names:
        number, unused = 1, name
        while unused in made:
            number += 1
            unused = f"{name}_{number}"
        made.append(unused)
    return tuple(made)


def plain(value: WireValue) -> object:
    """A value as JSON has it: numbers as numbers, the rest as text."""
    if isinstance(value, float | Decimal) and not isfinite(value):
        return str(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral() else float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return [plain(v) for v in value] if isinstance(value, tuple) else str(value)


_DUCKDB_TYPES = {
    Kind.BOOL: "BOOLEAN",
    Kind.INT2: "SMALLINT",
    Kind.INT4: "INTEGER",
    Kind.INT8: "BIGINT",
    Kind.FLOAT4: "FLOAT",
    Kind.FLOAT8: "DOUBLE",
    Kind.DATE: "DATE",
    Kind.TIME: "TIME",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMPTZ",
    Kind.UUID: "UUID",
}


def _write_parquet(result: Result, path: Path) -> None:
    columns = list(zip(*result.rows, strict=True)) if result.rows else [() for _ in result.columns]
    types = [_duckdb_type(t, values) for t, values in zip(result.types, columns, strict=True)]
    names = [name.replace('"', '""') for name in _distinct(result.columns)]
    items = ", ".join(f'CAST(unnest(?::VARCHAR[]) AS {t}) AS "{n}"' for n, t in zip(names, types, strict=True))
    target = str(path).replace("'", "''")
    with duckdb.connect() as connection:
        texts = [list(values) for values in zip(*_texts(result), strict=True)] or [[] for _ in result.columns]
        connection.execute(f"COPY (SELECT {items}) TO '{target}' (FORMAT parquet)", texts)


def _duckdb_type(type_: SqlType, values: tuple[WireValue, ...]) -> str:
    """Text travels in between, so a type is only a cast; numerics get the scale that their values need."""
    if type_.kind is not Kind.NUMERIC:
        return _DUCKDB_TYPES.get(type_.kind, "VARCHAR")
    numbers = [value for value in values if isinstance(value, Decimal)]
    if not all(number.is_finite() for number in numbers):
        return "DOUBLE"
    scale = max((max(-int(number.as_tuple().exponent), 0) for number in numbers), default=0)
    whole = max((number.adjusted() + 1 for number in numbers), default=0)
    return f"DECIMAL(38, {scale})" if scale + max(whole, 0) <= 38 else "DOUBLE"
