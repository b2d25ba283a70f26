"""What the entries so far add up to, and which entry may come next.

Pure. Must never repair or skip anything: the first entry that does not follow makes the whole ledger unusable. A
checkpoint is an entry whose content is the hash of the books before it, so books read back from a stored copy are as
good as the chain that holds that hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, cast

from dpsql.ledger.chain import KINDS, NO_HASH, Row, altered, from_row, require_proven, sealed, to_row
from dpsql.ledger.model import Entry, Head, Kind, LedgerError
from dpsql.types import Cost

_FREE: Final = Cost()
_COSTING: Final = (Kind.DEBIT, Kind.VIEW, Kind.RESTORE)


@dataclass(frozen=True, slots=True)
class Grant:
    """A raise of an account's budget, in the units of an epsilon; negative if it was revoked."""

    at: int
    epsilon: int


@dataclass(slots=True)
class Books:
    """The state that the entries so far add up to. It changes only by `post`, which checks what it is given.

    `last`: the last entry, as stored. `rho_gated`: some debit was gated by rho, so its epsilon may be unknown and
    epsilons can no longer gate. `policy`: the content of the last POLICY entry. `checkpoint`: the id of the last
    CHECKPOINT. `refreshes`: how many there were. `shown`: the last entry read here by which a release was kept or
    shown: while it is the same, what is kept for whom is too.
    """

    first: Entry | None = None
    last: Row | None = None
    dataset_spent: Cost = _FREE
    accounts: dict[str, Cost] = field(default_factory=dict)
    grants: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    policy: str = ""
    rho_gated: bool = False
    debits: int = 0
    releases: int = 0
    checkpoint: int = 0
    refreshes: int = 0
    shown: int = field(default=0, compare=False)

    @property
    def head(self) -> Head:
        return Head(self.last[0], self.last[21]) if self.last else Head(0, NO_HASH)

    @property
    def at(self) -> int:
        """The time of the last entry."""
        return self.last[1] if self.last else 0

    def spent(self, account: str) -> Cost:
        return self.accounts.get(account, _FREE)

    def granted(self, account: str, since: int) -> int:
        """What was granted less what was revoked, from a time on."""
        return sum(grant.epsilon for grant in self.grants.get(account, ()) if grant.at >= since)

    def follow(self, rows: Iterable[Row]) -> None:
        """Take over what others have added. Raises LedgerError unless each row proves itself and follows."""
        for row in rows:
            require_proven(row, self.last[21] if self.last else NO_HASH)
            self.post(row)

    def post(self, row: Row) -> None:
        """Take over an entry, as stored, whose hash is proven. Raises LedgerError if it does not follow from the last.

        Rows, not entries: of what others add, most of it is never looked at again.
        """
        try:
            kind, amounts = KINDS[row[3]], tuple(map(int, row[11:20]))
        except (KeyError, TypeError, ValueError):
            raise altered(row) from None
        cost, account, dataset = amounts[:3], amounts[3:6], amounts[6:]
        if problem := self._problem(row, kind, cost, (account, dataset)):
            raise LedgerError(f"entry {row[0]} does not follow from the one before: {problem}")
        self.first = self.first or from_row(row)
        self.last = row
        if kind in _COSTING:
            self.dataset_spent = Cost(*dataset)
        self.rho_gated = self.rho_gated or row[10] == "rho"
        self._take(row, kind, account)

    def _take(self, row: Row, kind: Kind, account: tuple[int, ...]) -> None:
        match kind:
            case Kind.DEBIT | Kind.VIEW:
                self.accounts[row[5]] = Cost(*account)
                self.debits += kind is Kind.DEBIT
                self.shown = self.shown if kind is Kind.DEBIT else row[0]
            case Kind.RECORD:
                self.releases += 1
                self.shown = row[0]
            case Kind.GRANT | Kind.REVOKE:
                grant = Grant(row[1], granted_by(from_row(row)))
                self.grants[row[5]] = (*self.grants.get(row[5], ()), grant)
            case Kind.POLICY:
                self.policy = row[20]
                self.accepted.clear()
            case Kind.ACCEPT:
                self.accepted.add(row[20])
            case Kind.REFRESH:
                self.refreshes += 1
            case Kind.CHECKPOINT:
                self.checkpoint = row[0]
            case Kind.OPEN | Kind.CLOCK | Kind.RESTORE:
                pass

    def _problem(self, row: Row, kind: Kind, cost: tuple[int, ...], totals: tuple[tuple[int, ...], ...]) -> str | None:
        last = self.last
        if row[0] != (last[0] if last else 0) + 1:
            return "a gap"
        if (kind is Kind.OPEN) != (last is None):
            return "a second beginning" if last else "no beginning"
        if last and row[1] < last[1]:
            return "an earlier time"
        if min(cost) < 0:
            return "a negative amount"
        if kind not in _COSTING and any(cost):
            return "a cost where there is none"
        if totals != self.totals(kind, row[5], cost):
            return "wrong totals"
        if kind is Kind.CHECKPOINT and row[20] != digest(to_bytes(self)):
            return "a wrong checkpoint"
        return None

    def totals(self, kind: Kind, account: str, cost: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The account's and the dataset's spending (epsilon, rho, delta) after an entry."""
        known, dataset = self.spent(account), self.dataset_spent
        before = (known.epsilon, known.rho, known.delta), (dataset.epsilon, dataset.rho, dataset.delta)
        match kind:
            case Kind.DEBIT:
                return _plus(before[0], cost), _plus(before[1], cost)
            case Kind.VIEW:
                return _plus(before[0], cost), before[1]
            case Kind.RESTORE:
                return before[0], _plus(before[1], cost)
            case _:
                return before


def _plus(total: tuple[int, ...], cost: tuple[int, ...]) -> tuple[int, ...]:
    return total[0] + cost[0], total[1] + cost[1], total[2] + cost[2]


def difference(total: Cost, before: Cost) -> Cost:
    """What was spent between two totals of one account."""
    return Cost(total.epsilon - before.epsilon, total.rho - before.rho, total.delta - before.delta)


def granting(units: int) -> str:
    """The content of a GRANT or REVOKE: an epsilon in its units, above 0."""
    return json.dumps({"epsilon": units}, separators=(",", ":"))


def granted_by(entry: Entry) -> int:
    """The signed epsilon of a GRANT or REVOKE, in its units. Raises LedgerError for another content."""
    try:
        epsilon = json.loads(entry.content)["epsilon"]
        if type(epsilon) is not int or epsilon <= 0:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise LedgerError(f"entry {entry.id} grants nothing that can be read") from None
    return epsilon if entry.kind is Kind.GRANT else -epsilon


def chained(books: Books, drafts: Iterable[Entry]) -> tuple[Entry, ...]:
    """The drafts (ids, totals, hashes open) as entries that follow from the books, which stay as they are."""
    return extend(copy(books), drafts)


def copy(books: Books) -> Books:
    """Books that go on by themselves."""
    return replace(books, accounts=dict(books.accounts), grants=dict(books.grants), accepted=set(books.accepted))


def extend(books: Books, drafts: Iterable[Entry], at: int = 0, clock: str | None = None) -> tuple[Entry, ...]:
    """The drafts as entries that follow from the books, and that the books hold from now on.

    They get this time and state of the clock, or keep their own where `clock` is None.
    """
    done: list[Entry] = []
    for draft in drafts:
        cost = (draft.cost.epsilon, draft.cost.rho, draft.cost.delta)
        account, dataset = books.totals(draft.kind, draft.account, cost)
        when, state = (draft.at, draft.clock) if clock is None else (at, clock)
        head, row = books.head, to_row(draft)
        place = (head.count + 1, max(when, books.at), state)
        row = sealed(cast(Row, (*place, *row[3:14], *map(str, account), *map(str, dataset), *row[20:])), head.hash)
        books.post(row)
        done.append(from_row(row))
    return tuple(done)


# Checkpoints --------------------------------------------------------------------------------------------------------


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def to_bytes(books: Books) -> bytes:
    """All that the books hold but their first and last entry, which the chain proves; canonical.

    Refreshes are named only where there are some: ledgers from before there were any prove themselves as ever.
    """
    document: dict[str, object] = {
        "accepted": sorted(books.accepted),
        "accounts": {name: [c.epsilon, c.rho, c.delta] for name, c in books.accounts.items()},
        "debits": books.debits,
        "grants": {name: [[g.at, g.epsilon] for g in grants] for name, grants in books.grants.items()},
        "policy": books.policy,
        "releases": books.releases,
        "rho_gated": books.rho_gated,
    }
    if books.refreshes:
        document["refreshes"] = books.refreshes
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii")


def restore(books: Books, body: bytes, first: Entry, checkpoint: Entry) -> None:
    """Make the books what they were after `checkpoint`, whose content must be the hash of `body`, else LedgerError."""
    if checkpoint.kind is not Kind.CHECKPOINT or checkpoint.content != digest(body):
        raise LedgerError(f"the checkpoint kept for entry {checkpoint.id} has been altered")
    document = json.loads(body)
    books.first, books.last, books.checkpoint = first, to_row(checkpoint), checkpoint.id
    books.dataset_spent = checkpoint.dataset_total
    books.accounts = {name: Cost(*amounts) for name, amounts in document["accounts"].items()}
    books.grants = {name: tuple(Grant(*grant) for grant in grants) for name, grants in document["grants"].items()}
    books.accepted = set(document["accepted"])
    books.policy = document["policy"]
    books.rho_gated = document["rho_gated"]
    books.debits, books.releases = document["debits"], document["releases"]
    books.refreshes = document.get("refreshes", 0)
