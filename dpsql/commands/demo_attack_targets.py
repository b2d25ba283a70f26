"""The hospital's table and four ways of answering counts over it: what the attacks of `dpsql demo attacks` face.

All four take the same SQL, whose last column is a count. Only `protected` is a product; the other three stand for what
is common: exact counts, counts of small groups hidden, and fresh Laplace noise on each count without a ledger.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from math import isqrt
from pathlib import Path

import duckdb

from dpsql.dp.mechanisms import DiscreteLaplace
from dpsql.dp.noise import draw
from dpsql.errors import BUDGET_EXHAUSTED, Rejected
from dpsql.ledger import init_ledger
from dpsql.policy.load import load
from dpsql.shell.local import open_session, run

PEOPLE = 100
SMALLEST = 5
"""Groups of fewer people are hidden."""
NOISE = DiscreteLaplace(1.0)
"""Of each noisy count: epsilon 1 for one question, and nobody counts the questions."""
BUDGET = 1
"""dpsql's epsilon for all questions together."""

Row = tuple[object, ...]

_POLICY = """\
dpsql: 1
dataset: hospital
backend: duckdb:{folder}/hospital.duckdb
ledger: sqlite:{folder}/{ledger}
epoch: "1"
privacy:
  unit: patient
  units: 100
  max_groups: 1
  max_rows_per_group: 1
  budget: {{epsilon: {budget}, delta: 1e-6}}
tables:
  patients:
    unit: patient
    max_rows: 1
    columns:
      birth_year: {{type: integer, lower: 1940, upper: 1999}}
      zip: {{type: text, values: [{zips}]}}
      sex: {{type: text, values: [f, m]}}
      ill: {{type: boolean}}
roles:
  analyst: {{budget: {{epsilon: {budget}, delta: 1e-6}}, epsilon: {budget}}}
users:
  mallory: {{role: analyst}}
"""
_ZIPS = ("10001", "10002", "10003", "10004", "10005")


@dataclass(frozen=True, slots=True)
class Person:
    """What a public register knows of a patient, and the secret."""

    patient: int
    birth_year: int
    zip: str
    sex: str
    ill: bool


@dataclass(frozen=True, slots=True)
class Hospital:
    """The people, and the folder that holds their database."""

    folder: Path
    people: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """One way of answering: rows, or None where nothing is answered."""

    ask: Callable[[str], list[Row] | None]
    close: Callable[[], None]


def build(folder: Path) -> Hospital:
    """The same made-up people each time, in a DuckDB file."""
    chance = random.Random(1)
    people = tuple(
        Person(i, chance.randint(1940, 1999), chance.choice(_ZIPS), chance.choice("fm"), chance.random() < 0.5)
        for i in range(PEOPLE)
    )
    with duckdb.connect(str(folder / "hospital.duckdb")) as database:
        database.execute("CREATE TABLE patients (patient INTEGER, birth_year INTEGER, zip TEXT, sex TEXT, ill BOOLEAN)")
        rows = [(p.patient, p.birth_year, p.zip, p.sex, p.ill) for p in people]
        database.executemany("INSERT INTO patients VALUES (?, ?, ?, ?, ?)", rows)
    return Hospital(folder, people)


def exact(hospital: Hospital, questions: int) -> Counts:
    """The database itself, which never changes."""
    database = duckdb.connect(str(hospital.folder / "hospital.duckdb"), read_only=True)
    return Counts(cache(lambda sql: database.execute(sql).fetchall()), database.close)


def suppressed(hospital: Hospital, questions: int) -> Counts:
    """Exact counts of at least SMALLEST people; smaller groups are missing."""
    counts = exact(hospital, questions)
    return Counts(lambda sql: [r for r in counts.ask(sql) or [] if _count(r) >= SMALLEST], counts.close)


def noisy(hospital: Hospital, questions: int) -> Counts:
    """Each count with fresh noise, however often it is asked."""
    counts = exact(hospital, questions)

    def ask(sql: str) -> list[Row]:
        rows = counts.ask(sql) or []
        noise = draw(NOISE, len(rows))
        return [(*row[:-1], _count(row) + int(n)) for row, n in zip(rows, noise, strict=True)]

    return Counts(ask, counts.close)


def protected(hospital: Hospital, questions: int) -> Counts:
    """dpsql with a whole budget, spread evenly over `questions` different ones (budgets add up in squares)."""
    ledger = f"{questions}.ledger"
    path = hospital.folder / "policy.yaml"
    zips = ", ".join(f'"{z}"' for z in _ZIPS)
    path.write_text(_POLICY.format(folder=hospital.folder, ledger=ledger, budget=BUDGET, zips=zips), "utf-8")
    policy = load(path)
    for old in hospital.folder.glob(f"{ledger}*"):
        old.unlink()
    init_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    stack = ExitStack()
    epsilon = BUDGET / (isqrt(questions - 1) + 1)
    session = stack.enter_context(open_session(path, "mallory", (("dpsql.epsilon", f"{epsilon:.4f}"),)))

    def ask(sql: str) -> list[Row] | None:
        try:
            return [tuple(row) for result in run(session, sql) for row in result.rows]
        except Rejected as refusal:
            if refusal.sqlstate != BUDGET_EXHAUSTED:
                raise
            return None

    return Counts(ask, stack.close)


def _count(row: Row) -> int:
    count = row[-1]
    assert isinstance(count, int)
    return count
