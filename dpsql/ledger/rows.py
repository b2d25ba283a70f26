"""The ledger's tables within one transaction, whatever the store: the only place with SQL that reads or adds rows.

Decides nothing: it gives what is stored, unproven. Must never change or remove a row of the chain. Written so that
SQLite and Postgres take the same text but for the parameters' mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, cast

from dpsql.ledger.chain import Row
from dpsql.ledger.model import Kind

COLUMNS: Final = (
    "id",
    "at",
    "clock",
    "kind",
    "user",
    "account",
    "window",
    "key",
    "statement",
    "reservation",
    "gate",
    "epsilon",
    "rho",
    "delta",
    "account_epsilon",
    "account_rho",
    "account_delta",
    "dataset_epsilon",
    "dataset_rho",
    "dataset_delta",
    "content",
    "hash",
)
ENTRY: Final = ", ".join(f'"{name}"' for name in COLUMNS)
INSERT_ENTRY: Final = f"INSERT INTO entry ({ENTRY}) VALUES ({', '.join('?' * len(COLUMNS))})"
BATCH: Final = 2000
MAX_TEXT: Final = 2_000_000
_RELEASES: Final = """
SELECT e.id, e.key, e.content, r.key, r.body FROM entry e LEFT JOIN release r ON r.reservation = e.reservation
WHERE e.kind = 'record' AND e.id BETWEEN ? AND ? ORDER BY e.id
"""


_KIN: Final = """
SELECT s.reservation, s.body, e.account = ? OR EXISTS (
  SELECT 1 FROM entry v WHERE v.reservation = s.reservation AND v.reservation > 0 AND v.kind = 'view' AND v.account = ?)
