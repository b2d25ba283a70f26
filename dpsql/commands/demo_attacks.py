"""`dpsql demo attacks`: four published attacks on one hospital's table, against four ways of answering.

Decides what is compared and how it is told. The people are made up; the attacks and all answers are real: dpsql's come
from an engine with a policy, a backend and a ledger in a folder that is gone afterwards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from dpsql.commands.demo_attack_plans import PLANS, Outcome, Plan
from dpsql.commands.demo_attack_targets import BUDGET, Counts, Hospital, build, exact, noisy, protected, suppressed

Openers = Mapping[str, Callable[[Hospital, int], Counts]]

TARGETS: Openers = {
    "exact counts": exact,
    "groups under 5 hidden": suppressed,
    "noise, no budget": noisy,
    "dpsql": protected,
}
WIDTH = 78


@dataclass(frozen=True, slots=True)
class Score:
    """How an attack on one way of answering ended."""

    target: str
    outcome: Outcome


@click.command(short_help="Run four attacks on other ways to answer, and on dpsql.")
def attacks() -> None:
    """Run four attacks on exact counts, on hidden small groups, on noise without a budget, and on dpsql."""
    console = Console(width=WIDTH, highlight=False)
    with tempfile.TemporaryDirectory(prefix="dpsql-attacks-") as folder:
        hospital = build(Path(folder))
        _introduce(console, hospital)
        scores: dict[str, tuple[Score, ...]] = {}
        for plan in PLANS:
            console.print(f"[bold]{plan.name}[/]. {plan.story}\n[dim]{plan.source}[/]\n")
            scores[plan.name] = tuple(_tried(console, hospital, plan, name) for name in TARGETS)
            console.print()
    console.print(_summary(scores, len(hospital.people)))
    console.print(_conclusion())


def _tried(console: Console, hospital: Hospital, plan: Plan, target: str) -> Score:
    """`plan` against one target, which starts with a whole budget: each attacker gets all of it."""
    counts = TARGETS[target](hospital, plan.questions(hospital))
    try:
        outcome = plan.attack(hospital, counts)
    finally:
        counts.close()
    unanswered = f", {outcome.refused:,} unanswered" if outcome.refused else ""
    console.print(f"  {target:<22} {outcome.right:>4} right   [dim]{outcome.asked:,} asked{unanswered}[/]")
    return Score(target, outcome)


def _introduce(console: Console, hospital: Hospital) -> None:
    people = len(hospital.people)
    console.print(
        f"A hospital's table has {people} patients: birth year, zip code, sex, and whether they have the illness "
        f"(about every second one has). Only counts can be asked for. The attacker knows who is in the table, and "
        f"says of each person: ill, or not. A coin is right for about {people // 2}.\n"
    )


def _summary(scores: Mapping[str, tuple[Score, ...]], people: int) -> Table:
    table = Table(title=f"Right about how many of {people} people (a coin: about {people // 2})", width=WIDTH)
    table.add_column("attack")
    for target in TARGETS:
        table.add_column(target, justify="right")
    for name, row in scores.items():
        table.add_row(name, *(str(score.outcome.right) for score in row))
    return table


def _conclusion() -> str:
    return (
        "\nHiding small groups stops the direct look, not arithmetic. Noise stops one question, not many: without a "
        "budget it averages away. dpsql answers the same question with the same noise, adds up what all answers tell, "
        f"and stops: here at epsilon {BUDGET}, by which whatever the attacker concludes of a person is at most "
        "e = 2.7 times as likely as without that person's row (but for a probability of 1 in a million)."
    )
