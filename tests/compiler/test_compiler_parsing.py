"""TRY_CAST over rows: both backends read the same texts, and none makes them fail."""

from __future__ import annotations

from datetime import date

import duckdb
import psycopg
import pytest

from dpsql.compiler.algebra import Call, Col, Op
from dpsql.compiler.emit.common import Emitter
from dpsql.compiler.emit.duckdb import DUCKDB
from dpsql.compiler.emit.parsed import parsed
from dpsql.compiler.emit.postgres import POSTGRES
from dpsql.types import DATE, FLOAT8, INT4, INT8, TEXT, TIMESTAMP, Kind, SqlType, Value

DAYS = tuple(f"{year}-{month:02}-{day:02}" for year in (1000, 1900, 2000, 2023, 2024, 9999)
             for month in range(14) for day in (0, 1, 28, 29, 30, 31, 32))  # fmt: skip
TEXTS = (
    "", " ", "0", "7", "-7", "+7", "007", " 42 ", "4 2", "42\n", "\t42", "--1", "+", "-", "1e3", "1_000", "0x1f", "٤",
    "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "999999999999999999", "1" * 19,
    "1.5", ".5", "5.", ".", "-.25", "+1.000000000000001", "123456789012345.000000000000001", "1234567890123456", "NaN",
    "inf", "1,5", "1.5.2", "2020-02-29T10:00:00", "2020-02-29 23:59", "2020-02-29 24:00", "2020-02-29 10:00:60",
    "2020-02-29  10:00", "0999-01-01", "20200101", "2020-1-1", "10000-01-01", "today", "infinity", "é", "2020-01-01 BC",
    *DAYS,
)  # fmt: skip
INT2 = SqlType(Kind.INT2)
OPS: dict[Op, tuple[SqlType, ...]] = {
    "text_to_int": (INT2, INT4, INT8),
    "text_to_float": (FLOAT8,),
    "text_to_date": (DATE,),
    "text_to_timestamp": (TIMESTAMP,),
}


@pytest.mark.parametrize("type_", [INT2, INT4, INT8, FLOAT8, DATE, TIMESTAMP], ids=str)
def test_both_backends_read_the_same_texts(postgres_uri: str, type_: SqlType) -> None:
    op = next(name for name, types in OPS.items() if type_ in types)
    call = Call(op, (Col("x", TEXT),), type_)
    with psycopg.connect(postgres_uri) as connection:
        sql = f'SELECT x, {parsed(Emitter(POSTGRES, {}), call)} FROM unnest(%s::text[]) AS t("x")'
        theirs: dict[str, Value] = dict(
            connection.execute(sql.replace("%", "%%").replace("%%s", "%s").encode(), (list(TEXTS),)).fetchall()
        )
    with duckdb.connect() as memory:
        sql = f"SELECT x, {parsed(Emitter(DUCKDB, {}), call)} FROM (SELECT unnest(?) AS x)"
        ours = dict(memory.execute(sql, [list(TEXTS)]).fetchall())
    assert ours == theirs
    assert any(value is not None for value in ours.values())
    if type_ in (DATE, TIMESTAMP):
        read = {text for text in DAYS if ours[text] is not None}
        assert read == {text for text in DAYS if _is_day(text)}


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
