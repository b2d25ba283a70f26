"""Public halves over releases on a real Postgres: what they give, and that they are the client's own text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.types.string import TextLoader
from rewrite_world import HERE, TABLES, compiled, exact, made_up, over, said, schema, sorted_by_bytes

from dpsql.remainder import Pool
from dpsql.types import Column, Relation, Value

PRINTED = ("QUALIFY",)
"""What Postgres does not have."""


OWN = ("QUALIFY", "dp_")


def halves() -> list[str]:
    lines = HERE.joinpath("halves.sql").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("--")]


@pytest.fixture(scope="module")
def postgres(postgres_uri: str) -> Iterator[psycopg.Connection[Any]]:
    with sorted_by_bytes(postgres_uri, "rewrite_halves") as connection:
        connection.execute(TABLES.encode())
        connection.adapters.register_loader("interval", TextLoader)
        yield connection


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool({"r2": _public("r2"), "cal": Relation(_public("cal").columns, ())})
    yield made
    made.close()


def _public(name: str) -> Relation:
    columns = tuple(Column(c.name, c.type) for c in schema().tables[name].columns)
    rows: tuple[tuple[Value, ...], ...] = (
        ("a", "north"), ("b", "south"), ("b", "west"), ("e", "east"), (None, "lost"),
    )  # fmt: skip
    return Relation(columns, rows)


@pytest.mark.parametrize("statement", halves())
def test_same_as_the_remainder(postgres: psycopg.Connection[Any], pool: Pool, statement: str) -> None:
    made = compiled(statement)
    assert made.text.spliced or any(word in statement for word in PRINTED)
    rows = made_up(made)
    theirs = pool.run(made.remainder, {f"_r{n}": r for n, r in rows.items()}, 10)
    ours = postgres.execute(over(made, rows).encode())
    assert [d.name for d in ours.description or ()] == [c.name for c in theirs.columns]
    assert said(ours.fetchall(), statement) == said(theirs.rows, statement)


def _comparable() -> list[str]:
    """Statements of Postgres's own whose releases are of plain columns of the table."""
    return [h for h in halves() if not any(w in h for w in OWN) and exact(compiled(h)) is not None]


@pytest.mark.parametrize("statement", _comparable())
def test_same_as_without_privacy(postgres: psycopg.Connection[Any], statement: str) -> None:
    """Over exact releases the text gives what the client's own gives, with its names and types."""
    made = compiled(statement)
    text = made.text.over(exact(made) or {})
    mine, own = postgres.execute(text.encode()), postgres.execute(_own(statement).encode())
    assert [(d.name, d.type_code) for d in mine.description or ()] == [
        (d.name, d.type_code) for d in own.description or ()
    ]
    assert said(mine.fetchall(), statement) == said(own.fetchall(), statement)


def _own(statement: str) -> str:
    views = ", ".join(f"{name} AS ({text.partition('--')[0]})" for name, text in schema().policy.views.items())
    if "by_kind" not in statement and "places" not in statement:
        return statement
    return f"WITH {views} {statement.replace('public.by_kind', 'by_kind')}"
