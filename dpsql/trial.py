"""A trial of a statement's remainder before anything is debited: what its text alone makes fail is refused for nothing.

Decides which failures are certain. The remainder, and what must be computed before a release, run over made-up rows:
once over a row of NULLs, which make nothing fail but what stands there as a constant (`'x'::interval`, `1 / 0`), and
once over rows of ordinary values. What fails in both runs, in the same way, is refused as Postgres would when it plans;
what fails in one only may succeed on the true rows. Released rows are never read here, and what passes is decided from
text, policy and public tables alone. A statement that the engine does not understand fails here too, before its price.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal

from dpsql.compiler import Compiled
from dpsql.compiler.public import Remainder
from dpsql.errors import CANCELLED, Rejected
from dpsql.remainder import Pool
from dpsql.types import Column, Kind, Relation, Value

_SECONDS = 1.0
"""Longer trials prove nothing: what is slow is left to the statement's own time."""
_ORDINARY: dict[Kind, tuple[Value, ...]] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), (3, 7, 11)),
    **dict.fromkeys((Kind.FLOAT4, Kind.FLOAT8), (3.0, 7.0, 11.0)),
    Kind.NUMERIC: (Decimal(3), Decimal(7), Decimal(11)),
    Kind.BOOL: (True, False, True),
    Kind.TEXT: ("3", "7", "11"),
    Kind.DATE: (date(2020, 1, 3), date(2020, 2, 7), date(2021, 3, 11)),
    Kind.TIMESTAMP: (datetime(2020, 1, 3), datetime(2020, 2, 7), datetime(2021, 3, 11)),
}
_NULLS: tuple[Value, ...] = (None,)
_UNKNOWN: tuple[Value, ...] = (None, None, None)


def tried(compiled: Compiled, pool: Pool) -> None:
    """Raises Rejected with the failure's own SQLSTATE; Failed where the engine cannot run the remainder at all."""
    if not compiled.releases:
        return
    columns = {f"_{release.id}": release.columns for release in compiled.releases}
    for remainder in (*(compiled.derived[i] for i in _needed(compiled)), compiled.remainder):
        first = _failure(remainder, _made(columns, _nulls), pool)
        if first is None:
            continue
        second = _failure(remainder, _made(columns, _ordinary), pool)
        if second is not None and second.sqlstate == first.sqlstate:
            raise first


def _needed(compiled: Compiled) -> list[int]:
    return sorted({index for release in compiled.releases for index in release.aggregation.depends_on})


def _made(
    columns: Mapping[str, tuple[Column, ...]], rows: Callable[[Column], tuple[Value, ...]]
) -> dict[str, Relation]:
    return {name: Relation(each, tuple(zip(*map(rows, each), strict=True))) for name, each in columns.items()}


def _nulls(_column: Column) -> tuple[Value, ...]:
    return _NULLS


def _ordinary(column: Column) -> tuple[Value, ...]:
    return _ORDINARY.get(column.type.kind, _UNKNOWN)


def _failure(remainder: Remainder, inputs: Mapping[str, Relation], pool: Pool) -> Rejected | None:
    try:
        pool.run(remainder, inputs, _SECONDS)
    except Rejected as error:
        return None if error.sqlstate == CANCELLED else error
    return None
