"""Copies of a ledger: backups made while it is served, a backup in the place of a lost ledger, and exports.

Decides what a copy must prove before it counts. A backup is itself a ledger in a SQLite file, whatever store it comes
from. Must never overwrite a ledger, nor forget spending silently: where the anchor knows of more than the backup holds,
a restored ledger begins with an entry that debits the difference from the dataset.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from math import sqrt
from pathlib import Path

from dpsql.dp.privacy import UNITS, amount
from dpsql.ledger import anchor as anchors
from dpsql.ledger import audit, opening, shelf
from dpsql.ledger.anchor import Mark
from dpsql.ledger.balance import Reading
from dpsql.ledger.books import Books, chained, difference
from dpsql.ledger.chain import draft, to_row
from dpsql.ledger.clock import reading
from dpsql.ledger.events import Named, from_content
from dpsql.ledger.home import Home
from dpsql.ledger.model import Entry, Kind, LedgerDamaged, LedgerError, LedgerUnavailable, Report
from dpsql.ledger.places import compare
from dpsql.ledger.rows import Rows
from dpsql.ledger.sqlite import SqliteHome
from dpsql.ledger.words import plain
from dpsql.types import Cost


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restored ledger holds: how many entries are lost, and what was debited for them."""

    report: Report
    lost: int | None
    """None: nothing is left that could tell."""
    charged: Cost


def backup(home: Home, dataset: str, anchor: Path | None, target: Path) -> Report:
    """Copy the ledger as it is now, while others write to it; the copy is verified, durable and never half of one."""
    copy = SqliteHome(target.absolute())
    _refuse_existing(copy)
    with opening.proving(home, dataset, anchor, thorough=False) as (rows, books):
        copy.build(partial(_copy, rows, books=books))
    report = audit.report(books)
    if opening.verify(copy, dataset, None) != report:
        raise LedgerError(f"the backup {target} is not what was copied")
    return report


def _refuse_existing(copy: SqliteHome) -> None:
    for path in (copy.path, *copy.remains()):
        if path.exists():
            raise LedgerError(f"{path} exists already", hint="Name a file that does not exist.")


def _copy(rows: Rows, into: Rows, books: Books) -> None:
    """All entries, verified as they are read, and all releases."""
    for entry in audit.reading(rows, books):
        into.add([to_row(entry)])
    for release in rows.releases():
        into.add_release(*release)
    for shape in rows.shapes():
        into.add_shape(*shape)
    if (kept := rows.checkpoint()) is not None:
        into.keep_checkpoint(*kept)


def restore(home: Home, dataset: str, anchor: Path | None, source: Path, *, accept_loss: bool) -> Restored:
    """Put a backup in the place of a ledger that is gone or broken; what was there is moved aside.

    Without the operator's word (`accept_loss`), only where a second place proves that nothing is missing.
    """
    backed_up = SqliteHome(source.absolute())
    report = opening.verify(backed_up, dataset, None)
    _refuse_whole(home, dataset, anchor)
    mark = _newest(home, anchor, backed_up, report)
    lost = None if mark is None else max(0, mark.head.count - report.head.count)
    if lost != 0 and not accept_loss:
        raise _missing(source, lost)
    charged = Cost() if mark is None else _unknown(mark.spent, report.dataset_spent)
    if home.exists():
        home.set_aside()
    home.build(lambda into: _copy_and_charge(backed_up, into, charged, lost))
    made = _verified_alone(home, dataset)
    for place in opening.places_of(home, anchor):
        anchors.replace(place, opening.mark_of(made))
    return Restored(made, lost, charged)


def _refuse_whole(home: Home, dataset: str, anchor: Path | None) -> None:
    """Only what is gone, or was read and does not prove itself, may be replaced: not what is only out of reach now."""
    try:
        if not home.exists():
            return
        opening.verify(home, dataset, anchor if anchor is not None and anchor.exists() else None)
    except LedgerDamaged:
        return
    except LedgerUnavailable as error:
        hint = "Try again when that has passed. Where the ledger is lost for good, move what is left of it aside first."
        raise LedgerUnavailable(error.message, hint=hint) from None
    raise LedgerError(f"the ledger {home.name} is whole: there is nothing to restore")


def _newest(home: Home, anchor: Path | None, backed_up: Home, report: Report) -> Mark | None:
    """The newest head that a second place remembers. Raises LedgerError if the backup is not of that ledger."""
    marks = {place: anchors.read(place) for place in opening.places_of(home, anchor) if place.exists()}
    held = {
        place: mark
        for place, mark in marks.items()
        if mark.ledger != report.ledger or mark.head.count <= report.head.count
    }
    with backed_up.snapshot(thorough=False) as rows:
        compare(held, report.ledger, report.head.count, partial(shelf.entry_at, rows))
    return max(marks.values(), key=lambda mark: mark.head.count, default=None)


