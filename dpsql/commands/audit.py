"""`dpsql audit`: who asked what when, at which price, and what came of it.

Decides what an auditor reads: the statements that cost something and the operator's own acts from the ledger, which
proves them; with the trail that `dpsql serve --audit` writes, also what cost nothing: replays, refusals, logins. Never
shows a value from the data, for neither holds any.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from dpsql.errors import BAD_PARAMETER, Rejected
from dpsql.ledger import Entry, Kind, granted_by, history
from dpsql.ledger.balance import read, statement_delta
from dpsql.ledger.words import rounded_up
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.types import COST_UNIT, Cost

_ACTS: Final = (Kind.OPEN, Kind.GRANT, Kind.REVOKE, Kind.POLICY, Kind.ACCEPT, Kind.CLOCK, Kind.RESTORE, Kind.REFRESH)


@dataclass(frozen=True, slots=True)
class Line:
    """One event. `statement` is the fingerprint of its text; `price` what it cost the user, in words, as the ledger
    adds it up, and `epsilon` that cost by itself; `source` tells whether releases were made anew or given again."""

    at: str
    user: str
    event: str
    statement: str = ""
    epsilon: str = ""
    price: str = ""
    outcome: str = ""
    source: str = ""
    text: str = ""


@click.command()
@click.argument("policy", type=click.Path(path_type=Path))
@click.option("--trail", type=click.Path(path_type=Path), help="The file that `dpsql serve --audit` writes.")
@click.option("--user", help="Of this user alone.")
@click.option("--since", help="From this time on, as 2026-01-31 or 2026-01-31T12:00.")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
def audit(policy: Path, trail: Path | None, user: str | None, since: str | None, style: str) -> None:
    """Print who asked what when of POLICY's dataset, at which price, and how it ended."""
    loaded = load(policy)
    start = _time(since)
    entries = history(loaded.ledger, loaded.dataset, loaded.ledger_anchor)
    found = _of_ledger(entries, with_debits=trail is None)
    if trail is not None:
        found = sorted([*found, *_of_trail(trail)], key=lambda line: line.at)
    shown = [_priced(loaded, line) for line in found if line.at >= start and user in (None, line.user)]
    if style == "json":
        for line in shown:
            click.echo(json.dumps({name: value for name, value in asdict(line).items() if value}))
    else:
        Console(soft_wrap=True).print(_table(shown))


def _time(text: str | None) -> str:
    if text is None:
        return ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Rejected(f"--since takes a time as 2026-01-31T12:00, not {text!r}", sqlstate=BAD_PARAMETER) from None
    return _shown(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _shown(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _of_ledger(entries: Iterable[Entry], *, with_debits: bool) -> list[Line]:
    found: dict[int, Line] = {}
    for entry in entries:
        at = _shown(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=entry.at))
        if entry.kind is Kind.DEBIT and with_debits:
            found[entry.id] = _statement(entry, at, "no release", "made anew")
        elif entry.kind is Kind.RECORD and with_debits:
            found[entry.reservation] = replace(found[entry.reservation], outcome="released")
        elif entry.kind is Kind.VIEW:
            found[entry.id] = _statement(entry, at, "released", "first view of a stored release")
        elif entry.kind in _ACTS:
            found[entry.id] = Line(at, entry.user, entry.kind.value, price=_price(entry.cost), text=_act(entry))
    return list(found.values())


def _statement(entry: Entry, at: str, outcome: str, source: str) -> Line:
    return Line(at, entry.user, "statement", entry.statement, "", _price(entry.cost), outcome, source)


def _act(entry: Entry) -> str:
    """What an act decreed, where that is short."""
    if entry.kind in (Kind.GRANT, Kind.REVOKE):
        return f"epsilon {rounded_up(abs(granted_by(entry)))}"
    return _restored(entry.content) if entry.kind is Kind.RESTORE else ""


def _restored(content: str) -> str:
    """How many entries a restore lost, as far as the anchor could tell."""
    lost = json.loads(content)["lost"]
    return f"entries lost: {'unknown' if lost is None else lost}"


def _price(cost: Cost) -> str:
    """As the audit trail has it."""
    epsilon = "pure_epsilon" if cost.rho else "epsilon"
    parts = ((epsilon, cost.epsilon), ("rho", cost.rho), ("delta", cost.delta))
    return ", ".join(f"{name} {rounded_up(units)}" for name, units in parts if units)


def _priced(policy: Policy, line: Line) -> Line:
    """With the epsilon of its price: that itself, or rho read at the delta at which the user's statements are read.

    Users that are in the policy no more are read at the dataset's.
    """
    amounts = _amounts(line.price)
    if "rho" not in amounts:
        return replace(line, epsilon=amounts.get("epsilon", ""))
    known = policy.users.get(line.user)
    budget = policy.roles[known.role].budget if known is not None else None
    delta = statement_delta(policy, budget or policy.privacy.budget)
    epsilon = read(Cost(rho=int(Decimal(amounts["rho"]) / COST_UNIT)), delta)
    return replace(line, epsilon=f"{float(epsilon):.4g}")


def _of_trail(path: Path) -> Iterator[Line]:
    try:
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                yield _told(json.loads(text))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise Rejected(f"{path}: line {number} is not one of an audit trail") from None
    except OSError as error:
        raise Rejected(f"the trail {path} cannot be read: {error.strerror}") from None


def _told(line: dict[str, Any]) -> Line:
    at, user = _shown(datetime.fromisoformat(line["at"])), str(line.get("user") or "")
    event = str(line.get("event", "statement"))
    if event != "statement":
        return Line(at, user, event, outcome=str(line.get("sqlstate", "")))
    price = ", ".join(f"{name} {amount}" for name, amount in line["made"].items())
    outcome = " ".join(str(part) for part in (line["outcome"], line.get("sqlstate"), line.get("incident")) if part)
    source = ", ".join(
        f"{count} {what}" for count, what in ((line["releases"], "made anew"), (line["replayed"], "replayed")) if count
    )
    return Line(at, user, event, str(line["statement"]), "", price, outcome, source, str(line.get("text", "")))


def _amounts(price: str) -> dict[str, str]:
    return dict(part.split(" ") for part in price.split(", ") if part)


def _brief(amount: str) -> str:
    """To three digits."""
    return f"{float(amount):.3g}" if amount else ""


def _table(lines: Iterable[Line]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("at", "user", "event", "asked", "epsilon", "rho", "outcome", "source"):
        table.add_column(name, overflow="fold", no_wrap=name in ("at", "event", "asked", "epsilon", "rho"))
    for line in lines:
        table.add_row(
            line.at[:19].replace("T", " "),
            line.user,
            line.event,
            line.statement[:8],
            _brief(line.epsilon),
            _brief(_amounts(line.price).get("rho", "")),
            line.outcome,
            line.source or line.text,
        )
    return table
