"""Layout, digits, pairing of error bars, splitting and completion: no engine behind them."""

from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from dpsql.errors import Rejected
from dpsql.shell import screens
from dpsql.shell.chart import chart
from dpsql.shell.completion import offers
from dpsql.shell.connection import command_below, is_complete, pieces
from dpsql.shell.export import as_json, export
from dpsql.shell.prices import Account, Price, expensive
from dpsql.shell.render import NARROWEST, Expanded, table
from dpsql.shell.results import Result, Shown, shown, without_empty_bars
from dpsql.shell.tables import Field, Table
from dpsql.shell.values import error_text, text_of
from dpsql.types import FLOAT8, INT8, NUMERIC, TEXT


def result(columns: str, *rows: tuple[object, ...]) -> Result:
    types = tuple(
        INT8 if isinstance(v, int) else FLOAT8 if isinstance(v, float) else NUMERIC if isinstance(v, Decimal) else TEXT
        for v in rows[0]
    )
    return Result(tuple(columns.split()), rows, f"SELECT {len(rows)}", (), types)  # type: ignore[arg-type]


def printed(made: RenderableType, width: int = 80) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(made)
    return file.getvalue()


BARRED = result("shop n n_low n_high", ("bakery", 670, 660.25, 680.25), ("butcher", 3, -7.25, 12.75))


# --- error bars ----------------------------------------------------------------------------------------------------


def names(columns: str) -> list[tuple[str, bool]]:
    return [(c.name, c.bar is not None) for c in shown(tuple(columns.split()))]


def test_trailing_pairs_are_the_error_bars_of_earlier_columns() -> None:
    assert names("shop n n_low n_high") == [("shop", False), ("n", True)]
    assert names("n n n_low n_high n_low n_high") == [("n", True), ("n", True)]
    assert names("a b a_low a_high b_low b_high") == [("a", True), ("b", True)]


def test_columns_that_only_look_like_error_bars_stay_columns() -> None:
    assert names("n low high") == [("n", False), ("low", False), ("high", False)]
    assert names("n_low n_high") == [("n_low", False), ("n_high", False)]
    assert names("n n_low n_high m") == [(n, False) for n in ("n", "n_low", "n_high", "m")]
    assert names("n n_low n_high n_low n_high") == [(n, False) for n in ["n", "n_low", "n_high", "n_low", "n_high"]]


def test_an_empty_error_bar_is_not_exported() -> None:
    made = without_empty_bars(result("m n m_low m_high n_low n_high", (1, 2, None, None, 1.0, 3.0)))
    assert made.columns == ("m", "n", "n_low", "n_high")
    assert made.rows == ((1, 2, 1.0, 3.0),)


# --- tables --------------------------------------------------------------------------------------------------------


def test_a_table_shows_the_error_beside_the_value() -> None:
    lines = printed(table(BARRED, 80)).splitlines()
    assert lines[0].split() == ["shop", "n", "95", "%", "error"]
    assert lines[2].split() == ["bakery", "670", "±", "10"]
    assert lines[-1] == "(2 rows)"


def test_an_interval_of_dates_shows_its_ends() -> None:
    """As of a median whose interval was asked for."""
    row = ("a", date(2020, 5, 3), date(2020, 5, 1), date(2020, 5, 9))
    (_, median) = shown(("k", "m", "m_low", "m_high"))
    assert error_text(row, median, None) == "2020-05-01 to 2020-05-09"
    assert error_text(("a", None, None, None), median, None) == ""


def test_fractions_show_two_digits_of_the_smallest_error() -> None:
    made = result("x x_low x_high", (12.34567, 12.30567, 12.38567), (5.0, 3.0, 7.0))
    text = printed(table(made, 80))
    assert "12.346" in text
    assert "± 0.040" in text
    assert "5.000" in text


def test_an_interval_that_is_cut_at_a_bound_shows_both_ends() -> None:
    assert "0 to 44" in printed(table(result("x x_low x_high", (3.0, 0.0, 44.0)), 80))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.text("abcdefgh ijkl漢字", min_size=1, max_size=40), min_size=1, max_size=12),
    st.integers(40, 120),
    st.sampled_from(["auto", "on"]),
)
def test_no_line_is_wider_than_the_terminal(words: list[str], width: int, expanded: Expanded) -> None:
    columns = tuple(f"column_{i}" for i in range(len(words)))
    made = Result(columns, (tuple(words), tuple(reversed(words))), "SELECT 2", (), (TEXT,) * len(words))
    text = printed(table(made, width, expanded), width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "(2 rows)" in text


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 15), min_size=2, max_size=12), st.integers(40, 100))
def test_no_number_is_cut_whatever_stands_beside_it(digits: list[int], width: int) -> None:
    """Every second column is a text that may be shortened."""
    row = tuple("x" * n if at % 2 else int("9" * n) for at, n in enumerate(digits))
    types = tuple(TEXT if isinstance(value, str) else INT8 for value in row)
    made = Result(tuple("c" * n for n in digits), (row,), "SELECT 1", (), types)
    words = printed(table(made, width), width).split()
    assert [w for w in words if w.strip("9") == ""] == [str(v) for v in row if isinstance(v, int)]
    assert all(len(w) >= NARROWEST for w in words if "…" in w)