def _missing(source: Path, lost: int | None) -> LedgerError:
    what = "nothing is left that tells whether it is the newest" if lost is None else f"{lost} later entries are lost"
    return LedgerError(
        f"{source} may be an older copy: {what}",
        hint="Look for a newer backup. If there is none, `--accept-loss` restores it; what the anchor knows to have "
        "been spent since is debited from the dataset.",
    )


def _unknown(spent: Cost, known: Cost) -> Cost:
    more = difference(spent, known)
    return Cost(max(0, more.epsilon), max(0, more.rho), max(0, more.delta))


def _copy_and_charge(source: Home, into: Rows, charged: Cost, lost: int | None) -> None:
    books = Books()
    with source.snapshot(thorough=False) as rows:
        _copy(rows, into, books)
    if lost == 0:
        return
    now = reading()
    content = json.dumps({"after": books.head.count, "lost": lost}, separators=(",", ":"))
    gate = "rho" if books.rho_gated else ""
    entry = draft(Kind.RESTORE, at=now.wall, clock=str(now), gate=gate, cost=charged, content=content)
    into.add(to_row(entry) for entry in chained(books, [entry]))


def _verified_alone(home: Home, dataset: str) -> Report:
    """Verified without the second places, which are about to be written anew."""
    books = Books()
    with home.snapshot(thorough=True) as rows:
        for _ in audit.reading(rows, books):
            pass
    report = audit.report(books)
    if report.dataset != dataset:
        raise LedgerError(f"the ledger {home.name} is that of dataset {report.dataset!r}")
    return report


# Exports ------------------------------------------------------------------------------------------------------------


def export(home: Home, dataset: str, anchor: Path | None, reading: Reading) -> Iterator[str]:
    """The entries as lines of JSON, each verified before it is given; an error at the end says that all is void."""
    with opening.proving(home, dataset, anchor, thorough=False) as (rows, books):
        for entry in audit.reading(rows, books):
            yield json.dumps(_as_json(entry, reading))


def _as_json(entry: Entry, reading: Reading) -> dict[str, object]:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=entry.at)
    return {
        "id": entry.id,
        "at": at.isoformat(timespec="microseconds"),
        "kind": entry.kind.value,
        "user": entry.user,
        "account": entry.account,
        "window": entry.window,
        "key": entry.key,
        "statement": entry.statement,
        "reservation": entry.reservation,
        "gate": entry.gate,
        "cost": _amounts(entry.cost, reading(entry.account, entry.cost)),
        "events": [_event(*event) for event in _events(entry)],
        "account_total": _amounts(entry.account_total, reading(entry.account, entry.account_total)),
        "dataset_total": _amounts(entry.dataset_total, reading(None, entry.dataset_total)),
        "clock": entry.clock,
        "content": entry.content,
        "hash": entry.hash,
    }


def _events(entry: Entry) -> tuple[Named, ...]:
    return from_content(entry.content, entry.cost) if entry.kind in (Kind.DEBIT, Kind.VIEW) else ()


def _amounts(cost: Cost, epsilon: Decimal) -> dict[str, str]:
    """All that the chain's hash covers, exact, and the whole as one epsilon, as `dpsql budget show` reads it."""
    parts = (("rho", cost.rho), ("pure_epsilon", cost.epsilon), ("delta", cost.delta))
    return {"epsilon": plain(epsilon)} | {name: f"{amount(units):f}" for name, units in parts}


def _event(name: str, units: int) -> dict[str, object]:
    """In dp_accounting's terms; the exact amount stands beside the float.

    Two have no event of their own there: a choice, of which pure epsilon-DP is all that may be assumed (its
    `pld.privacy_loss_distribution.from_privacy_parameters`), and key selection, whose delta adds up.
    """
    match name:
        case "gaussian":
            return {
                "event": "GaussianDpEvent",
                "noise_multiplier": sqrt(UNITS / (2 * units)),
                "rho": f"{amount(units):f}",
            }
        case "laplace":
            return {"event": "LaplaceDpEvent", "noise_multiplier": UNITS / units, "epsilon": f"{amount(units):f}"}
        case "choice":
            return {"event": "choice", "epsilon": f"{amount(units):f}"}
        case _:
            return {"event": "delta", "delta": f"{amount(units):f}"}
