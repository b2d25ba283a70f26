"""Conditions as sets, against what a database says of each value; shapes as text; wrong derivations; errors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_cases import Shop, opened, write

from dpsql.compiler.cells import ONE as STEPS_OF_A_ROW
from dpsql.replay.derive import choose, reading
from dpsql.replay.recipe import ONE, Axis, Kin, Measured, Role, Shape, decoded, encoded
from dpsql.replay.sets import Set, common, packed, size, union, unpacked, within, without
from dpsql.types import Settings

ENDS = st.integers(-20, 20)
SETS = st.lists(st.tuples(ENDS, ENDS), max_size=5).map(union)
PLACES = range(-22, 23)


def members(a: Set) -> set[int]:
    return {place for place in PLACES if any(low <= place < high for low, high in a)}


@given(SETS, SETS)
def test_sets(a: Set, b: Set) -> None:
    assert members(union((*a, *b))) == members(a) | members(b)
    assert members(common(a, b)) == members(a) & members(b)
    assert members(without(a, b)) == members(a) - members(b)
    assert within(a, b) == (members(a) <= members(b))
    assert size(a) == len(members(a))
    assert union(a) == a


@given(st.lists(SETS.filter(bool), max_size=6))
def test_packed(cells: list[Set]) -> None:
    assert unpacked(packed(cells)) == tuple(cells)
    assert unpacked(packed([((Fraction(1, 3), 2),)])) == (((Fraction(1, 3), 2),),)


def test_packed_keys_are_short() -> None:
    assert packed([((place, place + 1),) for place in range(10_000)]) == [[0, 1, 10_000]]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with opened(write(tmp_path_factory.mktemp("axes"))) as shop:
        yield shop


CONDITIONS = (
    "hour < 5", "hour <= 5", "5 > hour", "hour > 5.5", "hour = 7", "hour <> 7", "hour IN (1, 2, 9)", "NOT hour < 5",
    "hour BETWEEN 3 AND 9", "hour NOT IN (3, 4)", "hour < 3 OR hour = 8", "hour IS NULL", "hour IS NOT NULL",
    "hour / 4 = 2", "hour + 3 >= 10", "FLOOR(hour / 5) >= 2", "hour = 99",
    "day < '2024-02-01'", "day <= '2024-02-01'", "day = '2024-02-29'", "day BETWEEN '2024-02-01' AND '2024-03-09'",
    "DATE_TRUNC('month', at) = TIMESTAMP '2024-03-01'", "DATE_TRUNC('week', at) < TIMESTAMP '2024-03-06'",
    "EXTRACT(year FROM day) > 2023", "at >= '2024-02-01' AND at < '2024-02-02 12:00'", "at > '2024-03-01 00:00:01'",
    "CAST(at AS DATE) = DATE '2024-05-05'",
    "shop = 'zoo'", "shop <> 'zoo'", "shop > 'books'", "shop IN ('zoo', 'none')", "NOT shop = 'cafe'",
    "note = 2 OR note IS NULL", "note IS NOT NULL", "NOT note IN (1, 2)", "note > 2",
)  # fmt: skip
DAY = date(2024, 1, 1)
VALUES: dict[str, list[object]] = {
    "hour": [*range(24), None],
    "day": [DAY + timedelta(i) for i in range(366)],
    "at": [datetime(2024, 1, 1) + timedelta(hours=i * 7, seconds=i % 3) for i in range(1200)],
    "shop": ["books", "cafe", "zoo"],
    "note": [1, 2, 3, 4, None],
}


def position(column: str, value: object) -> int:
    """Where the axis of the column has the value."""
    if value is None:
        return 2**100
    if isinstance(value, date):
        at = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    return value if isinstance(value, int) else VALUES[column].index(value)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions(shop: Shop, condition: str) -> None:
    """The set holds just the values for which the database says that the condition is true."""
    text = f"SELECT COUNT(*) FROM visits WHERE {condition}"
    ready = shop.engine.preparer.ready("alice", text, 0, Settings(), ())
    (axis,) = ready.shapes["r0"].axes
    column = next(name for name in VALUES if name in condition)
    with closing(duckdb.connect()) as connection:
        name = "moment" if column == "at" else column
        connection.execute(f"CREATE TABLE v ({name} {_TYPES[column]})")
        connection.executemany("INSERT INTO v VALUES (?)", [(value,) for value in VALUES[column]])
        asked = re.sub(r"\bat\b", "moment", condition).replace("/", "//")
        true = {row[0] for row in connection.execute(f"SELECT {name} FROM v WHERE {asked}").fetchall()}
    (cell,) = axis.cells
    for value in VALUES[column]:
        at = position(column, value)
        assert (value in true) == any(low <= at < high for low, high in cell), value


_TYPES = {"hour": "INTEGER", "day": "DATE", "at": "TIMESTAMP", "shop": "TEXT", "note": "INTEGER"}


def test_what_is_not_understood_is_part_of_what_is_measured(shop: Shop) -> None:
    families = set()
    for condition in ("tag = 't1'", "shop LIKE 'z%'", "hour = price", "TRUE"):
        ready = shop.engine.preparer.ready("alice", f"SELECT COUNT(*) FROM visits WHERE {condition}", 0, Settings(), ())
        families.add(ready.shapes["r0"].family)
    assert len(families) == 4


OWN = (
    "ABS(hour) >= 3", "ABS(hour) = 99", "NOT ABS(hour) = 3", "hour % 5 <> 2",  # values beyond the bounds have no place
    "hour > 3.00000000000000000001", "hour / 7.0 < 0.33333333333333334", "hour = 1e20",  # what doubles make of them
    "EXTRACT(year FROM day) >= 0",
)  # fmt: skip


@pytest.mark.parametrize("condition", OWN)
def test_what_no_set_says_is_part_of_what_is_measured(shop: Shop, condition: str) -> None:
    plain, own = (
        shop.engine.preparer.ready("alice", f"SELECT COUNT(*) FROM visits WHERE {part}", 0, Settings(), ()).shapes["r0"]
        for part in ("TRUE", condition)
    )
    assert own.family != plain.family
    assert own.axes == ()


def test_a_release_of_no_key_has_no_shape(shop: Shop) -> None:
    text = "SELECT shop, COUNT(*) FROM visits WHERE shop = 'none' GROUP BY 1"
    assert not shop.engine.preparer.ready("alice", text, 0, Settings(), ()).shapes


def test_shapes_as_text(shop: Shop) -> None:
    text = "SELECT shop, AVG(price), COUNT(*) FROM visits WHERE hour < 5 AND note = 1 GROUP BY shop"
    shape = shop.engine.preparer.ready("alice", text, 0, Settings(), ()).shapes["r0"]
    assert decoded(encoded(shape), shape.family) == shape


def test_a_step_is_a_step() -> None:
    assert ONE == STEPS_OF_A_ROW


# Deliberately wrong derivations ---------------------------------------------------------------------------------------


def measured(clip: str = "", *, text: str = "m", alone: bool = True, summable: bool = True) -> Measured:
    return Measured(text, clip, alone, summable, gaussian=True, variance=1.0)


def shape(*cells: tuple[int, int], of: Measured | None = None, epsilon: int = 1) -> Shape:
    return Shape(
        "f", (Axis("x", ((0, 100),), tuple((cell,) for cell in cells)),), (of or measured(),), Decimal(epsilon)
    )


def chosen(asked: Shape, *stored: Shape, error: float = 3.0) -> list[int]:
    """Which of the stored ones answer, from the best on."""
    return [made.source for made in choose(Kin(asked, (error**2,)), list(enumerate(stored)))]


def test_clipping_must_be_the_same() -> None:
    free, one, norm = measured(), measured("single"), measured("of these", alone=False)
    for clip in (free, one, norm):
        for other in (free, one, norm):
            assert chosen(shape((0, 20), of=clip), shape((0, 20), of=other)) == ([0] if clip == other else [])
    assert chosen(shape((0, 50), of=one), shape((0, 20), (20, 50), of=one)) == [0]


def test_one_release_only() -> None:
    assert chosen(shape((0, 50)), shape((0, 20)), shape((20, 50))) == []
    assert chosen(shape((0, 20)), shape((0, 50)), shape((20, 50))) == []
    assert chosen(shape((0, 50)), shape((0, 20), (20, 50))) == [0]


def test_distinct_counts_are_not_added() -> None:
    parts = measured(summable=False)
    assert chosen(shape((0, 50), of=measured(summable=True)), shape((0, 20), (20, 50), of=parts)) == []
    assert chosen(shape((0, 20), of=measured(summable=True)), shape((0, 20), (20, 50), of=parts)) == [0]


def test_counts_and_moments_where_a_unit_has_one_group() -> None:
    """A fresh COUNT clamps before it takes a norm, a moment does not; a sum is clipped by what it adds up to."""
    for clip, alone, roles in (("", True, "count n sum x"), ("single", True, "count n"), ("norm", False, "")):
        count, n, total, x = (replace(measured(clip, text=r, alone=alone), role=r, of="v") for r in ROLES)
        for asked, stored in ((count, (n, x)), (n, (count, total)), (total, (n, x)), (x, (count, total))):
            assert (reading(asked, stored) is not None) == (asked.role in roles.split())
    assert reading(total, (n, x)) is None


def test_sums_on_other_grids_are_other_sums() -> None:
    count, n, total, x = (replace(measured(text=r), role=r, of="v") for r in ROLES)
    finer = replace(x, step=Fraction(1, 2))
    assert reading(total, (n, x)) is not None
    assert reading(total, (n, finer)) is None
    assert reading(finer, (count, total)) is None


ROLES: tuple[Role, ...] = ("count", "n", "sum", "x")


def test_the_best_within_the_limit_comes_first() -> None:
    tens = shape(*((10 * n, 10 * n + 10) for n in range(10)))
    halves = shape((0, 30), (30, 60), (60, 100))
    assert chosen(shape((0, 60)), tens, halves) == [1, 0]
    assert chosen(shape((0, 90)), tens) == [0]
    assert chosen(shape((0, 100)), tens) == []
    assert chosen(shape((0, 60), epsilon=2), tens, halves) == []
    (recipe,) = choose(Kin(shape((0, 60)), (9.0,)), [(5, halves)])
    assert recipe.stddevs() == ((math.sqrt(2),),)


def test_sums_of_laplace_noise_stay_within_their_interval() -> None:
    """Numerically: of one to nine equal or unequal Laplace cells, at most 5 % lie beyond 2.12 deviations."""
    random = numpy.random.default_rng(7)
    for weights in ([1.0], [1.0, 1.0], [1.0, 0.5], [1.0] * 3, [1.0] * 9, [1.0, 0.1, 0.1]):
        noise = random.laplace(size=(200_000, len(weights))) @ numpy.array(weights)
        deviation = math.sqrt(2 * sum(weight**2 for weight in weights))
        assert (abs(noise) > 2.12 * deviation).mean() < 0.05 + 0.0025


def test_errors_of_derived_answers(tmp_path: Path) -> None:
    """Their deviations from the truth have the variance announced: chi-square over 80 of them, alpha 1e-6."""
    with opened(write(tmp_path)) as shop:
        ages = [i * 7 % 100 for i in range(300)]
        shop.ask("SELECT age, COUNT(*) FROM people GROUP BY age", reuse_error=Decimal(0))
        total = 0.0
        for low in range(80):
            text = f"SELECT COUNT(*), dp_stddev(COUNT(*)) FROM people WHERE age = {low}"
            answer = shop.ask(text)
            assert answer.notices[-1].startswith("Derived")
            count, stddev = answer.relation.rows[0]
            assert isinstance(count, int)
            assert isinstance(stddev, float)
            total += ((count - sum(age == low for age in ages)) / stddev) ** 2
    assert 32 < total < 156
