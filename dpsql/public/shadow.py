"""What the public server holds of a policy, as SQL text: tables, keys, comments, views, the relations of `dpsql`.

Decides where a table lives and how it looks to a catalog. Pure. A private table is there as an empty shadow, with no
right but REFERENCES, which keeps it in `information_schema` and lets nobody read it: whatever an answer says, it
cannot depend on a shadow. Estimates of rows are what the policy says; nothing here comes from private data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsql.ledger.views import COLUMNS as LEDGER_COLUMNS
from dpsql.policy.model import UnitPath
from dpsql.policy.places import DEFAULT, OWN, place_of, search_path
from dpsql.policy.schema import Schema, SchemaColumn, SchemaTable
from dpsql.public import comments
from dpsql.public.declared import COLUMNS_OF_COLUMNS, column_rows
from dpsql.types import Column, TableName


@dataclass(frozen=True, slots=True)
class View:
    """A view of the policy. `text` None: not all that it reads may be seen, or it is no SQL of Postgres's."""

    name: str
    columns: tuple[Column, ...]
    text: str | None


@dataclass(frozen=True, slots=True)
class Reference:
    """A declared reference, as a foreign key. `exact`: the parent's columns are its key."""

    table: SchemaTable
    columns: tuple[str, ...]
    parent: SchemaTable
    parent_columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.table.name}_{'_'.join(self.columns)}_fkey"


def references(tables: Sequence[SchemaTable]) -> tuple[Reference, ...]:
    """Foreign keys whose parent is among the tables."""
    seen = {table.name: table for table in tables}
    found: list[Reference] = []
    for table in tables:
        if isinstance(table.unit, UnitPath) and table.unit.through in seen:
            on = table.unit.on
            found.append(Reference(table, tuple(on), seen[table.unit.through], tuple(on.values())))
        for column in table.columns:
            if column.references is not None and column.references[0] in seen:
                parent, key = column.references
                found.append(Reference(table, (column.name,), seen[parent], (key,)))
    return tuple(found)


# --- statements ----------------------------------------------------------------------------------------------------


def shadow_ddl(schema: Schema, tables: Sequence[SchemaTable]) -> tuple[str, ...]:
    """All schemas and tables, with rights and comments; public ones still without their rows and keys."""
    return (*_schemas(tables), *(line for table in tables for line in _table(schema, table)), *_own(schema, tables))


def key_ddl(tables: Sequence[SchemaTable]) -> tuple[str, ...]:
    """Keys and foreign keys, to be made once the rows are there. Postgres may refuse one: then it is not shown.

    A parent is unique in the columns that are referred to, by the backend's word; a declared reference of a public
    table is not checked.
    """
    keyed = {table.name: {table.key} for table in tables if table.key}
    lines = [_primary_key(table) for table in tables if table.key]
    for reference in references(tables):
        unique = keyed.setdefault(reference.parent.name, set())
        if reference.parent_columns not in unique:
            unique.add(reference.parent_columns)
            lines.append(f"ALTER TABLE {_at(reference.parent)} ADD UNIQUE ({_names(reference.parent_columns)})")
        lines.append(_foreign_key(reference))
    return tuple(lines)


def view_ddl(view: View, tables: Sequence[SchemaTable]) -> tuple[str | None, str]:
    """The view as the policy has it, and one with the same columns that reads nothing."""
    name = f"{quoted(DEFAULT)}.{quoted(view.name)}"
    empty = ", ".join(f"NULL::{column.type} AS {quoted(column.name)}" for column in view.columns)
    text = None if view.text is None else f"CREATE VIEW {name} AS {view.text.strip().rstrip(';')}"
    return text, f"CREATE VIEW {name} AS SELECT {empty} WHERE false"


def estimates(schema: Schema, tables: Sequence[SchemaTable]) -> tuple[str, ...]:
    """Estimated rows of the shadows, from the policy: none of the data's."""
    return tuple(
        "UPDATE pg_catalog.pg_class SET reltuples = "
        f"{_rows(schema, table)}, relpages = {max(1, _rows(schema, table) // 100)} "
        f"WHERE oid = {literal(_at(table))}::regclass"
        for table in tables
        if not table.public
    )


