"""The policy file: what a good one becomes, and that a bad one names every problem with its place and fix."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from dpsql.pgwire.auth import make_verifier
from dpsql.policy.load import json_schema, load, parse
from dpsql.policy.model import Budget, Policy, Tls, UnitPath
from dpsql.policy.problems import PolicyError, Problem
from dpsql.types import Kind, SqlType

VERIFIER = make_verifier("secret-sentinel", salt=b"0123456789abcdef")

GOOD = f"""\
dpsql: 1
dataset: shop
backend: duckdb:data/shop.duckdb
epoch: 2024
timezone: Europe/Rome
privacy:
  unit: customer
  units: 4000
  max_groups: 12
  max_rows_per_group: 40
  budget: {{epsilon: 20, delta: 1e-6}}
tables:
  customer:
    unit: c_id
    key: c_id
    max_rows: 1
    columns:
      age: {{type: integer, lower: 0, upper: 120, nullable: true}}
      nation: {{type: text, references: nation.code}}
      since: {{type: date, lower: 2000-01-01, upper: 2024-12-31}}
      seen: {{type: timestamptz, lower: 2024-01-01 00:00, upper: "2024-01-02 00:00+00:00"}}
      plan: {{type: text, values: [free, "1", 007]}}
      ref: {{type: uuid, values: [6ba7b810-9dad-11d1-80b4-00c04fd430c8]}}
  orders: {{unit: c_id, key: [o_id, o_line]}}
  items:
    unit: {{through: orders, on: {{o_id: o_id, o_line: o_line}}}}
    columns:
      price: {{type: "numeric(12,2)", lower: 0, upper: 99.5}}
      weight: {{type: double, lower: -0.5, upper: 1e3}}
  nation: {{public: true, key: code}}
views:
  adults: SELECT * FROM customer WHERE age > 17
roles:
  analyst: {{budget: {{epsilon: 15, delta: 1e-7}}, window: month, epsilon: 0.1, max_epsilon: 5, tables: [orders]}}
  owner: {{owner: true}}
users:
  alice: {{role: analyst, password: "{VERIFIER}"}}
