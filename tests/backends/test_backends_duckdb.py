"""DuckDB: how the file is locked, what its catalog is trusted for, and how statements run and stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import pytest

from dpsql.backends import open_backend
from dpsql.backends.duckdb import DuckdbBackend
from dpsql.errors import Failed, Rejected
from dpsql.types import Kind, Relation, SqlType, TableFacts, TableName

_SETUP = """
CREATE TABLE people (uid INTEGER PRIMARY KEY, age SMALLINT, salary DECIMAL(12,2), score DOUBLE, city VARCHAR,
    joined DATE, seen TIMESTAMPTZ, id UUID, tags VARCHAR[], small UTINYINT, nocase VARCHAR COLLATE nocase,
    twice INTEGER AS (uid * 2));
INSERT INTO people (uid, age, salary, score, city, joined, seen, id) VALUES
    (1, 30, 100.50, 1.5, 'Rome', '2020-01-31', '2020-01-31 12:00+02', '6ba7b810-9dad-11d1-80b4-00c04fd430c8'),
    (2, NULL, NULL, 'NaN', 'secret-sentinel', 'infinity', NULL, NULL);
CREATE TABLE keys (a INTEGER NOT NULL, b INTEGER NOT NULL, c INTEGER UNIQUE, d INTEGER, e INTEGER, UNIQUE (a, b));
INSERT INTO keys VALUES (1, 1, 1, 1, 1), (1, 2, NULL, 2, 1), (2, 1, NULL, 3, NULL);
CREATE TABLE shops (shop VARCHAR PRIMARY KEY, opened TIMESTAMPTZ);
INSERT INTO shops VALUES ('b', '2020-01-01 00:00+02'), ('B', NULL), ('a', NULL);
CREATE TABLE far (day DATE);
INSERT INTO far VALUES ('20000-01-01');
CREATE TABLE mixed (a INTEGER, tags VARCHAR[]);
CREATE VIEW a_view AS SELECT * FROM people;
CREATE MACRO harmless(x) AS x + 1;
CREATE SCHEMA hidden;
CREATE TABLE hidden.elsewhere (uid INTEGER);
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("duckdb") / "data.duckdb"
    _create(path, _SETUP)
    return path


@pytest.fixture
def backend(file: Path) -> Iterator[DuckdbBackend]:
    opened = DuckdbBackend(str(file), "Europe/Rome")
    yield opened
    opened.close()


