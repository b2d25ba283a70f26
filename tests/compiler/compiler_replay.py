"""The replay of neighbours: one statement, on a database and on the same without one privacy unit.

`violations` runs every release of a compiled statement on a `Site` and on its neighbours and says, in words, where the
exact integers move by more than was declared, where a key lies outside the domain, or where the backend fails. It
never looks at how the SQL is made: only text, integers and declared sensitivities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from compiler_sites import NOBODY, Site
from compiler_statements import Statement

from dpsql.compiler import Compiled, compile_statement
from dpsql.compiler.algebra import Scalar
from dpsql.compiler.emit import DIALECTS, Dialect, emit
from dpsql.compiler.emit.release import CANDIDATES
from dpsql.compiler.plan import PlannedRelease, with_released_keys
from dpsql.compiler.walk import expressions, parts
from dpsql.dp.selection import weight, weight_sensitivity
from dpsql.dp.sensitivity import L1, L2, Sensitivity
from dpsql.errors import Failed
from dpsql.types import Column, ExactCells, Kind, Relation, SqlType, Value

Cells = Mapping[tuple[str, ...], tuple[int, ...]]


def compiled_on(site: Site, statement: Statement) -> Compiled:
    terms, parameters = statement.terms, statement.parameters
    return compile_statement(statement.text, site.schema, terms, parameters=parameters, now=datetime(2020, 2, 14, 10))


def spoken(site: Site) -> Dialect:
    """The dialect of a site's backend, as an engine speaks it."""
    return DIALECTS[site.backend.dialect]


def runnable(compiled: Compiled, dialect: Dialect) -> Iterator[tuple[PlannedRelease, str]]:
    """Every release that adds up cells, with its SQL; made-up rows stand for the relations released before it.

    The vectors are those of all groups: which of them are candidates hangs on other units, and it is the vector before
    any is left out whose movement is declared (`test_compiler_candidates` is about what is left out).
    """
    derived = made_up(compiled)
    for planned in compiled.releases:
        if planned.has_cells:
            release = with_released_keys(planned, derived)
            yield release, emit(release, dialect, derived).replace(CANDIDATES, "")


def violations(site: Site, compiled: Compiled, names: tuple[str, ...] | None = None) -> Iterator[str]:
    """Every way in which the statement breaks its promise on this site."""
    for release, sql in runnable(compiled, spoken(site)):
        try:
            whole = cells(site.fetch(sql, len(release.keys)))
            yield from _outside(release, whole)
            for name in names or tuple(site.around):
                there = cells(site.fetch(sql, len(release.keys), name))
                yield from _outside(release, there)
                yield from (f"{name}: {problem}" for problem in _moved(release, whole, there, name))
        except Failed as error:
            yield f"backend failure {error.cause}: {sql}"


def integers(site: Site, compiled: Compiled, name: str | None = None) -> list[Cells]:
    """The exact cells of all releases, by key."""
    return [cells(site.fetch(sql, len(release.keys), name)) for release, sql in runnable(compiled, spoken(site))]


def cells(found: ExactCells) -> Cells:
    """By key. Keys are texts: NaN is itself there, and equal decimals are one."""
    made = {tuple(map(_key_text, key)): values for key, values in zip(found.keys, found.cells, strict=True)}
    if len(made) != len(found.keys):
        raise Failed("a key comes twice")
    return made


def _key_text(value: Value) -> str:
    """Decimals without trailing zeros, and whole floats like integers, whatever the backend's driver makes."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value.is_finite() else str(value)
    return repr(value)


def _outside(release: PlannedRelease, found: Cells) -> Iterator[str]:
    """Public keys are indices of the domain."""
    for key in found:
        for value, declared in zip(key, release.keys, strict=True):
            if declared.domain is not None and not (value.isdigit() and int(value) < declared.domain.size):
                yield f"key {key} lies outside the domain of {declared.name}"


def _moved(release: PlannedRelease, whole: Cells, there: Cells, name: str) -> Iterator[str]:
    """The difference vectors against the declared sensitivities."""
    zeros = (0,) * (len(release.measurements) + (release.selection is not None))
    keys = whole.keys() | there.keys()
    differences = [[a - b for a, b in zip(whole.get(k, zeros), there.get(k, zeros), strict=True)] for k in keys]
    for index, m in enumerate(release.measurements):
        yield from _too_far(m.name, [d[index] for d in differences], m.sensitivity, name)
    if release.selection is not None:
        moved = [d[-1] for d in differences]
        groups, norm = release.bound.groups, release.norm
        yield from _too_far("w", moved, weight_sensitivity(groups, norm), name)
        touched = sum(1 for d in moved if d)
        most = weight(max(touched, 1), groups, norm)
        if touched > release.selection.cap:
            yield f"w moves in {touched} groups, the cap is {release.selection.cap}"
        if any(d > most or d < 0 for d in moved):
            yield f"w moves by {max(moved)} in {touched} groups, at most {most} was counted on"


def _too_far(what: str, moved: list[int], declared: Sensitivity, name: str) -> Iterator[str]:
    if name == NOBODY and any(moved):
        yield f"{what} counts rows of nobody"
    match declared:
        case L1(bound=bound):
            norm, limit = sum(map(abs, moved)), bound
        case L2(squared=squared):
            norm, limit = sum(d * d for d in moved), squared
    if norm > limit:
        yield f"{what} moves by {norm}, declared {declared}"


def made_up(compiled: Compiled) -> dict[int, Relation]:
    """Public rows of the right types, in place of releases that were not run: one row where a single value is read."""
    exprs = (part for r in compiled.releases for expr in expressions(r.aggregation) for part in parts(expr))
    single = {part.rows for part in exprs if isinstance(part, Scalar)}
    return {
        index: _rows(remainder.columns, 1 if index in single else 3) for index, remainder in enumerate(compiled.derived)
    }


def _rows(columns: tuple[Column, ...], count: int) -> Relation:
    return Relation(columns, tuple(tuple(_value(c.type, seed) for c in columns) for seed in range(count)))


def _value(type_: SqlType, seed: int) -> Value:
    match type_.kind:
        case Kind.BOOL:
            return seed != 1
        case Kind.INT2 | Kind.INT4 | Kind.INT8:
            return 3 + seed
        case Kind.NUMERIC:
            return Decimal("20.5") / (1 + seed)
        case Kind.FLOAT4 | Kind.FLOAT8:
            return 20.5 - seed
        case Kind.DATE:
            return date(2020 - seed, 2, 3)
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return datetime(2020 - seed, 2, 1)
        case Kind.UUID:
            return UUID(int=seed)
        case _:
            return ("zoo", "t1", None)[seed]