def _rows(schema: Schema, table: SchemaTable) -> int:
    units = schema.policy.privacy.units
    return units if table.one_row_per_unit else units * (table.max_rows or table.max_rows_per_group)


def _schemas(tables: Sequence[SchemaTable]) -> Iterator[str]:
    for name in (*search_path(tables), OWN):
        if name != DEFAULT:
            yield f"CREATE SCHEMA {quoted(name)}"
        yield f"GRANT USAGE ON SCHEMA {quoted(name)} TO PUBLIC"


def _table(schema: Schema, table: SchemaTable) -> Iterator[str]:
    at = _at(table)
    may_be_null = schema.nullable.get(table.name, frozenset())
    yield f"CREATE TABLE {at} ({', '.join(_column(column, may_be_null) for column in table.columns)})"
    yield f"GRANT {'SELECT' if table.public else 'REFERENCES'} ON {at} TO PUBLIC"
    yield f"COMMENT ON TABLE {at} IS {literal(comments.of_table(schema, table))}"
    for column in table.columns:
        comment = comments.of_column(schema, table, column)
        if comment is not None:
            yield f"COMMENT ON COLUMN {at}.{quoted(column.name)} IS {literal(comment)}"


def _column(column: SchemaColumn, may_be_null: frozenset[str]) -> str:
    return f"{quoted(column.name)} {column.type}{'' if column.name in may_be_null else ' NOT NULL'}"


def _primary_key(table: SchemaTable) -> str:
    name = quoted(f"{table.name}_pkey")
    return f"ALTER TABLE {_at(table)} ADD CONSTRAINT {name} PRIMARY KEY ({_names(table.key or ())})"


def _foreign_key(reference: Reference) -> str:
    unchecked = " NOT VALID" if reference.table.public else ""
    return (
        f"ALTER TABLE {_at(reference.table)} ADD CONSTRAINT {quoted(reference.name)} "
        f"FOREIGN KEY ({_names(reference.columns)}) "
        f"REFERENCES {_at(reference.parent)} ({_names(reference.parent_columns)}){unchecked}"
    )


def _own(schema: Schema, tables: Sequence[SchemaTable]) -> Iterator[str]:
    """The relations of schema dpsql. What changes with each statement is empty here, and nobody's to read."""
    for name, columns in LEDGER_COLUMNS.items():
        yield _empty_view(name, columns)
        yield f"GRANT REFERENCES ON {name} TO PUBLIC"
    yield _own_table(f"{OWN}.columns", COLUMNS_OF_COLUMNS)
    for row in column_rows(schema, tables):
        yield f"INSERT INTO {OWN}.columns VALUES ({', '.join(map(_value, row.values()))})"
    yield f"GRANT SELECT ON {OWN}.columns TO PUBLIC"


def _empty_view(name: str, columns: Sequence[Column]) -> str:
    shown = ", ".join(f"NULL::{column.type} AS {quoted(column.name)}" for column in columns)
    return f"CREATE VIEW {name} AS SELECT {shown} WHERE false"


def _own_table(name: str, columns: Sequence[Column]) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{quoted(column.name)} {column.type}' for column in columns)})"


# --- text ----------------------------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string, whatever `standard_conforming_strings` says; Postgres cannot hold a NUL."""
    return "E'" + text.replace("\x00", "").replace("\\", "\\\\").replace("'", "''") + "'"


def _value(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else literal(str(value))


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


def _at(table: SchemaTable) -> str:
    place = place_of(table)
    return f"{quoted(place.schema or DEFAULT)}.{quoted(place.name)}"


def places(schema: Schema) -> Mapping[TableName, SchemaTable]:
    """Which table of the policy is where."""
    return {place_of(table): table for table in schema.tables.values()}
