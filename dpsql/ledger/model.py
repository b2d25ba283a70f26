"""The ledger's values and its contract, whatever the store behind it.

A `Ledger` decides whether a statement may be answered and keeps what was answered. It must never give a reservation
that is not already debited durably, never forget a debit, and never answer from a record that does not prove itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, unique
from typing import TYPE_CHECKING, Protocol

from dpsql.certify.certificate import Certificate
from dpsql.dp.accounting import Limits
from dpsql.dp.privacy import Event
from dpsql.errors import BUDGET_EXHAUSTED, CANCELLED, INTERNAL, Rejected
from dpsql.ledger.room import LEAST
from dpsql.replay.recipe import Derived, Kin, Recipe, Shape
from dpsql.types import Cost, Release, Reservation

if TYPE_CHECKING:
    from dpsql.ledger.window import Calendar


class LedgerError(Rejected):
    """The ledger cannot be used. For the operator: names the file, what is wrong, and what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, sqlstate=INTERNAL, hint=hint)


class LedgerUnavailable(LedgerError):
    """It cannot be used now: locked, out of reach, no room. That says nothing about what it holds, and may pass."""


class LedgerDamaged(LedgerError):
    """It was read, and does not prove itself. No other error may put a backup in a ledger's place."""


def damaged(name: str, what: str, hint: str | None = None) -> LedgerDamaged:
    """The error for a ledger that does not prove itself; `hint` where something better is known than to restore."""
    usual = "Nothing is answered from it. Find out who or what changed it, and restore the newest backup."
    return LedgerDamaged(f"the ledger {name} cannot be trusted: {what}", hint=hint or usual)


class BudgetExhausted(Rejected):
    """The statement does not fit; nothing was debited. `whose`: "user" or "dataset"; the amounts are that filter's."""

    def __init__(self, message: str, *, whose: str, spent: Cost, asked: Cost, limits: Limits) -> None:
        super().__init__(
            message,
            sqlstate=BUDGET_EXHAUSTED,
            hint="What was answered before is free to ask again. A smaller dpsql.epsilon may still fit.",
        )
        self.whose = whose
        self.spent = spent
        self.asked = asked
        self.limits = limits


@dataclass(frozen=True, slots=True)
class Ask:
    """A release that a statement needs: the key of its measurement, and proof of what it costs if it is made anew.

    Its price is what is debited: nothing can be asked for without a certificate. `events`: the same cost as privacy
    events, one for each noisy vector and key selection, for reports. `after`: the keys of those asks of the same
    statement whose releases it reads. It is answered from the store only by what was made of the very releases that
    these are answered by: the ledger keeps it under `key_after` these. `kin`: from which stored releases it may be
    derived; None for from none. `room`: bytes that its record may take on the disk.
    """

    key: str
    certificate: Certificate
    events: tuple[Event, ...] = ()
    after: tuple[str, ...] = ()
    kin: Kin | None = field(default=None, compare=False)
    room: int = field(default=LEAST, compare=False)

    @property
    def cost(self) -> Cost:
        return self.certificate.price


@unique
class Kind(Enum):
    """What an entry says. DEBIT and RESTORE add to the dataset's spending; DEBIT and VIEW add to the account's."""

    OPEN = "open"
    DEBIT = "debit"
    RECORD = "record"
    VIEW = "view"
    GRANT = "grant"
    """The operator raises an account's budget; REVOKE lowers it."""
    REVOKE = "revoke"
    CLOCK = "clock"
    """The operator's word for the time."""
    POLICY = "policy"
    """From here on the service runs under this policy; ACCEPT is the operator's word for one that promises less."""
    ACCEPT = "accept"
    RESTORE = "restore"
    """A backup took the place of a lost ledger; its cost is what the anchor knows to have been spent since."""
    REFRESH = "refresh"
    """The data have changed: what was kept before is not given again."""
    CHECKPOINT = "checkpoint"
    """The hash of all that the entries before it add up to, so that they need not be read again at every start."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger, never changed after it was written.

    `at`: microseconds since 1970, never less than the entry's before, whatever the clock does; `clock`: which machine's
    boot clock stood at what then (see `dpsql.ledger.clock`). `account`: whose budget it counts against, the user's own
    name unless budgets are shared. `window`: the name of the budget window, "" where there is none. `reservation`: the
    debit that a RECORD or a VIEW is about, else 0. `gate`: which amount gated, "epsilon" or "rho". `account_total` and
    `dataset_total` include this entry, over all windows. `content`: for OPEN what the ledger is, for DEBIT and VIEW the
    privacy events, for RECORD the hash of the stored release, for the others what they decree. `hash` covers all of
    these and the hash of the entry before.
    """

    id: int
    at: int
    clock: str
    kind: Kind
    user: str
    account: str
    window: str
    key: str
    statement: str
    reservation: int
    gate: str
    cost: Cost
    account_total: Cost
    dataset_total: Cost
    content: str
    hash: str


