"""What a statement brought back, whichever way it went, and which of its columns are error bars of others.

Decides the pairing of error bars by name: trailing pairs `<name>_low`, `<name>_high` belong to an earlier column of
that name. It is how the setting dpsql.error_bars sends them, and how a careful statement names its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal

from dpsql.pgwire.values import WireValue
from dpsql.types import SqlType

LOW, HIGH = "_low", "_high"

Row = tuple[WireValue, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One statement's outcome: its columns and rows (none for SET and the like), its tag and its notices.

    `copied` are the bytes of COPY ... TO STDOUT.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    tag: str
    notices: tuple[str, ...]
    types: tuple[SqlType, ...] = ()
    copied: bytes = b""


@dataclass(frozen=True, slots=True)
class Bar:
    """The ends of a column's 95 % interval, as places in the row."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A column to show: its place in the row, and its error bar if it has one."""

    name: str
    place: int
    bar: Bar | None = None


def shown(columns: tuple[str, ...]) -> tuple[Shown, ...]:
    """The columns without those that are error bars of others."""
    first = len(columns)
    while first >= 3 and _is_pair(columns, first - 2):
        first -= 2
    bars: dict[int, Bar] = {}
    for low in range(first, len(columns), 2):
        name = columns[low].removesuffix(LOW)
        owner = next((i for i in range(first) if columns[i] == name and i not in bars), None)
        if owner is None:
            return tuple(Shown(name, place) for place, name in enumerate(columns))
        bars[owner] = Bar(low, low + 1)
    return tuple(Shown(columns[place], place, bars.get(place)) for place in range(first))


def _is_pair(columns: tuple[str, ...], at: int) -> bool:
    low, high = columns[at : at + 2]
    name = low.removesuffix(LOW)
    return low == name + LOW and high == name + HIGH and name in columns[:at]


def without_empty_bars(result: Result) -> Result:
    """The result without the error bars that no row has: those of quantiles, say, which depend on the data."""
    bars = [column.bar for column in shown(result.columns) if column.bar is not None]
    empty = {end for b in bars for end in (b.low, b.high) if all(row[b.low] is None for row in result.rows)}
    kept = [place for place in range(len(result.columns)) if place not in empty]
    return replace(
        result,
        columns=tuple(result.columns[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in result.rows),
        types=tuple(result.types[place] for place in kept),
    )


def interval(row: Row, column: Shown) -> tuple[float, float] | None:
    """The ends of a value's interval, where it has one."""
    if column.bar is None:
        return None
    low, high = number(row[column.bar.low]), number(row[column.bar.high])
    return None if low is None or high is None else (low, high)


def number(value: WireValue) -> float | None:
    """A value as a float, None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return float(value)
