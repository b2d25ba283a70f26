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


def _factor(value: object) -> Decimal:
    return Decimal(0) if value == "off" else _exact(value)


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
Factor = Annotated[Decimal, BeforeValidator(_factor), WithJsonSchema({"type": ["number", "string"]})]
Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "number"]})]
Scalar = Annotated[
    Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]}, mode="validation")
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BudgetSection(_Section):
    epsilon: Number = Field(examples=[1], description="total epsilon")
    delta: Number = Field(
        default=Decimal(0),
        examples=["1e-7"],
        description="total delta, well below 1/`units`; 0 under `pure` where no private keys are shown",
    )


class PrivacySection(_Section):
    unit: str = Field(
        examples=["person"], description="a name for whom is protected; `row` where each row stands for itself"
    )
    units: int = Field(examples=[10000], description="about how many there are; delta must be below 1/`units`")
    max_groups: int | None = Field(
        None, examples=[10], description="what one unit may add to one release: as much as this many groups ..."
    )
    max_rows_per_group: int | None = Field(
        None,
        examples=[10],
        description="... of this many rows would. Larger contributions are scaled down, smaller ones untouched",
    )
    max_keys: int = Field(10_000, examples=[10_000], description="how many groups of public keys are released in full")
    selection_cap: int | None = Field(
        None,
        examples=[40],
        description="a unit that touches more private keys than this adds to none; 4 * `max_groups` if absent",
    )
    key_delta_share: Number = Field(
        Decimal("0.5"), examples=["0.5"], description="the share of delta for private group keys; 0: none are shown"
    )
    key_delta: Number | None = Field(
        None,
        examples=["1e-10"],
        description="what one selection of private keys spends; a thousandth of that share if absent",
    )
    accounting: Literal["zcdp", "pure"] = Field(
        "zcdp", examples=["zcdp"], description="`zcdp`, or `pure`: epsilons add up and noise is Laplace"
    )
    budget: BudgetSection = Field(
        examples=["{epsilon: 10, delta: 1e-7}"],
        description="`{epsilon, delta}`: the promise, for ever and for all users together",
    )
    allow_large_delta: bool = Field(False, examples=[True], description="permits delta above 1e-5")
    replay: Literal["per_user", "shared"] = Field(
        "per_user",
        examples=["per_user"],
        description="`per_user`: a first view of what another user paid for is debited; `shared`: it is free",
    )


class PathSection(_Section):
    through: str = Field(examples=["orders"], description="the parent table, whose row says whose row this is")
    on: dict[str, str] = Field(
        examples=["{order_id: id}"], description="this table's columns, and the parent's columns that they are equal to"
    )


class RandomizedSection(_Section):
    epsilon: Number = Field(examples=["1.1"], description="epsilon of the collection, for each row")
    values: list[Scalar] = Field(examples=['["yes", "no"]'], description="all values that could be answered")


class ColumnSection(_Section):
    type: str | None = Field(
        None,
        examples=["integer"],
        description="integer, double, numeric(10,2), text, boolean, date, timestamp ...; compared with the backend's",
    )
    lower: Scalar = Field(
        None,
        examples=[0],
        description="values are clipped to `lower` and `upper`; a bounded integer or date is also a public group key",
    )
    upper: Scalar = Field(None, examples=[100], description="see `lower`")
    values: list[Scalar] | None = Field(
        None,
        examples=["[a, b]"],
        description="all values that count, also a public group key; totals may be added up from its groups",
    )
    nullable: bool = Field(
        False,
        examples=[True],
        description="NULL is a group of its own in public keys; without it, rows with NULL are in no group",
    )
    references: str | None = Field(
        None,
        examples=["airlines.carrier"],
        description="the key of a public table, `airlines.carrier`; also a public group key",
    )
    randomized_response: RandomizedSection | None = Field(
        None,
        examples=['{epsilon: 1.1, values: ["yes", "no"]}'],
        description="people randomized it themselves: `{epsilon: 1.1, values: [...]}`; its counts are free",
    )


Unit = Annotated[
    Annotated[str, Tag("word")] | Annotated[PathSection, Tag("map")] | Annotated[str, Tag("list")],
    Discriminator(_shape),
]
Words = Annotated[
    Annotated[str, Tag("word")] | Annotated[list[str], Tag("list")] | Annotated[str, Tag("map")],
    Discriminator(_shape),
]


class TableSection(_Section):
    public: bool = Field(
        False, examples=[True], description="nobody's data: copied into the proxy at start, answered exactly and free"
    )
    unit: Unit | None = Field(
        None,
        examples=["person_id"],
        description="the column that holds the unit, or a path: `{through: orders, on: {order_id: id}}`",
    )
    source: Words | None = Field(
        None,
        examples=["sales.orders"],
        description="the backend's table, `schema.table`, where it has another name or is not in `main` or `public`",
    )
    key: Words | None = Field(
        None, examples=["id"], description="a column or columns; verified to be unique, else the policy is refused"
    )
    max_rows: int | None = Field(
        None,
        examples=[1],
        description="rows a unit may have here: verified, or made true by the proxy's SQL, never trusted",
    )
    max_groups: int | None = Field(
        None, examples=[10], description="instead of `privacy.max_groups`, for statements about this table"
    )
    max_rows_per_group: int | None = Field(None, examples=[10], description="instead of `privacy.max_rows_per_group`")
    columns: dict[str, ColumnSection] = Field(
        default_factory=dict,
        examples=["{age: {type: integer}}"],
        description="what analysts may name; the unit and keys need no entry",
    )


