"""The vocabulary shared by all layers: values, types, relations, and the states that data passes through.

Data leaves the backend as `ExactCells`, becomes a `Release` in `dpsql.release` (which demands a `Reservation`), and
only what is computed from releases and public tables, a `Relation`, may be sent to a client. No behaviour lives here
beyond small derived properties.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum, unique
from typing import Literal
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Interval:
    """Months, days and microseconds, which Postgres keeps apart: a month has no fixed number of days.

    Its text is that of IntervalStyle `postgres`: `1 year 2 mons 3 days 04:05:06.5`. Postgres's order counts 30 days a
    month.
    """

    months: int = 0
    days: int = 0
    micros: int = 0

    def __lt__(self, other: Interval) -> bool:
        return self._length < other._length

    @property
    def _length(self) -> int:
        return (self.months * 30 + self.days) * 86_400_000_000 + self.micros

    def __str__(self) -> str:
        years = abs(self.months) // 12 * (-1 if self.months < 0 else 1)
        parts, minus = list[str](), False
        for count, unit in ((years, "year"), (self.months - 12 * years, "mon"), (self.days, "day")):
            if count:
                parts.append(f"{'+' if minus and count > 0 else ''}{count} {unit}{'' if count == 1 else 's'}")
                minus = count < 0
        if self.micros or not parts:
            seconds, rest = divmod(abs(self.micros), 1_000_000)
            sign = "-" if self.micros < 0 else "+" if minus else ""
            fraction = f".{rest:06}".rstrip("0") if rest else ""
            parts.append(f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}")
        return " ".join(parts)


Value = bool | int | float | Decimal | str | bytes | date | datetime | time | Interval | UUID | None
"""A value as a client may see it. Timestamps with time zone are aware datetimes in UTC."""


@unique
class Kind(Enum):
    """The SQL types that exist here, by Postgres's name."""

    BOOL = "boolean"
    INT2 = "smallint"
    INT4 = "integer"
    INT8 = "bigint"
    NUMERIC = "numeric"
    FLOAT4 = "real"
    FLOAT8 = "double precision"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    INTERVAL = "interval"
    UUID = "uuid"
    JSON = "json"
    BYTEA = "bytea"
    OID = "oid"
    NAME = "name"
    CHAR = '"char"'
    REGTYPE = "regtype"
    VARCHAR = "character varying"
    TEXT_ARRAY = "text[]"
    INT8_ARRAY = "bigint[]"
    FLOAT8_ARRAY = "double precision[]"
    BOOL_ARRAY = "boolean[]"
    INT2_ARRAY = "smallint[]"
    INT4_ARRAY = "integer[]"
    FLOAT4_ARRAY = "real[]"
    NUMERIC_ARRAY = "numeric[]"
    DATE_ARRAY = "date[]"
    TIMESTAMP_ARRAY = "timestamp[]"
    TIMESTAMPTZ_ARRAY = "timestamptz[]"
    UUID_ARRAY = "uuid[]"
    INTERVAL_ARRAY = "interval[]"
    OID_ARRAY = "oid[]"
    NAME_ARRAY = "name[]"
    CHAR_ARRAY = '"char"[]'
    INT2_VECTOR = "int2vector"
    OID_VECTOR = "oidvector"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type; `precision` and `scale` only for NUMERIC that declares them."""

    kind: Kind
    precision: int | None = None
    scale: int | None = None

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT2, Kind.INT4, Kind.INT8)

    @property
    def is_float(self) -> bool:
        return self.kind in (Kind.FLOAT4, Kind.FLOAT8)

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float or self.kind is Kind.NUMERIC

    @property
    def is_time(self) -> bool:
        return self.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

    def __str__(self) -> str:
        if self.kind is Kind.NUMERIC and self.precision is not None:
            return f"numeric({self.precision},{self.scale or 0})"
        return self.kind.value


BOOL = SqlType(Kind.BOOL)
INT4 = SqlType(Kind.INT4)
INT8 = SqlType(Kind.INT8)
NUMERIC = SqlType(Kind.NUMERIC)
FLOAT4 = SqlType(Kind.FLOAT4)
FLOAT8 = SqlType(Kind.FLOAT8)
TEXT = SqlType(Kind.TEXT)
DATE = SqlType(Kind.DATE)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
INTERVAL = SqlType(Kind.INTERVAL)
UUID_TYPE = SqlType(Kind.UUID)
UNKNOWN = SqlType(Kind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Column:
    """A named, typed column of a relation."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class Relation:
    """Public rows: derived from releases and public tables only. Each row has one value per column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class TableName:
    """Where a table is in a backend. `schema` None: the backend's own, DuckDB's `main` or Postgres's `public`."""

    name: str
    schema: str | None = None

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a backend's catalog, and the operator's checks, say of one table. Holds no data values.

    `unique` lists the column sets that are verified unique: by an enforced, valid, non-partial constraint or, for an
    immutable source, by a check at start. `problems` are reasons to refuse the table (a view, row security, ...).
    `enums`: the labels of columns that are stored as one, and read as text. `checks`: the texts of CHECK constraints.
    `nullable`: the columns that may hold NULL: no valid NOT NULL constraint or primary key says otherwise.
    """

    name: str
    columns: tuple[Column, ...]
    unique: tuple[frozenset[str], ...] = ()
    problems: tuple[str, ...] = ()
    enums: tuple[tuple[str, tuple[str, ...]], ...] = ()
    checks: tuple[str, ...] = ()
    nullable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ExactCells:
    """Private: exact integers per group, as a backend returned them. Only backends construct it; never shown.

    `keys[g]` holds, per key column, the index into the public domain (public keys) or the canonical value (private
    keys). `cells[g]` holds one integer per measurement column, each within +-2^62.
    """

    keys: tuple[tuple[Value, ...], ...]
    cells: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """A privacy loss, in exact integer units of 10^-15, rounded up. Which of them gate is the accounting's choice.

    `epsilon`: pure epsilons, added up. `rho`: zCDP. `delta`: additive failure probability.
    """

    epsilon: int = 0
    rho: int = 0
    delta: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.epsilon + other.epsilon, self.rho + other.rho, self.delta + other.delta)


COST_UNIT = Decimal("1e-15")


@dataclass(frozen=True, slots=True)
class Reservation:
    """Proof that a release's cost has been debited durably. Only a ledger constructs it; used at most once."""

    id: int
    user: str
    key: str
    cost: Cost


