"""What a draft is made from: a source's tables, as its catalog has them. Holds no data values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpsql.types import TableFacts, TableName


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` of `table` name the row of `parent` whose `parent_columns` are equal, in this order."""

    table: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """Which tables and views a source has, and its foreign keys: child, its columns, parent, the parent's columns."""

    tables: tuple[TableName, ...]
    foreign_keys: tuple[tuple[TableName, tuple[str, ...], TableName, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Outline:
    """All tables of a source by the names that a policy gives them, in the catalog's order, and their foreign keys.

    `sources`: where tables are whose name alone does not say it.
    """

    tables: Mapping[str, TableFacts]
    foreign_keys: tuple[ForeignKey, ...] = ()
    sources: Mapping[str, TableName] = field(default_factory=dict)