FROM shape s JOIN entry e ON e.id = s.reservation WHERE s.family = ? ORDER BY s.reservation DESC LIMIT ?
"""
_UNRECORDED: Final = """
SELECT e.id, e.at, e.clock, r.reservation FROM entry e LEFT JOIN release r ON r.reservation = e.id
WHERE e.key = ? AND e.kind = 'debit' ORDER BY e.id DESC LIMIT 1
"""


class Cursor(Protocol):
    """What both drivers' cursors have in common."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Execute(Protocol):
    """Runs one statement; parameters are marked with `?`."""

    def __call__(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor: ...


class Rows:
    """The tables as one transaction sees them; `commit` ends it."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def since(self, number: int) -> Iterator[Row]:
        """The entries from this id on, in order, read in batches; stops at a gap of a batch."""
        while batch := self.between(number, number + BATCH - 1):
            yield from batch
            if len(batch) < BATCH:
                return
            number += BATCH

    def between(self, first: int, last: int) -> list[Row]:
        """The entries from `first` to `last`, in order."""
        return self._execute(
            f"SELECT {ENTRY} FROM entry WHERE id BETWEEN ? AND ? ORDER BY id", (first, last)
        ).fetchall()

    def count(self) -> int:
        return int(self._execute("SELECT coalesce(max(id), 0) FROM entry").fetchone()[0])

    def reservations(self, key: str) -> list[int]:
        """The debits of the releases kept under a measurement's key, newest first."""
        rows = self._execute("SELECT reservation FROM release WHERE key = ? ORDER BY reservation DESC", (key,))
        return [row[0] for row in rows.fetchall()]

    def about(self, reservation: int, kind: Kind, account: str) -> int | None:
        """The first entry of a kind that an account has about a debit."""
        row = self._execute(
            "SELECT id FROM entry WHERE reservation = ? AND reservation > 0 AND kind = ? AND account = ? "
            "ORDER BY id LIMIT 1",
            (reservation, kind.value, account),
        ).fetchone()
        return None if row is None else cast(int, row[0])

    def last_before(self, account: str, at: int) -> int | None:
        """The account's last debit or view before a time."""
        row = self._execute(
            "SELECT id FROM entry WHERE account = ? AND at < ? AND kind IN ('debit', 'view') "
            "ORDER BY at DESC, id DESC LIMIT 1",
            (account, at),
        ).fetchone()
        return None if row is None else cast(int, row[0])

    def spent_by(self, account: str | None, since: int) -> list[tuple[str, str, str, str, int]]:
        """(events, epsilon, rho, delta, how often) of what an account, or the dataset, paid from a time on."""
        where, parameters = ("account = ? AND kind IN ('debit', 'view')", [account])
        if account is None:
            where, parameters = ("kind = 'debit'", [])
        return self._execute(
            f"SELECT content, epsilon, rho, delta, count(*) FROM entry WHERE {where} AND at >= ? "
            "GROUP BY content, epsilon, rho, delta",
            (*parameters, since),
        ).fetchall()

    def body(self, reservation: int) -> bytes | None:
        """The stored bytes of a release."""
        row = self._execute("SELECT body FROM release WHERE reservation = ?", (reservation,)).fetchone()
        return None if row is None else cast(bytes, row[0])

    def releases_after(self, number: int) -> Iterator[tuple[int, str, str, str, object]]:
        """(entry, its key, its content, stored key, stored body) for each RECORD with an id above `number`."""
        for start in range(number + 1, self.count() + 1, BATCH):
            yield from self._execute(_RELEASES, (start, start + BATCH - 1)).fetchall()

    def releases(self) -> Iterator[tuple[int, str, bytes]]:
        """(reservation, key, body) of all stored releases, in order."""
        last = 0
        while batch := self._execute(
            "SELECT reservation, key, body FROM release WHERE reservation > ? ORDER BY reservation LIMIT ?",
            (last, BATCH),
        ).fetchall():
            yield from batch
            last = batch[-1][0]

    def count_releases(self) -> int:
        return int(self._execute("SELECT count(*) FROM release").fetchone()[0])

    def of(self, user: str | None, after: int, limit: int) -> list[Row]:
        """Up to `limit` entries with an id above `after`, of one user or of all, in order."""
        if user is None:
            return self.between(after + 1, after + limit)
        return self._execute(
            f'SELECT {ENTRY} FROM entry WHERE id > ? AND "user" = ? ORDER BY id LIMIT ?', (after, user, limit)
        ).fetchall()

    def newest(self, user: str | None, limit: int) -> list[Row]:
        """Up to `limit` entries, of one user or of all, the newest first."""
        where, parameters = ("", []) if user is None else ('WHERE "user" = ?', [user])
        return self._execute(
            f"SELECT {ENTRY} FROM entry {where} ORDER BY id DESC LIMIT ?", (*parameters, limit)
        ).fetchall()

    def checkpoint(self) -> tuple[int, bytes] | None:
        """The newest kept copy of the books, and the entry that it stands for."""
        row = self._execute("SELECT entry, body FROM checkpoint ORDER BY entry DESC LIMIT 1").fetchone()
        return None if row is None else (row[0], row[1])

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._execute(INSERT_ENTRY, row)

    def add_release(self, reservation: int, key: str, body: bytes) -> None:
        self._execute("INSERT INTO release VALUES (?, ?, ?)", (reservation, key, body))

    def add_shape(self, reservation: int, family: str, shape: str) -> None:
        self._execute("INSERT INTO shape VALUES (?, ?, ?)", (reservation, family, shape))

    def shape(self, reservation: int) -> str | None:
        """The shape of a stored release, as text."""
        row = self._execute("SELECT body FROM shape WHERE reservation = ?", (reservation,)).fetchone()
        return None if row is None else cast(str, row[0])

    def shapes(self) -> Iterator[tuple[int, str, str]]:
        """(reservation, family, shape) of all, in order."""
        last = 0
        while batch := self._execute(
            "SELECT reservation, family, body FROM shape WHERE reservation > ? ORDER BY reservation LIMIT ?",
            (last, BATCH),
        ).fetchall():
            yield from batch
            last = batch[-1][0]

    def kin(self, family: str, account: str, limit: int) -> list[tuple[int, str, bool]]:
        """(reservation, shape, whether the account seems to have paid for it) of a family, the newest first.

        Up to `limit`, and to MAX_TEXT characters of shapes.
        """
        found: list[tuple[int, str, bool]] = []
        size = 0
        for number, shape, seen in self._execute(_KIN, (account, account, family, limit)):
            size += len(shape)
            if found and size > MAX_TEXT:
                break
            found.append((number, shape, bool(seen)))
        return found

    def unrecorded(self, key: str) -> tuple[int, int, str] | None:
        """(id, time, clock) of the newest debit of a measurement, if no release was recorded for it."""
        row = self._execute(_UNRECORDED, (key,)).fetchone()
        return None if row is None or row[3] is not None else (row[0], row[1], row[2])

    def keep_checkpoint(self, number: int, body: bytes) -> None:
        """Keep this copy of the books, and no older one: it is only a shortcut."""
        self._execute("DELETE FROM checkpoint")
        self._execute("INSERT INTO checkpoint VALUES (?, ?)", (number, body))

    def commit(self) -> None:
        self._execute("COMMIT")
