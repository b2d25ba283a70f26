"""What an answer says beside its rows: its price, what it was made of, what is left, and what would be free.

Texts of the policy, the plan, the ledger's public side and released values only; nothing here knows the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from dpsql.compiler import Compiled
from dpsql.compiler.cautions import rank_errors, unseen_groups
from dpsql.compiler.cells import MomentOutput, aggregate_name, linear
from dpsql.compiler.histograms import HistogramOutput
from dpsql.compiler.plan import PlannedRelease
from dpsql.estimates import Estimated, derived_error95, possible
from dpsql.ledger.balance import Balance, read
from dpsql.ledger.words import plain
from dpsql.replay.ready import Ready
from dpsql.replay.recipe import Derived, Recipe
from dpsql.types import NUMERIC, TEXT, Column, Cost, Relation, Release, Reservation, Value

Grant = Reservation | Release | Derived
"""What the ledger gives for a release: to be made, stored, or derived from stored ones."""

BUDGET_COLUMNS = (
    Column("whose", TEXT),
    Column("epsilon", NUMERIC),
    Column("epsilon_spent", NUMERIC),
    Column("epsilon_left", NUMERIC),
    Column("delta_for_keys", NUMERIC),
    Column("delta_spent", NUMERIC),
    Column("window", TEXT),
)

_REPLAY = "Replay of a stored release: no new noise."


def price(balance: Balance, ready: Ready, granted: Mapping[str, Grant], delta: Decimal | None) -> str:
    """What an answer cost, and what is left. `delta`: at which a statement's rho is read, None under pure."""
    left = f"epsilon {plain(balance.epsilon_left)} of {plain(balance.budget.epsilon)} left"
    left += ", all that the dataset has" if balance.by_dataset else ""
    fresh = sum(isinstance(grant, Reservation) for grant in granted.values())
    viewed = sum(_paid(grant) != Cost() for grant in granted.values()) - fresh
    words = made_of(ready, granted)[:-1]
    if not fresh and not viewed:
        return f"{words}; {left}."
    debited = {ask.key: _paid(granted[planned.id]) for planned, ask in zip(ready.paid, ready.asks, strict=True)}
    epsilon = plain(priced(sum(debited.values(), Cost()), ready, delta))
    if not fresh:
        return f"Price: epsilon {epsilon} for a first view; {words[0].lower()}{words[1:]}; {left}."
    others = len(granted) - fresh - viewed
    part = f" for {fresh + viewed} of {len(granted)} releases" if others else ""
    part += f", {viewed} as a first view" if viewed else ""
    part += ", the others are replays" if others else ""
    return f"Price: epsilon {epsilon}{part}; {left}."


def _paid(grant: Grant) -> Cost:
    return grant.cost if isinstance(grant, Reservation) else grant.paid


def priced(cost: Cost, ready: Ready, delta: Decimal | None) -> Decimal:
    """What is paid of a statement's releases as an epsilon: the one that it names, where that is the price of all."""
    whole = sum({ask.key: ask.cost for ask in ready.asks}.values(), Cost())
    return ready.compiled.epsilon if cost == whole else read(cost, delta)


def made_of(ready: Ready, granted: Mapping[str, Grant]) -> str:
    """What an answer without new noise is made of."""
    recipes = {id_: grant.recipe for id_, grant in granted.items() if isinstance(grant, Derived)}
    if not recipes:
        return _REPLAY
    count = len({recipe.source for recipe in recipes.values()})
    words = f"Derived from {count} stored release{'s' if count > 1 else ''}: no new noise"
    errors = [derived_errors(planned, recipes[planned.id]) for planned in ready.paid if planned.id in recipes]
    bars = told_error(*max(errors, default=(None, None), key=lambda pair: pair[0] or 0.0))
    return f"{words}{bars}; SET dpsql.reuse_error = 0 asks anew."


def derived_errors(planned: PlannedRelease, recipe: Recipe) -> tuple[float | None, float | None]:
    """The largest 95 % error of the counts and sums of a derived release, and of a fresh one."""
    fresh = (planned.error95(output) for output in planned.outputs)
    return derived_error95(planned, recipe), max((error for error in fresh if error is not None), default=None)


def told_error(derived: float | None, fresh: float | None) -> str:
    if not derived:
        return ""
    instead = f" (a new measurement: {fresh:.4g})" if fresh and f"{fresh:.4g}" != f"{derived:.4g}" else ""
    return f", 95 % error {derived:.4g}{instead}"


def cautions(compiled: Compiled, answer: Relation) -> tuple[str, ...]:
    """What an answer does not tell of itself. Of `answer`, which is public, only whether it has rows is asked."""
    empty = () if answer.rows or compiled.cautions else unseen_groups(compiled.releases)
    return (*compiled.cautions, *rank_errors(compiled.releases), *empty)


