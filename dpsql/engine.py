"""One statement's way from text to rows: the only orchestration.

Order is everything: compile (pure), reserve (durable), fetch, release, record (durable), and only then rows. A fault
after the reservation never gives budget back. What a backend or the noise does can change neither which statements are
accepted nor what they cost.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import count
from typing import Literal, Protocol

from dpsql import notices
from dpsql.asking import Asker, account_for, asker_of, limits_for, null_noise_of, terms_of
from dpsql.backends import Backend, open_backend
from dpsql.backends import Cancel as Interruptible
from dpsql.backends.inspect import inspect
from dpsql.backends.slots import slotted
from dpsql.compiler import Compiled, advice, explain
from dpsql.compiler.emit import DIALECTS
from dpsql.compiler.plan import PlannedRelease, with_released_keys
from dpsql.compiler.public import Remainder, reads_time
from dpsql.errors import CHANGED, Rejected
from dpsql.estimates import Estimated, estimated, released_relation
from dpsql.ledger import BudgetExhausted, InFlight, Ledger, open_ledger, trail
from dpsql.ledger.balance import Balance, calendar_of, dataset_balance, in_epsilon, statement_delta, user_balance
from dpsql.ledger.views import system_relations
from dpsql.ledger.words import plain
from dpsql.notices import Grant
from dpsql.policy.force import Force
from dpsql.policy.model import Policy
from dpsql.policy.schema import Schema
from dpsql.prepare import Preparer, require_given
from dpsql.public.place import Names, Place, names_of
from dpsql.public.shared import Public
from dpsql.release import key_list, release
from dpsql.remainder import Pool
from dpsql.replay.key import fingerprint
from dpsql.replay.ready import Ready
from dpsql.replay.recent import Known, Recent
from dpsql.replay.recipe import Derived
from dpsql.turns import Cancel as Checked
from dpsql.types import (
    TEXT,
    UNKNOWN,
    Again,
    Answer,
    Column,
    Description,
    ExactCells,
    Parameters,
    Relation,
    Release,
    Reservation,
    Settings,
    SqlType,
)

log = logging.getLogger(__name__)


class Cancel(Interruptible, Checked, Protocol):
    """A client's wish to stop."""


def open_engine(policy: Policy, sharers: int = 1) -> Engine:
    """Opens backend and ledger, compares the policy with the backend, and closes all again if anything is wrong.

    `sharers`: processes like this one on the machine.
    """
    ledger = open_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    try:
        refreshes = ledger.refreshes()
        backend = open_backend(policy.backend, policy.timezone, sharers)
    except BaseException:
        ledger.close()
        raise
    try:
        return make_engine(policy, backend, ledger, refreshes)
    except BaseException:
        backend.close()
        ledger.close()
        raise


def make_engine(
    policy: Policy, backend: Backend, ledger: Ledger, refreshes: int, public: Public | None = None
) -> Engine:
    """An engine over what is open, `refreshes` of the ledger old: as many as there were before the backend was opened.

    One that sees a file as it was when it was opened would else take the old data for the new.
    """
    return Engine(inspect(backend, policy), backend, ledger, refreshes, public)


class Refreshed(Rejected):
    """The data have changed by the operator's word since the engine was made: another one must answer."""

    def __init__(self) -> None:
        hint = "Open it again: answers of before the change are not given any more."
        super().__init__("the data have changed since they were opened", sqlstate=CHANGED, hint=hint)


_LOOK = 0.25
"""Seconds after which a statement that waits looks whether its client has given up."""


_serials = count(1)


