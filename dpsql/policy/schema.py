"""The policy after it has been compared with the backend: what the compiler may rely on.

Decides the shape only; `dpsql.policy.resolve.resolve` makes it. Everything in a `SchemaTable` that the privacy proof
leans on (`unique`, `key`, `one_row_per_unit`) has been verified in the backend; a declaration alone never gets here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from dpsql.policy.model import Policy, UnitPath
from dpsql.types import Relation, SqlType, TableName, Value


@dataclass(frozen=True, slots=True)
class SchemaColumn:
    """A column that statements may name. `type` is the backend's; bounds and values have its Python type.

    `nullable` says whether NULL belongs to the column's public domain, not whether the backend could hold one.
    `randomized`: its values are randomized responses of this epsilon; only counts of them alone are answered.
    """

    name: str
    type: SqlType
    lower: Value = None
    upper: Value = None
    values: tuple[Value, ...] | None = None
    nullable: bool = False
    references: tuple[str, str] | None = None
    randomized: Decimal | None = None


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """A table that statements may name.

    `max_groups` and `max_rows_per_group` are in force: the table's own or the policy's, and never above `max_rows`
    (clipping enforces them, so they need no verification). `rows`: the snapshot of a public table, None for others.
    `source`: where the backend has it, if not under this name.
    """

    name: str
    public: bool
    columns: tuple[SchemaColumn, ...]
    unit: str | UnitPath | None = None
    key: tuple[str, ...] | None = None
    unique: tuple[frozenset[str], ...] = ()
    max_rows: int | None = None
    one_row_per_unit: bool = False
    max_groups: int = 1
    max_rows_per_group: int = 1
    rows: Relation | None = None
    source: TableName | None = None

    def column(self, name: str) -> SchemaColumn | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables of a dataset. `unit_type`: the canonical type of the unit in all of them, None under `unit: row`.

    `responses`: for each randomized column, as `table.column`, how often each value was given. `nullable`: for each
    table, the columns that the backend lets be NULL; to warn by, for nothing is proved from it.
    """

    policy: Policy
    tables: Mapping[str, SchemaTable]
    unit_type: SqlType | None = None
    responses: Mapping[str, SchemaTable] = field(default_factory=dict)
    nullable: Mapping[str, frozenset[str]] = field(default_factory=dict)