def left_out(shown: Iterable[Estimated]) -> tuple[str, ...]:
    """How many values are NULL for being no more than noise. From released values alone."""
    found: dict[str, None] = {}
    number = 0
    for each in shown:
        for place, aggregate in enumerate(each.planned.aggregation.aggregates):
            if count := each.count(place):
                number += count
                found[_in_groups(aggregate_name(aggregate), count, each.planned, each.relation)] = None
    if not found:
        return ()
    values, stand = ("value is", "stands") if number == 1 else ("values are", "stand")
    return (
        f"{number:,} {values} no more than noise, so NULL {stand} there: {', '.join(found)}. SET dpsql.null_noise = off"
        " shows them. Ask for coarser groups or fewer aggregates, with more epsilon or tighter bounds.",
    )


def empty_answers(released: Collection[Estimated], left_out: Collection[Estimated] = ()) -> tuple[str, ...]:
    """Which answers say nothing: their intervals span all the values that they can have, or, of counts and sums, the
    errors of most groups are larger than the values. From released values alone. Those that are left out are told of.
    """
    spans = [words for e in released if e not in left_out for words in _empty(e.planned, e.relation)]
    drowned = [words for e in released for words in _drowned(e.planned, e.relation)]
    kinds = (spans, "the 95 % interval is all that the bounds allow"), (drowned, "the error is larger than the value")
    told = [f"{', '.join(dict.fromkeys(found))}: {why}" for found, why in kinds if found]
    advice = "Ask for coarser groups or fewer aggregates, with more epsilon or tighter bounds."
    return (f"No more than noise: {'; '.join(told)}. {advice}",) if told else ()


def _empty(planned: PlannedRelease, relation: Relation) -> Iterator[str]:
    for name, low, high, (least, most) in _intervals(planned):
        count = sum(row[low] == least and row[high] == most for row in relation.rows)
        if count:
            yield _in_groups(name, count, planned, relation)


def _drowned(planned: PlannedRelease, relation: Relation) -> Iterator[str]:
    """Counts and sums that are within their error of zero, as a few groups may well be: told of where most are."""
    aggregates, first = planned.aggregation.aggregates, len(planned.keys)
    for place, (aggregate, output) in enumerate(zip(aggregates, planned.outputs, strict=True)):
        low = first + len(aggregates) + 3 * place + 1
        count = sum(_about_zero(row[low], row[low + 1]) for row in relation.rows) if linear(output) else 0
        if 2 * count > len(relation.rows):
            yield _in_groups(aggregate_name(aggregate), count, planned, relation)


def _about_zero(low: Value, high: Value) -> bool:
    return isinstance(low, float) and isinstance(high, float) and low < 0 < high


def _in_groups(name: str, count: int, planned: PlannedRelease, relation: Relation) -> str:
    return f"{name} in {count:,} of {len(relation.rows):,} groups" if planned.keys else name


def _intervals(planned: PlannedRelease) -> Iterator[tuple[str, int, int, tuple[Value, Value]]]:
    """Of aggregates with bounds: the places of their intervals' ends in a released row, and what the ends can be."""
    aggregates, first = planned.aggregation.aggregates, len(planned.keys)
    bars = first + len(aggregates)
    for place, (aggregate, output) in enumerate(zip(aggregates, planned.outputs, strict=True)):
        ends = possible(output)
        if ends is None:
            continue
        if isinstance(output, MomentOutput):
            yield aggregate_name(aggregate), bars + 3 * place + 1, bars + 3 * place + 2, ends
        elif isinstance(output, HistogramOutput) and aggregate.end == "low":
            other = replace(aggregate, end="high")
            if other in aggregates:
                high = aggregates.index(other)
                last = possible(planned.outputs[high])
                name = planned.histograms[output.histogram].name.removeprefix("low end of ")
                yield name, first + place, first + high, (ends[0], last[1] if last is not None else ends[1])


def free(compiled: Compiled) -> tuple[str, ...]:
    """Why a statement costs nothing; no word where it reads no table."""
    if compiled.columns_only:
        return ("Columns only: rows of a private table are never returned. Ask for aggregates.",)
    return ("Free: public data only.",) if compiled.releases else ()


def foreseen(entry: Mapping[str, Any]) -> str:
    """An entry of EXPLAIN's `replay`, in words."""
    price = f"for epsilon {plain(Decimal(str(entry['epsilon'])))}"
    words = {"free": "free", "view": f"a first view {price}, which debits you alone", "fresh": f"made anew {price}"}
    told = words[str(entry["source"])]
    if "derived_from" in entry:
        also = "" if entry["source"] == "free" else "; what else follows from the same is free then"
        error = told_error(entry["error95"], entry["fresh_error95"])
        told = f"derived from {entry['derived_from']} stored{error}, {told}{also}"
    elif entry["source"] == "free":
        told = "stored and seen, free"
    return f"Replay of {entry['release']}: {told}"


def budget_row(whose: str, balance: Balance) -> tuple[Value, ...]:
    """A row of BUDGET_COLUMNS."""
    return (
        whose,
        balance.budget.epsilon,
        balance.epsilon_spent,
        balance.epsilon_left,
        _short(balance.delta_limit),
        _short(balance.delta_spent),
        balance.window or "never resets",
    )


def _short(value: Decimal) -> Decimal:
    return value.normalize() if value else Decimal(0)
