"""Randomized columns: counts of them alone are free, unbiased and have honest error bars; all else is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from dpsql.dp.randomized import response
from dpsql.engine import Engine, open_engine
from dpsql.errors import Rejected
from dpsql.ledger import init_ledger
from dpsql.policy.changes import changes, terms
from dpsql.policy.load import load, parse
from dpsql.policy.problems import PolicyError
from dpsql.session.ports import CancelToken
from dpsql.types import Cost, Relation, Settings

VALUES = ("never", "once", "often", "don't know")
SHARES = (0.5, 0.3, 0.15, 0.05)
EPSILON = Decimal("1.2")
PEOPLE = 20_000
POLICY = """
dpsql: 1
dataset: survey
backend: duckdb:{folder}/survey.duckdb
ledger: sqlite:{folder}/survey.ledger
privacy: {{unit: person, units: 20000, max_groups: 1, max_rows_per_group: 1, budget: {{epsilon: 1, delta: 1e-6}}}}
tables:
  survey:
    unit: person
    max_rows: 1
    columns:
      age: {{type: integer, lower: 18, upper: 99}}
      answer: {{type: text, randomized_response: {{epsilon: 1.2, values: [never, once, often, don't know]}}}}
  other: {{unit: person, columns: {{answer: {{type: text}}}}}}
views: {{answers: SELECT answer FROM survey}}
roles:
  analyst: {{budget: {{epsilon: 1, delta: 1e-7}}}}
  outsider: {{budget: {{epsilon: 1, delta: 1e-7}}, tables: [other]}}
users: {{ann: {{role: analyst}}, bob: {{role: outsider}}}}
"""


def randomized(truth: int, chance: random.Random) -> int:
    """What a person answers."""
    keep = response(EPSILON, len(VALUES)).keep
    if chance.random() < keep:
        return truth
    return chance.choice([i for i in range(len(VALUES)) if i != truth])


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("local")
    chance = random.Random(7)
    truths = chance.choices(range(len(VALUES)), SHARES, k=PEOPLE)
    with duckdb.connect(str(folder / "survey.duckdb")) as connection:
        connection.execute("CREATE TABLE survey (person INTEGER, age INTEGER, answer TEXT)")
        connection.execute("CREATE TABLE other (person INTEGER, answer TEXT)")
        rows = [(i, 18 + i % 80, VALUES[randomized(t, chance)]) for i, t in enumerate(truths)]
        connection.execute(
            "INSERT INTO survey SELECT unnest(?), unnest(?), unnest(?)",
            [list(part) for part in zip(*rows, strict=True)],
        )
        connection.execute("INSERT INTO survey VALUES (-1, 30, NULL), (-2, 30, 'spoiled'), (NULL, NULL, 'once')")
    (folder / "policy.yaml").write_text(POLICY.format(folder=folder), "utf-8")
    policy = load(folder / "policy.yaml")
    init_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    opened = open_engine(policy)
    yield opened
    opened.close()


def asked(engine: Engine, statement: str, user: str = "ann") -> Relation:
    return engine.answer(user, statement, 0, Settings(epsilon=Decimal("0.2")), (), CancelToken()).relation


def numbers(relation: Relation) -> dict[object, list[float]]:
    return {row[0]: [float(str(value)) for value in row[1:]] for row in relation.rows}


def test_counts_are_debiased_and_free(engine: Engine) -> None:
    statement = (
        "SELECT answer, COUNT(*), dp_stddev(COUNT(*)), dp_interval_low(COUNT(*)), dp_interval_high(COUNT(*)) "
        "FROM survey GROUP BY answer"
    )
    found = numbers(asked(engine, statement))
    assert set(found) == set(VALUES)
    for value, share in zip(VALUES, SHARES, strict=True):
        count, deviation, low, high = found[value]
        assert abs(count - share * PEOPLE) < 6 * math.hypot(deviation, math.sqrt(PEOPLE * share))
        assert high - low == pytest.approx(2 * 1.96 * deviation)
    assert engine.ledger.dataset_spent() == Cost()


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("SELECT COUNT(*) FROM survey WHERE answer IN ('never', 'once', 'often', 'don''t know')", PEOPLE + 1),
        ("SELECT COUNT(answer) FROM survey WHERE answer = 'nobody'", 0),
        ("SELECT COUNT(*) - COUNT(*) FILTER (WHERE answer <> 'once') - COUNT(*) FILTER (WHERE answer = 'once') "
         "FROM survey AS s WHERE s.answer IS NOT NULL", 0),
    ],
)  # fmt: skip
def test_sets_of_values_add_up(engine: Engine, statement: str, value: int) -> None:
    ((found,),) = asked(engine, statement).rows
    assert found == value


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT DISTINCT answer FROM survey",
        "SELECT s.answer AS a, COUNT(*) AS n FROM survey s GROUP BY 1 HAVING COUNT(*) > 100 ORDER BY n DESC LIMIT 2",
        "SELECT answer, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () FROM survey GROUP BY answer",
        "WITH c AS (SELECT answer, COUNT(*) AS n FROM survey GROUP BY answer) SELECT MAX(n) FROM c",
        "SELECT (SELECT COUNT(*) FROM survey WHERE answer = 'once') AS once",
        "SELECT answer, COUNT(*) FROM public.survey GROUP BY answer UNION ALL SELECT 'x', 1",
    ],
)
def test_queries_over_the_counts(engine: Engine, statement: str) -> None:
    assert asked(engine, statement).rows
    assert engine.ledger.dataset_spent() == Cost()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) FROM survey WHERE answer = 'once' AND age > 40",
        "SELECT answer, age, COUNT(*) FROM survey GROUP BY answer, age",
        "SELECT answer FROM survey",
        "SELECT *, answer FROM survey",
        "SELECT person FROM survey WHERE answer = 'once'",
        "SELECT answer, AVG(age) FROM survey GROUP BY answer",
        "SELECT MIN(answer) FROM survey GROUP BY answer",
        "SELECT COUNT(DISTINCT answer) FROM survey",
        "SELECT survey.answer, COUNT(*) FROM survey JOIN other USING (person) GROUP BY survey.answer",
        "SELECT COUNT(*) FROM (SELECT age, answer FROM survey) AS q",
        "SELECT COUNT(*) FROM answers",
    ],
)
def test_what_mixes_is_refused(engine: Engine, statement: str) -> None:
    with pytest.raises(Rejected, match=r"randomized when it was collected"):
        asked(engine, statement)
    assert engine.ledger.dataset_spent() == Cost()


@pytest.mark.parametrize("statement", ["SELECT COUNT(*) FROM (SELECT * FROM survey) AS q WHERE q.answer = 'once'"])
def test_no_other_way_leads_to_the_column(engine: Engine, statement: str) -> None:
    with pytest.raises(Rejected, match="answer"):
        asked(engine, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT answer, COUNT(*) FROM survey GROUP BY answer",
        "SELECT answer, age FROM survey",
        "SELECT COUNT(*) FROM other JOIN survey USING (person) WHERE survey.answer = 'once'",
        'SELECT * FROM "survey.answer"',
    ],
)
def test_a_role_without_the_table_sees_nothing(engine: Engine, statement: str) -> None:
    """Not even which column of it was randomized, or when."""
    with pytest.raises(Rejected, match=r'relation "survey[.a-z]*" does not exist') as caught:
        asked(engine, statement, "bob")
    assert "randomized" not in f"{caught.value.message} {caught.value.hint} {caught.value.detail}"


@pytest.mark.parametrize(
    "statement",
    [
        'SELECT * FROM "survey.answer"',
        'SELECT COUNT(*) FROM "survey.answer"',
        'SELECT COUNT(*) FROM other JOIN "survey.answer" AS s ON s.answer = other.answer',
        'SELECT COUNT(*) FROM other WHERE answer IN (SELECT answer FROM "survey.answer")',
    ],
)
def test_the_counts_themselves_have_no_name(engine: Engine, statement: str) -> None:
    """They are read by the queries above alone: raw, they are biased, and beside private rows nothing knows them."""
    with pytest.raises(Rejected, match=r'"survey.answer" does not exist'):
        asked(engine, statement)


def test_no_name_stands_before_the_counts(engine: Engine) -> None:
    own = """WITH "survey.answer" AS (SELECT 'once' AS answer, 5 AS _given, 9 AS _rows) """
    plain = "SELECT answer, COUNT(*) FROM survey GROUP BY answer"
    assert asked(engine, own + plain).rows == asked(engine, plain).rows


def test_counts_beside_other_queries(engine: Engine) -> None:
    """Each by its own rules: a query inside another is debiased, or paid for, as it is alone."""
    beside = "SELECT answer, COUNT(*), (SELECT COUNT(*) FROM other) FROM survey GROUP BY answer"
    (others,) = {row[2] for row in asked(engine, beside).rows}
    assert isinstance(others, int)
    assert abs(others) < 1000
    above = (
        "SELECT answer FROM survey GROUP BY 1 HAVING COUNT(*) > (SELECT COUNT(*) FROM survey WHERE answer = 'often')"
    )
    assert {row[0] for row in asked(engine, above).rows} == {"never", "once"}


def test_renamed_columns_are_what_they_stand_for(engine: Engine) -> None:
    with pytest.raises(Rejected, match="never returned"):
        asked(engine, "SELECT answer FROM survey AS s (person, answer)")
    before = engine.ledger.dataset_spent()
    asked(engine, "SELECT COUNT(*) FROM survey AS s (person, answer) WHERE answer > 40")
    assert engine.ledger.dataset_spent() != before


def test_other_columns_cost_as_ever(engine: Engine) -> None:
    asked(engine, "SELECT COUNT(*) FROM survey WHERE age > 40")
    assert engine.ledger.dataset_spent() != Cost()


@pytest.mark.parametrize("values", [2, 3, 10])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_one_answer_tells_no_more_than_epsilon(epsilon: str, values: int) -> None:
    model = response(Decimal(epsilon), values)
    assert model.keep + (values - 1) * model.other == pytest.approx(1)
    assert model.keep / model.other == pytest.approx(math.exp(float(epsilon)))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("epsilon: 1.2, values", "epsilon: 0, values", "epsilon of the collection"),
        ("[never, once, often, don't know]", "[never]", "less than 2"),
        ("randomized_response:", "lower: 1, randomized_response:", "remove it"),
        ("{type: text, randomized", "{randomized", "is missing"),
        ("survey:\n    unit: person\n    max_rows: 1", "survey:\n    public: true", "public table"),
    ],
)
def test_declarations_without_sense(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = POLICY.format(folder=tmp_path)
    assert old in text
    with pytest.raises(PolicyError, match=words):
        parse(text.replace(old, new), tmp_path / "policy.yaml")


def test_making_a_column_free_weakens_the_policy(tmp_path: Path) -> None:
    text = POLICY.format(folder=tmp_path)
    response = "randomized_response: {epsilon: 1.2, values: [never, once, often, don't know]}"
    before = parse(text.replace(response, "values: [never, once]"), tmp_path / "a.yaml")
    (change,) = changes(terms(before), terms(parse(text, tmp_path / "b.yaml")))
    assert change.weaker
