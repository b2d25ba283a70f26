"""The ledger over a durable store, shared by the threads of a process and by several processes.

Decides in which order things become durable: what is decided is committed, then the second places for the head move
on, then the caller hears of it. Each transaction first reads what others have added and checks that it follows; totals
are then taken from memory, never from an index that could have lost a row. Must never answer after a doubt (another
file under the same name, an entry that is gone, a forked process): such a ledger stays refused until it is opened,
and so verified, again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Final, Protocol

from dpsql.dp.accounting import Limits
from dpsql.dp.privacy import units_down
from dpsql.errors import Failed, Rejected
from dpsql.ledger import books as bookkeeping
from dpsql.ledger import decide, events, shelf
from dpsql.ledger.books import Books, chained, digest
from dpsql.ledger.chain import draft, from_row, to_row
from dpsql.ledger.clock import Clock
from dpsql.ledger.decide import Request
from dpsql.ledger.model import (
    Ask,
    BudgetExhausted,
    Decision,
    Entry,
    Head,
    Kind,
    LedgerError,
    LimitsOf,
    Preview,
    Source,
    Spending,
)
from dpsql.ledger.places import Places
from dpsql.ledger.rows import Rows
from dpsql.ledger.window import Calendar
from dpsql.replay.store import to_bytes
from dpsql.types import Cost, Release, Reservation

CHECKPOINT_EVERY: Final = 5000
"""Entries; opening reads at most so many."""


class Store(Protocol):
    """A verified ledger's storage: one transaction at a time, its faults as Failed."""

    def transaction(self, *, write: bool) -> AbstractContextManager[Rows]:
        """Rolled back at the end, unless its body has committed it. `write`: nobody else can write meanwhile."""
        ...

    def close(self) -> None: ...


