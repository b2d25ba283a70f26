"""The four attacks of `dpsql demo attacks`: each asks counts, and then says of every person whether they are ill.

An attack is measured by how many of these are right. Where it has nothing to go by, it tosses a coin.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpsql.commands.demo_attack_targets import Counts, Hospital, Row

REPEATS = 30
"""How often the averaging attack asks each question."""
SUBSETS = 4
"""Random subsets that the reconstruction asks for, per person."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Right guesses, questions asked, and those that got no number."""

    right: int
    asked: int
    refused: int


@dataclass(frozen=True, slots=True)
class Plan:
    """An attack. `questions(hospital)` is how many different questions it asks."""

    name: str
    story: str
    source: str
    questions: Callable[[Hospital], int]
    attack: Callable[[Hospital, Counts], Outcome]


class _Line:
    """The attacker's line to a target: asks, and counts what was asked and what came back empty."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self.asked = 0
        self.refused = 0

    def rows(self, sql: str) -> list[Row]:
        self.asked += 1
        found = self._counts.ask(sql)
        if not found:
            self.refused += 1
        return found or []

    def number(self, sql: str) -> float | None:
        rows = self.rows(sql)
        return float(str(rows[0][-1])) if rows else None


def linkage(hospital: Hospital, counts: Counts) -> Outcome:
    """Looks everybody of the public register up by birth year, zip code and sex."""
    line = _Line(counts)
    sql = "SELECT birth_year, zip, sex, ill, COUNT(*) FROM patients GROUP BY birth_year, zip, sex, ill"
    found = {tuple(row[:-1]): float(str(row[-1])) for row in line.rows(sql)}
    evidence = []
    for person in hospital.people:
        looks = (person.birth_year, person.zip, person.sex)
        evidence.append(found.get((*looks, True), 0.0) - found.get((*looks, False), 0.0))
    return _outcome(hospital, evidence, line)


def differencing(hospital: Hospital, counts: Counts) -> Outcome:
    """Of two large groups that differ in one person, the counts tell of that person."""
    line = _Line(counts)
    everybody = line.number("SELECT COUNT(*) FROM patients WHERE ill")
    evidence = []
    for person in hospital.people:
        others = line.number(f"SELECT COUNT(*) FROM patients WHERE ill AND patient <> {person.patient}")
        evidence.append(0.0 if everybody is None or others is None else everybody - others - 0.5)
    return _outcome(hospital, evidence, line)


def averaging(hospital: Hospital, counts: Counts) -> Outcome:
    """Asks the same many times, in the hope that the noise averages out."""
    line = _Line(counts)
    evidence = []
    for person in hospital.people:
        sql = f"SELECT COUNT(*) FROM patients WHERE ill AND patient = {person.patient}"
        answers = [a for a in (line.number(sql) for _ in range(REPEATS)) if a is not None]
        evidence.append(sum(answers) / len(answers) - 0.5 if answers else 0.0)
    return _outcome(hospital, evidence, line)


def reconstruction(hospital: Hospital, counts: Counts) -> Outcome:
    """Counts the ill of many random halves of the people, and solves the linear equations by least squares."""
    line = _Line(counts)
    people = len(hospital.people)
    chance = np.random.default_rng(secrets.randbits(64))
    picked, answers = [], []
    for _ in range(SUBSETS * people):
        subset = chance.random(people) < 0.5
        chosen = ", ".join(str(p.patient) for p, inside in zip(hospital.people, subset, strict=True) if inside)
        answer = line.number(f"SELECT COUNT(*) FROM patients WHERE ill AND patient IN ({chosen})")
        if answer is not None:
            picked.append(subset)
            answers.append(answer)
    if not picked:
        return _outcome(hospital, [0.0] * people, line)
    solved = np.linalg.lstsq(np.array(picked, dtype=float), np.array(answers), rcond=None)[0]
    return _outcome(hospital, [float(x) - 0.5 for x in solved], line)


def _outcome(hospital: Hospital, evidence: Sequence[float], line: _Line) -> Outcome:
    """Positive evidence means ill, none means a coin."""
    said = [e > 0 if e else secrets.randbelow(2) == 1 for e in evidence]
    right = sum(guess == person.ill for guess, person in zip(said, hospital.people, strict=True))
    return Outcome(right, line.asked, line.refused)


PLANS = (
    Plan(
        "Linkage",
        "A public register knows names with birth year, zip code and sex. Where these single a person out, one "
        "GROUP BY tells the illness with the name.",
        "Sweeney, Simple Demographics Often Identify People Uniquely, 2000",
        lambda hospital: 1,
        linkage,
    ),
    Plan(
        "Differencing",
        "Two questions about large groups that differ in one person: all who are ill, and all who are ill but for "
        "patient 7.",
        "Denning, Denning and Schwartz, The Tracker, 1979",
        lambda hospital: len(hospital.people) + 1,
        differencing,
    ),
    Plan(
        "Averaging",
        f"The same question about one person, {REPEATS} times; the mean of the answers loses the noise.",
        "Dwork and Roth, The Algorithmic Foundations of Differential Privacy, 2014, section 1",
        lambda hospital: len(hospital.people),
        averaging,
    ),
    Plan(
        "Reconstruction",
        f"How many are ill in each of {SUBSETS} random halves a person; least squares solves for everybody at once.",
        "Dinur and Nissim, Revealing Information while Preserving Privacy, 2003",
        lambda hospital: SUBSETS * len(hospital.people),
        reconstruction,
    ),
)
