"""What can be asked, as `dpsql.columns` tells it: tables, columns, bounds, values. Free, and from the policy only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpsql.shell.connection import Connection
from dpsql.shell.results import Row

QUERY = """SELECT table_name, column_name, data_type, is_public, is_unit, lower, upper, value_list, can_be_null,
       refers_to
FROM dpsql.columns"""


_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Field:
    """A column as the policy declares it; None for what it does not declare."""

    name: str
    type: str
    is_unit: bool
    lower: str | None
    upper: str | None
    values: str | None
    nullable: bool
    refers_to: str | None

    @property
    def bounds(self) -> str:
        """The declared values or bounds, in words."""
        if self.values is not None:
            listed = self.values.split(", ")
            more = ", ..." if len(listed) > _MOST_SHOWN else ""
            return f"one of {', '.join(listed[:_MOST_SHOWN])}{more}"
        if self.lower is None and self.upper is None:
            return "true or false" if self.type == "boolean" else ""
        return f"{_whole(self.lower)} to {_whole(self.upper)}"


def _whole(bound: str | None) -> str:
    return "" if bound is None else bound.removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view that statements may name."""

    name: str
    public: bool
    fields: tuple[Field, ...]

    @property
    def unit(self) -> str | None:
        return next((field.name for field in self.fields if field.is_unit), None)


def read_tables(connection: Connection) -> tuple[Table, ...]:
    """All tables, by name. Raises what the connection raises."""
    rows = connection.run(QUERY).rows
    names = sorted({str(row[0]) for row in rows})
    return tuple(_table(name, [row for row in rows if row[0] == name]) for name in names)


def _table(name: str, rows: list[Row]) -> Table:
    return Table(name, all(bool(row[3]) for row in rows), tuple(_fields(rows)))


def _fields(rows: list[Row]) -> Iterator[Field]:
    for row in rows:
        name, type_, is_unit, nullable = str(row[1]), str(row[2]), bool(row[4]), bool(row[8])
        lower, upper, values, refers = (None if row[i] is None else str(row[i]) for i in (5, 6, 7, 9))
        yield Field(name, type_, is_unit, lower, upper, values, nullable, refers)
