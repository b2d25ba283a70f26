"""The ledger over a durable store, shared by the threads of a process and by several processes.

Decides in which order things become durable: what is decided is committed, together with what other threads want to
write (`dpsql.ledger.group`), then the second places for the head move on, then the callers hear of it. Each
transaction first reads what others have added and checks that it follows; totals are then taken from memory, never
from an index that could have lost a row. An answer that is given again without the ledger rests on a look at it that is
less than a LEASE old, and `refresh` returns only when every older look has run out: whatever is asked after it, in
whatever process, is asked of the new data. Must never answer after a doubt (another file under the same name, an entry
that is gone, a forked process): such a ledger stays refused until it is opened, and so verified, again.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from functools import partial
from typing import Final

from dpsql.dp.accounting import Limits
from dpsql.dp.privacy import units_down
from dpsql.errors import Failed, Rejected
from dpsql.ledger import books as bookkeeping
from dpsql.ledger import decide, events, kin, shelf
from dpsql.ledger.books import Books, copy, digest, extend
from dpsql.ledger.chain import draft, from_row, to_row
from dpsql.ledger.clock import SECOND, Clock, up
from dpsql.ledger.decide import Request
from dpsql.ledger.flights import Flights
from dpsql.ledger.group import Group, Waiting
from dpsql.ledger.model import (
    Ask,
    BudgetExhausted,
    Decision,
    Entry,
    Head,
    InFlight,
    Kind,
    LimitsOf,
    Preview,
    Source,
    Spending,
    Terms,
)
from dpsql.ledger.places import Places
from dpsql.ledger.rows import Rows
from dpsql.ledger.store import Store
from dpsql.ledger.window import Calendar
from dpsql.replay.recipe import Derived, Shape, encoded
from dpsql.replay.recipe import digest as shape_digest
from dpsql.replay.store import to_bytes
from dpsql.types import Cost, Release, Reservation

CHECKPOINT_EVERY: Final = 5000
"""Entries; opening reads at most so many."""
LEASE: Final = SECOND
"""Microseconds for which a look at what others have added says which data are the newest."""


Decided = tuple[int, tuple[Decision, ...], kin.Found]
"""Decisions with what answers them, and the last entry by which a release was kept or shown when they were made."""


class DurableLedger:
    """An open ledger; see `dpsql.ledger.model.Ledger` for what its methods promise."""

    def __init__(self, store: Store, books: Books, places: Places, dataset: str) -> None:
        self._store = store
        self._books = books
        self._places = places
        self._dataset = dataset
        self._group = Group(self._commit)
        self._clock = Clock(books.at, books.last[2] if books.last else "")
        self._open: dict[int, Entry] = {}
        """Debits made here whose release is still to be recorded: others' and earlier ones are never used again."""
        self._flights = Flights()
        self._looked = -LEASE
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
        patient: bool = False,
        terms: Terms | None = None,
    ) -> tuple[Reservation | Release | Derived, ...]:
        request = decide.request(
            user, asks, user_limits, dataset_limits, shared=shared, calendar=calendar, account=account
        )
        with self._reading() as rows:  # most are free or refused, without waiting for writers
            if terms is not None:
                terms(self._books.policy)
            decisions = self._fitting(rows, self._books, request)
            found = kin.answers(rows, decisions)
            if patient:
                self._refuse_in_flight(rows, self._books, decisions)
            decided = self._books.shown, decisions, found
        if any(decision.source is not Source.FREE for decision in decisions):
            needed = {each.ask.key: each.ask.room for each in decisions if each.source is Source.FRESH}
            with self._room(needed) as promised:
                found, fresh = self._group.write(partial(self._debit, request, statement, patient, terms, decided))
                promised.update((entry.id, entry.key) for entry in fresh)
            self._open.update((entry.id, entry) for entry in fresh)
            self._flights.begin((entry.id, entry.key) for entry in fresh)
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
        with self._reading() as rows:
            decisions = kin.decisions(rows, request)
            by_key = {decision.ask.key: decision for decision in decisions}
            return Preview(
                sources=tuple(by_key[ask.key].source for ask in asks),
                costs=tuple(by_key[ask.key].cost for ask in asks),
                recipes=tuple(by_key[ask.key].recipe for ask in asks),
                user=decide.account_price(decisions),
                dataset=decide.dataset_price(decisions),
                refusal=self._refusal(rows, self._books, request, decisions),
            )

    def record(self, reservation: Reservation, release: Release, shape: Shape | None = None) -> None:
        text = "" if shape is None else encoded(shape)
        body = to_bytes(release, "" if shape is None else shape_digest(shape.family, text))
        debit = self._open.pop(reservation.id, None)
        if debit is None or _reservation(debit) != reservation or release.key != reservation.key:
            raise Failed("a release without a reservation of its own")
        content = hashlib.sha256(body).hexdigest()

        def keep(rows: Rows, books: Books) -> None:
            if rows.about(debit.id, Kind.RECORD, debit.account) is not None:
                return  # by a commit of which nobody heard
            rows.add_release(debit.id, debit.key, body)
            if shape is not None:
                rows.add_shape(debit.id, shape.family, text)
            self._add(rows, books, [kin.record(debit, content)])

        try:
            self._group.persist(keep, lambda: self._store.room.give(len(body)))
        finally:
            self._end(debit.id)

    def give_up(self, reservation: Reservation) -> None:
        if self._open.pop(reservation.id, None) is not None:
            self._end(reservation.id)

    def _end(self, debit: int) -> None:
        self._flights.end(debit)
        self._store.room.end(debit)

    def wait(self, key: str, seconds: float) -> None:
        self._flights.wait(key, seconds)

    def spending(self, account: str, calendar: Calendar | None = None) -> Spending:
        with self._reading() as rows:
            return self._spending(rows, self._books, account, calendar)

    def spent(self, account: str) -> Cost:
        with self._reading():
            return self._books.spent(account)

    def dataset_spent(self) -> Cost:
        with self._reading():
            return self._books.dataset_spent

    def accounts(self) -> tuple[tuple[str, Cost], ...]:
        with self._reading():
            return tuple(sorted(self._books.accounts.items()))

    def events(self, account: str | None = None, calendar: Calendar | None = None) -> Counter[tuple[str, int]]:
        found: Counter[tuple[str, int]] = Counter()
        with self._reading() as rows:
            since = 0 if calendar is None else calendar.period(self._clock.now(self._books.at)[0]).start
            for content, epsilon, rho, delta, count in rows.spent_by(account, since):
                for event in events.from_content(content, Cost(int(epsilon), int(rho), int(delta))):
                    found[event] += count
        return found

    def last_statement(self, account: str) -> Cost:
        with self._reading() as rows:
            return shelf.last_statement(rows, account)

    def entries(self, user: str | None = None, *, after: int = 0, limit: int = 10_000) -> tuple[Entry, ...]:
        with self._reading() as rows:
            return shelf.entries(rows, user, after, limit)

    def newest(self, user: str | None, limit: int) -> tuple[Entry, ...]:
        with self._reading() as rows:
            return tuple(from_row(row) for row in reversed(rows.newest(user, limit)))

    def head(self) -> Head:
        with self._reading():
            return self._books.head

    def behind(self) -> int:
        with self._reading():
            return self._clock.behind(self._books.at)

    def grant(self, user: str, epsilon: Decimal, *, account: str | None = None) -> Entry:
        units = units_down(abs(epsilon))
        if not user or account == "" or not units:
            raise Failed("a grant needs a user and an amount")
        kind = Kind.GRANT if epsilon > 0 else Kind.REVOKE
        return self._decree(draft(kind, user=user, account=account or user, content=bookkeeping.granting(units)))

    def _decree(self, entry: Entry) -> Entry:
        return self._group.write(lambda rows, books: self._add(rows, books, [entry])[0])

    def policy(self) -> str:
        with self._reading():
            return self._books.policy

    def follow(self, terms: str, allowed: Callable[[str, bool], None] | None = None) -> Entry | None:
        def put(rows: Rows, books: Books) -> Entry | None:
            if books.policy == terms:
                return None
            if allowed is not None:
                allowed(books.policy, digest(terms.encode()) in books.accepted)
            return self._add(rows, books, [draft(Kind.POLICY, content=terms)])[0]

        return self._group.write(put)

    def accept(self, terms: str) -> Entry:
        return self._decree(draft(Kind.ACCEPT, content=digest(terms.encode())))

    def is_accepted(self, terms: str) -> bool:
        with self._reading():
            return digest(terms.encode()) in self._books.accepted

    def refresh(self) -> Entry:
        entry = self._decree(draft(Kind.REFRESH))
        time.sleep(1.1 * LEASE / SECOND)
        return entry

    def refreshes(self) -> int:
        with self._reading():
            return self._books.refreshes

    def knows_epoch(self, refreshes: int) -> bool:
        looked = self._looked  # before the books, which are up to date by the time that this is set
        return up() - looked < LEASE and self._books.refreshes == refreshes

    def accept_clock(self) -> Entry:
        def believe(rows: Rows, books: Books) -> Entry:
            ahead = self._clock.behind(books.at)
            if not ahead:
                raise Rejected("the clock is not ahead of the ledger's time: there is nothing to accept")
            now, state = self._clock.now(books.at)
            return self._add(rows, books, [draft(Kind.CLOCK, at=now + ahead, clock=state)], timed=True)[0]

        return self._group.write(believe)

    def close(self) -> None:
        self._store.close()

    def _room(self, needed: Mapping[str, int]) -> AbstractContextManager[dict[int, str]]:
        """For the block that debits: it names the debits whose records need the room."""
        try:
            return self._store.room.held(needed)
        except OSError as error:
            raise self._store.guard.failed(f"no room to record an answer: {error.strerror}") from None

    @contextmanager
    def _reading(self) -> Iterator[Rows]:
        begun = up()
        with self._store.transaction(write=False) as rows:
            self._catch_up(rows, begun)
            yield rows

    def _commit(self, waiting: Waiting) -> None:
        """All that waits in one transaction, each on what those before it have added; then it is durable."""
        self._store.in_line(partial(self._write, waiting))

    def _write(self, waiting: Waiting) -> None:
        begun = up()
        with self._store.transaction(write=True) as rows:
            self._catch_up(rows, begun)
            with self._places.held(self._books.head, self._books.dataset_spent) as files:
                books = copy(self._books)
                for turn in waiting():
                    turn.take(rows, books)
                if books.head == self._books.head:
                    return
                rows.commit()
                self._books = books
                self._places.advance(files, books.head, books.dataset_spent)

    def _catch_up(self, rows: Rows, begun: int) -> None:
        """`begun`: when, at the latest, what is not read here was not there yet."""
        shelf.catch_up(rows, self._books)
        self._looked = begun

    def _fitting(self, rows: Rows, books: Books, request: Request) -> tuple[Decision, ...]:
        decisions = kin.decisions(rows, request)
        if refused := self._refusal(rows, books, request, decisions):
            raise refused
        return decisions

    def _refusal(
        self, rows: Rows, books: Books, request: Request, decisions: Sequence[Decision]
    ) -> BudgetExhausted | None:
        if request.gate == "epsilon" and books.rho_gated:
            raise Failed("accounting: pure cannot continue a ledger that has been gated by rho; keep accounting: zcdp")
        spending = self._spending(rows, books, request.account, request.calendar)
        return decide.refusal(request, decisions, spending, books.dataset_spent)

    def _spending(self, rows: Rows, books: Books, account: str, calendar: Calendar | None) -> Spending:
        if calendar is None:
            return Spending(books.spent(account), books.granted(account, 0), of_all=books.dataset_spent)
        period = calendar.period(self._clock.now(books.at)[0])
        before = self._total_before(rows, books, account, period.start)
        spent = bookkeeping.difference(books.spent(account), before)
        granted = books.granted(account, period.start)
        return Spending(spent, granted, period.id, period.end, books.dataset_spent)

    def _total_before(self, rows: Rows, books: Books, account: str, start: int) -> Cost:
        if account not in books.accounts:
            return Cost()
        known = self._before.get((account, start))
        if known is not None:
            return known
        total = shelf.total_before(rows, account, start)
        if self._books.at >= start:
            self._before[account, start] = total  # else another process, by whose clock it is earlier, may still add
        return total

    def _debit(
        self,
        request: Request,
        statement: str,
        patient: bool,
        terms: Terms | None,
        decided: Decided,
        rows: Rows,
        books: Books,
    ) -> tuple[kin.Found, tuple[Entry, ...]]:
        """Debit all that is not free: what answers, by key, and the debits whose releases are still to be made.

        What was `decided` before still holds if no release was kept or shown since; whether it fits, and under whose
        terms, is asked again.
        """
        if terms is not None:
            terms(books.policy)
        shown, decisions, found = decided
        if shown == books.shown:
            if refused := self._refusal(rows, books, request, decisions):
                raise refused
        else:
            decisions = self._fitting(rows, books, request)
            found = kin.answers(rows, decisions)
        if patient:
            self._refuse_in_flight(rows, books, decisions)
        window = self._spending(rows, books, request.account, request.calendar).window
        number = books.head.count + 1 + _is_due(books)
        drafts = tuple(kin.debits(request, decisions, statement, window, number))
        fresh = tuple(entry for entry in self._add(rows, books, drafts) if entry.kind is Kind.DEBIT)
        asked = (decision.ask.key for decision in decisions if decision.source is Source.FRESH)
        return found | {key: _reservation(entry) for key, entry in zip(asked, fresh, strict=True)}, fresh

    def _refuse_in_flight(self, rows: Rows, books: Books, decisions: Iterable[Decision]) -> None:
        """Raises InFlight for a measurement that would be made although it is just being made."""
        for decision in decisions:
            if decision.source is Source.FRESH and decision.key:
                debit = rows.unrecorded(decision.key)
                if debit is not None and self._flights.is_on(*debit, self._clock.now(books.at)[0]):
                    raise InFlight(decision.key)

    def _add(self, rows: Rows, books: Books, drafts: Sequence[Entry], *, timed: bool = False) -> tuple[Entry, ...]:
        """Add the entries; the ledger's time is put to those that have none (`timed`: they have)."""
        if not drafts:
            return ()
        at, clock = self._clock.now(books.at)
        due = [] if timed else _checkpoint(rows, books)
        entries = extend(books, drafts) if timed else extend(books, (*due, *drafts), at, clock)
        rows.add(to_row(entry) for entry in entries)
        return entries[len(due) :]


def _is_due(books: Books) -> bool:
    """Whether the next entries begin with a checkpoint: the last one is long ago."""
    return books.head.count - books.checkpoint >= CHECKPOINT_EVERY


def _checkpoint(rows: Rows, books: Books) -> list[Entry]:
    """A checkpoint of the books as they are, if it is due."""
    if not _is_due(books):
        return []
    body = bookkeeping.to_bytes(books)
    rows.keep_checkpoint(books.head.count + 1, body)
    return [draft(Kind.CHECKPOINT, content=digest(body))]


def _reservation(debit: Entry) -> Reservation:
    return Reservation(debit.id, debit.user, debit.key, debit.cost)