class DurableLedger:
    """An open ledger; see `dpsql.ledger.model.Ledger` for what its methods promise."""

    def __init__(self, store: Store, books: Books, places: Places, dataset: str) -> None:
        self._store = store
        self._books = books
        self._places = places
        self._dataset = dataset
        self._clock = Clock(self._last)
        self._open: dict[int, Entry] = {}
        """Debits made here whose release is still to be recorded: others' and earlier ones are never used again."""
        self._before: dict[tuple[str, int], Cost] = {}
        """Totals of accounts before their window began, which change no more."""

    @property
    def dataset(self) -> str:
        return self._dataset

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
    ) -> tuple[Reservation | Release, ...]:
        request = decide.request(
            user, asks, user_limits, dataset_limits, shared=shared, calendar=calendar, account=account
        )
        with self._transaction(write=False) as rows:  # most are free or refused, without waiting for writers
            decisions = self._fitting(rows, request)
            found = _releases(rows, decisions)
        if any(decision.source is not Source.FREE for decision in decisions):
            with self._transaction(write=True) as rows:
                decisions = self._fitting(rows, request)
                found = _releases(rows, decisions)
                found |= self._debit(rows, request, decisions, statement)
        return tuple(found[ask.key] for ask in asks)

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
        request = decide.request(
            user, asks, user_limits, dataset_limits, shared=shared, calendar=calendar, account=account
        )
        with self._transaction(write=False) as rows:
            decisions = _decisions(rows, request)
            sources = {decision.ask.key: decision.source for decision in decisions}
            return Preview(
                sources=tuple(sources[ask.key] for ask in asks),
                user=decide.account_price(decisions),
                dataset=decide.dataset_price(decisions),
                refusal=self._refusal(rows, request, decisions),
            )

    def record(self, reservation: Reservation, release: Release) -> None:
        body = to_bytes(release)
        debit = self._open.pop(reservation.id, None)
        if debit is None or _reservation(debit) != reservation or release.key != reservation.key:
            raise Failed("a release without a reservation of its own")
        content = hashlib.sha256(body).hexdigest()
        with self._transaction(write=True) as rows:
            rows.add_release(debit.id, debit.key, body)
            self._commit(rows, [_record_of(debit, content)])

    def spending(self, account: str, calendar: Calendar | None = None) -> Spending:
        with self._transaction(write=False) as rows:
            return self._spending(rows, account, calendar)

    def spent(self, account: str) -> Cost:
        with self._transaction(write=False):
            return self._books.spent(account)

    def dataset_spent(self) -> Cost:
        with self._transaction(write=False):
            return self._books.dataset_spent

    def accounts(self) -> tuple[tuple[str, Cost], ...]:
        with self._transaction(write=False):
            return tuple(sorted(self._books.accounts.items()))

    def events(self, account: str | None = None, calendar: Calendar | None = None) -> Counter[tuple[str, int]]:
        found: Counter[tuple[str, int]] = Counter()
        with self._transaction(write=False) as rows:
            since = 0 if calendar is None else calendar.period(self._clock.now(self._last)[0]).start
            for content, epsilon, rho, delta, count in rows.spent_by(account, since):
                for event in events.from_content(content, Cost(int(epsilon), int(rho), int(delta))):
                    found[event] += count
        return found

    def last_statement(self, account: str) -> Cost:
        with self._transaction(write=False) as rows:
            return shelf.last_statement(rows, account)

    def entries(self, user: str | None = None, *, after: int = 0, limit: int = 10_000) -> tuple[Entry, ...]:
        with self._transaction(write=False) as rows:
            return shelf.entries(rows, user, after, limit)

    def newest(self, user: str | None, limit: int) -> tuple[Entry, ...]:
        with self._transaction(write=False) as rows:
            return tuple(from_row(row) for row in reversed(rows.newest(user, limit)))

    def head(self) -> Head:
        with self._transaction(write=False):
            return self._books.head

    def behind(self) -> int:
        with self._transaction(write=False):
            return self._clock.behind(self._last)

    def grant(self, user: str, epsilon: Decimal, *, account: str | None = None) -> Entry:
        units = units_down(abs(epsilon))
        if not user or account == "" or not units:
            raise Failed("a grant needs a user and an amount")
        kind = Kind.GRANT if epsilon > 0 else Kind.REVOKE
        return self._decree(draft(kind, user=user, account=account or user, content=bookkeeping.granting(units)))

    def _decree(self, entry: Entry) -> Entry:
        with self._transaction(write=True) as rows:
            return self._commit(rows, [entry])[0]

    def policy(self) -> str:
        with self._transaction(write=False):
            return self._books.policy

    def follow(self, terms: str) -> Entry | None:
        with self._transaction(write=True) as rows:
            if self._books.policy == terms:
                return None
            return self._commit(rows, [draft(Kind.POLICY, content=terms)])[0]

    def accept(self, terms: str) -> Entry:
        return self._decree(draft(Kind.ACCEPT, content=digest(terms.encode())))

    def is_accepted(self, terms: str) -> bool:
        with self._transaction(write=False):
            return digest(terms.encode()) in self._books.accepted

    def accept_clock(self) -> Entry:
        with self._transaction(write=True) as rows:
            ahead = self._clock.behind(self._last)
            if not ahead:
                raise Rejected("the clock is not ahead of the ledger's time: there is nothing to accept")
            now, state = self._clock.now(self._last)
            (entry,) = self._commit(rows, [draft(Kind.CLOCK, at=now + ahead, clock=state)], timed=True)
            return entry

    def close(self) -> None:
        self._store.close()

    @property
    def _last(self) -> Entry:
        if self._books.last is None:
            raise LedgerError("it has no entries")
        return self._books.last

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[Rows]:
        with self._store.transaction(write=write) as rows:
            shelf.catch_up(rows, self._books)
            if write:
                self._places.check(self._books.head)
            yield rows

    def _fitting(self, rows: Rows, request: Request) -> tuple[Decision, ...]:
        decisions = _decisions(rows, request)
        if refused := self._refusal(rows, request, decisions):
            raise refused
        return decisions

    def _refusal(self, rows: Rows, request: Request, decisions: Sequence[Decision]) -> BudgetExhausted | None:
        if request.gate == "epsilon" and self._books.rho_gated:
            raise Failed("accounting: pure cannot continue a ledger that has been gated by rho; keep accounting: zcdp")
        spending = self._spending(rows, request.account, request.calendar)
        return decide.refusal(request, decisions, spending, self._books.dataset_spent)

    def _spending(self, rows: Rows, account: str, calendar: Calendar | None) -> Spending:
        if calendar is None:
            return Spending(self._books.spent(account), self._books.granted(account, 0))
        period = calendar.period(self._clock.now(self._last)[0])
        before = self._total_before(rows, account, period.start)
        spent = bookkeeping.difference(self._books.spent(account), before)
        return Spending(spent, self._books.granted(account, period.start), period.id, period.end)

    def _total_before(self, rows: Rows, account: str, start: int) -> Cost:
        if account not in self._books.accounts:
            return Cost()
        known = self._before.get((account, start))
        if known is not None:
            return known
        total = shelf.total_before(rows, account, start)
        if self._last.at >= start:  # else another process, by whose clock it is earlier, may still add to it
            self._before[account, start] = total
        return total

    def _debit(
        self, rows: Rows, request: Request, decisions: Iterable[Decision], statement: str
    ) -> dict[str, Reservation | Release]:
        """Debit all that is not free, and give the reservations by key."""
        window = self._spending(rows, request.account, request.calendar).window
        drafts = [
            _debit_of(request, decision, statement, window)
            for decision in decisions
            if decision.source is not Source.FREE
        ]
        fresh = [entry for entry in self._commit(rows, drafts) if entry.kind is Kind.DEBIT]
        self._open.update((entry.id, entry) for entry in fresh)
        return {entry.key: _reservation(entry) for entry in fresh}

    def _commit(self, rows: Rows, drafts: Sequence[Entry], *, timed: bool = False) -> tuple[Entry, ...]:
        """Add the entries, durably; the ledger's time is put to those that have none (`timed`: they have)."""
        at, clock = self._clock.now(self._last)
        due = [] if timed else self._checkpoint(rows)
        ready = drafts if timed else [replace(entry, at=at, clock=clock) for entry in (*due, *drafts)]
        entries = chained(self._books, ready)
        rows.add(to_row(entry) for entry in entries)
        rows.commit()
        for entry in entries:
            self._books.post(entry)
        self._places.advance(self._books.head, self._books.dataset_spent)
        return entries[len(due) :]

    def _checkpoint(self, rows: Rows) -> list[Entry]:
        """A checkpoint of the books as they are, if the last one is long ago."""
        if self._books.head.count - self._books.checkpoint < CHECKPOINT_EVERY:
            return []
        body = bookkeeping.to_bytes(self._books)
        rows.keep_checkpoint(self._books.head.count + 1, body)
        return [draft(Kind.CHECKPOINT, content=digest(body))]


