"""What becomes of an ask, derived answers included: stored releases of its family, read in one indexed look-up.

Decides in which order the ways to an answer are taken: seen before, derived from what was seen, a first view of the
very measurement, derived with first views, made anew. A derived answer with first views is one only if their recorded
costs together are no more than the ask's own; each release that it reads is proven by the chain, its shape by the hash
that the stored release holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from dpsql.ledger import decide, shelf
from dpsql.ledger.model import Ask, Decision, LedgerError, Source, Stored
from dpsql.ledger.rows import Rows
from dpsql.replay.derive import Derived, Recipe, digest
from dpsql.replay.store import shape_digest
from dpsql.types import Cost, Release

MAX_KIN: Final = 1000
"""Stored releases of a family that are looked at, the newest first."""


def settle(rows: Rows, ask: Ask, account: str, shared: bool, bought: Collection[int]) -> Decision:
    """The ask against what is kept. `bought`: releases that the same statement pays for already."""
    kept = [_bought(stored, bought) for stored in shelf.kept(rows, ask.key, account)]
    exact = decide.decide(ask, kept, shared)
    if ask.kin is None or exact.source is Source.FREE:
        return exact
    found = rows.kin(ask.kin.family, account, MAX_KIN)
    seen = [(number, shape) for number, shape, known in found if known or shared or number in bought]
    free = _derived(rows, ask, account, shared, bought, seen)
    if free is not None and free.source is Source.FREE:
        return free
    if exact.source is Source.VIEW or len(seen) == len(found):
        return exact
    viewed = _derived(rows, ask, account, shared, bought, [(number, shape) for number, shape, _ in found])
    return exact if viewed is None else viewed


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
        return None if ask.kin is None or not found else ask.kin.choose(found)
    except (ValueError, KeyError, TypeError, ArithmeticError):
        raise LedgerError("the shape of a stored release is damaged") from None


def _bought(stored: Stored, bought: Collection[int]) -> Stored:
    return replace(stored, seen=True) if stored.reservation in bought else stored


def derived_of(rows: Rows, decision: Decision) -> Derived | None:
    """The releases that a derived answer reads. Raises LedgerError where one, or its shape, does not prove itself."""
    if decision.recipe is None or decision.ask.kin is None:
        return None
    releases = tuple(_release(rows, stored.reservation, decision.ask.kin.family) for stored in decision.sources)
    return Derived(decision.recipe, releases)


def _release(rows: Rows, reservation: int, family: str) -> Release:
    release, body = shelf.release_and_body(rows, reservation)
    shape = rows.shape(reservation)
    if shape is None or shape_digest(body) != digest(family, shape):
        raise LedgerError(f"the shape of the release kept for entry {reservation} has been altered")
    return release