server: {{listen: "[::1]:7000", tls: {{cert: a.crt, key: /b.key}}, statement_timeout: 2min, time_slot: 250ms}}
"""


def _load(text: str) -> Policy:
    return parse(text, Path("/srv/shop.yaml"))


def _problems(text: str) -> list[Problem]:
    with pytest.raises(PolicyError) as refusal:
        _load(text)
    return list(refusal.value.problems)


def _with(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def test_a_good_policy_is_typed() -> None:
    policy = _load(GOOD)
    assert policy.backend == "duckdb:/srv/data/shop.duckdb"
    assert policy.ledger == "sqlite:/srv/shop.ledger"
    assert policy.epoch == "2024"
    assert policy.privacy.budget == Budget(Decimal(20), Decimal("1e-6"))
    assert policy.privacy.cap(12) == 48
    customer = policy.tables["customer"]
    assert customer.columns["age"].upper == 120
    assert customer.columns["nation"].references == ("nation", "code")
    assert customer.columns["since"].lower == date(2000, 1, 1)
    assert customer.columns["seen"].lower == datetime(2023, 12, 31, 23, tzinfo=UTC)
    assert customer.columns["seen"].upper == datetime(2024, 1, 2, tzinfo=UTC)
    assert customer.columns["plan"].values == ("free", "1", "007")
    assert customer.columns["ref"].values == (UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),)
    assert policy.tables["orders"].key == ("o_id", "o_line")


def test_paths_and_exact_numbers_are_typed() -> None:
    items = _load(GOOD).tables["items"]
    assert items.unit == UnitPath("orders", {"o_id": "o_id", "o_line": "o_line"})
    assert items.columns["price"].type == SqlType(Kind.NUMERIC, 12, 2)
    assert items.columns["price"].upper == Decimal("99.5")
    assert items.columns["weight"].upper == 1000.0


def test_folded_text_is_one_line() -> None:
    folded = _with("adults: SELECT * FROM customer WHERE", "adults: >-\n    SELECT *\n    FROM customer\n    WHERE")
    assert _load(folded).views == _load(GOOD).views


def test_roles_users_and_server_are_typed() -> None:
    policy = _load(GOOD)
    assert policy.roles["analyst"].window == "month"
    assert policy.roles["analyst"].epsilon == Decimal("0.1")
    assert policy.roles["analyst"].tables == ("orders",)
    assert policy.roles["owner"].owner
    assert policy.users["alice"].password == VERIFIER
    assert (policy.server.host, policy.server.port) == ("::1", 7000)
    assert policy.server.tls == Tls(Path("/srv/a.crt"), Path("/b.key"))
    assert (policy.server.statement_timeout, policy.server.time_slot) == (120.0, 0.25)


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "said"),
    [
        ("dpsql: 1", "dpsql: 2", 1, "dpsql", "must be 1"),
        ("dataset: shop", "dataset: My Shop", 2, "dataset", "is no dataset name"),
        ("dataset: shop", "datset: shop", 2, "datset", "did you mean `dataset`?"),
        ("dataset: shop\n", "", 1, "dataset", "is missing; add `dataset: my-dataset`"),
        ("duckdb:data/", "mysql:data/", 3, "backend", "is not a URL"),
        ("Europe/Rome", "Europe/Room", 5, "timezone", "is not a time zone"),
        ("units: 4000", "units: 0", 8, "privacy.units", "1 or more"),
        ("units: 4000", "units: many", 8, "privacy.units", "must be a whole number, not many"),
        ("  max_groups: 12\n", "", 6, "privacy.max_groups", "is missing"),
        ("max_groups: 12", "max_groups: 0", 9, "privacy.max_groups", "write 1 or more"),
        ("max_groups: 12", "max_groups: 100000000", 9, "privacy.max_groups", "above 2^30"),
        ("max_groups: 12", "max_groups: 12\n  selection_cap: 3", 10, "privacy.selection_cap", "below max_groups"),
        (
            "max_groups: 12",
            "max_groups: 12\n  max_groups: 5",
            10,
            "privacy.max_groups",
            "stands twice, first in line 9",
        ),
        ("max_groups: 12", "max_groups: 12\n  key_delta_share: 1", 10, "privacy.key_delta_share", "below 1"),
        ("max_groups: 12", "max_groups: 12\n  key_delta: 1e-6", 10, "privacy.key_delta", "at most 5E-7"),
        ("epsilon: 20", "epsilon: 0", 11, "privacy.budget.epsilon", "above 0"),
        ("epsilon: 20", "epsilon: .nan", 11, "privacy.budget.epsilon", "must be a number, not .nan"),
        ("epsilon: 20", "epsilon: .inf", 11, "privacy.budget.epsilon", "must be a number"),
        ("epsilon: 20", "epsilon: 0x14", 11, "privacy.budget.epsilon", "must be a number"),
        ("epsilon: 20", "epsilon: '20'", 11, "privacy.budget.epsilon", "must be a number"),
        ("epsilon: 20", "epsilon: 1e5", 11, "privacy.budget.epsilon", "at most 10000"),
        ("epsilon: 20", "epsilon: 1.0000000000001", 11, "privacy.budget.epsilon", "at most 12 decimals"),
        ("delta: 1e-6", "delta: 0", 11, "privacy.budget.delta", "needs one"),
        ("delta: 1e-6", "delta: -1e-6", 11, "privacy.budget.delta", "well below 1/units"),
        ("delta: 1e-6", "delta: 3e-4", 11, "privacy.budget.delta", "above 1/units"),
        ("delta: 1e-6", "delta: 2e-5", 11, "privacy.budget.delta", "allow_large_delta: true"),
        ("max_rows: 1", "max_rows: 0", 16, "tables.customer.max_rows", "from 1 to 2^30"),
        ("    unit: c_id\n", "", 13, "tables.customer.unit", "is missing"),
        ("unit: c_id\n", "unit: [c_id]\n", 14, "tables.customer.unit", "must be text"),
        ("lower: 0, upper: 120", "lower: 0", 18, "tables.customer.columns.age.upper", "is missing"),
        ("lower: 0, upper: 120", "lower: 121, upper: 120", 18, "tables.customer.columns.age.lower", "is above upper"),
        ("lower: 0, upper: 120", "lower: .nan, upper: 120", 18, "tables.customer.columns.age.lower", "whole number"),
        ("lower: 0, upper: 120", "lower: 0.5, upper: 120", 18, "tables.customer.columns.age.lower", "whole number"),
        ("type: integer", "type: money", 18, "tables.customer.columns.age.type", "is no type here"),
        ("{type: integer, ", "{", 18, "tables.customer.columns.age.type", "is missing, and `lower` needs it"),
        ("nation.code", "nation.cod", 19, "tables.customer.columns.nation.references", "not the key"),
        ("nation.code", "nations.code", 19, "tables.customer.columns.nation.references", "mean `nation.code`"),
        ("references: nation.code", "lower: a, upper: b", 19, "tables.customer.columns.nation.lower", "text column"),
        ("lower: 2000-01-01", "lower: 2000-02-30", 20, "tables.customer.columns.since.lower", "like 2024-01-31"),
        ('free, "1"', "free, free", 22, "tables.customer.columns.plan.values[1]", "stands twice"),
        ('free, "1"', "free, 1", 22, "tables.customer.columns.plan.values[1]", "in quotes"),
        ("through: orders", "through: order", 26, "tables.items.unit.through", "mean `orders`"),
        ("through: orders", "through: items", 26, "tables.items.unit.through", "leads to no table"),
        ("through: orders", "through: nation", 26, "tables.items.unit.through", "leads to no table"),
        ("through: orders, on", "on", 26, "tables.items.unit.through", "is missing"),
        ("upper: 99.5", "upper: 99.555", 28, "tables.items.columns.price.upper", "at most 2 decimals"),
        ("upper: 1e3", "upper: 1e308", 29, "tables.items.columns.weight.upper", "between"),
        ("public: true", "public: true, unit: code", 30, "tables.nation.unit", "public table"),
        ("public: true", "public: true, max_rows: 1", 30, "tables.nation.max_rows", "public table"),
        ("adults: SELECT", "ORDERS: SELECT", 32, "views.ORDERS", "too much like tables.orders"),
        ("window: month", "window: fortnight", 34, "roles.analyst.window", "must be 'day'"),
        ("epsilon: 0.1", "epsilon: 6", 34, "roles.analyst.epsilon", "above max_epsilon (5)"),
        ("epsilon: 0.1", "epsilon: 0.0001", 34, "roles.analyst.epsilon", "a millionth of the budget"),
        ("max_epsilon: 5", "max_epsilon: 0.0001", 34, "roles.analyst.max_epsilon", "a millionth of the budget"),
        ("tables: [orders", "tables: [order", 34, "roles.analyst.tables[0]", "mean `orders`"),
        ("delta: 1e-7", "delta: 1e-3", 34, "roles.analyst.budget.delta", "above 1/units"),
        ("owner: true", "owner: true, shared: true", 35, "roles.owner.shared", "without a budget"),
        ("role: analyst", "role: analist", 37, "users.alice.role", "mean `analyst`"),
        ("  alice:", "  'al ice':", 37, "users.al ice", "is not a user name"),
        ("  alice:", "  'al\u200bice':", 37, "users.al\u200bice", "is not a user name"),
        ("server:", "  ALICE: {role: owner}\nserver:", 38, "users.ALICE", "only in case"),
        ('"[::1]:7000"', "localhost", 38, "server.listen", "HOST:PORT"),
        ("key: /b.key", "kee: /b.key", 38, "server.tls.kee", "mean `key`"),
        ("2min", "0s", 38, "server.statement_timeout", "write a time"),
        ("250ms", "soon", 38, "server.time_slot", "write a time"),
    ],
)
def test_each_problem_has_line_key_and_fix(old: str, new: str, line: int, key: str, said: str) -> None:
    found = {problem.key: problem for problem in _problems(_with(old, new))}
    assert key in found, [str(problem) for problem in found.values()]
    assert found[key].line == line
    assert said in str(found[key])
    assert found[key].fix
    assert str(found[key]).startswith(f"/srv/shop.yaml:{line}: {key}: ")


def test_problems_of_shape_and_of_meaning_are_reported_together() -> None:
    text = _with("units: 4000", "units: many").replace("dpsql: 1", "dpsqll: 1").replace("upper: 120", "upper: -1")
    assert [problem.key for problem in _problems(text)] == [
        "dpsql",
        "dpsqll",
        "privacy.units",
        "tables.customer.columns.age.lower",
    ]


@pytest.mark.parametrize(
    "password",
    [
        "secret-sentinel",
        VERIFIER[:-4],
        VERIFIER.replace("4096", "4095"),
        VERIFIER.replace("SCRAM-SHA-256", "SCRAM-SHA-1"),
        "SCRAM-SHA-256$4096:...",
        "[secret-sentinel]",
        "123456789",
    ],
)
def test_a_bad_password_is_refused_and_never_repeated(password: str) -> None:
    quoted = password if password.startswith("[") or password.isdigit() else json.dumps(password)
    found = _problems(GOOD.replace(f'"{VERIFIER}"', quoted))
    assert [problem.key.partition("[")[0] for problem in found] == ["users.alice.password"]
    assert "sentinel" not in str(found[0])
    assert "123456789" not in str(found[0])


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_pure_accounting_needs_no_delta(accounting: str) -> None:
    text = _with("max_groups: 12", f"max_groups: 12\n  accounting: {accounting}")
    text = text.replace("epsilon: 20, delta: 1e-6", "epsilon: 20").replace("epsilon: 15, delta: 1e-7", "epsilon: 15")
    if accounting == "pure":
        assert _load(text).privacy.budget.delta == 0
    else:
        assert {problem.key for problem in _problems(text)} == {"privacy.budget.delta", "roles.analyst.budget.delta"}


def test_rows_as_units() -> None:
    text = """
