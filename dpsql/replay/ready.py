"""A compiled statement with all that the ledger is asked for it: found once, however often it is asked.

Decides what the key of a measurement and the family of a release hang on beside their plans: the dataset and the state
of its data, the time zone, what the policy declares of the tables, and everything public that can reach the backend's
query. That is each public relation that it scans, each that a public remainder before it reads (as a single value, or
as rows), and what the releases read that this one reads in turn. Of an inner release the key says which measurement it
is; which one of several equal ones it was, the ledger adds when it knows (`Ask.after`). A release that others read, or
that reads others, is never derived: its key would no longer tell what they have read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256

from dpsql.certify import Certificate
from dpsql.compiler import Compiled, explain
from dpsql.compiler.algebra import Scan
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.walk import cut_by, nodes
from dpsql.errors import Failed
from dpsql.ledger.events import events_of
from dpsql.ledger.model import Ask
from dpsql.ledger.room import LEAST
from dpsql.policy.schema import Schema
from dpsql.replay.key import fingerprint
from dpsql.replay.recipe import Kin, Shape
from dpsql.replay.shape import kin_of, shape_of

_OF_PRIVATE_KEYS, _OF_KEY, _OF_CELL = 1 << 20, 48, 24
"""Bytes of a stored release: of one with private keys, and of each public key's value and cell."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a session allows: errors of up to `factor` times a fresh one's (0: none), and of at most `max_error`."""

    factor: Decimal
    max_error: Decimal | None


@dataclass(frozen=True, slots=True)
class Ready:
    """`asks` of the releases that are paid for, in order. `queries`: the backend's, of releases that read no others."""

    compiled: Compiled
    asks: tuple[Ask, ...]
    shapes: Mapping[str, Shape]
    queries: Mapping[str, tuple[str, ...]]

    @property
    def paid(self) -> tuple[PlannedRelease, ...]:
        return tuple(planned for planned in self.compiled.releases if not planned.free)


class Surroundings:
    """One policy's, as its engine found the public tables; safe to use from several threads.

    `refreshes`: how often the operator has said that the data have changed.
    """

    def __init__(self, schema: Schema, refreshes: int = 0) -> None:
        self._schema = schema
        self._epoch = (schema.policy.epoch, refreshes) if refreshes else schema.policy.epoch
        everything = {**schema.tables, **schema.responses}
        self._public = {name: table.rows for name, table in everything.items() if table.rows is not None}
        self._print = lru_cache(maxsize=None)(self._print_of)

    def keys(self, compiled: Compiled) -> dict[str, str]:
        """The key of each release: what it measures, on which state of the data, after which inner releases."""
        found: dict[str, str] = {}
        for planned in compiled.releases:
            inner = [self._remainder(i, compiled) for i in planned.aggregation.depends_on]
            after = [found[name] for name in explain.depends_on(planned, compiled)]
            cut = cut_by(planned.aggregation)
            told = (planned.canonical, *self._state(planned), inner, after)
            found[planned.id] = fingerprint((*told, cut) if cut else told)
        return found

    def _remainder(self, index: int, compiled: Compiled) -> tuple[object, ...]:
        """What a public remainder computes (the clock's time is a constant of it), and from which public tables."""
        made = compiled.derived[index]
        released = {f"_{planned.id}" for planned in compiled.releases}
        public = [self._print(name, False) for name in made.relations if name not in released]
        return (index, made.sql, public) if public else (index, made.sql)

    def ready(
        self,
        compiled: Compiled,
        certificates: Mapping[str, Certificate],
        reuse: Reuse,
        queries: Mapping[str, tuple[str, ...]],
    ) -> Ready:
        """The statement, ready to be asked. `certificates`: of all its releases, by their ids."""
        keys, shapes = self.keys(compiled), self._shapes(compiled)
        paid = [planned for planned in compiled.releases if not planned.free]
        asked = {planned.id for planned in paid}
        asks = []
        for p in paid:
            after = tuple(keys[name] for name in explain.depends_on(p, compiled) if name in asked)
            kin = _kin(p, shapes.get(p.id), reuse)
            asks.append(Ask(keys[p.id], certificates[p.id], events_of(p), after, kin, _room(p)))
        return Ready(compiled, tuple(asks), shapes, queries)

    def _shapes(self, compiled: Compiled) -> dict[str, Shape]:
        read = {name for planned in compiled.releases for name in explain.depends_on(planned, compiled)}
        found: dict[str, Shape] = {}
        for planned in compiled.releases:
            if planned.free or planned.id in read:
                continue
            declared = [self._print(name, True) for name in sorted(planned.aggregation.tables)]
            shape = shape_of(planned, compiled.epsilon, (*self._state(planned), declared))
            if shape is not None:
                found[planned.id] = shape
        return found

    def _state(self, planned: PlannedRelease) -> tuple[object, ...]:
        """Which data, read how."""
        policy = self._schema.policy
        scanned = {node.table for node in nodes(planned.aggregation) if isinstance(node, Scan)}
        joined = sorted(scanned & self._public.keys())
        return policy.dataset, self._epoch, policy.timezone, [self._print(name, False) for name in joined]

    def _print_of(self, table: str, declared: bool) -> str:
        """A hash of a public table's snapshot, or of what the policy declares of a table."""
        if declared:
            return fingerprint(replace(self._schema.tables[table], rows=None))
        if table not in self._public:
            raise Failed("a release reads a relation that is not known to be public")
        return sha256(repr(self._public[table]).encode()).hexdigest()


def _room(planned: PlannedRelease) -> int:
    """About the most bytes that the stored release may take; where the keys are private, nobody can know."""
    if planned.size is None:
        return LEAST + _OF_PRIVATE_KEYS
    measured = len(planned.measurements) + len(planned.histograms)
    return LEAST + planned.size * (_OF_KEY * len(planned.keys) + _OF_CELL * measured)


def _kin(planned: PlannedRelease, shape: Shape | None, reuse: Reuse) -> Kin | None:
    return None if shape is None or not reuse.factor else kin_of(planned, shape, reuse.factor, reuse.max_error)
