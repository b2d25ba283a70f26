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
from typing import Final

from dpsql.ledger.chain import NO_HASH, sealed
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

    `rho_gated`: some debit was gated by rho, so its epsilon may be unknown and epsilons can no longer gate. `policy`:
    the content of the last POLICY entry. `checkpoint`: the id of the last CHECKPOINT. `refreshes`: how many there were.
    """

    first: Entry | None = None
    last: Entry | None = None
    accounts: dict[str, Cost] = field(default_factory=dict)
    grants: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    policy: str = ""
    rho_gated: bool = False
    debits: int = 0
    releases: int = 0
    checkpoint: int = 0
    refreshes: int = 0

    @property
    def head(self) -> Head:
        return Head(self.last.id, self.last.hash) if self.last else Head(0, NO_HASH)

    @property
    def dataset_spent(self) -> Cost:
        return self.last.dataset_total if self.last else _FREE

    def spent(self, account: str) -> Cost:
        return self.accounts.get(account, _FREE)

    def granted(self, account: str, since: int) -> int:
        """What was granted less what was revoked, from a time on."""
        return sum(grant.epsilon for grant in self.grants.get(account, ()) if grant.at >= since)

    def post(self, entry: Entry) -> None:
        """Take over an entry whose hash is proven. Raises LedgerError if it does not follow from the last one."""
        if problem := self._problem(entry):
            raise LedgerError(f"entry {entry.id} does not follow from the one before: {problem}")
        self.first = self.first or entry
        self.last = entry
        self.rho_gated = self.rho_gated or entry.gate == "rho"
        self._take(entry)

    def _take(self, entry: Entry) -> None:
        match entry.kind:
            case Kind.DEBIT | Kind.VIEW:
                self.accounts[entry.account] = entry.account_total
                self.debits += entry.kind is Kind.DEBIT
            case Kind.RECORD:
                self.releases += 1
            case Kind.GRANT | Kind.REVOKE:
                grant = Grant(entry.at, granted_by(entry))
                self.grants[entry.account] = (*self.grants.get(entry.account, ()), grant)
            case Kind.POLICY:
                self.policy = entry.content
                self.accepted.clear()
            case Kind.ACCEPT:
                self.accepted.add(entry.content)
            case Kind.REFRESH:
                self.refreshes += 1
            case Kind.CHECKPOINT:
                self.checkpoint = entry.id
            case Kind.OPEN | Kind.CLOCK | Kind.RESTORE:
                pass

    def _problem(self, entry: Entry) -> str | None:
        if entry.id != self.head.count + 1:
            return "a gap"
        if (entry.kind is Kind.OPEN) != (self.last is None):
            return "a second beginning" if self.last else "no beginning"
        if self.last and entry.at < self.last.at:
            return "an earlier time"
        if min(entry.cost.epsilon, entry.cost.rho, entry.cost.delta) < 0:
            return "a negative amount"
        if entry.kind not in _COSTING and entry.cost != _FREE:
            return "a cost where there is none"
        if (entry.account_total, entry.dataset_total) != self.totals(entry):
            return "wrong totals"
        if entry.kind is Kind.CHECKPOINT and entry.content != digest(to_bytes(self)):
            return "a wrong checkpoint"
        return None

    def totals(self, entry: Entry) -> tuple[Cost, Cost]:
        """The account's and the dataset's spending after this entry."""
        account = self.spent(entry.account)
        match entry.kind:
            case Kind.DEBIT:
                return account + entry.cost, self.dataset_spent + entry.cost
            case Kind.VIEW:
                return account + entry.cost, self.dataset_spent
            case Kind.RESTORE:
                return account, self.dataset_spent + entry.cost
            case _:
                return account, self.dataset_spent


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


def extend(books: Books, drafts: Iterable[Entry]) -> tuple[Entry, ...]:
    """The drafts as entries that follow from the books, and that the books hold from now on."""
    done: list[Entry] = []
    for draft in drafts:
        at = max(draft.at, books.last.at) if books.last else draft.at
        account, dataset = books.totals(draft)
        following = replace(draft, id=books.head.count + 1, at=at, account_total=account, dataset_total=dataset)
        entry = sealed(following, books.head.hash)
        books.post(entry)
        done.append(entry)
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
    books.first, books.last, books.checkpoint = first, checkpoint, checkpoint.id
    books.accounts = {name: Cost(*amounts) for name, amounts in document["accounts"].items()}
    books.grants = {name: tuple(Grant(*grant) for grant in grants) for name, grants in document["grants"].items()}
    books.accepted = set(document["accepted"])
    books.policy = document["policy"]
    books.rho_gated = document["rho_gated"]
    books.debits, books.releases = document["debits"], document["releases"]
    books.refreshes = document.get("refreshes", 0)
