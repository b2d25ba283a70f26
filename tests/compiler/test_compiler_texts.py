"""Texts and numbers computed from public parts: the backend's value is one of those computed here, for every row."""

from __future__ import annotations

import pytest
from compiler_mini import BOUNDS, TERMS, exact, opened

from dpsql.compiler import compile_statement
from dpsql.compiler.formats import FORMS, pieces
from dpsql.errors import Rejected

ROWS = 1500
DATA = f"""
CREATE TABLE t AS SELECT
    i AS uid, CAST(i % 50 - 20 AS INTEGER) AS num, CAST((i % 400) / 10.0 AS DECIMAL(6,1)) AS dec,
    CAST(i % 1000 AS DOUBLE) / 2 AS flt, i % 3 = 0 AS flag,
    DATE '2019-12-20' + CAST(i % 500 AS INTEGER) AS day,
    TIMESTAMP '2020-02-20' + INTERVAL 47 MINUTE * i AS at,
    CASE i % 4 WHEN 0 THEN 'Rome' WHEN 1 THEN 'new york' WHEN 2 THEN '' ELSE ' a-b c' END AS word
FROM range({ROWS}) AS r(i)
"""
TABLES = """
  t:
    unit: uid
    max_rows: 1
    columns:
      num: {type: integer, lower: -20, upper: 29}
      dec: {type: "numeric(6,1)", lower: 0, upper: 40}
      flt: {type: double, lower: 0, upper: 500}
      flag: {type: boolean}
      day: {type: date, lower: 2019-12-20, upper: 2021-05-03}
      at: {type: timestamp, lower: 2020-02-20, upper: 2020-04-30}
      word: {type: text, values: [Rome, new york, "", " a-b c"]}
"""
ONE = 1024

KEYS = (
    *(f"to_char(at, '{style}{name}')" for code in FORMS for style in ("", "FM") for name in (code, code.lower())),
    "to_char(at, 'Month')", "to_char(day, 'FMDay, DD FMMonth YYYY')", "to_char(at, 'YYYY-MM-DD\"T\"HH24:00')",
    "to_char(day, 'IYYY-\"W\"IW-ID')", "to_char(at, 'HH12 AM')", "to_char(date_trunc('week', at), 'DD.MM.YY')",
    "num::text", "(num * 2 + 1)::text", "day::text", "flag::text", "FLOOR(flt / 10)::text", "(num / 7)::text",
    "word || '/' || flag", "concat(word, num)", "concat_ws(', ', word, flag::text, 'x')", "upper(word)",
    "lower(left(word, 2))", "right(word, 3)", "substring(word from 2)", "lpad(word, 5, '*.')", "rpad(word, 3)",
    "trim(word)", "ltrim(word)", "rtrim(word, 'cek')", "btrim(word, ' R')", "replace(word, 'o', '00')",
    "split_part(word, ' ', 2)", "split_part(word, 'e', 1)", "length(word)", "length(trim(word))",
    "EXTRACT(year FROM day) * 100 + EXTRACT(month FROM day)", "EXTRACT(month FROM day)::int % 3", "num * 10 - 5",
    "EXTRACT(isoyear FROM day)", "EXTRACT(decade FROM day)", "EXTRACT(century FROM at)", "2020 - num", "-num",
    "EXTRACT(epoch FROM date_trunc('day', at))", "ROUND(flt, -1)", "FLOOR(flt / 20) * 20", "TRUNC(dec / 10, 1)",
    "ROUND(flt / 100, 1)", "CEIL(flt / 100)", "date_bin('36 hours', at, '2001-01-01')",
    "date_bin('1 week', day, '2020-01-01')",
    "to_timestamp(FLOOR(EXTRACT(epoch FROM at) / 7200) * 7200)",
    "date_trunc('day', day) - EXTRACT(dow FROM day) * INTERVAL '1 day'",
    "COALESCE(num, 100)", "COALESCE(NULLIF(num, 3), -99)", "COALESCE(day, DATE '1900-01-01')",
    "COALESCE(EXTRACT(month FROM day)::int, 0)",
    "day - EXTRACT(dow FROM day)::int", "at::date - (EXTRACT(isodow FROM at)::int - 1)", "date_trunc('hour', at)::text",
    "CASE WHEN EXTRACT(month FROM day) > 3 THEN EXTRACT(year FROM day) ELSE EXTRACT(year FROM day) - 1 END",
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_no_row_is_lost(key: str) -> None:
    statement = f"SELECT {key}, COUNT(*) FROM t GROUP BY 1"
    (release,) = compile_statement(statement, opened(DATA, TABLES, "person", "UTC", BOUNDS)[1], TERMS).releases
    assert release.public, key
    found = exact(DATA, TABLES, statement)
    assert sum(cells[0] for cells in found.values()) == ROWS * ONE


@pytest.mark.parametrize("pattern", ["J", "W", "Month XX", "DDth", "HH24é", 'Y"', "RM", "YYYY\\"])
def test_unknown_formats_are_refused(pattern: str) -> None:
    assert pieces(pattern) is None
    with pytest.raises(Rejected):
        exact(DATA, TABLES, f"SELECT to_char(at, '{pattern}'), COUNT(*) FROM t GROUP BY 1")
