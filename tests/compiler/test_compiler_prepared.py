"""What is compiled once: statements that look the same, with all that they are compiled from."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest
from compiler_mini import mini_engine

from dpsql.engine import Engine
from dpsql.types import FLOAT8, INT8, NUMERIC, TEXT, Settings, SqlType, Value

PEOPLE = """
  people: {unit: uid, max_rows: 1, columns: {age: {type: integer, lower: 0, upper: 120}}}
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("prepared")
    with mini_engine(folder, "CREATE TABLE people(uid INTEGER, age INTEGER)", PEOPLE) as made:
        yield made


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (NUMERIC, (Decimal("1.50"), Decimal("1.5"), Decimal("1.500"))),
        (FLOAT8, (0.0, -0.0)),
        (TEXT, ("1", "1 ")),
    ],
)
def test_equal_parameters_that_look_different_stay_apart(
    engine: Engine, type_: SqlType, values: tuple[Value, ...]
) -> None:
    """Another user's 1.5 is not shown as 1.50, because somebody asked for that before."""
    made = [engine.preparer.ready("ann", "SELECT $1 AS x", 0, Settings(), ((type_, value),)) for value in values]
    assert len({id(ready) for ready in made}) == len(values)


def test_the_same_statement_is_compiled_once(engine: Engine) -> None:
    text, given = "SELECT COUNT(*) FROM people WHERE age > $1", ((INT8, 3),)
    first, second = (engine.preparer.ready("ann", text, 0, Settings(), given) for _ in range(2))
    assert first is second
    for settings in (
        Settings(epsilon=Decimal("0.5")),
        Settings(max_rows_per_group=1),
        Settings(reuse_error=Decimal(1)),
    ):
        assert engine.preparer.ready("ann", text, 0, settings, given) is not first
