"""The engine without a socket and without replay: every answer draws anew, and what is released is kept to be measured.

The backend runs each query once: its exact cells do not change, and thousands of draws over them are wanted. Not a test
itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from dpsql.backends import Backend, Cancel, open_backend
from dpsql.backends.inspect import inspect
from dpsql.engine import Engine
from dpsql.ledger import Ask, Ledger, Preview
from dpsql.ledger.model import Source, Spending
from dpsql.policy.load import load
from dpsql.session.ports import CancelToken
from dpsql.types import Cost, ExactCells, Release, Reservation, Settings

QUIET = Settings(notices=False)


@dataclass
class Forgetful:
    """A ledger that lets everything pass and hands out nothing twice."""

    released: list[Release] = field(default_factory=list)
    numbers: count[int] = field(default_factory=count)

    def reserve(self, user: str, asks: Sequence[Ask], *_: object, **__: object) -> tuple[Reservation, ...]:
        return tuple(Reservation(next(self.numbers), user, ask.key, ask.cost) for ask in asks)

    def record(self, reservation: Reservation, release: Release, *_: object) -> None:
        self.released.append(release)

    def give_up(self, reservation: Reservation) -> None:
        """Nobody waits."""

    def knows_epoch(self, refreshes: int) -> bool:
        return True

    def refreshes(self) -> int:
        return 0

    def preview(self, user: str, asks: Sequence[Ask], *_: object, **__: object) -> Preview:
        return Preview((Source.FRESH,) * len(asks), Cost(), Cost(), None, (Cost(),) * len(asks), (None,) * len(asks))

    def spending(self, *_: object, **__: object) -> Spending:
        return Spending(Cost())

    def close(self) -> None:
        self.released.clear()


@dataclass
class Once:
    """A backend that remembers what it has fetched."""

    backend: Backend
    fetched: dict[str, ExactCells] = field(default_factory=dict)

    @property
    def dialect(self) -> str:
        return self.backend.dialect

    def fetch(self, sql: str, key_columns: int, timeout: float, cancel: Cancel | None = None) -> ExactCells:
        if sql not in self.fetched:
            self.fetched[sql] = self.backend.fetch(sql, key_columns, timeout, cancel)
        return self.fetched[sql]

    def close(self) -> None:
        self.backend.close()


class Measured:
    """One policy's engine; `answer` gives the released cells, in grid steps, noise and all."""

    def __init__(self, policy: Path) -> None:
        loaded = load(policy)
        backend = open_backend(loaded.backend, loaded.timezone)
        self._ledger = Forgetful()
        schema = inspect(backend, loaded)
        self.engine = Engine(schema, cast(Backend, Once(backend)), cast(Ledger, self._ledger))

    def __enter__(self) -> Measured:
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()

    def answer(self, query: str, settings: Settings = QUIET) -> tuple[tuple[int, ...], ...]:
        self._ledger.released.clear()
        self.engine.answer("alice", query, 0, settings, (), CancelToken())
        (release,) = self._ledger.released
        return release.cells

    def keys(self, query: str) -> dict[str, str]:
        """The keys under which its releases would be stored."""
        ready = self.engine.preparer.ready("alice", query, 0, QUIET, ())
        return {planned.id: ask.key for planned, ask in zip(ready.paid, ready.asks, strict=True)}

    def announced(self, query: str, settings: Settings = QUIET) -> dict[str, Any]:
        """The first measurement, as EXPLAIN tells it."""
        relation = self.engine.explain("alice", query, 0, settings, (), "json", CancelToken())
        plan = json.loads(str(relation.rows[0][0]))
        return cast("dict[str, Any]", plan["releases"][0]["measurements"][0])


def with_mechanism(name: str) -> Settings:
    return replace(QUIET, mechanism=cast(Any, name))
