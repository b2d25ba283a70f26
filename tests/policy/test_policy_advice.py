"""`dpsql check --advise`: what in a policy costs accuracy, judged without data."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dpsql.compiler import Terms, compile_statement
from dpsql.policy.advice import PolicyAdvice, count_error, policy_advice, statements
from dpsql.policy.load import parse
from dpsql.policy.resolve import resolve
from dpsql.policy.schema import Schema
from dpsql.types import DATE, FLOAT8, INT4, TEXT, Column, TableFacts

POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:x
privacy:
  {unit: customer, units: 1000, max_groups: 9, max_rows_per_group: 4, accounting: zcdp,
   budget: {epsilon: 5, delta: 1e-6}}
tables:
  customers:
    unit: c_id
    columns:
      status: {type: text}
      age: {type: integer, lower: 0, upper: 1100}
      born: {type: date, lower: 1900-01-01, upper: 2020-01-01}
      income: {type: double, lower: 0, upper: 999999}
roles:
  analyst: {budget: {epsilon: 2, delta: 1e-7}, epsilon: 0.1}
"""
COLUMNS = (("c_id", INT4), ("status", TEXT), ("age", INT4), ("born", DATE), ("income", FLOAT8))


def schema(*changes: tuple[str, str], unique: bool = False) -> Schema:
    text = POLICY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    keys = (frozenset({"c_id"}),) if unique else ()
    facts = TableFacts("customers", tuple(Column(name, of) for name, of in COLUMNS), keys)
    return resolve(parse(text, Path("shop.yaml")), {"customers": facts}, {})


def found(over: Schema) -> dict[str, PolicyAdvice]:
    return {str(advice.path[-1]): advice for advice in policy_advice(over)}


def test_everything_loose_is_asked_about_with_its_gain() -> None:
    advice = found(schema())
    assert set(advice) == {"epsilon", "customers", "status", "age", "born", "income"}
    assert advice["customers"].gain == pytest.approx(12)
    assert advice["age"].gain == 10
    assert advice["status"].gain == pytest.approx(2**0.5)
    assert "43,830 days, above max_keys (10,000)" in advice["born"].text
    assert "placeholder" in advice["income"].text


def test_tight_declarations_are_left_alone() -> None:
    tight = schema(
        ("    unit: c_id", "    unit: c_id\n    max_rows: 1"),
        ("status: {type: text}", "status: {type: text, values: [a, b]}"),
        ("upper: 1100", "upper: 100"),
        ("lower: 1900-01-01", "lower: 2000-01-01"),
        ("upper: 999999", "upper: 50000"),
        ("epsilon: 0.1", "epsilon: 2"),
        unique=True,
    )
    assert policy_advice(tight) == ()


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_the_error_and_the_number_of_statements_are_those_of_plans(accounting: str) -> None:
    over = schema(("accounting: zcdp", f"accounting: {accounting}"))
    role = over.policy.roles["analyst"]
    text = "SELECT age, COUNT(*) FROM customers GROUP BY age"
    made = compile_statement(text, over, Terms(Decimal("0.1"), Decimal("1e-7")))
    error = made.releases[0].measurements[0].error95
    assert count_error(over.tables["customers"], role, Decimal("0.1"), over) == pytest.approx(error)
    number = statements(role, Decimal("0.1"), over.policy.privacy)
    assert number == (20 if accounting == "pure" else number)
    assert f"The budget holds {number:,} statements" in found(over)["epsilon"].text
