"""What keys and families hang on beside the plans: alike in every process, and another where what is read changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import duckdb
import pytest

from dpsql.engine import Engine, open_engine
from dpsql.ledger import init_ledger
from dpsql.policy.load import load, parse
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.replay.ready import Surroundings
from dpsql.session.ports import CancelToken
from dpsql.types import INT8, Settings

POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:shop.duckdb
privacy: {unit: uid, units: 100000, max_groups: 1, max_rows_per_group: 1, budget: {epsilon: 1, delta: 1e-9}}
tables: {sales: {unit: uid, columns: {uid: {type: bigint}}}}
roles: {analyst: {budget: {epsilon: 1, delta: 1e-9}}}
users: {}
"""
NAMES = "abcdefg"


def told(table: SchemaTable) -> str:
    policy = parse(POLICY, Path("shop.yaml"))
    return Surroundings(Schema(policy, {"sales": table}))._print("sales", True)


def test_declarations_read_alike_in_whatever_order_a_set_has_them() -> None:
    """The order of a set hangs on the process, and what a family hangs on must not."""
    columns = tuple(SchemaColumn(name, INT8) for name in NAMES)
    table = SchemaTable("sales", False, columns, unit="a", unique=(frozenset(NAMES),))
    orders = (frozenset(order) for order in permutations(NAMES))
    other = next((order for order in orders if repr(order) != repr(table.unique[0])), table.unique[0])
    assert told(replace(table, unique=(other,))) == told(table)
    assert told(replace(table, unique=(frozenset("ab"),))) != told(table)
    assert told(replace(table, max_groups=2)) != told(table)


PUBLIC = """
dpsql: 1
dataset: sales
backend: duckdb:sales.duckdb
ledger: sqlite:sales.ledger
privacy:
  unit: uid
  units: 1000
  max_groups: 5
  max_rows_per_group: 5
  budget: {epsilon: 100, delta: 1e-6}
tables:
  sales:
    unit: uid
    columns:
      shop: {type: text, values: [cafe, zoo]}
      price: {type: integer, lower: 0, upper: 50}
  few:
    unit: uid
    max_rows: 2
    columns:
      shop: {type: text, values: [cafe, zoo]}
      price: {type: integer, lower: 0, upper: 50}
  shops: {public: true, key: name}
  _regs: {public: true}
views:
  north: SELECT name FROM shops WHERE reg = 'N'
roles:
  analyst: {budget: {epsilon: 50, delta: 1e-7}, epsilon: 1}
users:
  alice: {role: analyst}
"""
TOP = "(SELECT shop FROM (SELECT shop, COUNT(*) AS n FROM sales GROUP BY shop) AS t ORDER BY n DESC LIMIT 1)"
READ = (
    "SELECT COUNT(*) FROM sales WHERE price > (SELECT COUNT(*) FROM shops WHERE reg = 'N')",
    "SELECT COUNT(*) FROM sales WHERE price > (SELECT COUNT(*) FROM north)",
    "SELECT COUNT(*) FROM sales JOIN shops ON shop = name WHERE reg = 'N'",
    "SELECT COUNT(*) FROM sales WHERE shop IN (SELECT name FROM shops WHERE reg = 'N')",
    "SELECT reg, COUNT(*) FROM sales JOIN shops ON shop = name GROUP BY reg",
    "SELECT SUM(price) FROM sales WHERE price > (SELECT AVG(price) FROM sales JOIN shops ON shop = name)",
    f"SELECT COUNT(*) FROM sales WHERE shop IN (SELECT s.name FROM shops AS s JOIN {TOP} AS t ON s.name = t.shop)",
    f"SELECT COUNT(*) FROM sales JOIN {TOP} AS t USING (shop) WHERE price > (SELECT MAX(rent) FROM shops)",
)
UNREAD = (
    "SELECT COUNT(*) FROM sales",
    "SELECT COUNT(*) FROM sales WHERE shop = 'scan(shops as t1,'",
    "SELECT COUNT(*) FROM sales WHERE price > (SELECT COUNT(*) FROM _regs)",
    "SELECT (SELECT COUNT(*) FROM sales), (SELECT COUNT(*) FROM shops)",
)


@contextmanager
def sales(folder: Path) -> Iterator[Engine]:
    engine = open_engine(load(folder / "sales.yaml"))
    try:
        yield engine
    finally:
        engine.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(duckdb.connect(str(tmp_path / "sales.duckdb"))) as connection:
        connection.execute("""
            CREATE TABLE shops (name TEXT PRIMARY KEY, reg TEXT, rent INTEGER);
            INSERT INTO shops VALUES ('cafe', 'N', 3), ('zoo', 'S', 4);
            CREATE TABLE _regs AS SELECT 'N' AS reg;
            CREATE TABLE sales AS SELECT i % 50 AS uid, ['cafe', 'zoo'][1 + i % 2] AS shop, i % 51 AS price
            FROM range(100) AS r(i);
            CREATE TABLE few AS FROM sales;
        """)
    (tmp_path / "sales.yaml").write_text(PUBLIC, encoding="utf-8")
    init_ledger(load(tmp_path / "sales.yaml").ledger, "sales")
    return tmp_path


def keys(engine: Engine, text: str) -> tuple[str, ...]:
    return tuple(ask.key for ask in engine.preparer.ready("alice", text, 0, Settings(), ()).asks)


def test_what_is_read_of_public_tables_is_part_of_the_key(folder: Path) -> None:
    """Of each release of a statement that does: as a value, as rows, by way of an inner release."""
    with sales(folder) as engine:
        before = {text: keys(engine, text) for text in (*READ, *UNREAD)}
    with closing(duckdb.connect(str(folder / "sales.duckdb"))) as connection:
        connection.execute("UPDATE shops SET rent = 5 WHERE name = 'zoo'")
    with sales(folder) as engine:
        after = {text: keys(engine, text) for text in (*READ, *UNREAD)}
    for text in READ:
        assert after[text][-1] != before[text][-1], text
    for text in UNREAD:
        assert after[text] == before[text], text


def test_an_answer_of_before_a_change_is_not_given_again(folder: Path) -> None:
    def told(engine: Engine, text: str) -> str:
        return engine.answer("alice", text, 0, Settings(), (), CancelToken()).notices[-1]

    with sales(folder) as engine:
        for text in READ:
            told(engine, text)
        assert all(told(engine, text).startswith("Replay") for text in READ)
    with closing(duckdb.connect(str(folder / "sales.duckdb"))) as connection:
        connection.execute("UPDATE shops SET rent = 5 WHERE name = 'zoo'")
    with sales(folder) as engine:
        assert all(told(engine, text).startswith("Price") for text in READ)


def test_which_rows_are_kept_is_part_of_the_key(folder: Path) -> None:
    """Both count all rows, of one column nothing or its values are read: other rows of a unit may come first."""
    count, values = ("SELECT COUNT(*) FROM {0}", "SELECT COUNT(COALESCE(price, 0)) FROM {0}")
    with sales(folder) as engine:
        whole, cut = ({keys(engine, text.format(table)) for text in (count, values)} for table in ("sales", "few"))
    assert (len(whole), len(cut)) == (1, 2)