class RoleSection(_Section):
    budget: BudgetSection | None = Field(
        None,
        examples=["{epsilon: 5, delta: 1e-8}"],
        description="of each user of the role; without it they may ask nothing of private tables",
    )
    window: Literal["day", "week", "month", "quarter", "year"] | None = Field(
        None,
        examples=["month"],
        description="`day`, `week`, `month`, `quarter`, `year`: users get a new budget then; the dataset never",
    )
    shared: bool = Field(False, examples=[True], description="the role's users share one budget")
    epsilon: Number = Field(
        Decimal(1),
        examples=[1],
        description="the price of a statement that names none; as any price, at least a millionth of the budget",
    )
    max_epsilon: Number | None = Field(
        None, examples=[2], description="the highest price of one statement; the budget if absent"
    )
    reuse_error: Factor | None = Field(
        None,
        examples=[3],
        description=(
            "how many times the error of a new answer one derived from stored ones may have; 1: no more, `off`: none "
            "is derived; users may set less. If absent, 3, and they may set any"
        ),
    )
    null_noise: bool = Field(
        True,
        examples=[False],
        description="averages and extremes that are no more than noise are NULL; users may set otherwise",
    )
    tables: list[str] | None = Field(None, examples=["[people]"], description="what it may ask about; all if absent")
    owner: bool = Field(
        False,
        examples=[True],
        description="is responsible for the dataset: sees all of `dpsql.ledger`; has a budget only if given one",
    )


class UserSection(_Section):
    role: str = Field(examples=["analyst"], description="one of `roles`")
    password: str | None = Field(
        None,
        examples=['"<verifier>"'],
        description="a SCRAM-SHA-256 verifier, which `dpsql password` prints; without it there is no login",
    )


class TlsSection(_Section):
    cert: str = Field(examples=["server.crt"], description="the certificate chain, PEM")
    key: str = Field(examples=["server.key"], description="its key, PEM")


class ServerSection(_Section):
    listen: str = Field(
        "127.0.0.1:6432",
        examples=["127.0.0.1:6432"],
        description="where it listens; other than the machine itself only with `tls`",
    )
    tls: TlsSection | None = Field(
        None, examples=["{cert: server.crt, key: server.key}"], description="`{cert: FILE, key: FILE}`"
    )
    statement_timeout: Text = Field("60s", examples=["60s"], description="the longest a statement may take")
    time_slot: Text = Field(
        "0ms",
        examples=["0ms"],
        description="answers leave at multiples of it, by chance one later, so that their timing tells less",
    )
    log_text: bool = Field(False, examples=[False], description="statements' text goes into the audit trail")
    public: str | None = Field(
        None,
        examples=["postgresql://dpsql@localhost:5433"],
        description="a Postgres 15 or newer, as a superuser, for public tables and catalogs; one is started if absent",
    )


_PRIVACY_EXAMPLE = (
    "{unit: person, units: 10000, max_groups: 10, max_rows_per_group: 10, budget: {epsilon: 10, delta: 1e-7}}"
)


class Document(_Section):
    """One policy file."""

    model_config = ConfigDict(title="dpsql policy")

    dpsql: Literal[1] = Field(examples=[1], description="version of this format")
    dataset: str = Field(examples=["my-dataset"], description="its name; immutable, the ledger is kept under it")
    backend: str = Field(
        examples=["duckdb:data.duckdb"], description="`duckdb:FILE`, opened read-only, or `postgresql://...`"
    )
    ledger: str | None = Field(
        None,
        examples=["sqlite:data.ledger"],
        description="`sqlite:FILE`, or `postgresql://...` where several proxies share it; beside the policy if absent",
    )
    ledger_anchor: str | None = Field(
        None,
        examples=["ledger.head"],
        description="a second place for the ledger's head, best on another disk: old copies are recognised",
    )
    epoch: Text = Field(
        "1",
        examples=["2024-01"],
        description="a label that changes when the data do; answers of other epochs are not given again",
    )
    timezone: str = Field("UTC", examples=["UTC"], description="in which timestamps with time zone are read")
    privacy: PrivacySection = Field(examples=[_PRIVACY_EXAMPLE], description="whom the dataset protects, and how much")
    tables: dict[str, TableSection] = Field(
        examples=["{people: {unit: id}}"], description="the tables that exist for analysts"
    )
    views: dict[str, str] = Field(
        default_factory=dict, examples=["{recent: SELECT ...}"], description="names for queries over them"
    )
    roles: dict[str, RoleSection] = Field(
        default_factory=dict, examples=["{analyst: {budget: {...}}}"], description="what users may ask, and spend"
    )
    users: dict[str, UserSection] = Field(
        default_factory=dict, examples=["{alice: {role: analyst}}"], description="who may log in"
    )
    server: ServerSection = Field(
        default_factory=lambda: ServerSection.model_validate({}),
        examples=["{listen: 127.0.0.1:6432}"],
        description="how the proxy serves",
    )
