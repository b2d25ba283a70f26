"""The measurements of `dpsql init --profile-with-epsilon`: asked and paid like any other statements.

Decides how the epsilon is shared out and what becomes of each answer. It makes the ledger of the new dataset, asks
under a policy of its own through the engine (so each debit is durable before the database is asked), and never asks
more than once: a ledger that exists is a reason to refuse.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import click

from dpsql.engine import Engine, open_engine
from dpsql.errors import BAD_PARAMETER, DpsqlError, Rejected
from dpsql.ledger import init_ledger
from dpsql.policy.draft import Plan
from dpsql.policy.draft_columns import Measured, Place
from dpsql.policy.draft_profile import (
    MOST_ROWS,
    Probe,
    bounds_of,
    next_rows,
    policy_of,
    probes,
    rounded,
    share,
    tail,
    values_of,
)
from dpsql.policy.load import parse
from dpsql.session.ports import CancelToken
from dpsql.types import Settings, Value

DELTA = Decimal("1e-9")
"""What finding categories may spend of delta; a tenth of what a draft proposes for the dataset."""

_USER = "init"


@dataclass(slots=True)
class _Found:
    """What has been released so far."""

    units: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    bounds: dict[Place, tuple[str, str]] = field(default_factory=dict)
    values: dict[Place, tuple[str, ...]] = field(default_factory=dict)


def profile(made: Plan, url: str, dataset: str, output: Path, epsilon: Decimal) -> Measured:
    """Measure what a draft leaves open, for `epsilon` in all. Raises Rejected before anything is spent."""
    if not made.decided:
        hint = "Say whom to protect: --unit TABLE.COLUMN, or --unit row."
        raise Rejected("A profile needs to know the privacy unit.", sqlstate=BAD_PARAMETER, hint=hint)
    policies = [parse(policy_of(made, dataset, url, epsilon, DELTA, rows), output) for rows in (1, MOST_ROWS)]
    wanted = probes(made)
    if share(epsilon, wanted) <= 0:
        raise Rejected("The epsilon is too small to be shared out.", sqlstate=BAD_PARAMETER)
    init_ledger(policies[0].ledger, dataset)
    found = _Found()
    with closing(open_engine(policies[0])) as engine:
        usable = [probe for probe in wanted if probe.what != "rows" and _accepted(engine, probe)]
        later = [probe for probe in wanted if probe.what == "rows"]
        part = share(epsilon, [*usable, *later])
        for probe in usable:
            _measure(engine, probe, part, found)
    with closing(open_engine(policies[1])) as engine:
        for probe in later:
            if _accepted(engine, probe):
                _measure(engine, probe, part, found)
    click.echo(f"profile: {_told(found)}; spent epsilon {epsilon} at most, in {policies[0].ledger}", err=True)
    return Measured(f"{epsilon}", f"{float(part):.2g}", found.units, found.rows, found.bounds, found.values)


def _accepted(engine: Engine, probe: Probe) -> bool:
    """Whether the statement can be asked at all; what is refused costs nothing and is left to a person."""
    try:
        engine.explain(_USER, probe.sql.replace("{tail}", "0.1"), 0, Settings(), (), "text", CancelToken())
    except Rejected:
        return False
    return True


def _measure(engine: Engine, probe: Probe, part: Decimal, found: _Found) -> None:
    outside = 0.0
    if "{tail}" in probe.sql:
        left = tail(found.units or 0, part, probe.points)
        if left is None:
            return
        outside = left
    sql = probe.sql.replace("1 - {tail}", f"{1 - outside:.4f}").replace("{tail}", f"{outside:.4f}")
    try:
        answer = engine.answer(_USER, sql, 0, Settings(epsilon=part * probe.shares), (), CancelToken())
    except DpsqlError as error:
        click.echo(f"not measured: {probe.what} of {probe.table} {probe.column}: {error.message}", err=True)
        return
    _keep(probe, answer.relation.rows, found)


def _keep(probe: Probe, rows: tuple[tuple[Value, ...], ...], found: _Found) -> None:
    place = (probe.table, probe.column)
    match probe.what:
        case "units":
            found.units = (found.units or 0) + rounded(_integer(rows[0][0]))
        case "values":
            if values := values_of([row[0] for row in rows if isinstance(row[0], str)]):
                found.values[place] = values
        case "rows":
            found.rows[probe.table] = next_rows(_integer(rows[0][0]))
        case "bounds" | "years":
            if bounds := bounds_of(probe, _integer(rows[0][0]), _integer(rows[0][1])):
                found.bounds[place] = bounds


def _integer(value: Value) -> int:
    return int(value) if isinstance(value, int | float | Decimal) else 0


def _told(found: _Found) -> str:
    units = f", about {found.units:,} units" if found.units else ""
    return f"{len(found.bounds)} bounds, {len(found.values)} lists of values, rows of {len(found.rows)} tables{units}"
