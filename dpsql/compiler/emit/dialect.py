"""What differs between backends, as a table of forms that each fills in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dpsql.types import SqlType

LONGEST_FOLDED = 10_000_000
"""Characters. A collation's own folding fails where a result passes a gigabyte; ICU takes two bytes a letter more."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between backends. `read`: a stored column as the algebra sees it.

    `rounded`: a float to the nearest whole one, halves to even, as Postgres rounds floats.
    `folding`: the collation in which text changes case, where it is not the one that text has.
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
    folding: str | None = None

    def folded(self, text: str) -> str:
        """A text whose case is to be changed, or not told: cut, as letters may take more room in the other case."""
        return text if self.folding is None else f'(LEFT({text}, {LONGEST_FOLDED}) COLLATE pg_catalog."{self.folding}")'


def local_timestamp(name: str) -> str:
    """A stored timestamp with time zone as a local one, clamped first so that the conversion cannot fail."""
    low, high = "TIMESTAMPTZ '1000-01-02 00:00:00+00'", "TIMESTAMPTZ '9990-12-30 00:00:00+00'"
    clamped = f"CASE WHEN {name} > {high} THEN {high} WHEN {name} < {low} THEN {low} ELSE {name} END"
    return f"CAST({clamped} AS TIMESTAMP)"
