"""Exact integers on rows written by hand: what is counted, what is dropped before bounding, and what joins prove."""

from __future__ import annotations

import pytest
from compiler_mini import exact

ONE = 1024

VISITS = """
CREATE TABLE visits (uid int, shop text, amount double, n int, price numeric(6,2));
INSERT INTO visits VALUES
  (1, 'a', 10, 1, 1.50), (1, 'a', 20, 2, 2.50), (1, 'a', NULL, 3, 3.50),
  (1, 'x', 5, 4, 4), (1, 'x', 5, 4, 4), (1, 'x', 5, 4, 4),
  (1, 'x', 5, 4, 4), (1, 'x', 5, 4, 4), (1, 'x', 5, 4, 4), (1, NULL, 5, 4, 4), (1, NULL, 5, 4, 4), (1, NULL, 5, 4, 4),
  (2, 'b', 'NaN', 99, 9.99), (2, 'b', 'Infinity', -99, -9.99), (2, 'b', '-Infinity', 0, 0),
  (3, 'a', 1, 1, 1), (3, 'a', 1, 1, 1), (3, 'a', 1, 1, 1), (3, 'a', 1, 1, 1), (3, 'a', 1, 1, 1), (3, 'a', 1, 1, 1),
  (NULL, 'a', 100, 1, 1), (NULL, 'b', 100, 1, 1);
"""
TABLES = """
  visits:
    unit: uid
    columns:
      shop: {type: text, values: [a, b, c]}
      amount: {type: double, lower: 5, upper: 100}
      n: {type: integer, lower: -10, upper: 10}
      price: {type: "numeric(6,2)", lower: 0, upper: 5}
"""


def test_rows_outside_the_domain_are_dropped_before_bounding() -> None:
    """Unit 1 has nine rows under undeclared keys: its three others still count in full; unit 3 counts sqrt(2) * 3."""
    found = exact(VISITS, TABLES, "SELECT shop, COUNT(*) FROM visits GROUP BY shop")
    clipped = int(2**0.5 * 3 * ONE)
    assert found == {("a",): (3 * ONE + clipped,), ("b",): (3 * ONE,)}


def test_filters_apply_before_bounding() -> None:
    for text in (
        "SELECT COUNT(*) FROM visits WHERE shop = 'a' AND uid = 1",
        "SELECT COUNT(*) FILTER (WHERE shop = 'a' AND uid = 1) FROM visits",
        "SELECT COUNT(CASE WHEN shop = 'a' AND uid = 1 THEN 1 END) FROM visits",
        "SELECT COUNT(*) FROM (SELECT * FROM visits WHERE uid = 1) AS mine WHERE shop = 'a'",
    ):
        assert exact(VISITS, TABLES, text) == {(): (3 * ONE,)}, text


def test_values_are_clamped_and_null_and_nan_add_nothing() -> None:
    """n in [-10, 10] on its natural grid; price in cents; amount on a grid of 2^-13."""
    found = exact(VISITS, TABLES, "SELECT shop, SUM(n), SUM(price) FROM visits GROUP BY shop")
    assert found == {("a",): (6 + 6, 750 + 600), ("b",): (0, 500)}
    sums = exact(VISITS, TABLES, "SELECT SUM(amount) FROM visits WHERE shop = 'b'")
    assert sums == {(): ((100 + 5) * 2**13,)}
    assert exact(VISITS, TABLES, "SELECT COUNT(amount) FROM visits WHERE shop = 'a'") == {(): (2 * ONE + 3 * ONE,)}


def test_averages_share_the_factor_of_their_counts() -> None:
    """Unit 3 has six rows, three count: half of its sum does, about the middle (n - 0)."""
    found = exact(VISITS, TABLES, "SELECT AVG(n) FROM visits WHERE uid = 3")
    ((count, total),) = found.values()
    assert count == 3 * ONE
    assert total == 2  # 6 * 1 * 3/6, shaved, toward zero


def test_units_count_once() -> None:
    found = exact(VISITS, TABLES, "SELECT shop, COUNT(DISTINCT uid) FROM visits GROUP BY shop")
    assert found == {("a",): (2 * ONE,), ("b",): (ONE,)}


def test_another_unit_changes_nothing_in_what_a_unit_adds() -> None:
    alone = VISITS + "DELETE FROM visits WHERE uid <> 3;"
    both = VISITS + "DELETE FROM visits WHERE uid = 2;"
    text = "SELECT shop, SUM(amount), COUNT(*) FROM visits WHERE shop = 'a' GROUP BY shop"
    (three,), (two,) = exact(alone, TABLES, text).values(), exact(both, TABLES, text).values()
    (one,) = exact(VISITS + "DELETE FROM visits WHERE uid <> 1;", TABLES, text).values()
    assert [a + b for a, b in zip(one, three, strict=True)] == list(two)


def test_max_rows_keeps_a_units_own_rows() -> None:
    """Two of each unit's rows stay, whatever others have."""
    tables = TABLES.replace("unit: uid", "unit: uid\n    max_rows: 2")
    assert exact(VISITS, tables, "SELECT COUNT(*) FROM visits") == {(): (6 * ONE,)}


ROWS = """
CREATE TABLE t (x double, n numeric(20,0), ts timestamp, d date, tz timestamptz, k int);
INSERT INTO t VALUES (9007199254740992, 9007199254740993, '1000-01-01', '1000-01-01', '2020-10-25 00:30:00+00', 1);
CREATE TABLE whole (id bigint, v int); INSERT INTO whole VALUES (9007199254740992, 1), (9007199254740993, 1), (1, 1);
CREATE TABLE days (d date, v int); INSERT INTO days VALUES ('0500-01-01', 1), ('0600-01-01', 1);
CREATE TABLE hours (z timestamptz, v int);
INSERT INTO hours VALUES ('2020-10-25 00:30:00+00', 1), ('2020-10-25 01:30:00+00', 1);
CREATE TABLE floats (f double, v int); INSERT INTO floats VALUES (9007199254740992, 1);
"""
ROW_TABLES = """
  t:
    columns:
      x: {type: double}
      n: {type: "numeric(20,0)"}
      ts: {type: timestamp}
      d: {type: date}
      tz: {type: timestamptz}
      k: {type: integer}
  whole: {public: true, key: id}
  days: {public: true, key: d}
  hours: {public: true, key: z}
  floats: {public: true, key: f}
"""


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("whole ON t.k = whole.id", 1),
        ("whole ON t.x = whole.id", None),
        ("whole ON t.n = whole.id", None),
        ("days ON t.ts = days.d", None),
        ("days ON t.d = days.d", 0),
        ("hours ON t.tz = hours.z", None),
        ("floats ON t.x = floats.f", 1),
        ("floats ON t.n = floats.f", None),
    ],
)
def test_a_row_joined_by_an_inexact_comparison_is_still_one_row(join: str, rows: int | None) -> None:
    """Keys that differ in the public table may be equal as doubles, as clamped dates, or as local times."""
    for kind in ("JOIN", "LEFT JOIN"):
        text = f"SELECT COUNT(*) FROM t {kind} {join}"
        found = exact(
            ROWS,
            ROW_TABLES,
            text,
            unit="row",
            zone="Europe/Rome",
            privacy="max_groups: 1, max_rows_per_group: 1",
        )
        ((count,),) = found.values()
        assert 0 <= count <= ONE, text
        if rows is not None and kind == "JOIN":
            assert count == rows * ONE