def _decisions(rows: Rows, request: Request) -> tuple[Decision, ...]:
    return tuple(decide.decide(ask, shelf.kept(rows, ask.key, request.account), request.shared) for ask in request.asks)


def _releases(rows: Rows, decisions: Iterable[Decision]) -> dict[str, Reservation | Release]:
    """The kept releases that answer, by key; read before anything is debited, so that a damaged one costs nothing."""
    return {
        decision.ask.key: shelf.release_of(rows, decision.stored.reservation)
        for decision in decisions
        if decision.stored is not None
    }


def _debit_of(request: Request, decision: Decision, statement: str, window: str) -> Entry:
    return draft(
        Kind.VIEW if decision.stored else Kind.DEBIT,
        user=request.user,
        account=request.account,
        window=window,
        key=decision.ask.key,
        statement=statement,
        reservation=decision.stored.reservation if decision.stored else 0,
        gate=request.gate,
        cost=decision.cost,
        content=decision.stored.events if decision.stored else events.to_content(decision.ask.events),
    )


def _record_of(debit: Entry, content: str) -> Entry:
    return draft(
        Kind.RECORD,
        user=debit.user,
        account=debit.account,
        window=debit.window,
        key=debit.key,
        statement=debit.statement,
        reservation=debit.id,
        content=content,
    )


def _reservation(debit: Entry) -> Reservation:
    return Reservation(debit.id, debit.user, debit.key, debit.cost)
