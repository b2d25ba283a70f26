"""The audit trail: a line of JSON for each statement, login and logout, and counts for the operator's metrics.

Decides what is told of a statement: who, its fingerprint, price, outcome, whether it was answered from what was kept.
Must never hold a value from the data, nor a message that quotes a statement; the text itself only where the policy
says `log_text: true`. Both go to the operator alone.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

from dpsql.dp.privacy import amount
from dpsql.errors import CANCELLED, DpsqlError, Failed
from dpsql.replay.key import fingerprint
from dpsql.types import Cost, Reservation

AUDIT: Final = logging.getLogger("dpsql.audit")

Outcome = Literal["answered", "refused", "failed", "cancelled"]
Event = Literal["login", "login refused", "logout"]


@dataclass(slots=True)
class Line:
    """What is known of one statement so far. `price`: if all its releases were made anew."""

    price: Cost = field(default_factory=Cost)
    made: Cost = field(default_factory=Cost)
    fresh: int = 0
    replayed: int = 0

    def granted(self, price: Iterable[Cost], grants: Iterable[object]) -> None:
        """What the ledger gave: reservations for new releases, and kept ones."""
        self.price = sum(price, Cost())
        for grant in grants:
            if isinstance(grant, Reservation):
                self.made += grant.cost
                self.fresh += 1
            else:
                self.replayed += 1


class Counts:
    """How often what happened in this process, and how long statements took; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._releases: Counter[str] = Counter()
        self._seconds = 0.0

    def add(self, outcome: Outcome, line: Line, seconds: float) -> None:
        with self._lock:
            self._outcomes[outcome] += 1
            self._releases["fresh"] += line.fresh
            self._releases["replay"] += line.replayed
            self._seconds += seconds

    def add_replay(self, releases: int) -> None:
        """A statement that was answered from what is kept, in no time."""
        with self._lock:
            self._outcomes["answered"] += 1
            self._releases["replay"] += releases

    def metrics(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Name, labels and value of each."""
        with self._lock:
            outcomes, releases, seconds = dict(self._outcomes), dict(self._releases), self._seconds
        for outcome in ("answered", "refused", "failed", "cancelled"):
            yield "dpsql_statements_total", {"outcome": outcome}, outcomes.get(outcome, 0)
        for source in ("fresh", "replay"):
            yield "dpsql_releases_total", {"source": source}, releases.get(source, 0)
        yield "dpsql_statement_seconds_total", {}, seconds


COUNTS: Final = Counts()


@contextmanager
def statement(user: str, text: str, log_text: bool) -> Iterator[Line]:
    """For the block that answers a statement: its line is written however it ends."""
    line, start = Line(), time.monotonic()
    try:
        yield line
    except BaseException as error:
        _write(user, text, log_text, line, start, error)
        raise
    _write(user, text, log_text, line, start, None)


@contextmanager
def session(user: str) -> Iterator[None]:
    """For the block that serves a user who has logged in: a line at its beginning and one at its end."""
    _event("login", user)
    start = time.monotonic()
    try:
        yield
    finally:
        _event("logout", user, seconds=round(time.monotonic() - start, 3))


def login_refused(user: str | None, sqlstate: str) -> None:
    """The line of a login that failed. `user`: never a name that only the client knows."""
    _event("login refused", user, sqlstate=sqlstate)


def _event(name: Event, user: str | None, **what: object) -> None:
    AUDIT.info("%s", json.dumps({"at": _now(), "event": name, "user": user, **what}))


@contextmanager
def refusals(user: str, text: str, log_text: bool) -> Iterator[None]:
    """For a block that only describes a statement: a line if it is refused, for it will not be asked then."""
    start = time.monotonic()
    try:
        yield
    except DpsqlError as error:
        _write(user, text, log_text, Line(), start, error)
        raise


def answered_again(user: str, text: str, log_text: bool, replayed: int) -> None:
    """The line of an answer that was given again as it is: quick, since there may be thousands a second."""
    COUNTS.add_replay(replayed)
    if AUDIT.isEnabledFor(logging.INFO):
        # As AUDIT.info would, but without a search of the stack for the caller.
        line = f'{{"at": "{_now()}", {_again(user, text, log_text, replayed)}'
        AUDIT.handle(logging.LogRecord(AUDIT.name, logging.INFO, __file__, 0, line, None, None))


def _now() -> str:
    """The time in UTC to the millisecond, in ISO 8601."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1_000_000:03}+00:00"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=1024)
def _again(user: str, text: str, log_text: bool, replayed: int) -> str:
    """All but the time of such a line."""
    return json.dumps(_entry(user, text, log_text, Line(replayed=replayed), 0.0, "answered"))[1:]


def _write(user: str, text: str, log_text: bool, line: Line, start: float, error: BaseException | None) -> None:
    seconds = time.monotonic() - start
    outcome = _outcome(error)
    COUNTS.add(outcome, line, seconds)
    entry = {"at": _now(), **_entry(user, text, log_text, line, seconds, outcome)}
    if isinstance(error, DpsqlError):
        entry["sqlstate"] = error.sqlstate
    if isinstance(error, Failed):
        entry["incident"] = error.incident
    AUDIT.info("%s", json.dumps(entry))


def _entry(user: str, text: str, log_text: bool, line: Line, seconds: float, outcome: Outcome) -> dict[str, object]:
    entry: dict[str, object] = {
        "user": user,
        "statement": fingerprint(text),
        "outcome": outcome,
        "price": _amounts(line.price),
        "made": _amounts(line.made),
        "releases": line.fresh,
        "replayed": line.replayed,
        "seconds": round(seconds, 3),
    }
    return {**entry, "text": text} if log_text else entry


def _outcome(error: BaseException | None) -> Outcome:
    if error is None:
        return "answered"
    if isinstance(error, DpsqlError) and error.sqlstate == CANCELLED:
        return "cancelled"
    return "refused" if isinstance(error, DpsqlError) and not isinstance(error, Failed) else "failed"


def _amounts(cost: Cost) -> dict[str, str]:
    """`pure_epsilon`: of the events that have one, beside a rho that holds them too: no epsilon of the whole."""
    epsilon = "pure_epsilon" if cost.rho else "epsilon"
    parts = ((epsilon, cost.epsilon), ("rho", cost.rho), ("delta", cost.delta))
    return {name: f"{amount(units):f}" for name, units in parts if units}
