"""The policy as frozen values: what the operator promised, fully typed and already checked by itself.

Decides the shape only. A `Policy` comes from `dpsql.policy.load.load`, which refuses a file with any problem; nothing
here reads a file, knows a backend or holds data. Amounts are exact decimals, bounds have their column's Python type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from dpsql.types import SqlType, TableName, Value

Accounting = Literal["zcdp", "pure"]
Replay = Literal["per_user", "shared"]
Window = Literal["day", "week", "month", "quarter", "year"]

ROW = "row"
"""The privacy unit that needs no column: each row stands for itself."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A total privacy loss that may never be exceeded."""

    epsilon: Decimal
    delta: Decimal


@dataclass(frozen=True, slots=True)
class Privacy:
    """Whom the dataset protects and how strongly.

    `max_groups` and `max_rows_per_group` bound what one unit may add to one release; tables may override them.
    `key_delta` is what one selection of private keys spends; None stands for a thousandth of the keys' share.
    """

    unit: str
    units: int
    budget: Budget
    max_groups: int = 1
    max_rows_per_group: int = 1
    max_keys: int = 10_000
    selection_cap: int | None = None
    key_delta_share: Decimal = Decimal("0.5")
    key_delta: Decimal | None = None
    accounting: Accounting = "zcdp"
    allow_large_delta: bool = False
    replay: Replay = "per_user"

    @property
    def is_row(self) -> bool:
        return self.unit == ROW

    def cap(self, max_groups: int) -> int:
        """How many private keys a unit may touch before it adds nothing to any; `max_groups` is the table's."""
        return self.selection_cap or 4 * max_groups


@dataclass(frozen=True, slots=True)
class UnitPath:
    """A table's unit is that of its parent row: `on` maps this table's columns to the columns of `through`."""

    through: str
    on: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ColumnPolicy:
    """What is declared of one column. Bounds and values are public knowledge, never read from the data.

    `type` None: whatever the backend has. `references`: a public table's key, whose values are the column's domain.
    `randomized`: the epsilon of k-ary randomized response over `values`, by which the people answered.
    """

    type: SqlType | None = None
    lower: Value = None
    upper: Value = None
    values: tuple[Value, ...] | None = None
    nullable: bool = False
    references: tuple[str, str] | None = None
    randomized: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table. A public one has no unit, a private one a unit column or a path to one (None under `unit: row`).

    `source`: where the backend has it; None: in its own schema, under the name it has here.
    """

    public: bool = False
    unit: str | UnitPath | None = None
    key: tuple[str, ...] | None = None
    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)
    source: TableName | None = None

    def at(self, name: str) -> TableName:
        """Where the backend has the table that the policy calls `name`."""
        return self.source or TableName(name)


@dataclass(frozen=True, slots=True)
class Role:
    """What its users may ask. Without a budget: nothing. `epsilon` is the price of a statement that names none.

    `reuse_error`: the most error of a derived answer, in those of fresh ones; 0 derives none, None leaves it to the
    user. `null_noise`: averages and extremes that are no more than noise are NULL, unless the user sets otherwise.
    """

    budget: Budget | None = None
    window: Window | None = None
    shared: bool = False
    epsilon: Decimal = Decimal(1)
    max_epsilon: Decimal | None = None
    tables: tuple[str, ...] | None = None
    owner: bool = False
    reuse_error: Decimal | None = None
    null_noise: bool = True


@dataclass(frozen=True, slots=True)
class User:
    """A login. `password` is a SCRAM-SHA-256 verifier as Postgres prints it; None: this user cannot log in."""

    role: str
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Tls:
    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Server:
    """How the proxy serves. Durations are seconds.

    `public`: the URL of a Postgres that holds the public half; None: one is started.
    """

    host: str = "127.0.0.1"
    port: int = 6432
    tls: Tls | None = None
    statement_timeout: float = 60.0
    time_slot: float = 0.0
    log_text: bool = False
    public: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy file. `backend` and `ledger` are URLs whose relative paths have been resolved beside the file.

    `lines` give the file's line for each key's path, for messages only.
    """

    dataset: str
    backend: str
    ledger: str
    privacy: Privacy
    tables: Mapping[str, Table]
    path: Path
    epoch: str = "1"
    timezone: str = "UTC"
    ledger_anchor: str | None = None
    views: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    server: Server = field(default_factory=Server)
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict, compare=False, repr=False)
