"""The engine that serves now, and how a new policy takes its place while clients stay connected.

Decides when a policy is taken over: it is sound, fits the backend, keeps the ledger, and either promises no less than
the terms in force, which are the ledger's whatever is served here, or has the operator's word in the ledger. `dpsql
refresh` is noticed by the next statement, which waits for what a start checks. A statement that has begun ends under
the policy that it began with, unless a stricter one is in force by its debit; nothing that was spent is given back,
since both use one ledger.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeVar

from dpsql.backends import Backend, open_backend
from dpsql.engine import Cancel, Engine, Refreshed, make_engine
from dpsql.errors import DpsqlError, Failed, Rejected
from dpsql.ledger import Ledger
from dpsql.policy.changes import changes, leaving, refusal, terms
from dpsql.policy.force import Superseded, text_of
from dpsql.policy.model import Policy
from dpsql.public.place import Names, Place
from dpsql.types import Again, Answer, Description, Parameters, Relation, Settings, SqlType

log = logging.getLogger(__name__)

T = TypeVar("T")

_LONGER: Final = 5.0
"""Seconds, beyond their time limit, that statements get to let go of data that have changed."""

_SOON: Final = 0.5
"""Seconds from the first process that takes a policy over to the last."""

_NEVER: Final = -1
"""Refreshes of which no ledger tells: an engine of them is made anew before it answers."""

HINT = "`dpsql check NEW --against OLD --accept` gives the operator's word for it, as an entry of the ledger."


def begin(ledger: Ledger, policy: Policy) -> None:
    """Put a policy in force at the start. Raises Rejected if it promises less than the ledger's last one unaccepted."""
    ledger.follow(text_of(policy), Allowed(policy))


