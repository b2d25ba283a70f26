"""Privacy events as the content of an entry, and as an auditor reads them: in dp_accounting's terms.

Decides the notation only; amounts are the ledger's own integers, so nothing is lost. Gaussian noise is kept by its rho
(noise multiplier = 1 / sqrt(2 rho)), Laplace noise by its epsilon (noise multiplier = 1 / epsilon), a choice
by its epsilon (of which nothing but pure DP may be assumed), key selection by its delta.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, cast

from dpsql.dp.privacy import ChoiceEvent, DeltaEvent, Event, PureEvent, ZcdpEvent, event_of, units_up
from dpsql.types import Cost

if TYPE_CHECKING:  # the compiler takes a second to import, and the ledger's own commands need none of it
    from dpsql.compiler.plan import PlannedRelease

Name = Literal["gaussian", "laplace", "choice", "delta"]
Named = tuple[Name, int]
"""An event and its amount in units of 10^-15: a rho, an epsilon or a delta."""

_NAMES: Final = ("gaussian", "laplace", "choice", "delta")


def events_of(planned: PlannedRelease) -> tuple[Event, ...]:
    """What a release does: one event for each noisy vector and each choice, and two for a selection of keys."""
    noise: tuple[Event, ...] = tuple(
        event_of(measured.mechanism, measured.sensitivity) for measured in planned.measurements
    )
    noise += tuple(event_of(chosen.mechanism, chosen.scores) for chosen in planned.histograms)
    selection = planned.selection
    if selection is None:
        return noise
    return (*noise, event_of(selection.mechanism, selection.sensitivity), DeltaEvent(selection.delta))


def to_content(events: Iterable[Event]) -> str:
    """The content of a DEBIT; "" for no events."""
    named = [_named(event) for event in events]
    return json.dumps(named, separators=(",", ":")) if named else ""


def _named(event: Event) -> Named:
    match event:
        case ZcdpEvent(rho):
            return "gaussian", units_up(rho)
        case PureEvent(epsilon):
            return "laplace", units_up(epsilon)
        case ChoiceEvent(epsilon):
            return "choice", units_up(epsilon)
        case DeltaEvent(delta):
            return "delta", units_up(delta)


def from_content(content: str, cost: Cost) -> tuple[Named, ...]:
    """The events of a DEBIT or VIEW. Without any, its cost read so that nothing is understated."""
    if content:
        return tuple((cast(Name, name), int(amount)) for name, amount in json.loads(content) if name in _NAMES)
    noise: tuple[Named, ...] = (("gaussian", cost.rho),) if cost.rho else (("laplace", cost.epsilon),)
    return tuple(event for event in (*noise, ("delta", cost.delta)) if event[1])
