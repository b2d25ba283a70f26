"""Advice on statements: each gain is what the plan that follows the advice really gains."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from dpsql.compiler import Compiled, Terms, compile_statement
from dpsql.compiler.advice import Advice, Subject, advise, as_json, as_lines
from dpsql.policy.load import parse
from dpsql.policy.resolve import resolve
from dpsql.policy.schema import Schema
from dpsql.types import DATE, FLOAT8, INT4, TEXT, Column, TableFacts

TERMS = Terms(Decimal(1), Decimal("1e-7"))
MOST = Decimal(100)
POLICY = """
dpsql: 1
dataset: shop
backend: duckdb:x
privacy:
  {unit: customer, units: 1000, max_groups: 9, max_rows_per_group: 4, accounting: zcdp,
   budget: {epsilon: 5, delta: 1e-6}}
tables:
  orders:
    unit: c_id
    columns:
      shop: {type: text}
      kind: {type: text, values: [a, b, c, d]}
      day: {type: date, lower: 1900-01-01, upper: 2100-01-01}
      month: {type: integer, lower: 1, upper: 12}
      total: {type: double, lower: 0, upper: 1000}
  customers:
    unit: c_id
    max_rows: 1
"""
FACTS = {
    "orders": TableFacts(
        "orders",
        tuple(
            Column(name, of)
            for name, of in (
                ("c_id", INT4),
                ("shop", TEXT),
                ("kind", TEXT),
                ("day", DATE),
                ("month", INT4),
                ("total", FLOAT8),
            )
        ),
    ),
    "customers": TableFacts("customers", (Column("c_id", INT4),), (frozenset({"c_id"}),)),
}


def schema(old: str = "", new: str = "") -> Schema:
    assert old in POLICY
    return resolve(parse(POLICY.replace(old, new) if old else POLICY, Path("shop.yaml")), FACTS, {})


def compiled(text: str, terms: Terms = TERMS, over: Schema | None = None) -> Compiled:
    return compile_statement(text, over or schema(), terms)


def found(text: str, about: Subject, over: Schema | None = None) -> Advice:
    made = over or schema()
    (advice,) = [a for a in advise(compiled(text, over=made), made.policy.privacy, MOST) if a.about == about]
    return advice


def error(made: Compiled) -> float:
    """Of the last measurement."""
    return made.releases[0].measurements[-1].error95


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_declared_values_save_the_selection(accounting: str) -> None:
    text = "SELECT shop, COUNT(*) FROM orders GROUP BY shop"
    over = schema("accounting: zcdp", f"accounting: {accounting}")
    advice = found(text, "private_keys", over)
    assert "orders.shop" in advice.text
    listed = ", ".join(f"s{i}" for i in range(9))
    declared = resolve(
        parse(
            POLICY.replace("accounting: zcdp", f"accounting: {accounting}").replace(
                "shop: {type: text}", f"shop: {{type: text, values: [{listed}]}}"
            ),
            Path("shop.yaml"),
        ),
        FACTS,
        {},
    )
    gained = error(compiled(text, over=over)) / error(compiled(text, over=declared))
    assert advice.gain == pytest.approx(gained, rel=0.01)


@pytest.mark.parametrize("terms", [TERMS, replace(TERMS, mechanism="laplace")])
def test_fewer_groups_a_unit_gain_what_is_said(terms: Terms) -> None:
    text = "SELECT month, COUNT(*) FROM orders GROUP BY month"
    made = schema()
    (advice,) = [a for a in advise(compiled(text, terms), made.policy.privacy, MOST) if a.about == "max_groups"]
    tight = replace(terms, max_groups=1)
    assert advice.gain == pytest.approx(error(compiled(text, terms)) / error(compiled(text, tight)), rel=0.01)


@pytest.mark.parametrize(
    ("filtered", "moved"),
    [
        ("SUM(total) FILTER (WHERE total < 10)", "SUM(total) FROM orders WHERE total < 10"),
        ("SUM(total) FILTER (WHERE total BETWEEN 1 AND 50)", "SUM(total) FROM orders WHERE total BETWEEN 1 AND 50"),
        ("AVG(total) FILTER (WHERE total <= 100)", "AVG(total) FROM orders WHERE total <= 100"),
        ("SUM(CASE WHEN total < 10 THEN total END)", "SUM(total) FROM orders WHERE total < 10"),
        ("SUM(CASE WHEN total <= 10 THEN total * 2 ELSE 0 END)", "SUM(total * 2) FROM orders WHERE total <= 10"),
    ],
)
def test_a_filter_tightens_bounds_as_where_does(filtered: str, moved: str) -> None:
    assert error(compiled(f"SELECT {filtered} FROM orders")) == error(compiled(f"SELECT {moved}"))


def test_fewer_measurements_gain_what_is_said() -> None:
    many, one = "SELECT SUM(total), SUM(month), COUNT(*) FROM orders", "SELECT COUNT(*) FROM orders"
    advice = found(many, "measurements")
    assert advice.gain == pytest.approx(error(compiled(many)) / error(compiled(one)), rel=0.01)


def test_small_groups_are_compared_with_the_error() -> None:
    text = "SELECT kind, COUNT(*) FROM orders GROUP BY kind"
    advice = found(text, "small_groups")
    made = error(compiled(text))
    assert advice.gain == pytest.approx(made / 10)
    dear = compiled(text, replace(TERMS, epsilon=Decimal(100)))
    assert [a for a in advise(dear, schema().policy.privacy, MOST) if a.about == "small_groups"] == []


@pytest.mark.parametrize("most", [Decimal(1), Decimal(2), Decimal(100)])
def test_no_more_is_advised_than_may_be_paid(most: Decimal) -> None:
    """At 2, the groups that are said to be within 10 % are those that are when 2 is paid."""
    text = "SELECT kind, COUNT(*) FROM orders GROUP BY kind"
    made = advise(compiled(text), schema().policy.privacy, most)
    (words,) = [a.text for a in made if a.about == "small_groups"]
    paid = error(compiled(text, replace(TERMS, epsilon=most)))
    if most == 1:
        assert words.endswith("Ask for larger groups")
    elif most == 2:
        reached = int(words.rsplit(" ", 1)[1].replace(",", ""))
        assert f"pay epsilon 2, the most you may: then above {reached:,}" in words
        assert reached == pytest.approx(10 * paid, rel=0.1)
    else:
        assert "times the epsilon to know groups of 100" in words


def test_periods_too_short_for_public_groups_are_said_to_be() -> None:
    advice = found("SELECT day, COUNT(*) FROM orders GROUP BY day", "private_keys")
    assert "Longer periods" in advice.text
    assert "values" not in advice.text
    many = found("SELECT kind, month, date_trunc('month', day), COUNT(*) FROM orders GROUP BY 1, 2, 3", "too_many_keys")
    assert "max_keys (10,000)" in many.text


def test_an_average_over_wide_bounds_is_said_to_tell_nothing() -> None:
    advice = found("SELECT kind, AVG(total) FROM orders GROUP BY kind", "wide_bounds")
    assert "orders.total between its bounds (0 to 1,000)" in advice.text


def test_an_exact_enough_statement_needs_no_advice() -> None:
    made = compiled("SELECT COUNT(*) FROM customers", replace(TERMS, epsilon=Decimal(5)))
    assert advise(made, schema().policy.privacy, MOST) == ()
    assert as_lines(()) == []


def test_it_reads_well_and_as_json() -> None:
    made = schema()
    text = (
        "SELECT shop, month, AVG(total), SUM(total) FILTER (WHERE total < 3), MEDIAN(total) FROM orders GROUP BY 1, 2"
    )
    advice = advise(compiled(text), made.policy.privacy, MOST)
    assert all(line.startswith("Advice: ") and "t0_" not in line and "None" not in line for line in as_lines(advice))
    assert [set(entry) for entry in as_json(advice)] == [{"about", "text", "gain"}] * len(advice)
