"""What becomes of an ask, derived answers included: stored releases of its family, read in one indexed look-up.

Decides in which order the ways to an answer are taken: seen before, derived from what was seen, a first view of the
very measurement, derived with first views, made anew. A derived answer with first views is one only if their recorded
costs together are no more than the ask's own; each release that it reads is proven by the chain, its shape by the hash
that the stored release holds.

A first view may cost a user as much as a measurement, for an answer with a larger error. It is preferred all the same:
what is bought is the stored releases with all that follows from them, and the dataset's budget, which is everybody's
and has no window, stays as it is. Only what is read is bought, in full: answers that share their noise are no
mechanisms of their own, so the sum of what each would cost alone bounds nothing. Who wants a measurement for that price
says so (`reuse_error`), and is told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Final

from dpsql.ledger import decide, events, shelf
from dpsql.ledger.chain import draft
from dpsql.ledger.decide import Request
from dpsql.ledger.model import Ask, Decision, Entry, Kind, LedgerError, Source, Stored
from dpsql.ledger.rows import Rows
from dpsql.replay.derive import choose
from dpsql.replay.recipe import Derived, Kin, Recipe, Shape, decoded, digest
from dpsql.replay.store import shape_digest
from dpsql.types import Cost, Release, Reservation

MAX_KIN: Final = 1000
MAX_CELLS: Final = 20_000
"""Stored releases of a family that are looked at, the newest first, and their cells: a choice among so many takes about
a tenth of a second, and everybody who asks the ledger waits for it."""


MAX_WORK: Final = 50_000
EACH: Final = 2_000
"""Cells that a statement's releases may have together to be derived, each with so many more for what it looks at: those
behind are replays or measurements. One with hundreds of releases would keep everybody waiting, and EXPLAIN is free."""

MAX_ALONE: Final = 50
"""Releases that are tried one by one, where the best recipe reads more than the account may view for its price."""


Found = dict[str, Reservation | Release | Derived]
"""What answers asks, by key."""


def decisions(rows: Rows, request: Request) -> tuple[Decision, ...]:
    """What becomes of each ask in turn: what one pays for, the next ones have seen."""
    bought: set[int] = set()
    made: list[Decision] = []
    left = MAX_WORK
    for ask in request.asks:
        kept = [_bought(stored, bought) for stored in shelf.kept(rows, ask.key, request.account)]
        decision = decide.decide(ask, kept, request.shared)
        if ask.kin is not None and decision.source is not Source.FREE and left > 0:
            left -= EACH + prod(len(axis.cells) for axis in ask.kin.shape.axes)
            decision = _settled(rows, ask, ask.kin, decision, request.account, request.shared, bought)
        bought.update(stored.reservation for stored in decision.views)
        made.append(decision)
    return tuple(made)


def answers(rows: Rows, decisions: Iterable[Decision]) -> Found:
    """The kept releases that answer, by key; read before anything is debited, so that a damaged one costs nothing."""
    found: Found = {}
    for decision in decisions:
        if decision.stored is not None:
            found[decision.ask.key] = shelf.release_of(rows, decision.stored.reservation)
        elif decision.recipe is not None:
            found[decision.ask.key] = Derived(decision.recipe, _releases(rows, decision))
    return found


def debits(request: Request, decision: Decision, statement: str, window: str) -> list[Entry]:
    """A debit for what is made anew, a view for each kept release that the account pays for; none for what is free."""
    common = partial(
        draft, user=request.user, account=request.account, window=window, statement=statement, gate=request.gate
    )
    if decision.source is Source.FRESH:
        content = events.to_content(decision.ask.events)
        return [common(Kind.DEBIT, key=decision.ask.key, cost=decision.cost, content=content)]
    return [
        common(Kind.VIEW, key=stored.key, reservation=stored.reservation, cost=stored.cost, content=stored.events)
        for stored in decision.views
    ]


def record(debit: Entry, content: str) -> Entry:
    """That the release of a debit is kept; `content` is the hash of its bytes."""
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


def _settled(
    rows: Rows, ask: Ask, kin: Kin, exact: Decision, account: str, shared: bool, bought: Collection[int]
) -> Decision:
    """The ask against its family, which may do better than `exact`, its own measurement.

    `bought`: releases that the same statement pays for already.
    """
    found = rows.kin(kin.family, account, MAX_KIN)
    seen = [(number, shape) for number, shape, known in found if known or shared or number in bought]
    free = _derived(rows, ask, account, shared, bought, seen)
    if free is not None and free.source is Source.FREE:
        return free
    if exact.source is Source.VIEW or len(seen) == len(found):
        return exact
    viewed = _derived(rows, ask, account, shared, bought, [(number, shape) for number, shape, _ in found])
    if viewed is None:
        unseen = [(number, shape) for number, shape, known in found if not known and number not in bought]
        alone = (_derived(rows, ask, account, shared, bought, [one]) for one in _few(kin.family, unseen))
        viewed = next((decision for decision in alone if decision is not None), None)
    return exact if viewed is None else viewed


def _few(family: str, found: Sequence[tuple[int, str]]) -> Sequence[tuple[int, str]]:
    """The newest, as many as may be tried one by one."""
    return found[: len(_shapes(family, found[:MAX_ALONE]))]


def _derived(
    rows: Rows, ask: Ask, account: str, shared: bool, bought: Collection[int], found: Sequence[tuple[int, str]]
) -> Decision | None:
    """A derived answer that the account may have, at what it has not paid yet."""
    recipe = _chosen(ask, found)
    if recipe is None:
        return None
    stored = tuple(_bought(shelf.stored(rows, number, account), bought) for number in recipe.sources)
    cost = sum((s.cost for s in stored if not (s.seen or shared)), Cost())
    if not decide.within(cost, ask.cost):
        return None
    marked = tuple(replace(s, seen=True) if shared else s for s in stored)
    return Decision(ask, Source.FREE if cost == Cost() else Source.VIEW, cost, None, recipe, marked)


def _chosen(ask: Ask, found: Sequence[tuple[int, str]]) -> Recipe | None:
    try:
        if ask.kin is None or not found:
            return None
        return choose(ask.kin, _shapes(ask.kin.family, found))
    except (ValueError, KeyError, TypeError, ArithmeticError):
        raise LedgerError("the shape of a stored release is damaged") from None


def _shapes(family: str, found: Sequence[tuple[int, str]]) -> list[tuple[int, Shape]]:
    """As many as may be looked at, at least the newest."""
    shapes: list[tuple[int, Shape]] = []
    cells = 0
    for number, text in found:
        shape = decoded(text, family)
        cells += sum(len(axis.cells) for axis in shape.axes)
        if shapes and cells > MAX_CELLS:
            break
        shapes.append((number, shape))
    return shapes


def _bought(stored: Stored, bought: Collection[int]) -> Stored:
    return replace(stored, seen=True) if stored.reservation in bought else stored


def _releases(rows: Rows, decision: Decision) -> tuple[Release, ...]:
    family = "" if decision.ask.kin is None else decision.ask.kin.family
    return tuple(_release(rows, stored.reservation, family) for stored in decision.sources)


def _release(rows: Rows, reservation: int, family: str) -> Release:
    """Raises LedgerError where the release, or the shape that it was chosen by, does not prove itself."""
    release, body = shelf.release_and_body(rows, reservation)
    shape = rows.shape(reservation)
    if shape is None or shape_digest(body) != digest(family, shape):
        raise LedgerError(f"the shape of the release kept for entry {reservation} has been altered")
    return release