def test_numbers_are_never_cut() -> None:
    columns = " ".join(f"a_long_name_of_a_number_{i}" for i in range(5))
    made = result(columns, tuple(1234567890 + i for i in range(5)))
    text = printed(table(made, 80))
    assert all(str(1234567890 + i) in text for i in range(5))
    assert "1 of 1" in text


def test_no_rows_and_more_rows_than_are_shown() -> None:
    empty = Result(("n",), (), "SELECT 0", (), (INT8,))
    assert "(0 rows)" in printed(table(empty, 80))
    many = result("n", *((i,) for i in range(30)))
    text = printed(table(many, 80, "auto", 10))
    assert "(10 of 30 rows; \\set rows 0 shows all" in text
    assert "29" not in text.split("(10")[0]


def test_no_value_steers_the_terminal() -> None:
    text = printed(table(result("x", ("a\x1b[31m\x07\nb",)), 80))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "a\\x1b[31m\\x07\\nb" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (3, "3"),
        (2.5, "2.5"),
        (2.0, "2"),
        (1 / 3, "0.333333"),
        (0.000123456789, "0.000123457"),
        (1e-30, "1.00000e-30"),
        (1e15, "1000000000000000"),
        (float("nan"), "nan"),
        (Decimal("36.9"), "36.9"),
        (Decimal("36.90234567890123"), "36.902346"),
        (b"\x01\xff", "\\x01ff"),
        ((1, None), "{1,NULL}"),
    ],
)
def test_values_as_a_person_reads_them(value: object, text: str) -> None:
    assert text_of(value) == text  # type: ignore[arg-type]


# --- charts --------------------------------------------------------------------------------------------------------


def test_bars_are_solid_to_the_low_end_and_shaded_to_the_high_one() -> None:
    lines = printed(chart(BARRED, 80)).splitlines()
    bakery, butcher = lines[-2:]
    assert bakery.count("█") > 40 > butcher.count("█")
    assert "░" in bakery
    assert "░" in butcher
    assert bakery.endswith("670 ± 10")
    assert all(cell_len(line) <= 80 for line in lines)


def test_bars_below_zero_go_the_other_way() -> None:
    lines = printed(chart(result("k v", ("a", -10), ("b", 10)), 60)).splitlines()
    assert lines[-2].index("█") < lines[-1].index("█")


def test_what_cannot_be_drawn_says_so() -> None:
    with pytest.raises(Rejected, match="no column of numbers"):
        chart(result("k", ("a",)), 80)
    with pytest.raises(Rejected, match="named x"):
        chart(BARRED, 80, "x")


# --- prices --------------------------------------------------------------------------------------------------------


def account(whose: str, left: float) -> Account:
    return Account(whose, "", 10, 1, 9, limit=1.0, spent=1.0 - left, zcdp=True)


@pytest.mark.parametrize(
    ("price", "left", "asks"),
    [
        (Price(0, 0), 0.01, None),
        (Price(1, 0.05), 1.0, None),
        (Price(1, 0.05), 0.3, "17% of what is left"),
        (Price(1, 0.05), 0.01, None),  # refused anyway, and free of charge
        (Price(3, 0.09), 1.0, "usually takes 1"),
    ],
)
def test_what_is_expensive(price: Price, left: float, asks: str | None) -> None:
    found = expensive(price, 1.0, (account("ann", left), account("dataset", 1.0)))
    assert (found is None) if asks is None else (found is not None and asks in found)


def test_statements_that_still_fit() -> None:
    assert account("ann", 0.5).statements(Price(1, 0.05)) == 10
    pure = Account("ann", "", 10, 4, 6, limit=10, spent=4, zcdp=False)
    assert pure.statements(Price(2, 2.0)) == 3


# --- statements ----------------------------------------------------------------------------------------------------


