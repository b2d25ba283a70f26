"""Parameters are values, wherever Postgres takes them: what a place needs is known when the statement is bound."""

from __future__ import annotations

import psycopg
import pytest

from e2e.proxy import Client, Proxy, ask

STATEMENTS = (
    ("SELECT date_trunc(%s, joined), count(*) FROM people GROUP BY 1 ORDER BY 1", ("year",), [1184, 20]),
    ("SELECT to_char(joined, %s), count(*) FROM people GROUP BY 1", ("YYYY",), [25, 20]),
    ("SELECT count(*) FROM people WHERE joined > now() - %s::interval", ("10 years",), [20]),
    ("SELECT count(*) FROM people WHERE joined > date '2020-01-01' - %s", (10,), [20]),
    ("SELECT sum(CASE WHEN age > %s THEN %s ELSE %s END) FROM people", (40, 1, 0), [20]),
    ("SELECT sum(coalesce(age, %s)), sum(least(age, %s)) FROM people", (0, 50), [20, 20]),
    ("SELECT width_bucket(score, %s, %s, %s), count(*) FROM people GROUP BY 1", (0, 100, 4), [23, 20]),
    ("SELECT city, count(*) FROM people GROUP BY 1 LIMIT %s::integer", (2,), [25, 20]),
    ("SELECT count(*) FROM people WHERE city = ANY(%s)", (["Rome"],), [20]),
)


@pytest.mark.parametrize(("statement", "values", "types"), STATEMENTS)
@pytest.mark.parametrize("prepared", [False, True])
def test_they_are_taken(
    clean: Proxy, statement: str, values: tuple[object, ...], types: list[int], prepared: bool
) -> None:
    """The same rows as with constants in the text, of the types that are described."""
    with clean.connect() as client:
        cursor = client.execute(statement.encode(), values, prepare=prepared)
        assert [column.type_code for column in cursor.description or ()] == types
        rows = cursor.fetchall()
        assert rows
        assert client.execute(statement.encode(), values, prepare=prepared).fetchall() == rows


def test_what_is_wrong_with_them_costs_nothing(clean: Proxy) -> None:
    with clean.connect() as client:
        before = ask(client, "SHOW dpsql.budget")
        for statement, value in (
            ("SELECT date_trunc(%s, joined), count(*) FROM people GROUP BY 1", "fortnight"),
            ("SELECT sum(nonesuch(age, %s)) FROM people", 1),
            ("SELECT count(*) FROM people WHERE age > %s::date", "2020-01-01"),
        ):
            with pytest.raises(psycopg.Error):
                client.execute(statement.encode(), (value,))
        assert refused(client) == "42P02"
        assert ask(client, "SHOW dpsql.budget") == before


def refused(client: Client) -> str | None:
    """A parameter of nobody's."""
    with pytest.raises(psycopg.errors.UndefinedParameter) as caught:
        client.execute(b"SELECT count(*) FROM people WHERE age > $1")
    return caught.value.sqlstate