@dataclass(frozen=True, slots=True)
class Allowed:
    """Whether a policy may take the place of the terms in force, which are the ledger's, whoever put them there.

    `old`: the policy that is served here until then, if one is; what cannot change while a ledger is open is its.
    """

    policy: Policy
    old: Policy | None = None

    def __call__(self, held: str, accepted: bool) -> None:
        """Raises Rejected for less than what is in force, without the operator's word in the ledger."""
        new = terms(self.policy)
        fixed = [change for change in changes(terms(self.old), new) if change.fixed] if self.old is not None else []
        others = [change for change in changes(json.loads(held), new) if not change.fixed] if held else []
        found = (*fixed, *others)  # a ledger may have moved between two starts
        for change in found:
            log.info("policy: %s", change)
        if problem := refusal(found, accepted):
            weaker = "; ".join(str(change) for change in found if change.weaker or change.fixed)
            raise Rejected(f"the policy {self.policy.path} is not taken over: {problem}: {weaker}", hint=HINT)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An engine that may take the place of the old one."""

    engine: Engine
    old: Engine


class Current:
    """The engine of the moment, as sessions see it: each statement runs on the one that is current when it begins."""

    def __init__(self, engine: Engine, sharers: int = 1) -> None:
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)
        self._renewing = threading.Lock()
        self._sharers = sharers
        self._engine = engine
        self._running: dict[Engine, int] = {engine: 0}

    @property
    def policy(self) -> Policy:
        return self._engine.policy

    @property
    def engine(self) -> Engine:
        return self._engine

    def reload(self, policy: Policy) -> tuple[str, ...]:
        """Take a policy over; the users whose sessions must end. Raises Rejected, and then nothing has changed."""
        return self.commit(self.prepare(policy))

    def prepare(self, policy: Policy) -> Prepared:
        """What a policy needs to be taken over, by `commit`, or not, by `abandon`. Raises Rejected if it cannot be."""
        with self._renewing:
            old = self._engine
            ledger, text = old.ledger, text_of(policy)
            Allowed(policy, old.policy)(ledger.policy(), ledger.is_accepted(text))
            return Prepared(self._made(policy, old), old)

    def commit(self, prepared: Prepared) -> tuple[str, ...]:
        """From now on statements begin under the prepared policy; the users whose sessions must end."""
        with self._renewing:
            old = self._engine
            if old is not prepared.old:  # what the prepared one sees has been let go
                self.abandon(prepared)
                prepared = Prepared(self._made(prepared.engine.policy, old), old)
            new = prepared.engine
            try:
                old.ledger.follow(text_of(new.policy), Allowed(new.policy, old.policy))
            except BaseException:
                self.abandon(prepared)
                raise
            self._put(new)
            return tuple(leaving(old.policy, new.policy))

    def abandon(self, prepared: Prepared) -> None:
        """The prepared policy is not taken over after all."""
        prepared.engine.retire()
        if prepared.engine.public is not prepared.old.public:
            prepared.engine.public.close()
        if prepared.engine.backend is not prepared.old.backend:
            prepared.engine.backend.close()

    def _put(self, engine: Engine) -> None:
        with self._lock:
            self._engine = engine
            self._running[engine] = 0
            self._left.notify_all()
        self._sweep()

    def _run(self, work: Callable[[Engine], T]) -> T:
        """The work by the engine of the moment; where the data or the terms have changed, by another one."""
        while True:
            with self._using() as engine:
                try:
                    return work(engine)
                except Refreshed:
                    other = self._renew
                except Superseded as error:
                    other = partial(self._await_other, error)
            other(engine)

    def _await_other(self, error: Superseded, stale: Engine) -> None:
        """A moment for a reload, which one process of several has finished first. Raises the error if there is none."""
        with self._left:
            if self._left.wait_for(lambda: self._engine is not stale, _SOON):
                return
        log.error("nothing is debited under %s: terms in force promise more: %s", stale.policy.path, error.why)
        raise error

    def _renew(self, stale: Engine) -> None:
        """Check the policy against the new data, as a start does, and go on with them. Raises Failed if it cannot."""
        with self._renewing:
            if self._engine is not stale:
                return
            try:
                new = self._made(stale.policy, stale)
            except DpsqlError as error:
                why = error.cause if isinstance(error, Failed) else error.message
                raise Failed(f"the data have changed, and the policy cannot be served on them: {why}") from None
            self._put(new)
            log.info("new data: %s is served on them", stale.policy.path)

    def _made(self, policy: Policy, old: Engine) -> Engine:
        """An engine for the policy on the newest data, on the old one's backend where that sees them.

        A file that a new epoch or time zone is for is opened by the first statement: until then the old one is served.
        """
        refreshes, file = old.ledger.refreshes(), old.backend.immutable
        same = policy.backend == old.policy.backend and (file or policy.timezone == old.policy.timezone)
        shared = same and (old.refreshes == refreshes or not file)
        if shared and file and (policy.epoch, policy.timezone) != (old.policy.epoch, old.policy.timezone):
            refreshes = _NEVER
        if same and not shared:
            self._let_go(old)
        backend = old.backend if shared else open_backend(policy.backend, policy.timezone, self._sharers)
        try:
            return make_engine(policy, backend, old.ledger, refreshes, old.public)
        except BaseException:
            if not shared:
                backend.close()
            raise

    def _let_go(self, stale: Engine) -> None:
        """Close what sees the old data only: a file may be another one under the same name."""
        backend, patience = stale.backend, stale.policy.server.statement_timeout + _LONGER
        with self._left:
            if not self._left.wait_for(lambda: not self._asks(backend), patience):
                raise Failed("statements on the old ones do not end")
        backend.close()

    def _asks(self, backend: Backend) -> bool:
        return any(count for engine, count in self._running.items() if engine.backend is backend)

    def close(self) -> None:
        self._engine.close()

    @contextmanager
    def _using(self) -> Iterator[Engine]:
        with self._lock:
            engine = self._engine
            self._running[engine] += 1
        try:
            yield engine
        finally:
            with self._lock:
                self._running[engine] -= 1
                self._left.notify_all()
            if engine is not self._engine:
                self._sweep()

    def _sweep(self) -> None:
        """Retire the engines that nobody uses any more."""
        with self._lock:
            done = [engine for engine, count in self._running.items() if not count and engine is not self._engine]
            for engine in done:
                del self._running[engine]
            needed = {id(part) for engine in self._running for part in (engine.backend, engine.public)}
        for engine in done:
            engine.retire()
            if id(engine.backend) not in needed:
                engine.backend.close()
            if id(engine.public) not in needed:
                engine.public.retire()

    @property
    def statement_timeout(self) -> float:
        return self._engine.statement_timeout

    def place(self, user: str) -> Place:
        with self._using() as engine:
            return engine.place(user)

    def names(self, user: str) -> Names:
        return self._engine.names(user)

    def check(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: Cancel
    ) -> None:
        self._run(lambda engine: engine.check(user, text, offset, settings, parameters, cancel))

    def describe(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameter_types: tuple[SqlType | None, ...],
        cancel: Cancel,
    ) -> Description:
        return self._run(lambda engine: engine.describe(user, text, offset, settings, parameter_types, cancel))

    def explain(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameters: Parameters,
        format: Literal["text", "json"],
        cancel: Cancel,
    ) -> Relation:
        return self._run(lambda engine: engine.explain(user, text, offset, settings, parameters, format, cancel))

    def check_settings(self, user: str, settings: Settings) -> None:
        with self._using() as engine:
            engine.check_settings(user, settings)

    def budget(self, user: str) -> Relation:
        with self._using() as engine:
            return engine.budget(user)

    def system_relations(self, user: str) -> Mapping[str, Callable[[], Relation]]:
        with self._using() as engine:
            return engine.system_relations(user)

    def answer(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: Cancel
    ) -> Answer:
        return self._run(lambda engine: engine.answer(user, text, offset, settings, parameters, cancel))

    def recalled(self, user: str, text: str, again: Again) -> bool:
        return self._engine.recalled(user, text, again)
