"""What differs between backends, as a table of forms that each fills in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dpsql.types import SqlType


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between backends. `read`: a stored column as the algebra sees it.

    `rounded`: a float to the nearest whole one, halves to even, as Postgres rounds floats.
    """

    name: Literal["duckdb", "postgres"]
    double: str
    wide: str
    row_id: str
    schema: str
    is_nan: Callable[[str], str]
    read: Callable[[str, SqlType], str]
    whole_division: Callable[[str, str], str]
    binned: Callable[[str, str, str], str]
    rounded: Callable[[str], str]
    seconds_after: Callable[[str, str], str]
    canonical_number: Callable[[str, SqlType], str]


def local_timestamp(name: str) -> str:
    """A stored timestamp with time zone as a local one, clamped first so that the conversion cannot fail."""
    low, high = "TIMESTAMPTZ '1000-01-02 00:00:00+00'", "TIMESTAMPTZ '9990-12-30 00:00:00+00'"
    clamped = f"CASE WHEN {name} > {high} THEN {high} WHEN {name} < {low} THEN {low} ELSE {name} END"
    return f"CAST({clamped} AS TIMESTAMP)"
