"""`dpsql demo attacks`: every attack beats what it was published against, and none beats dpsql.

At epsilon 1 an attacker of dpsql is right about one person with probability e/(1+e) = 0.73 at most; these attacks
reach about 0.5. More than 85 right of 100 has a probability below 1e-6; so has a failure of the other bounds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpsql.cli import dpsql
from dpsql.commands import demo_attacks
from dpsql.commands.demo_attack_plans import PLANS, Outcome, Plan
from dpsql.commands.demo_attack_targets import Hospital, build

LEAST = {
    ("Linkage", "exact counts"): 90,
    ("Differencing", "exact counts"): 100,
    ("Differencing", "groups under 5 hidden"): 100,
    ("Averaging", "exact counts"): 100,
    ("Averaging", "noise, no budget"): 75,
    ("Reconstruction", "exact counts"): 100,
    ("Reconstruction", "groups under 5 hidden"): 100,
    ("Reconstruction", "noise, no budget"): 90,
}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    return build(tmp_path_factory.mktemp("hospital"))


def attacked(hospital: Hospital, plan: Plan, target: str) -> Outcome:
    counts = demo_attacks.TARGETS[target](hospital, plan.questions(hospital))
    try:
        return plan.attack(hospital, counts)
    finally:
        counts.close()


@pytest.mark.parametrize(("plan", "target"), LEAST)
def test_the_attack_succeeds(hospital: Hospital, plan: str, target: str) -> None:
    [found] = [p for p in PLANS if p.name == plan]
    assert attacked(hospital, found, target).right >= LEAST[plan, target]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_dpsql_withstands(hospital: Hospital, plan: Plan) -> None:
    outcome = attacked(hospital, plan, "dpsql")
    assert outcome.right <= 85
    assert outcome.asked > outcome.refused


def test_the_screen_fits_and_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo_attacks, "PLANS", PLANS[:1])
    result = CliRunner().invoke(dpsql, ["demo", "attacks"])
    assert result.exit_code == 0
    assert max(len(line) for line in result.output.splitlines()) <= 80
    assert "Right about how many of 100 people" in result.output
    assert "Linkage" in result.output
