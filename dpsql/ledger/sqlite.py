"""The ledger in a SQLite file, shared by the threads of a process and by several processes.

Decides in which order things become durable: what is decided is committed, then the second places for the head move
on, then the caller hears of it. Each transaction first reads what others have added and checks that it follows; totals
are then taken from memory, never from an index that could have lost a row. Must never answer after a doubt (another
file under the same name, an entry that is gone, a forked process): such a ledger stays refused until it is opened,
and so verified, again.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from dpsql.dp.accounting import Limits
from dpsql.errors import Failed
from dpsql.ledger import decide, shelf
from dpsql.ledger.chain import Books, chained, draft, to_row
from dpsql.ledger.decide import Request
from dpsql.ledger.model import Ask, BudgetExhausted, Decision, Entry, Head, Kind, Preview, Source
from dpsql.ledger.places import Places
from dpsql.ledger.store import Store
from dpsql.ledger.tables import INSERT_ENTRY
from dpsql.replay.store import to_bytes
from dpsql.types import Cost, Release, Reservation


class SqliteLedger:
    """An open ledger; see `dpsql.ledger.model.Ledger` for what its methods promise."""

    def __init__(self, store: Store, books: Books, places: Places, dataset: str) -> None:
        self._store = store
        self._books = books
        self._places = places
        self._dataset = dataset
        self._open: dict[int, Entry] = {}
        """Debits made here whose release is still to be recorded: others' and earlier ones are never used again."""

    @property
    def dataset(self) -> str:
        return self._dataset

    def reserve(
        self,
        user: str,
        asks: Sequence[Ask],
        user_limits: Limits,
        dataset_limits: Limits,
        statement: str,
        *,
        shared: bool = False,
        window: str = "",
        account: str | None = None,
    ) -> tuple[Reservation | Release, ...]:
        request = decide.request(user, asks, user_limits, dataset_limits, shared=shared, window=window, account=account)
        with self._transaction(write=False) as connection:  # most are free or refused, without waiting for writers
            decisions = self._fitting(connection, request)
            found = _releases(connection, decisions)
        if any(decision.source is not Source.FREE for decision in decisions):
            with self._transaction(write=True) as connection:
                decisions = self._fitting(connection, request)
                found = _releases(connection, decisions)
                found |= self._debit(connection, request, decisions, statement)
        return tuple(found[ask.key] for ask in asks)

    def preview(
        self,
        user: str,
        asks: Sequence[Ask],
        user_limits: Limits,
        dataset_limits: Limits,
        *,
        shared: bool = False,
        window: str = "",
        account: str | None = None,
    ) -> Preview:
        request = decide.request(user, asks, user_limits, dataset_limits, shared=shared, window=window, account=account)
        with self._transaction(write=False) as connection:
            decisions = _decisions(connection, request)
            sources = {decision.ask.key: decision.source for decision in decisions}
            return Preview(
                sources=tuple(sources[ask.key] for ask in asks),
                user=decide.account_price(decisions),
                dataset=decide.dataset_price(decisions),
                refusal=self._refusal(request, decisions),
            )

    def record(self, reservation: Reservation, release: Release) -> None:
        body = to_bytes(release)
        debit = self._open.pop(reservation.id, None)
        if debit is None or _reservation(debit) != reservation or release.key != reservation.key:
            raise Failed("a release without a reservation of its own")
        content = hashlib.sha256(body).hexdigest()
        with self._transaction(write=True) as connection:
            connection.execute("INSERT INTO release VALUES (?, ?, ?)", (debit.id, debit.key, body))
            self._commit(connection, [_record_of(debit, content)])

    def spent(self, account: str, window: str = "") -> Cost:
        with self._transaction(write=False):
            return self._books.spent(account, window)

    def dataset_spent(self) -> Cost:
        with self._transaction(write=False):
            return self._books.dataset_spent

    def accounts(self) -> tuple[tuple[str, str, Cost], ...]:
        with self._transaction(write=False):
            return tuple((*name, spent) for name, spent in sorted(self._books.accounts.items()))

    def entries(self, user: str | None = None, *, after: int = 0, limit: int = 10_000) -> tuple[Entry, ...]:
        with self._transaction(write=False) as connection:
            return shelf.entries(connection, user, after, limit)

    def head(self) -> Head:
        with self._transaction(write=False):
            return self._books.head

    def close(self) -> None:
        self._store.close()

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        with self._store.transaction(write=write) as connection:
            shelf.catch_up(connection, self._books)
            if write:
                self._places.check(self._books.head)
            yield connection

    def _fitting(self, connection: sqlite3.Connection, request: Request) -> tuple[Decision, ...]:
        decisions = _decisions(connection, request)
        if refused := self._refusal(request, decisions):
            raise refused
        return decisions

    def _refusal(self, request: Request, decisions: Sequence[Decision]) -> BudgetExhausted | None:
        if request.gate == "epsilon" and self._books.rho_gated:
            raise Failed("accounting: pure cannot continue a ledger that has been gated by rho; keep accounting: zcdp")
        user = self._books.spent(request.account, request.window)
        return decide.refusal(request, decisions, user, self._books.dataset_spent)

    def _debit(
        self, connection: sqlite3.Connection, request: Request, decisions: Iterable[Decision], statement: str
    ) -> dict[str, Reservation | Release]:
        """Debit all that is not free, and give the reservations by key."""
        drafts = [
            _debit_of(request, decision, statement) for decision in decisions if decision.source is not Source.FREE
        ]
        fresh = [entry for entry in self._commit(connection, drafts) if entry.kind is Kind.DEBIT]
        self._open.update((entry.id, entry) for entry in fresh)
        return {entry.key: _reservation(entry) for entry in fresh}

    def _commit(self, connection: sqlite3.Connection, drafts: Sequence[Entry]) -> tuple[Entry, ...]:
        entries = chained(self._books, drafts)
        connection.executemany(INSERT_ENTRY, [to_row(entry) for entry in entries])
        connection.execute("COMMIT")
        for entry in entries:
            self._books.post(entry)
        self._places.advance(self._books.head)
        return entries


def _decisions(connection: sqlite3.Connection, request: Request) -> tuple[Decision, ...]:
    return tuple(
        decide.decide(ask, shelf.kept(connection, ask.key, request.account), request.shared) for ask in request.asks
    )


def _releases(connection: sqlite3.Connection, decisions: Iterable[Decision]) -> dict[str, Reservation | Release]:
    """The kept releases that answer, by key; read before anything is debited, so that a damaged one costs nothing."""
    return {
        decision.ask.key: shelf.release_of(connection, decision.stored.reservation)
        for decision in decisions
        if decision.stored is not None
    }


def _debit_of(request: Request, decision: Decision, statement: str) -> Entry:
    return draft(
        Kind.VIEW if decision.stored else Kind.DEBIT,
        at=_now(),
        user=request.user,
        account=request.account,
        window=request.window,
        key=decision.ask.key,
        statement=statement,
        reservation=decision.stored.reservation if decision.stored else 0,
        gate=request.gate,
        cost=decision.cost,
    )


def _record_of(debit: Entry, content: str) -> Entry:
    return draft(
        Kind.RECORD,
        at=_now(),
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


def _now() -> int:
    return time.time_ns() // 1000