class Engine:
    """Answers statements over one dataset. Safe to use from several threads."""

    def __init__(
        self, schema: Schema, backend: Backend, ledger: Ledger, refreshes: int = 0, public: Public | None = None
    ) -> None:
        self.schema = schema
        self.policy = schema.policy
        self.force = Force(schema.policy)
        self.backend = backend
        self.ledger = ledger
        self.refreshes = refreshes
        self.public = public if public is not None and public.serves(schema) else Public(schema)
        self._names = names_of(schema)
        self._serial = next(_serials)
        tables = {**schema.tables, **schema.responses}
        self.pool = Pool({name: t.rows for name, t in tables.items() if t.rows is not None})
        self._dialect = DIALECTS[backend.dialect]
        self.preparer = Preparer(schema, self._dialect, refreshes, self.pool)
        self._replays = Recent()

    def close(self) -> None:
        self.retire()
        self.public.close()
        self.backend.close()
        self.ledger.close()

    def is_current(self) -> bool:
        """Whether the operator has not said since that the data have changed."""
        return self.ledger.knows_epoch(self.refreshes) or self.ledger.refreshes() == self.refreshes

    def _require_current(self) -> None:
        if not self.is_current():
            raise Refreshed

    def retire(self) -> None:
        """Closes what is this engine's alone; another one goes on with the backend and the ledger."""
        self.pool.close()

    @property
    def statement_timeout(self) -> float:
        """Seconds that a statement may take in all."""
        return self.policy.server.statement_timeout

    def open_public(self) -> None:
        """Starts the public server, which the first session would else wait for."""
        self.public.open()

    def place(self, user: str) -> Place:
        """Where the user's sessions live in the public server."""
        return self.public.place(user)

    def names(self, user: str) -> Names:
        """What the public server cannot answer for this user."""
        return self._names

    # Questions about questions ----------------------------------------------------------------------------------

    def describe(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameter_types: tuple[SqlType | None, ...],
        cancel: Cancel,
    ) -> Description:
        """Columns and parameter types, from the text and the policy alone."""
        self._require_current()
        parameters = tuple((t or UNKNOWN, None) for t in parameter_types)
        with trail.refusals(user, text, self.policy.server.log_text):
            ready = self.preparer.ready(
                user, text, offset, settings, parameters, self.preparer.patience(settings, cancel)
            )
        return Description(ready.compiled.parameter_types, ready.compiled.columns)

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
        self._require_current()
        ready = self.preparer.ready(user, text, offset, settings, parameters, self.preparer.patience(settings, cancel))
        require_given(ready, text, offset, parameters)
        compiled, epsilon = ready.compiled, plain(ready.compiled.epsilon)
        column = (Column("QUERY PLAN", TEXT),)
        asker = asker_of(self.policy, user, public_only=True)
        most = min(terms_of(self.schema, asker, settings).max_epsilon, self._user_balance(asker).epsilon_left)
        advised = advice.advise(compiled, self.policy.privacy, most)
        if format == "json":
            made = explain.as_json(compiled, epsilon, self._dialect)
            made["keys"] = {p.id: ask.key for p, ask in zip(ready.paid, ready.asks, strict=True)}
            made["replay"] = self._foreseen(user, ready)
            made["advice"] = advice.as_json(advised)
            return Relation(column, ((json.dumps(made, indent=2),),))
        lines = explain.as_text(compiled, epsilon, self.policy.privacy.accounting)
        lines[1:1] = [notices.foreseen(each) for each in self._foreseen(user, ready)]
        lines += advice.as_lines(advised)
        return Relation(column, tuple((line,) for line in lines))

    def system_relations(self, user: str) -> Mapping[str, Callable[[], Relation]]:
        """The ledger's public relations as this user sees them, by name; read when they are called."""
        return system_relations(self.policy, self.ledger, user)

    def check(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: Cancel
    ) -> None:
        """Raises what is wrong with a query of these parameters."""
        self.preparer.ready(user, text, offset, settings, parameters, self.preparer.patience(settings, cancel))

    def check_settings(self, user: str, settings: Settings) -> None:
        """Raises Rejected 22023 for settings that no statement of this user may have."""
        terms_of(self.schema, asker_of(self.policy, user, public_only=True), settings)

    def budget(self, user: str) -> Relation:
        """The user's budget and the dataset's: granted, spent, left."""
        rows = []
        role = self.policy.roles[self.policy.users[user].role]
        if role.budget is not None:
            asker = asker_of(self.policy, user)
            rows.append(notices.budget_row("you", self._user_balance(asker)))
        rows.append(notices.budget_row("dataset", self._dataset_balance()))
        return Relation(notices.BUDGET_COLUMNS, tuple(rows))

    def _foreseen(self, user: str, ready: Ready) -> list[dict[str, object]]:
        """For each release that is paid for: where it would come from now, and what the user would pay for it."""
        if not ready.asks or self.policy.roles[self.policy.users[user].role].budget is None:
            return []
        asker = asker_of(self.policy, user)
        found = self.ledger.preview(
            asker.name, ready.asks, *limits_for(self.policy, asker), **account_for(self.policy, asker)
        )
        made: list[dict[str, object]] = []
        delta = self._reading_delta(asker)
        ways = zip(ready.paid, found.sources, found.costs, found.recipes, strict=True)
        for planned, source, cost, recipe in ways:
            epsilon = float(notices.priced(cost, ready, delta))
            entry: dict[str, object] = {"release": planned.id, "source": source.value, "epsilon": epsilon}
            if recipe is not None:
                error, fresh = notices.derived_errors(planned, recipe)
                entry |= {"derived_from": 1, "error95": error, "fresh_error95": fresh}
            made.append(entry)
        return made

    # Answers ----------------------------------------------------------------------------------------------------

    def answer(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: Cancel
    ) -> Answer:
        """The statement's rows. Raises `Rejected` before anything is debited, or `Failed` with the debit kept."""
        self._require_current()
        with trail.statement(user, text, self.policy.server.log_text) as line:
            return self._answer(user, text, offset, settings, parameters, cancel, line)

    def _answer(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameters: Parameters,
        cancel: Cancel,
        line: trail.Line,
    ) -> Answer:
        waits = self.preparer.patience(settings, cancel)
        ready = self.preparer.ready(user, text, offset, settings, parameters, waits)
        require_given(ready, text, offset, parameters)
        compiled, deadline = ready.compiled, waits.deadline
        if all(planned.free for planned in compiled.releases):
            relations = {f"_{p.id}": released_relation(p, key_list(p, p.id)) for p in compiled.releases}
            relation = self._run(compiled.remainder, relations, deadline, cancel)
            return Answer(relation, notices.free(compiled), self._again(compiled, notices.free(compiled), 0))
        asker = asker_of(self.policy, user)
        granted = self._reserve(asker, ready, text, deadline, cancel)
        line.granted((p.cost for p in compiled.releases), granted.values())
        nulls = null_noise_of(asker, settings)
        known = self._replays.get(compiled, granted, nulls)
        if known is None:
            known, made = self._released(ready, granted, nulls, deadline, cancel)
            self._replays.keep(compiled, made, nulls, known)
        relation, empty = known
        cautions = (*notices.cautions(compiled, relation), *empty)
        told = (*cautions, self._price(asker, ready, granted)) if settings.notices else ()
        if any(isinstance(grant, Reservation) for grant in granted.values()):
            return Answer(relation, told)
        again = self._again(compiled, (*cautions, notices.made_of(ready, granted)), len(granted))
        return Answer(relation, told, again)

    def _again(self, compiled: Compiled, notices: tuple[str, ...], replayed: int) -> Again | None:
        """What lets the answer be given again without asking here; None where it reads the clock."""
        if compiled.now is not None or any(map(reads_time, (compiled.remainder, *compiled.derived))):
            return None
        return Again(self._serial, notices, replayed)

    def recalled(self, user: str, text: str, again: Again) -> bool:
        """Whether an answer may be given again: under the policy and of the data it was made of. Writes its line.

        Also no where that is not known without asking the ledger.
        """
        if again.serial != self._serial or not self.ledger.knows_epoch(self.refreshes):
            return False
        trail.answered_again(user, text, self.policy.server.log_text, again.replayed)
        return True

    def _run(
        self, remainder: Remainder, relations: Mapping[str, Relation], deadline: float, cancel: Cancel
    ) -> Relation:
        try:
            return self.pool.run(remainder, relations, max(deadline - time.monotonic(), 0.001), cancel)
        except Rejected:
            cancel.check()
            raise

    # Reserve ----------------------------------------------------------------------------------------------------

    def _reserve(
        self, asker: Asker, ready: Ready, text: str, deadline: float, cancel: Cancel
    ) -> dict[str, Reservation | Release | Derived]:
        """What the ledger gives for each release; one that is just being made for another statement is waited for."""
        limits, account = limits_for(self.policy, asker), account_for(self.policy, asker)
        statement = fingerprint(text)
        while True:
            try:
                granted = self.ledger.reserve(
                    asker.name, ready.asks, *limits, statement, **account, patient=True, terms=self.force
                )
                return dict(zip((p.id for p in ready.paid), granted, strict=True))
            except BudgetExhausted as error:
                raise in_epsilon(error, self._balance_of(error, asker)) from None
            except InFlight as error:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                self.ledger.wait(error.key, min(left, _LOOK))
                cancel.check()

    def _balance_of(self, error: BudgetExhausted, asker: Asker) -> Balance:
        return self._dataset_balance() if error.whose == "dataset" else self._user_balance(asker)

    def _user_balance(self, asker: Asker) -> Balance:
        spending = self.ledger.spending(asker.account, calendar_of(self.policy, asker.role))
        return user_balance(self.policy, asker.budget, spending)

    def _price(self, asker: Asker, ready: Ready, granted: Mapping[str, Grant]) -> str:
        return notices.price(self._user_balance(asker), ready, granted, self._reading_delta(asker))

    def _reading_delta(self, asker: Asker) -> Decimal | None:
        """At which the rho of this user's statements is read as epsilon."""
        pure = self.policy.privacy.accounting == "pure"
        return None if pure else statement_delta(self.policy, asker.budget)

    def _dataset_balance(self) -> Balance:
        return dataset_balance(self.policy, self.ledger.dataset_spent())

    # Release ----------------------------------------------------------------------------------------------------

    def _released(
        self, ready: Ready, granted: Mapping[str, Grant], nulls: bool, deadline: float, cancel: Cancel
    ) -> tuple[Known, dict[str, Grant]]:
        """The rows, and the releases that were paid for. Inner ones first: each is a relation that later ones read.

        However it ends, nobody waits any more for what has been reserved.
        """
        try:
            cancel.check()
            return self._all_released(ready, granted, nulls, deadline, cancel)
        finally:
            for grant in granted.values():
                if isinstance(grant, Reservation):
                    self.ledger.give_up(grant)

    def _all_released(
        self, ready: Ready, granted: Mapping[str, Grant], nulls: bool, deadline: float, cancel: Cancel
    ) -> tuple[Known, dict[str, Grant]]:
        """`nulls`: what is no more than noise is NULL for the last remainder; inner ones read all values either way."""
        compiled = ready.compiled
        found: list[Estimated] = []
        relations: dict[str, Relation] = {}
        paid: dict[str, Grant] = {}
        derived: dict[int, Relation | None] = {}
        fresh: dict[int, Release] = {}
        for each in compiled.releases:
            for index in each.aggregation.depends_on:
                if index not in derived:
                    derived[index] = self._run(compiled.derived[index], relations, deadline, cancel)
            planned = with_released_keys(each, derived)
            grant = granted.get(planned.id)
            made = key_list(planned, planned.id) if grant is None else grant
            if isinstance(made, Reservation):
                if made.id not in fresh:  # two releases may read one measurement, as a variance and its root do
                    fresh[made.id] = self._fresh(ready, planned, made, derived, deadline, cancel)
                made = fresh[made.id]
            if grant is not None:
                paid[planned.id] = made
            found.append(estimated(planned, made))
            relations[f"_{planned.id}"] = found[-1].relation
        shown = [e for e in found if nulls and f"_{e.planned.id}" in compiled.remainder.relations]
        told = (*notices.left_out(shown), *notices.empty_answers(found, shown))
        relations |= {f"_{e.planned.id}": e.without_noise() for e in shown}
        return (self._run(compiled.remainder, relations, deadline, cancel), told), paid

    def _fresh(
        self,
        ready: Ready,
        planned: PlannedRelease,
        reservation: Reservation,
        derived: Mapping[int, Relation | None],
        deadline: float,
        cancel: Cancel,
    ) -> Release:
        def fetch(sql: str, keys: int) -> ExactCells:
            return self.backend.fetch(sql, keys, max(end - time.monotonic(), 0.001), cancel)

        width = len(planned.keys)
        queries = ready.queries.get(planned.id) or self.preparer.queries(planned, derived)
        with slotted(self.policy.server.time_slot, deadline, cancel) as end:
            cells = fetch(queries[0], width) if planned.has_cells else ExactCells((), ())
            histograms = queries[int(planned.has_cells) :]
            found = {sql: fetch(sql, width + 1) for sql in dict.fromkeys(histograms)}
            weights = tuple(found[sql] for sql in histograms)
            made = release(planned, cells, reservation, weights)
        self.ledger.record(reservation, made, ready.shapes.get(planned.id))
        return made