def test_a_text_is_split_at_its_semicolons_only() -> None:
    found = pieces("SELECT ';' -- ;\n;; /* ; */ SET a = 1 ;")
    assert [(p.text, p.offset) for p in found] == [("SELECT ';'", 0), ("SET a = 1", 27)]


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT $$;", False),
        ("SELECT 1 /* ;", False),
        ("\\d flights", True),
        ("quit", True),
        ("SELECT 1 \x01;", True),
        ("SELECT 1\n\\q", True),
        ("SELECT '\n\\q", False),
    ],
)
def test_enter_runs_what_is_complete(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_command_below_a_statement() -> None:
    assert command_below("SELECT a,\n  b\n \\d visits\n") == ("SELECT a,\n  b", "\\d visits")
    assert command_below("\\explain SELECT 1\n\\d") is None
    assert command_below("SELECT $$\n\\q") is None
    assert command_below("\\q") is None


# --- completion ----------------------------------------------------------------------------------------------------

TABLES = (
    Table(
        "visits",
        False,
        (
            Field("shop", "text", False, None, None, "bakery, butcher", False, None),
            Field("amount", "integer", False, "0", "100", None, False, None),
        ),
    ),
    Table("streets", True, (Field("number", "bigint", False, None, None, None, True, None),)),
)


def offered(before: str, after: str = "") -> list[str]:
    return [offer.text for offer, _ in offers(TABLES, before, after)]


def test_long_lists_of_values_are_cut() -> None:
    twenty = ", ".join(f"v{number}" for number in range(20))
    field = Field("code", "text", False, None, None, twenty, False, None)
    assert field.bounds == f"one of {twenty}"
    longer = Field("code", "text", False, None, None, f"{twenty}, v20, ...", False, None)
    assert longer.bounds == f"one of {twenty}, ..."
    table = Table("codes", True, (longer,))
    assert [o.text for o, _ in offers((table,), "SELECT 1 FROM codes WHERE code = 'v2")] == ["v20"]
    assert [o.text for o, _ in offers((table,), "SELECT 1 FROM codes WHERE code = '.")] == []


def test_completion_knows_where_it_is() -> None:
    assert offered("SELECT count(*) FROM v") == ["visits"]
    assert offered("SELECT count(*) FROM visits v, s") == ["streets"]
    assert "amount" in offered("SELECT am")
    assert "amount" not in offered("SELECT am", " FROM streets")
    assert offered("SELECT v.", " FROM visits AS v") == ["shop", "amount"]
    assert offered("SELECT count(*) FROM visits WHERE shop = 'b") == ["bakery", "butcher"]
    assert offered("SELECT count(*) FROM visits WHERE shop IN ('bakery', 'bu") == ["butcher"]
    assert "dp_interval_low(" in offered("SELECT dp_")
    assert "sum(" in offered("SELECT su")
    assert "GROUP" in offered("SELECT count(*) FROM visits GR")
    assert "group" in offered("SELECT count(*) FROM visits gr")
    assert offered("SELECT 'su") == []
    assert "dpsql.epsilon" in offered("SET dpsql.e")
    assert offered("\\ex") == ["\\explain", "\\export"]
    assert offered("\\d st") == ["streets"]
    assert offered("\\explain SELECT count(*) FROM vi") == ["visits"]


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=40), st.text(max_size=20))
def test_completion_never_fails(before: str, after: str) -> None:
    offered("SELECT " + before, after)
    offered("\\" + before)


# --- export --------------------------------------------------------------------------------------------------------


def test_exports_keep_every_digit(tmp_path: Path) -> None:
    made = result("name x n d", ("a'b", 1 / 3, 2**60, Decimal("1.50")), (None, float("inf"), None, Decimal("-2")))
    for ending in ("csv", "json", "parquet"):
        export(made, tmp_path / f"x.{ending}")
    assert (tmp_path / "x.csv").read_text() == f"name,x,n,d\na'b,{1 / 3},{2**60},1.50\n,Infinity,,-2\n"
    assert json.loads((tmp_path / "x.json").read_text())[0] == {"name": "a'b", "x": 1 / 3, "n": 2**60, "d": 1.5}
    with duckdb.connect() as connection:
        found = connection.execute(f"FROM '{tmp_path / 'x.parquet'}'").fetchall()
        (types,) = connection.execute(f"SELECT typeof(COLUMNS(*)) FROM '{tmp_path / 'x.parquet'}' LIMIT 1").fetchall()
    assert found == [("a'b", 1 / 3, 2**60, Decimal("1.50")), (None, float("inf"), None, Decimal("-2.00"))]
    assert types == ("VARCHAR", "DOUBLE", "BIGINT", "DECIMAL(38,2)")


def test_an_export_that_cannot_be_says_so(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="does not say its format"):
        export(BARRED, tmp_path / "x.xlsx")
    with pytest.raises(Rejected, match="cannot be written"):
        export(BARRED, tmp_path / "nowhere" / "x.csv")


def test_json_loses_no_column_of_the_same_name() -> None:
    assert json.loads(as_json(result("n n", (1, 2)))) == [{"n": 1, "n_2": 2}]


def test_shown_is_a_plain_list_without_bars() -> None:
    assert shown(("a",)) == (Shown("a", 0),)


def test_the_page_of_a_table_fits_and_cuts_no_word() -> None:
    unit = Field("uid", "bigint", True, None, None, None, False, None)
    long = Field("a_rather_long_column_name_for_a_note", "double precision", False, None, None, None, True, "days.day")
    when = Field("day", "timestamp", False, "2013-01-01 00:00:00", "2013-12-31 23:59:59", None, True, None)
    text = printed(screens.table(Table("visits", False, (unit, long, when))))
    assert all(cell_len(line) <= 80 for line in text.splitlines())
    for word in ("privacy", "unit", "days.day", "double precision", "23:59:59", "column_name_for_a_note"[-12:]):
        assert word in text