dpsql: 1
dataset: d
backend: postgresql://host/db
privacy: {unit: row, units: 10, budget: {epsilon: 1, delta: 1e-6}}
tables: {t: {}, u: {unit: a}}
"""
    assert [problem.key for problem in _problems(text)] == ["tables.u.unit"]
    policy = _load(text.replace(", u: {unit: a}", ""))
    assert policy.privacy.is_row
    assert (policy.privacy.max_groups, policy.privacy.max_rows_per_group) == (1, 1)
    assert policy.backend == "postgresql://host/db"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; .*`dpsql init`"),
        ("- 1\n", "must be a map of keys; docs/policy.md shows its form"),
        ("a: [1\nb: 2", "is not valid YAML"),
        ("a: 1\n---\nb: 2", "is not valid YAML"),
        ("a: !!python/object:os.system x", "has the tag"),
        ("a: &x [*x]", "YAML|nested"),
        ("? [a, b]\n: c", "a key that is not a word"),
        ("a: " + "[" * 60 + "]" * 60, "too deeply nested"),
        ("a: " + "[" * 500, "is not valid YAML"),
    ],
)
def test_what_is_no_policy_is_refused(text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        _load(text)


def test_aliases_are_not_expanded_without_limit() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    started = time.monotonic()
    with pytest.raises(PolicyError, match="too large"):
        _load("\n".join(lines))
    assert time.monotonic() - started < 10


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        load(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    with pytest.raises(PolicyError, match="UTF-8"):
        load(tmp_path / "latin.yaml")


def test_the_json_schema_knows_every_key() -> None:
    schema = json_schema()
    assert set(schema["properties"]) >= {"dpsql", "dataset", "backend", "privacy", "tables", "roles", "users"}
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["ColumnSection"]["properties"]["references"]["description"]
    json.dumps(schema)


def test_the_demo_policy_is_good() -> None:
    policy = load(Path(__file__).parents[2] / "policies" / "nyc-flights.yaml")
    assert policy.dataset == "nyc-flights"
    assert policy.tables["planes"].max_rows == 1


@pytest.mark.parametrize("odd", ["~", "-1", "'x'", "[[]]", "{a: {b: c}}"])
def test_no_odd_value_anywhere_does_more_than_be_refused(odd: str) -> None:
    """Every `key: value` of the file is replaced in turn; only PolicyError may come out."""
    refused: list[PolicyError] = []
    for found in re.finditer(r"(?<=: )[^,{}\[\]\n]+", GOOD):
        try:
            _load(GOOD[: found.start()] + odd + GOOD[found.end() :])
        except PolicyError as refusal:
            refused.append(refusal)
    assert len(refused) > 40
    assert all(problem.line for refusal in refused for problem in refusal.problems)
    assert not any("sentinel" in str(refusal) for refusal in refused)
