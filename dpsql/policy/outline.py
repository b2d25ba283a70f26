"""What a draft is made from: a source's tables, as its catalog has them. Holds no data values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsql.types import TableFacts


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` of `table` name the row of `parent` whose `parent_columns` are equal, in this order."""

    table: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """All tables of a source by name, in the catalog's order, and the foreign keys between them."""

    tables: Mapping[str, TableFacts]
    foreign_keys: tuple[ForeignKey, ...] = ()