@dataclass(frozen=True, slots=True)
class Head:
    """How many entries there are, and the hash of the last, which stands for them all."""

    count: int
    hash: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A release that is kept under a measurement's key, and what it cost; `seen`: this account has paid for it.

    `events`: as its debit's content has them. `key`: of the measurement.
    """

    reservation: int
    cost: Cost
    seen: bool
    events: str = ""
    key: str = ""


@unique
class Source(Enum):
    """Where a release comes from: made anew, kept and new to the account, or kept and free."""

    FRESH = "fresh"
    VIEW = "view"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one ask. `cost` is what the account pays; `stored` is the release that answers it, if any.

    `recipe`: how the answer is derived from it, where it is no answer itself. `key`: under which the measurement is
    kept, "" where a release that it reads is still to be made.
    """

    ask: Ask
    source: Source
    cost: Cost
    stored: Stored | None
    recipe: Recipe | None = None
    key: str = ""


class InFlight(Rejected):
    """An equal measurement is being made now: worth waiting for. Nothing was debited. `key`: the measurement's."""

    def __init__(self, key: str) -> None:
        super().__init__(
            "canceling statement due to statement timeout: the same measurement is still being made for another one",
            sqlstate=CANCELLED,
            hint="Nothing was charged. Ask again later: its answer is kept.",
        )
        self.key = key


