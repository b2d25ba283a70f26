"""The durable, tamper-evident privacy filter: who may still ask, and what was answered.

Debits come before answers and are never given back. See `dpsql.ledger.model.Ledger` for the contract; here a ledger's
URL becomes a ledger. Serving opens, only `dpsql ledger init` makes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dpsql.ledger import audit, opening
from dpsql.ledger.books import granted_by
from dpsql.ledger.home import Home
from dpsql.ledger.model import (
    Ask,
    BudgetExhausted,
    Entry,
    Head,
    InFlight,
    Kind,
    Ledger,
    LedgerError,
    LimitsOf,
    Preview,
    Report,
    Source,
    Spending,
)
from dpsql.ledger.sqlite import SqliteHome
from dpsql.ledger.window import Calendar

__all__ = [
    "Ask",
    "BudgetExhausted",
    "Calendar",
    "Entry",
    "Head",
    "InFlight",
    "Kind",
    "Ledger",
    "LedgerError",
    "LimitsOf",
    "Preview",
    "Report",
    "Source",
    "Spending",
    "account_of",
    "anchor_of",
    "granted_by",
    "history",
    "home_of",
    "init_ledger",
    "open_ledger",
    "verify_ledger",
]


def init_ledger(url: str, dataset: str, anchor: str | None = None) -> Head:
    """Make a new dataset's ledger, or what an existing one lacks to remember its head. Raises LedgerError otherwise."""
    return opening.init(home_of(url, dataset), dataset, anchor_of(anchor))


def open_ledger(url: str, dataset: str, anchor: str | None = None) -> Ledger:
    """Verify and open the dataset's ledger for service, once per process. Raises LedgerError if there is any doubt."""
    return opening.open_(home_of(url, dataset), dataset, anchor_of(anchor))


def verify_ledger(url: str, dataset: str, anchor: str | None = None) -> Report:
    """Verify the whole ledger without changing it. Raises LedgerError with the first thing that is wrong."""
    return opening.verify(home_of(url, dataset), dataset, anchor_of(anchor))


def history(url: str, dataset: str, anchor: str | None = None) -> Iterator[Entry]:
    """All entries in order, each verified before it is given; an error at the end says that all is void."""
    with opening.proving(home_of(url, dataset), dataset, anchor_of(anchor), thorough=False) as (rows, books):
        yield from audit.reading(rows, books)


def account_of(user: str, role: str, shared: bool) -> str:
    """Whose budget a user's statements count against: their own, or their role's. No user's name has a space."""
    return f"role {role}" if shared else user


def home_of(url: str, dataset: str) -> Home:
    """Where the dataset's ledger is, by the policy's URL. Raises LedgerError for a URL of another kind."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite" and rest:
        return SqliteHome(Path(rest).absolute().resolve())
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, dataset)
    raise LedgerError(
        "the `ledger` of the policy is of no known kind",
        hint="Write `ledger: sqlite:FILE` or `ledger: postgresql://...`.",
    )


def _postgres(url: str, dataset: str) -> Home:
    try:
        from dpsql.ledger.postgres import PostgresHome
    except ImportError:
        raise LedgerError("a ledger in Postgres needs psycopg", hint="pip install 'dpsql[postgres]'") from None
    return PostgresHome(url, dataset)


def anchor_of(path: str | None) -> Path | None:
    return Path(path).absolute() if path else None