def _create(path: Path, statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(statements)


def facts(backend: DuckdbBackend, table: str, schema: str | None = None) -> TableFacts:
    name = TableName(table, schema)
    return backend.facts([name])[name]


def test_types_are_read_from_the_catalog(backend: DuckdbBackend) -> None:
    columns = {column.name: column.type for column in facts(backend, "people").columns}
    assert columns["uid"].kind is Kind.INT4
    assert columns["age"].kind is Kind.INT2
    assert columns["salary"] == SqlType(Kind.NUMERIC, 12, 2)
    assert columns["seen"].kind is Kind.TIMESTAMPTZ
    assert columns["city"].kind is Kind.TEXT


@pytest.mark.parametrize("column", ["tags", "small", "nocase", "twice"])
def test_columns_that_compare_or_compute_in_odd_ways_are_unknown(backend: DuckdbBackend, column: str) -> None:
    columns = {found.name: found.type.kind for found in facts(backend, "people").columns}
    assert columns[column] is Kind.UNKNOWN


def test_a_view_has_a_problem_and_a_table_has_none(backend: DuckdbBackend) -> None:
    assert facts(backend, "a_view").problems == ("is a view",)
    assert facts(backend, "people").problems == ()


def test_tables_of_other_schemas_and_missing_ones_do_not_exist(backend: DuckdbBackend) -> None:
    assert backend.facts([TableName(name) for name in ["elsewhere", "nothing", "duckdb_tables", "People"]]) == {}


def test_tables_of_other_schemas_are_found_by_their_schema(backend: DuckdbBackend) -> None:
    assert facts(backend, "elsewhere", "hidden").problems == ()
    assert facts(backend, "people", "main") == facts(backend, "people")
    listed = backend.listing()
    assert TableName("elsewhere", "hidden") in listed.tables
    assert TableName("people") in listed.tables


def test_columns_may_be_null_unless_a_constraint_says_otherwise(backend: DuckdbBackend) -> None:
    assert facts(backend, "keys").nullable == {"c", "d", "e"}
    assert "uid" not in facts(backend, "people").nullable
    assert "age" in facts(backend, "people").nullable


def test_a_schema_that_could_be_read_as_a_database_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "Shop.duckdb"
    _create(path, 'CREATE SCHEMA "shop"; CREATE TABLE "Shop"."shop".orders (id INTEGER)')
    with closing(DuckdbBackend(str(path), "UTC")) as opened:
        (problem,) = facts(opened, "orders", "shop").problems
        assert "named like its database" in problem


def test_what_a_schema_declares_is_told_without_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.duckdb"
    _create(
        path,
        "CREATE TYPE mood AS ENUM ('sad', 'it''s', 'a, b');"
        "CREATE TABLE t (m mood, ms mood[], n INTEGER CHECK (n > 3));"
        "INSERT INTO t VALUES ('sad', NULL, 777)",
    )
    with closing(DuckdbBackend(str(path), "UTC")) as opened:
        found = facts(opened, "t")
        assert found.enums == (("m", ("sad", "it's", "a, b")),)
        assert [column.type.kind for column in found.columns] == [Kind.TEXT, Kind.UNKNOWN, Kind.INT4]
        assert found.checks == ("(n > 3)",)
        assert opened.public_rows(TableName("t")).rows == (("sad", 777),)


def test_constraints_verify_uniqueness_where_nothing_is_null(backend: DuckdbBackend) -> None:
    assert facts(backend, "keys").unique == (frozenset({"a", "b"}),)


@pytest.mark.parametrize(
    ("columns", "unique"), [(["d"], True), (["a"], False), (["c"], False), (["e"], False), (["a", "d"], True)]
)
def test_uniqueness_is_checked_in_the_data(backend: DuckdbBackend, columns: list[str], unique: bool) -> None:
    assert backend.immutable
    assert backend.verify_unique(TableName("keys"), columns) is unique


@pytest.mark.parametrize(
    ("statement", "name"), [("CREATE MACRO floor(x) AS 42", "floor"), ("CREATE MACRO SUM(x) AS 42", "sum")]
)
def test_a_file_that_redefines_built_in_names_is_refused(tmp_path: Path, statement: str, name: str) -> None:
    path = tmp_path / "data.duckdb"
    _create(path, statement)
    with pytest.raises(Rejected) as refusal:
        DuckdbBackend(str(path), "UTC")
    assert name in refusal.value.message.lower()


def test_processes_share_the_cores(file: Path) -> None:
    threads = []
    for sharers in (1, 2, 1000):
        opened = DuckdbBackend(str(file), "UTC", sharers)
        threads.append(opened._rows("SELECT current_setting('threads')")[0][0])
        opened.close()
    assert threads[1:] == [max(1, int(str(threads[0])) // 2), 1]


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="no database file"):
        open_backend(f"duckdb:{tmp_path}/none.duckdb", "UTC")
    assert not (tmp_path / "none.duckdb").exists()
    (tmp_path / "text.duckdb").write_text("secret-sentinel " * 1000)
    with pytest.raises(Rejected, match="cannot be opened") as refusal:
        open_backend(f"duckdb:{tmp_path}/text.duckdb", "UTC")
    assert "sentinel" not in str(refusal.value)


@pytest.mark.parametrize("url", ["mysql:x", "spark://host", ""])
def test_unknown_backends_are_refused(url: str) -> None:
    with pytest.raises(Rejected):
        open_backend(url, "UTC")


def test_public_rows_are_ordered_and_in_utc(backend: DuckdbBackend) -> None:
    relation = backend.public_rows(TableName("shops"))
    assert [column.name for column in relation.columns] == ["shop", "opened"]
    assert relation.rows == (("B", None), ("a", None), ("b", datetime(2019, 12, 31, 22, tzinfo=UTC)))


def test_public_rows_that_no_client_could_see_are_refused(backend: DuckdbBackend) -> None:
    with pytest.raises(Rejected, match="public table far cannot be read"):
        backend.public_rows(TableName("far"))


def test_public_rows_leave_out_columns_of_unknown_type(backend: DuckdbBackend) -> None:
    assert [column.name for column in backend.public_rows(TableName("mixed")).columns] == ["a"]


def test_fetch_splits_keys_and_cells(backend: DuckdbBackend) -> None:
    statement = "SELECT city, salary, joined, id, seen, count(*) FROM main.people WHERE uid = 1 GROUP BY ALL"
    cells = backend.fetch(statement, 5, 10)
    assert cells.cells == ((1,),)
    assert cells.keys[0][:3] == ("Rome", Decimal("100.50"), date(2020, 1, 31))
    assert cells.keys[0][3:] == (
        UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        datetime(2020, 1, 31, 10, tzinfo=UTC),
    )
    assert str(cells.keys[0][4]).endswith("+00:00")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT city::INTEGER, 1::BIGINT FROM main.people",
        "SELECT error('secret-sentinel')",
        "SELECT 1::INTEGER",
        "SELECT 1::HUGEINT",
        "SELECT NULL::BIGINT",
        "SELECT 9223372036854775807::BIGINT",
        "SELECT count(*) FROM read_text('/etc/hostname')",
        "SELECT count(*) FROM cells_of_python",
        "CREATE TABLE main.x (a INTEGER)",
        "INSERT INTO main.shops VALUES ('c', NULL)",
        "SET threads = 1",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "ATTACH ':memory:' AS other",
    ],
)
def test_any_failure_has_one_sentence_and_no_value(backend: DuckdbBackend, statement: str) -> None:
    cells_of_python = Relation((), ())
    with pytest.raises(Failed) as failure:
        backend.fetch(statement, 0, 10)
    assert "sentinel" not in failure.value.cause + failure.value.message
    assert failure.value.__cause__ is None
    assert cells_of_python.rows == ()


_ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 3"


def test_a_statement_that_takes_too_long_fails(backend: DuckdbBackend) -> None:
    started = time.monotonic()
    with pytest.raises(Failed) as failure:
        backend.fetch(_ENDLESS, 0, 0.2)
    assert failure.value.sqlstate == "57014"
    assert time.monotonic() - started < 5


class _Cancel:
    """Cancels before the statement has begun, when an interrupt alone would be lost."""

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        interrupt()
        yield


def test_a_cancelled_statement_stops(backend: DuckdbBackend) -> None:
    with pytest.raises(Rejected) as cancelled:
        backend.fetch(_ENDLESS, 0, 60, _Cancel())
    assert cancelled.value.sqlstate == "57014"


def test_stopping_one_statement_leaves_others_alone(backend: DuckdbBackend) -> None:
    results: list[int] = []

    def ask() -> None:
        results.extend(cell[0] for cell in backend.fetch("SELECT count(*) FROM range(5000000)", 0, 60).cells)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    with pytest.raises(Failed):
        backend.fetch(_ENDLESS, 0, 0.1)
    for thread in threads:
        thread.join()
    assert results == [5_000_000] * 6


def test_nobody_can_write_while_it_is_open(backend: DuckdbBackend, file: Path) -> None:
    with pytest.raises(duckdb.Error):
        duckdb.connect(str(file))