@dataclass(frozen=True, slots=True)
class Preview:
    """What `reserve` would do now: a source for each ask, what the user and the dataset would pay, and the refusal.

    `costs`: what the user would pay for each ask. `recipes`: how each would be derived, None where it would not.
    """

    sources: tuple[Source, ...]
    user: Cost
    dataset: Cost
    refusal: BudgetExhausted | None
    costs: tuple[Cost, ...] = ()
    recipes: tuple[Recipe | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a full verification found: a ledger that proves itself from its first entry to its head."""

    dataset: str
    ledger: str
    """The hash of the first entry, which tells this ledger from any other."""
    head: Head
    debits: int
    releases: int
    dataset_spent: Cost
    accounts: tuple[tuple[str, Cost], ...]
    """(account, spent over all windows), in order."""


Terms = Callable[[str], None]
"""Raises what is to be said where a statement may not be debited under these terms, which are in force."""

LimitsOf = Callable[[int], Limits]
"""A user's limits, given what was granted to the account, in the units of an epsilon."""


@dataclass(frozen=True, slots=True)
class Spending:
    """An account's state in its current window: spent, granted (in the units of an epsilon; revoked ones count less).

    `window` is its name, "" where it has none; `ends`, in microseconds since 1970, is 0 then. `of_all`: what the
    dataset has spent, ever.
    """

    spent: Cost
    granted: int = 0
    window: str = ""
    ends: int = 0
    of_all: Cost = field(default_factory=Cost)


class Ledger(Protocol):
    """An open ledger of one dataset, safe to share between threads; several processes may have it open.

    All methods raise `Failed` when the store fails or no longer proves itself; what was debited stays debited.
    """

    @property
    def dataset(self) -> str: ...

    def reserve(
        self,
        user: str,
        asks: Sequence[Ask],
        user_limits: Limits | LimitsOf,
        dataset_limits: Limits,
        statement: str,
        *,
        shared: bool = False,
        calendar: Calendar | None = None,
        account: str | None = None,
        patient: bool = False,
        terms: Terms | None = None,
    ) -> tuple[Reservation | Release | Derived, ...]:
        """Debit a whole statement, or nothing, in one durable transaction; one result per ask, in order.

        A release that the account has seen is free. A kept one that it has not seen costs the account, not the
        dataset, what it cost then, if that is no more than the ask's cost in any component. All else is debited from
        both and gives a reservation. Equal keys share one. `shared`: kept releases are free for everyone. `calendar`:
        the user's limits are for what is spent in one window. What an ask's `kin` allows is derived from kept releases,
        of which those that the account has not seen are first views; `paid` of what is given says what a first view
        cost. `patient`: raise InFlight instead of debiting a measurement that another statement is just making.
        `terms`: asked of the policy in force in the transaction of the debit; what it raises ends the statement.
        Raises BudgetExhausted if the sum does not fit both limits.
        """
        ...

    def preview(
        self,
        user: str,
        asks: Sequence[Ask],
        user_limits: Limits | LimitsOf,
        dataset_limits: Limits,
        *,
        shared: bool = False,
        calendar: Calendar | None = None,
        account: str | None = None,
    ) -> Preview:
        """What `reserve` would decide now; writes nothing."""
        ...

    def record(self, reservation: Reservation, release: Release, shape: Shape | None = None) -> None:
        """Keep the release durably, before anyone sees it; once per reservation, by the ledger that gave it.

        `shape`: for what may be derived from it.
        """
        ...

    def give_up(self, reservation: Reservation) -> None:
        """The release will not be made; whoever waits for it need not. What was debited stays debited."""
        ...

    def wait(self, key: str, seconds: float) -> None:
        """Until the measurement of this key may be done or given up, and no longer than that."""
        ...

    def spending(self, account: str, calendar: Calendar | None = None) -> Spending:
        """What the account has spent, and was granted, in the window of now."""
        ...

    def spent(self, account: str) -> Cost:
        """Over all windows."""
        ...

    def dataset_spent(self) -> Cost: ...

    def accounts(self) -> tuple[tuple[str, Cost], ...]:
        """(account, spent over all windows) for every account that ever spent, in order."""
        ...

    def events(self, account: str | None = None, calendar: Calendar | None = None) -> Counter[tuple[str, int]]:
        """How often which event, by name and amount, was paid for by an account in the window of now, or by the dataset
        ever: for reports, not proven entry by entry."""
        ...

    def last_statement(self, account: str) -> Cost:
        """What the account paid for its last statement that was not free."""
        ...

    def entries(self, user: str | None = None, *, after: int = 0, limit: int = 10_000) -> tuple[Entry, ...]:
        """Entries in order, of one user or of all, with an id above `after`."""
        ...

    def newest(self, user: str | None, limit: int) -> tuple[Entry, ...]:
        """The newest entries, of one user or of all, in order."""
        ...

    def head(self) -> Head: ...

    def behind(self) -> int:
        """Microseconds by which the wall clock is ahead of the ledger's time; windows open late by as much."""
        ...

    def grant(self, user: str, epsilon: Decimal, *, account: str | None = None) -> Entry:
        """The operator raises the account's budget by an epsilon, or lowers it by a negative one; an entry.

        It counts in the window of now, or for ever where the budget has none. Nothing that was spent is given back.
        """
        ...

    def policy(self) -> str:
        """The terms of the policy in force, as `follow` got them last; "" before that."""
        ...

    def follow(self, terms: str, allowed: Callable[[str, bool], None] | None = None) -> Entry | None:
        """From now on the service runs under these terms: an entry, unless they are in force already.

        `allowed` is asked in the same transaction, of the terms in force ("" for none) and whether these are accepted;
        what it raises is raised, and nothing has changed.
        """
        ...

    def accept(self, terms: str) -> Entry:
        """The operator's word for terms that promise less than those in force."""
        ...

    def is_accepted(self, terms: str) -> bool:
        """Whether `accept` was given these terms since others were followed."""
        ...

    def refresh(self) -> Entry:
        """The operator's word: the data have changed. An entry; when it returns, no ledger `knows_epoch` before it."""
        ...

    def refreshes(self) -> int:
        """How often the data have changed by the operator's word."""
        ...

    def knows_epoch(self, refreshes: int) -> bool:
        """Whether it was so often, as was seen so lately that `refresh` has not returned since. Quick: never waits."""
        ...

    def accept_clock(self) -> Entry:
        """The operator's word: the wall clock is right. An entry; raises Rejected if the clock is not ahead."""
        ...

    def close(self) -> None: ...