@dataclass(frozen=True, slots=True)
class Release:
    """Noisy integers per group: what may be known for ever after. Only `dpsql.release` and the replay store make it.

    `key` is the fingerprint of the measurement. `keys[g]` are the group's key values, `cells[g]` one noisy integer
    per measurement column, in grid steps. `paid`: what the account pays for its first look at a stored one.
    """

    key: str
    keys: tuple[tuple[Value, ...], ...]
    cells: tuple[tuple[int, ...], ...]
    paid: Cost = field(default=Cost(), compare=False)


Mechanism = Literal["auto", "laplace", "gaussian"]
Parameters = tuple[tuple[SqlType, Value | tuple[Value, ...]], ...]
"""Types and values of parameters; a tuple is a list, for `= ANY ($1)`."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What of a session's settings changes an answer or its price. None leaves it to the role or the policy.

    `statement_timeout` is in seconds; the policy's own limit stays in force. `error_bars` adds columns. `reuse_error`:
    how many times the error of a fresh measurement an answer derived from stored ones may have; 0 derives none.
    `null_noise`: NULL stands in place of averages and extremes that are no more than noise.
    `stated`: what a statement says of delta and the privacy unit, to be compared with the policy.
    """

    epsilon: Decimal | None = None
    mechanism: Mechanism = "auto"
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_error: Decimal | None = None
    notices: bool = True
    statement_timeout: float | None = None
    error_bars: bool = False
    stated: tuple[tuple[str, str], ...] = ()
    reuse_error: Decimal | None = None
    null_noise: bool | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """The same statement under the same settings gets the same rows, free: all it reads is stored, and no clock.

    `serial` tells the engine that answered. `notices` are for those who get them; `replayed` counts the stored releases
    that are read.
    """

    serial: int
    notices: tuple[str, ...] = ()
    replayed: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's rows, and what the user should be told of price and replay."""

    relation: Relation
    notices: tuple[str, ...] = ()
    again: Again | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What a query takes and returns, found without running it."""

    parameter_types: tuple[SqlType, ...]
    columns: tuple[Column, ...]
