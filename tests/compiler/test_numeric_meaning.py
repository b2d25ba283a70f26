"""Numbers over private rows mean what Postgres means by them: exact decimals, its casts, roundings and result types.

Each expression of `meaning.txt` is counted by the emitted SQL of both backends and by Postgres itself, on rows full of
ties, ends of types and values that no declaration allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from compiler_meaning import ONE, TERMS, Worlds, worlds

from dpsql.compiler import compile_statement, domains, exact
from dpsql.compiler.algebra import Expr, Lit
from dpsql.compiler.bind import numbers
from dpsql.compiler.emit import DIALECTS, common, decimals
from dpsql.compiler.emit.common import Emitter
from dpsql.errors import Failed, Rejected
from dpsql.types import NUMERIC, Value

CONDITIONS = tuple(
    line for line in Path(__file__).with_name("meaning.txt").read_text(encoding="utf-8").splitlines() if line
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, postgres_uri: str) -> Iterator[Worlds]:
    with worlds(tmp_path_factory.mktemp("meaning"), postgres_uri) as made:
        yield made


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory, postgres_uri: str) -> Iterator[Worlds]:
    """The same rows, each of its own person."""
    with worlds(tmp_path_factory.mktemp("owned"), postgres_uri, unit="id") as made:
        yield made


def counted(world: Worlds, condition: str) -> bool:
    """Whether both backends count what Postgres counts."""
    ((said,),) = world.said(f"SELECT COUNT(*) FROM t WHERE {condition}")
    return world.count(condition) == said


def _by_key(rows: list[tuple[Value, ...]]) -> dict[Value, Value]:
    return {row[0]: row[1] for row in rows}


def test_there_are_enough() -> None:
    assert len(set(CONDITIONS)) == len(CONDITIONS) >= 200


@pytest.mark.parametrize("condition", CONDITIONS)
def test_condition(world: Worlds, condition: str) -> None:
    assert counted(world, condition)


KEYS = (
    "FLOOR(y * 0.29 * 100)", "FLOOR(a * 0.29 * 100)", "CEIL(y * 1.1)", "ROUND(y * 0.5)", "ROUND(y * 0.25, 1)",
    "TRUNC(y * 0.35, 1)", "ROUND(a, -1)", "ROUND(y, -1)", "FLOOR(y / 0.3)", "FLOOR(y / 7.0)", "FLOOR(a / 0.7) * 7",
    "FLOOR(y::float8 * 0.29 * 100)", "CEIL(y::float8 * 0.1 * 3)", "ROUND(y::float8 / 2)", "FLOOR(y::real / 3::real)",
    "(y * 0.5)::int", "(a * 0.5)::int", "(y::float8 / 2)::int", "FLOOR(y::float8 * 1.1 * 1.1)",
    "FLOOR(-y * 0.29 * 100)", "FLOOR(EXTRACT(month FROM day) * 0.29 * 100)", "EXTRACT(month FROM day) / 4",
    "ROUND(EXTRACT(day FROM day) / 10)", "FLOOR(y::float8 / 0.1)", "ROUND((y::float8 * 0.57)::numeric, 1)",
    "FLOOR((y * 0.1)::float8 * 10)", "SIGN(y * 0.1)", "width_bucket(a, 0, 10, 7)", "width_bucket(y, 0, 0.7, 7)",
)  # fmt: skip
WITHIN = "a BETWEEN -100 AND 1000 AND y BETWEEN -20 AND 100 AND day >= '2020-01-01'"


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_those_of_postgres_and_no_row_is_lost(world: Worlds, key: str) -> None:
    """A derived domain holds every value that the emitted expression can give, as it is computed."""
    said = _by_key(world.said(f"SELECT {key}, COUNT(*)::int FROM t WHERE {WITHIN} GROUP BY 1"))
    found = world.cells(f"SELECT {key}, COUNT(*) FROM t WHERE {WITHIN} GROUP BY 1")
    assert {value: count // ONE for (value,), (count, *_) in found.items() if count} == said


PRIVATE = (
    "a * 0.1",
    "a * r",
    "r * r * r",
    "d * p",
    "y * 0.1 + a",
    "a / 100",
    "ROUND(w, 2)",
    "w",
    "COALESCE(a * 0.1, r)",
)


@pytest.mark.parametrize("key", PRIVATE)
def test_private_keys_are_exact(world: Worlds, key: str) -> None:
    said = _by_key(world.said(f"SELECT {key}, COUNT(*)::int FROM t WHERE a < 1e9 GROUP BY 1"))
    found = world.cells(f"SELECT {key}, COUNT(*) FROM t WHERE a < 1e9 GROUP BY 1")
    assert {value: count // ONE for (value,), (count, *_) in found.items()} == said


def _within(column: str, low: int, high: int) -> str:
    return f"(CASE WHEN {column} > {high} THEN {high} WHEN {column} < {low} THEN {low} ELSE {column} END)"


_D, _P, _FAR = _within("d", 0, 100000), _within("p", 0, 1), _within("far", -1000, 1000)
MEASURED = {
    "a": "a", "a * 0.1": "a * 0.1", "y * 0.1": "y * 0.1", "d": "d", "a / 100": "a / 100",
    "d * (1 - p)": f"{_D} * (1 - {_P})", "d * (1 - p) * (1 + p)": f"{_D} * (1 - {_P}) * (1 + {_P})",
    "far * far + 4": f"{_FAR} * {_FAR} + 4.0",
    "CASE WHEN y > 3 THEN d * p ELSE 0 END": f"CASE WHEN y > 3 THEN {_D} * {_P} ELSE 0 END",
    "d * 1000000": f"{_D} * 1000000", "d * p * p * p": f"{_D} * {_P} * {_P} * {_P}",
    "far * far * far": f"{_FAR} ^ 3.0",
}  # fmt: skip


@pytest.mark.parametrize("argument", MEASURED)
def test_sums_are_exact_on_their_grid(world: Worlds, argument: str) -> None:
    """Each value to the nearest step of its grid, halves upward: no binary float takes part."""
    ((total,),) = world.cells(f"SELECT SUM({argument}) FROM t").values()
    grid = world.releases(f"SELECT SUM({argument}) FROM t")[0][0].measurements[0].cell.grid
    assert grid is not None
    clamped = MEASURED[argument]
    steps = f"FLOOR(({clamped}) * {grid.resolution.denominator}::numeric / {grid.resolution.numerator} + 0.5)"
    within = f"CASE WHEN ({clamped}) IS NOT NULL THEN LEAST(GREATEST({steps}, {grid.low}), {grid.high}) END"
    assert world.said(f"SELECT SUM({within})::bigint FROM t") == [(total,)]


INNER = "SELECT id, SUM(a) AS s, MIN(a * 0.1) * 10 AS m, AVG(a) AS v, SUM(a * r) AS p FROM t GROUP BY id"


INNER_CONDITIONS = ("s * 100 = (s * 100)::int", "m = s", "v = s", "s - m = 0", "p < 0.1 * s", "s * 0.1 = m / 10")


@pytest.mark.parametrize("condition", INNER_CONDITIONS)
def test_inner_sums_are_exact(owned: Worlds, condition: str) -> None:
    ((said,),) = owned.said(f"SELECT COUNT(*) FROM ({INNER}) q WHERE {condition}")
    ((count,),) = owned.cells(f"SELECT COUNT(*) FROM ({INNER}) q WHERE {condition}").values()
    assert said
    assert (count,) == (said * ONE,)  # type: ignore[operator]


TYPES = {
    "sign(y)": "double precision", "sign(a)": "numeric", "sign(f)": "double precision",
    "round(y)": "double precision", "round(y, 1)": "numeric", "round(a)": "numeric",
    "round(EXTRACT(month FROM day), 1)": "numeric", "sign(EXTRACT(month FROM day))": "numeric",
    "floor(y)": "double precision", "ceil(a)": "numeric", "trunc(y, 1)": "numeric", "trunc(f)": "double precision",
    "y * 0.1": "numeric", "y * 0.1::real": "double precision", "g * g": "real", "g * y": "double precision",
    "g * a": "double precision", "COALESCE(g, 0.1)": "real", "COALESCE(y, 0.1)": "numeric", "a / y": "numeric",
    "y / s": "integer", "-g": "real",
}  # fmt: skip


@pytest.mark.parametrize("expression", TYPES)
def test_types_are_those_of_postgres(world: Worlds, expression: str) -> None:
    ((said,),) = world.said(f"SELECT pg_typeof({expression})::text FROM t LIMIT 1")
    assert said == TYPES[expression]
    (release, _, _), *_ = world.releases(f"SELECT {expression}, COUNT(*) FROM t GROUP BY 1")
    assert str(release.keys[0].expr.type).split("(")[0] == said


HOSTILE = (
    "w * w * w > 0", "w * w * w * w * w * w * w * w * w > 1", "power(w, 8) * power(w, 8) > 0",
    "big * big * big * big > 5", "big * big * big * big * big * big + big > 0", "w / w = 1", "1 / w > 0",
    "w / 0.0000000001 > 1", "f::numeric * w > 1", "f::numeric * 0.001 > 1", "f::real * f::real > 1",
    "(f * f)::real > 1", "g * g * g * g > 1", "g / f > 1", "w::bigint > 0", "w::smallint > 0", "f::smallint > 0",
    "f::bigint > 0", "round(w, 15) > 1", "round(w, -15) > 1", "trunc(w, -9) = 0", "w * 1e30 > 1", "w + 1e-30 > 0",
    "f * 1e30 > 1", "a IN (1e30, 1e-30)", "w::numeric(38,15) > 1", "f::numeric(38,15) > 1", "w - f > 0",
    "d * d * d * d * d > 0", "r * r * r * r * r * r * r * r > 0", "big * 0.1 * 0.1 * 0.1 > 0", "f / 0.1 > 2",
    "width_bucket(w, 0, 10, 5) = 2", "width_bucket(f, 0, 10, 5) = 2", "least(w, f, big) > 0",
    "coalesce(w * w * w, 1) > 0",
)  # fmt: skip


@pytest.mark.parametrize("condition", HOSTILE)
def test_no_row_raises_an_error(world: Worlds, condition: str) -> None:
    """Beyond what Postgres itself would hold, both backends agree all the same."""
    with suppress(Rejected):
        assert 0 <= world.count(condition) <= 331


Patch = pytest.MonkeyPatch


def _lost(world: Worlds, key: str) -> bool:
    found = world.cells(f"SELECT {key}, COUNT(*) FROM t WHERE y BETWEEN 1 AND 2 GROUP BY 1")
    said = world.said(f"SELECT COUNT(*)::int FROM t WHERE y BETWEEN 1 AND 2 AND ({key}) IS NOT NULL")
    return [(sum(cells[0] for cells in found.values()) // ONE,)] != said


def test_mutant_numerics_as_doubles(world: Worlds, monkeypatch: Patch) -> None:
    for module in (exact, numbers, common, decimals):
        monkeypatch.setattr(module, "scale_of", lambda expr: 0 if expr.type.is_integer else None)
    wrong = [c for c in ("y * 0.1 = 0.3", "a * 100 = (a * 100)::int") if not counted(world, c)]
    assert len(wrong) == 2


def test_no_row_of_a_float_is_lost(world: Worlds) -> None:
    for factor in range(1, 100):
        assert not _lost(world, f"FLOOR(y::float8 * 0.{factor:02} * 100)")


def test_mutant_ends_of_doubles_computed_exactly(world: Worlds, monkeypatch: Patch) -> None:
    monkeypatch.setattr(domains, "doubled", lambda domain: domain)
    assert _lost(world, "FLOOR(y::float8 * 0.29 * 100)")


def test_mutant_narrow_products(world: Worlds, monkeypatch: Patch) -> None:
    monkeypatch.setattr(decimals, "_factor", lambda emitter, sql, expr, made: sql)
    with pytest.raises(Failed):
        world.count("d * p > 12.34")


def test_mutant_floats_rounded_away_from_zero(world: Worlds, monkeypatch: Patch) -> None:
    for name, dialect in list(DIALECTS.items()):
        away = replace(dialect, rounded=lambda x: f"(SIGN({x}) * FLOOR(ABS({x}) + 0.5))")
        monkeypatch.setitem(DIALECTS, name, away)
    assert not counted(world, "round(f) = -2")


def test_mutant_decimals_rounded_to_even(world: Worlds, monkeypatch: Patch) -> None:
    def even(emitter: Emitter, inner: Expr, limit: int) -> str:
        return f"CAST({emitter.dialect.rounded(emitter.as_double(inner))} AS BIGINT)"

    monkeypatch.setattr(decimals, "whole", even)
    assert not counted(world, "(y * 0.5)::int = 3")


def test_mutant_all_digits_of_a_float(world: Worlds, monkeypatch: Patch) -> None:
    monkeypatch.setattr(decimals, "LEADING", dict.fromkeys(exact.LEADING, 17))
    with pytest.raises(AssertionError):
        assert counted(world, "f::numeric = 0.3")


def test_the_reciprocal_is_exact() -> None:
    for text, wanted in (("100", "0.01"), ("0.1", "10"), ("8", "0.125"), ("0.5", "2"), ("-4", "-0.25")):
        found = exact.reciprocal(Lit(Decimal(text), NUMERIC))
        assert found == Decimal(wanted)
        assert 1 / Fraction(Decimal(text)) == Fraction(Decimal(wanted))
    for text in ("3", "0", "60", "0.7", "1e13"):
        assert exact.reciprocal(Lit(Decimal(text), NUMERIC)) is None


def test_too_large_integers_are_read_within_their_type(world: Worlds) -> None:
    """A product that BIGINT cannot hold is an error in Postgres; small declared columns are summed all the same."""
    for _, _, schema in world.backends:
        assert compile_statement(
            "SELECT SUM(far * far * far + 4), AVG(far * far * 3 - far) FROM t", schema, TERMS
        ).releases
