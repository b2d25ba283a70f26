"""What becomes of an ask, derived answers included: stored releases of its family, read in one indexed look-up.

Decides in which order the ways to an answer are taken: seen before, derived from what was seen, a first view of the
very measurement, derived with a first view, made anew. A derived answer with a first view is one only if that costs no
more than the ask's own; each release that is read is proven by the chain, its shape by the hash that it holds.

A first view may cost a user as much as a measurement, for an answer with a larger error. It is preferred all the same:
what is bought is the stored release with all that follows from it, and the dataset's budget, which is everybody's and
has no window, stays as it is. Who wants a measurement for that price says so (`reuse_error`), and is told.

A release that reads others is kept under a key of its own for each of those that it has read (`key_after`): of an inner
measurement that was made twice, one user may have seen the first and another the second, and what was made of the first
says as much of it as it says itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import prod
from typing import Final

from dpsql.ledger import decide, events, shelf
from dpsql.ledger.chain import draft
from dpsql.ledger.decide import Request
from dpsql.ledger.model import Ask, Decision, Entry, Kind, LedgerError, Source, Stored
from dpsql.ledger.rows import Rows
from dpsql.replay.derive import choose
from dpsql.replay.key import fingerprint
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

MAX_TRIED: Final = 50
"""Recipes of which the price is looked at, the most accurate first."""


Found = dict[str, Reservation | Release | Derived]
"""What answers asks, by key."""


def key_after(key: str, made: Sequence[int]) -> str:
    """Under which a measurement is kept that has read these releases, by their debits; its own where it reads none."""
    return fingerprint((key, made)) if made else key


def decisions(rows: Rows, request: Request) -> tuple[Decision, ...]:
    """What becomes of each ask in turn: what one pays for, the next ones have seen. Those that others read come first.

    What reads a release that is to be made anew is itself, for nothing has read that one yet.
    """
    bought: set[int] = set()
    made: dict[str, Decision] = {}
    left = MAX_WORK
    for ask in request.asks:
        read = [made[key].stored for key in ask.after]
        stored = [each for each in read if each is not None]
        if len(stored) < len(read):
            made[ask.key] = Decision(ask, Source.FRESH, ask.cost, None)
            continue
        key = key_after(ask.key, [each.reservation for each in stored])
        kept = [_bought(each, bought) for each in shelf.kept(rows, key, request.account)]
        decision = replace(decide.decide(ask, kept, request.shared), key=key)
        if ask.kin is not None and decision.source is not Source.FREE and left > 0:
            left -= EACH + prod(len(axis.cells) for axis in ask.kin.shape.axes)
            decision = _settled(rows, ask, ask.kin, decision, request.account, request.shared, bought)
        if decision.source is Source.VIEW and decision.stored is not None:
            bought.add(decision.stored.reservation)
        made[ask.key] = decision
    return tuple(made.values())


def answers(rows: Rows, decisions: Iterable[Decision]) -> Found:
    """The kept releases that answer, by key; read before anything is debited, so that a damaged one costs nothing."""
    found: Found = {}
    for decision in decisions:
        if decision.stored is None:
            continue
        number = decision.stored.reservation
        if decision.recipe is None:
            found[decision.ask.key] = replace(shelf.release_of(rows, number), paid=decision.cost)
        else:
            family = "" if decision.ask.kin is None else decision.ask.kin.family
            found[decision.ask.key] = Derived(decision.recipe, _release(rows, number, family), decision.cost)
    return found


def debits(
    request: Request, decisions: Iterable[Decision], statement: str, window: str, number: int
) -> Iterator[Entry]:
    """A debit for what is made anew, a view for each kept release that the account pays for; none for what is free.

    `number`: that of the first of these entries; the others follow.
    """
    made: dict[str, int] = {}
    for decision in decisions:
        ask, stored = decision.ask, decision.stored
        if decision.source is Source.FREE:
            if stored is not None:
                made[ask.key] = stored.reservation
            continue
        if decision.source is Source.FRESH:
            made[ask.key] = number
            key = key_after(ask.key, [made[inner] for inner in ask.after])
            entry = draft(Kind.DEBIT, key=key, cost=decision.cost, content=events.to_content(ask.events))
        elif stored is not None:
            made[ask.key] = stored.reservation
            entry = draft(
                Kind.VIEW, key=stored.key, reservation=stored.reservation, cost=stored.cost, content=stored.events
            )
        yield replace(
            entry, user=request.user, account=request.account, window=window, statement=statement, gate=request.gate
        )
        number += 1


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
    derived = _derived(rows, ask, kin, account, shared, bought, seen)
    if derived is not None or exact.source is Source.VIEW:
        return exact if derived is None else derived
    known = {number for number, _ in seen}
    viewed = [(number, shape) for number, shape, _ in found if number not in known]
    return _derived(rows, ask, kin, account, shared, bought, viewed) or exact


def _derived(
    rows: Rows,
    ask: Ask,
    kin: Kin,
    account: str,
    shared: bool,
    bought: Collection[int],
    found: Sequence[tuple[int, str]],
) -> Decision | None:
    """The most accurate derived answer that the account may have, at what it has not paid yet."""
    for recipe in _recipes(kin, found):
        stored = _bought(shelf.stored(rows, recipe.source, account), bought)
        cost = Cost() if stored.seen or shared else stored.cost
        if decide.within(cost, ask.cost):
            return Decision(ask, Source.FREE if cost == Cost() else Source.VIEW, cost, stored, recipe)
    return None


def _recipes(kin: Kin, found: Sequence[tuple[int, str]]) -> Iterator[Recipe]:
    try:
        yield from islice(choose(kin, _shapes(kin.family, found)), MAX_TRIED)
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


def _release(rows: Rows, reservation: int, family: str) -> Release:
    """Raises LedgerError where the release, or the shape that it was chosen by, does not prove itself."""
    release, body = shelf.release_and_body(rows, reservation)
    shape = rows.shape(reservation)
    if shape is None or shape_digest(body) != digest(family, shape):
        raise LedgerError(f"the shape of the release kept for entry {reservation} has been altered")
    return release
