"""The statement that is shown where rows were asked for: it works, and names nothing that the asker may not see."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from sqlglot import parse_one
from test_compiler_error_bars import SCHEMA

from dpsql.compiler import Terms, compile_statement
from dpsql.compiler.suggest import suggestion
from dpsql.errors import Rejected
from dpsql.policy.schema import Schema

TERMS = Terms(Decimal(1), Decimal("1e-7"))
PRIVATE = sorted(name for name, table in SCHEMA.tables.items() if not table.public)


def hint(text: str, schema: Schema = SCHEMA, visible: frozenset[str] | None = None) -> str:
    with pytest.raises(Rejected) as error:
        compile_statement(text, schema, TERMS, visible)
    return error.value.hint or ""


def shown(text: str, schema: Schema = SCHEMA) -> str:
    found = hint(text, schema)
    assert found.startswith("Ask for aggregates, such as ")
    return found.removeprefix("Ask for aggregates, such as ").partition(";")[0]


@pytest.mark.parametrize("table", PRIVATE)
@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM {}", "SELECT * FROM (SELECT * FROM {}) AS t LIMIT 100", "SELECT * FROM {} WHERE 1 = 1 LIMIT 9"],
)
def test_it_works(table: str, query: str) -> None:
    statement = shown(query.format(table))
    assert f"FROM {table}" in statement
    assert compile_statement(statement, SCHEMA, TERMS).releases


def test_names_are_quoted_where_they_must_be() -> None:
    table = next(SCHEMA.tables[name] for name in PRIVATE if "GROUP BY" in shown(f"SELECT * FROM {name}"))
    odd = replace(
        table,
        name="Order",
        columns=tuple(c if c.name == table.unit else replace(c, name=f"select {c.name}") for c in table.columns),
    )
    schema = replace(SCHEMA, tables={**SCHEMA.tables, "Order": odd})
    statement = shown('SELECT * FROM "Order"', schema)
    assert '"select ' in statement
    assert '"select ' in hint('SELECT SUM(zzzzz) FROM "Order"', schema)
    assert compile_statement(statement, schema, TERMS).releases


def test_a_table_that_may_not_be_seen_is_not_named() -> None:
    """However its rows are asked for."""
    table = PRIVATE[0]
    for text in (
        f"SELECT * FROM {table}",
        f"SELECT *, COUNT(*) FROM {table}",
        f"SELECT * FROM {table} GROUP BY nosuch",
    ):
        found = hint(text, visible=frozenset(SCHEMA.tables) - {table})
        assert table not in found
        assert not any(column.name in found for column in SCHEMA.tables[table].columns)


def test_nothing_to_show() -> None:
    name = PRIVATE[0]
    public = replace(SCHEMA, tables={name: replace(SCHEMA.tables[name], public=True)})
    assert suggestion(public, parse_one(f"SELECT * FROM {name}", read="postgres")) is None
    for text in ("SELECT 1", f"WITH {name} AS (SELECT 1) SELECT * FROM {name}"):
        assert suggestion(SCHEMA, parse_one(text, read="postgres")) is None
