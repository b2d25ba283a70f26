"""The shape of the policy file: which keys exist where, and of which kind their values are.

Decides keys, kinds and defaults only; whether the values make sense together is `dpsql.policy.build`'s business. The
JSON Schema that editors use, the fix in an error message (a field's first example) and this reading all come from here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError


def _exact(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise PydanticCustomError("number", "must be a number")
    return Decimal(value)


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise PydanticCustomError("text", "must be text")
    return str(value)


def _scalar(value: object) -> object:
    if not isinstance(value, bool | int | Decimal | str):
        raise PydanticCustomError("scalar", "must be a number, text, a date or true/false")
    return value


def _shape(value: object) -> str:
    if isinstance(value, dict):
        return "map"
    return "list" if isinstance(value, list) else "word"


Number = Annotated[Decimal, BeforeValidator(_exact), WithJsonSchema({"type": "number"})]
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number"]})]
Scalar = Annotated[
    Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]}, mode="validation")
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BudgetSection(_Section):
    epsilon: Number = Field(examples=[1], description="total epsilon")
    delta: Number = Field(default=Decimal(0), examples=["1e-7"], description="total delta, well below 1/units")


class PrivacySection(_Section):
    unit: str = Field(examples=["person"], description="a name for the privacy unit; `row` for row-level privacy")
    units: int = Field(examples=[10000], description="about how many units there are")
    max_groups: int | None = Field(None, examples=[10], description="groups a unit may count in, per release")
    max_rows_per_group: int | None = Field(None, examples=[10], description="rows a unit may have in one group")
    max_keys: int = Field(10_000, examples=[10_000], description="largest product of public key domains")
    selection_cap: int | None = Field(None, examples=[40], description="private keys a unit may touch; 4*max_groups")
    key_delta_share: Number = Field(Decimal("0.5"), examples=["0.5"], description="share of delta for private keys")
    key_delta: Number | None = Field(None, examples=["1e-10"], description="delta of one selection of private keys")
    accounting: Literal["zcdp", "pure"] = Field("zcdp", examples=["zcdp"])
    budget: BudgetSection = Field(examples=["{epsilon: 10, delta: 1e-7}"], description="of the dataset, for ever")
    allow_large_delta: bool = Field(False, examples=[True], description="permits delta above 1e-5")
    replay: Literal["per_user", "shared"] = Field("per_user", examples=["per_user"])


class PathSection(_Section):
    through: str = Field(examples=["orders"], description="the parent table")
    on: dict[str, str] = Field(examples=["{order_id: id}"], description="this table's column: the parent's column")


class RandomizedSection(_Section):
    epsilon: Number = Field(
        examples=["1.1"], description="of the collection: each value was kept or replaced by chance"
    )
    values: list[Scalar] = Field(examples=['["yes", "no"]'], description="all values that could be answered")


class ColumnSection(_Section):
    type: str | None = Field(None, examples=["integer"], description="integer, double, numeric, text, date, ...")
    lower: Scalar = Field(None, examples=[0])
    upper: Scalar = Field(None, examples=[100])
    values: list[Scalar] | None = Field(None, examples=["[a, b]"], description="all values that count, a public domain")
    nullable: bool = Field(False, examples=[True], description="NULL belongs to the public domain")
    references: str | None = Field(None, examples=["airlines.carrier"], description="the key of a public table")
    randomized_response: RandomizedSection | None = Field(
        None,
        examples=['{epsilon: 1.1, values: ["yes", "no"]}'],
        description="noised by the people themselves; counts are free",
    )


Unit = Annotated[
    Annotated[str, Tag("word")] | Annotated[PathSection, Tag("map")] | Annotated[str, Tag("list")],
    Discriminator(_shape),
]
Key = Annotated[
    Annotated[str, Tag("word")] | Annotated[list[str], Tag("list")] | Annotated[str, Tag("map")],
    Discriminator(_shape),
]


class TableSection(_Section):
    public: bool = Field(False, examples=[True], description="holds nobody's data; answered exactly")
    unit: Unit | None = Field(None, examples=["person_id"], description="the unit's column, or a path to it")
    key: Key | None = Field(None, examples=["id"], description="column(s) verified to be unique")
    max_rows: int | None = Field(None, examples=[1], description="rows a unit may have in this table")
    max_groups: int | None = Field(None, examples=[10])
    max_rows_per_group: int | None = Field(None, examples=[10])
    columns: dict[str, ColumnSection] = Field(default_factory=dict, examples=["{age: {type: integer}}"])


class RoleSection(_Section):
    budget: BudgetSection | None = Field(None, examples=["{epsilon: 5, delta: 1e-8}"])
    window: Literal["day", "week", "month", "quarter", "year"] | None = Field(None, examples=["month"])
    shared: bool = Field(False, examples=[True], description="all users of the role share one budget")
    epsilon: Number = Field(Decimal(1), examples=[1], description="price of a statement that names none")
    max_epsilon: Number | None = Field(None, examples=[2], description="highest price of one statement")
    tables: list[str] | None = Field(None, examples=["[people]"], description="what it may ask about; all if absent")
    owner: bool = Field(False, examples=[True], description="sees the whole ledger, grants budget")


class UserSection(_Section):
    role: str = Field(examples=["analyst"])
    password: str | None = Field(None, examples=['"<verifier>"'], description="`dpsql password` prints one")


class TlsSection(_Section):
    cert: str = Field(examples=["server.crt"])
    key: str = Field(examples=["server.key"])


class ServerSection(_Section):
    listen: str = Field("127.0.0.1:6432", examples=["127.0.0.1:6432"])
    tls: TlsSection | None = Field(None, examples=["{cert: server.crt, key: server.key}"])
    statement_timeout: Text = Field("60s", examples=["60s"])
    time_slot: Text = Field("0ms", examples=["0ms"], description="answers leave at multiples of it")
    log_text: bool = Field(False, examples=[False], description="statements' text goes to the log")


_PRIVACY_EXAMPLE = (
    "{unit: person, units: 10000, max_groups: 10, max_rows_per_group: 10, budget: {epsilon: 10, delta: 1e-7}}"
)


class Document(_Section):
    """One policy file."""

    model_config = ConfigDict(title="dpsql policy")

    dpsql: Literal[1] = Field(examples=[1], description="version of this format")
    dataset: str = Field(examples=["my-dataset"], description="immutable: the ledger is keyed by it")
    backend: str = Field(examples=["duckdb:data.duckdb"], description="duckdb:FILE or postgresql://...")
    ledger: str | None = Field(None, examples=["sqlite:data.ledger"])
    ledger_anchor: str | None = Field(None, examples=["ledger.head"], description="a second place for its head")
    epoch: Text = Field("1", examples=["2024-01"], description="changes when the data does")
    timezone: str = Field("UTC", examples=["UTC"])
    privacy: PrivacySection = Field(examples=[_PRIVACY_EXAMPLE])
    tables: dict[str, TableSection] = Field(examples=["{people: {unit: id}}"])
    views: dict[str, str] = Field(default_factory=dict, examples=["{recent: SELECT ...}"])
    roles: dict[str, RoleSection] = Field(default_factory=dict, examples=["{analyst: {budget: {...}}}"])
    users: dict[str, UserSection] = Field(default_factory=dict, examples=["{alice: {role: analyst}}"])
    server: ServerSection = Field(
        default_factory=lambda: ServerSection.model_validate({}), examples=["{listen: 127.0.0.1:6432}"]
    )
