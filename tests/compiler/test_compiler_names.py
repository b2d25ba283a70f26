"""Names in another case than declared, or with schemas: the SQL of the exact statement, or a refusal; never a guess."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from sqlglot import exp

from dpsql.compiler import Compiled, Terms, compile_statement, local_model, tables
from dpsql.compiler.bind import from_clause, scope
from dpsql.compiler.emit import DIALECTS, emit
from dpsql.compiler.spelling import READINGS, either, exactly, meant
from dpsql.compiler.split import sources
from dpsql.errors import Rejected
from dpsql.policy.load import parse
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.types import INT4, INT8, TEXT, Column, Relation, TableName

POLICY = """
dpsql: 1
dataset: names
backend: duckdb:names.duckdb
privacy: {unit: person, units: 10000, max_groups: 4, max_rows_per_group: 5, budget: {epsilon: 10, delta: 1e-6}}
tables:
  Hits: {unit: UserID}
views: {Titled: "SELECT UserID, Title FROM Hits WHERE Title IS NOT NULL"}
"""
TERMS = Terms(Decimal(1), Decimal("1e-7"))
TITLES = SchemaColumn("Title", TEXT, values=("home", "news"))


def _private(name: str, *columns: SchemaColumn, source: TableName | None = None) -> SchemaTable:
    unit = columns[0].name
    return SchemaTable(name, False, columns, unit=unit, max_groups=4, max_rows_per_group=5, source=source)


HITS = _private("Hits", SchemaColumn("UserID", INT8), TITLES, SchemaColumn("Width", INT4, lower=0, upper=9))
LOWER = _private("hits", SchemaColumn("uid", INT8))
UPPER = _private("HITS", SchemaColumn("uid", INT8))
TWINS = _private(
    "twins",
    SchemaColumn("id", INT8),
    SchemaColumn("Size", INT4, lower=0, upper=9),
    SchemaColumn("SIZE", INT4, lower=0, upper=5),
)
OLD = _private("archive.orders", SchemaColumn("id", INT8), source=TableName("orders", "archive"))
NEW = _private("sales.orders", SchemaColumn("id", INT8), source=TableName("orders", "sales"))
PUMS = _private("pums", SchemaColumn("pid", INT8), source=TableName("pums", "pums"))
NOTES = SchemaTable(
    "Notes",
    True,
    (SchemaColumn("Title", TEXT), SchemaColumn("Note", TEXT)),
    rows=Relation((Column("Title", TEXT), Column("Note", TEXT)), (("home", "h"),)),
)


def schema(*found: SchemaTable) -> Schema:
    return Schema(parse(POLICY, Path("names.yaml")), {table.name: table for table in found}, INT8)


ALL = schema(HITS, TWINS, OLD, NEW, PUMS, NOTES)


def compiled(text: str, known: Schema = ALL, visible: frozenset[str] | None = None) -> Compiled:
    return compile_statement(text, known, TERMS, visible, texts=True)


def refused(text: str, known: Schema = ALL, visible: frozenset[str] | None = None) -> Rejected:
    with pytest.raises(Rejected) as error:
        compiled(text, known, visible)
    return error.value


SAME = {
    "where": ("SELECT COUNT(*) FROM hits WHERE UserID > 0", 'SELECT COUNT(*) FROM "Hits" WHERE "UserID" > 0'),
    "qualified": (
        'SELECT COUNT(*) FROM "Hits" WHERE hits.userid > 0',
        'SELECT COUNT(*) FROM "Hits" h WHERE "UserID" > 0',
    ),
    "group by": (
        "SELECT COUNT(*) FROM hits GROUP BY title ORDER BY TITLE",
        'SELECT COUNT(*) FROM "Hits" GROUP BY "Title" ORDER BY "Title"',
    ),
    "sets": (
        "SELECT COUNT(*) FROM hits GROUP BY ROLLUP (title) HAVING GROUPING(TITLE) = 0",
        'SELECT COUNT(*) FROM "Hits" GROUP BY ROLLUP ("Title") HAVING GROUPING("Title") = 0',
    ),
    "distinct": ("SELECT DISTINCT title AS t FROM hits", 'SELECT DISTINCT "Title" AS t FROM "Hits"'),
    "aggregates": (
        "SELECT SUM(width), AVG(WIDTH) FILTER (WHERE title = 'home') FROM hits",
        """SELECT SUM("Width"), AVG("Width") FILTER (WHERE "Title" = 'home') FROM "Hits" """,
    ),
    "using": (
        "SELECT note AS n, COUNT(*) FROM hits JOIN notes USING (TITLE) GROUP BY 1",
        'SELECT "Note" AS n, COUNT(*) FROM "Hits" JOIN "Notes" USING ("Title") GROUP BY 1',
    ),
    "star": (
        "SELECT COUNT(*) FROM (SELECT HITS.* FROM hits) q WHERE q.width > 1",
        'SELECT COUNT(*) FROM (SELECT * FROM "Hits") q WHERE "Width" > 1',
    ),
    "exists": (
        "SELECT COUNT(*) FROM hits WHERE EXISTS (SELECT 1 FROM notes WHERE notes.title = hits.title AND width > 3)",
        'SELECT COUNT(*) FROM "Hits" h '
        'WHERE EXISTS (SELECT 1 FROM "Notes" n WHERE n."Title" = h."Title" AND "Width" > 3)',
    ),
    "per unit": (
        "SELECT AVG(n) FROM (SELECT userid, LEAST(COUNT(*), 5) AS n FROM hits GROUP BY UserID) q",
        'SELECT AVG(n) FROM (SELECT "UserID", LEAST(COUNT(*), 5) AS n FROM "Hits" GROUP BY "UserID") q',
    ),
    "qualify": (
        "SELECT title AS t, COUNT(*) AS N FROM hits GROUP BY title QUALIFY RANK() OVER (ORDER BY N) < 2",
        'SELECT "Title" AS t, COUNT(*) AS n FROM "Hits" GROUP BY 1 QUALIFY RANK() OVER (ORDER BY n) < 2',
    ),
    "view": ("SELECT COUNT(*) FROM TITLED", 'SELECT COUNT(*) FROM "Titled"'),
    "schema": ("SELECT COUNT(*) FROM pums.pums WHERE pums.pums.pid > 1", "SELECT COUNT(*) FROM pums WHERE pid > 1"),
    "database": ("SELECT COUNT(*) FROM names.PUMS.pums", "SELECT COUNT(*) FROM pums"),
    "schema public": ("SELECT COUNT(*) FROM public.pums", "SELECT COUNT(*) FROM pums"),
    "schema main": ("SELECT COUNT(*) FROM main.hits", 'SELECT COUNT(*) FROM public."Hits"'),
    "of two": ("SELECT COUNT(*) FROM Archive.Orders", 'SELECT COUNT(*) FROM "archive.orders"'),
}


@pytest.mark.parametrize("name", SAME)
def test_the_plan_is_that_of_the_exact_statement(name: str) -> None:
    """So what is proved of exact names holds for the others: the same SQL, noise and prices. Keys are labelled anew."""
    folded, exact = map(compiled, SAME[name])
    assert _planned(folded) == _planned(exact) != []
    assert [c.type for c in folded.columns] == [c.type for c in exact.columns]


def _planned(made: Compiled) -> list[object]:
    sql = [emit(r, DIALECTS[name], {}) for r in made.releases if r.has_cells for name in DIALECTS]
    return [*sql, *((r.cost, r.measurements, [k.domain for k in r.keys]) for r in made.releases)]


def _tables(text: str, known: Schema, visible: frozenset[str] | None = None) -> tuple[str, ...]:
    return compiled(text, known, visible).releases[0].aggregation.tables


def test_what_postgres_reads_comes_first() -> None:
    both = schema(HITS, LOWER, UPPER)
    assert _tables("SELECT COUNT(*) FROM HITS", both) == ("hits",)
    assert _tables('SELECT COUNT(*) FROM "HITS"', both) == ("HITS",)
    text = 'SELECT COUNT(*) FROM (SELECT "UserID" AS size, "Width" FROM "Hits") h WHERE EXISTS '
    inside = "(SELECT 1 FROM twins WHERE id = size)"  # of the row outside, not "Size" of twins
    assert _tables(text + inside, ALL) == ("Hits",)


def test_two_that_are_alike() -> None:
    table = refused("SELECT COUNT(*) FROM Hits", schema(HITS, UPPER))
    assert (table.sqlstate, table.hint) == (
        "42702",
        'It may be public."HITS" or public."Hits". Write one of them, as it stands here.',
    )
    column = refused("SELECT SUM(size) FROM twins")
    assert (column.sqlstate, column.message) == ("42702", 'column reference "size" is ambiguous')
    assert column.hint == 'It may be "SIZE" or "Size". Write one of them, as it stands here.'
    assert refused("SELECT COUNT(*) FROM twins a JOIN twins b USING (id, size)").hint == column.hint
    assert compiled('SELECT SUM("SIZE") FROM twins')


def test_two_tables_of_one_name() -> None:
    assert _tables("SELECT COUNT(*) FROM archive.orders", ALL) == ("archive.orders",)
    assert _tables("SELECT COUNT(*) FROM sales.orders", ALL) == ("sales.orders",)
    error = refused("SELECT COUNT(*) FROM orders")
    assert error.sqlstate == "42702"
    assert error.hint is not None
    assert "archive.orders or sales.orders" in error.hint
    assert refused("SELECT COUNT(*) FROM other.orders").sqlstate == "42P01"
    assert refused("SELECT COUNT(*) FROM sales.orders WHERE archive.orders.id = 1").sqlstate == "42P01"


def test_what_the_user_may_not_see_is_no_name() -> None:
    """Neither found, nor named, nor in the way of another."""
    sales = frozenset({"sales.orders"})
    assert _tables("SELECT COUNT(*) FROM orders", ALL, sales) == ("sales.orders",)
    assert refused("SELECT COUNT(*) FROM archive.orders", ALL, sales).message == (
        'relation "archive.orders" does not exist'
    )
    both = schema(HITS, LOWER)
    assert _tables("SELECT COUNT(*) FROM hits", both, frozenset({"Hits"})) == ("Hits",)
    shown = refused("SELECT * FROM hits", both, frozenset({"Hits"})).hint
    assert shown is not None
    assert 'FROM "Hits"' in shown


@pytest.mark.parametrize(
    "text",
    [
        'SELECT COUNT(*) FROM "hits"',
        'SELECT COUNT(*) FROM hits WHERE "userid" > 1',
        'SELECT COUNT(*) FROM hits WHERE "hits"."UserID" > 1',
        'SELECT COUNT(*) FROM hits JOIN notes USING ("title")',
        'SELECT COUNT(*) FROM "Pums".pums',
        "SELECT COUNT(*) FROM pums p WHERE pums.p.pid > 1",
    ],
)
def test_quotes_are_exact(text: str) -> None:
    assert refused(text).sqlstate in ("42P01", "42703")


def test_public_columns_beside_a_release() -> None:
    made = compiled(
        "SELECT n.note, q.n FROM notes n JOIN (SELECT title, COUNT(*) n FROM hits GROUP BY 1) q ON q.TITLE = N.title"
    )
    assert [column.name for column in made.columns] == ["Note", "n"]
    assert made.text.spliced
    assert 'n."Note"' in made.text.text.replace('"n"', "n")
    assert 'FROM public."Notes" n' in made.text.text.replace('"public"', "public")


def test_a_randomized_column_is_known_in_any_case() -> None:
    """It is never taken for an ordinary one, nor mixed with another."""
    answers = _private(
        "Answers", SchemaColumn("Uid", INT8), SchemaColumn("Smokes", TEXT, values=("n", "y"), randomized=Decimal(1))
    )
    known = schema(answers)
    assert refused("SELECT smokes, SUM(UID) FROM answers GROUP BY SMOKES", known).message == (
        "Answers.Smokes was randomized when it was collected: only counts of it alone are answered"
    )


def test_meant() -> None:
    assert meant("UserID", ["userid", "UserID"]) == ("UserID",)
    assert meant("userid", ["UserID"]) == ()  # text, not an identifier
    assert either(["a", "a"]) is None


def _all_tables(patch: pytest.MonkeyPatch) -> None:
    named = tables.named
    for module in (local_model, sources):
        patch.setattr(module, "named", lambda item, schema, visible: named(item, schema, None))


def _folded_first(patch: pytest.MonkeyPatch) -> None:
    for module in (tables, scope):
        patch.setattr(module, "READINGS", READINGS[::-1])


def _quotes_folded(patch: pytest.MonkeyPatch) -> None:
    def loosely(written: object, name: str) -> bool:
        return str(getattr(written, "this", written) or "").lower() == name.lower()

    for module in (tables, scope):
        patch.setattr(module, "READINGS", (exactly, loosely))


def _any_schema(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tables, "_is_within", lambda written, schema, fits: True)


def _any_schema_of_columns(patch: pytest.MonkeyPatch) -> None:
    is_of = scope._is_of

    def blind(column: exp.Column, field: scope.Field, fits: Callable[..., bool]) -> bool:
        plain = column.copy()
        plain.set("db", None)
        return is_of(plain, field, fits)

    patch.setattr(scope, "_is_of", blind)


def _using_takes_both(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(from_clause, "meant", lambda written, names: meant(written, names)[:1])


MUTANTS: dict[Callable[[pytest.MonkeyPatch], None], Callable[[], None]] = {
    _all_tables: test_what_the_user_may_not_see_is_no_name,
    _folded_first: test_what_postgres_reads_comes_first,
    _any_schema: test_two_tables_of_one_name,
    _any_schema_of_columns: test_two_tables_of_one_name,
    _using_takes_both: test_two_that_are_alike,
    _quotes_folded: lambda: test_quotes_are_exact('SELECT COUNT(*) FROM hits WHERE "userid" > 1'),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutant_is_killed(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception, Rejected)):
        MUTANTS[mutant]()
