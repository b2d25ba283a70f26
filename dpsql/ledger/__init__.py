"""The durable, tamper-evident privacy filter: who may still ask, and what was answered.

Debits come before answers and are never given back. See `dpsql.ledger.model.Ledger` for the contract; here a ledger's
URL becomes a ledger. Serving opens, only `dpsql ledger init` makes one.
"""

from __future__ import annotations

from pathlib import Path

from dpsql.ledger.model import (
    Ask,
    BudgetExhausted,
    Entry,
    Head,
    Kind,
    Ledger,
    LedgerError,
    LimitsOf,
    Preview,
    Report,
    Source,
    Spending,
)
from dpsql.ledger.opening import init_sqlite, open_sqlite, verify_sqlite
from dpsql.ledger.window import Calendar

__all__ = [
    "Ask",
    "BudgetExhausted",
    "Calendar",
    "Entry",
    "Head",
    "Kind",
    "Ledger",
    "LedgerError",
    "LimitsOf",
    "Preview",
    "Report",
    "Source",
    "Spending",
    "account_of",
    "init_ledger",
    "open_ledger",
    "verify_ledger",
]


def init_ledger(url: str, dataset: str, anchor: str | None = None) -> Head:
    """Make a new dataset's ledger, or the anchor that an existing one lacks. Raises LedgerError if it exists."""
    return init_sqlite(_path(url), dataset, _anchor(anchor))


def open_ledger(url: str, dataset: str, anchor: str | None = None) -> Ledger:
    """Verify and open the dataset's ledger for service, once per process. Raises LedgerError if there is any doubt."""
    return open_sqlite(_path(url), dataset, _anchor(anchor))


def verify_ledger(url: str, dataset: str | None = None, anchor: str | None = None) -> Report:
    """Verify the whole ledger without changing it. Raises LedgerError with the first thing that is wrong."""
    return verify_sqlite(_path(url), dataset, _anchor(anchor))


def account_of(user: str, role: str, shared: bool) -> str:
    """Whose budget a user's statements count against: their own, or their role's. No user's name has a space."""
    return f"role {role}" if shared else user


def _path(url: str) -> Path:
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or not rest:
        raise LedgerError(f"ledger: {scheme}:... is not supported", hint="Write `ledger: sqlite:FILE`.")
    return Path(rest).absolute()


def _anchor(path: str | None) -> Path | None:
    return Path(path).absolute() if path else None
