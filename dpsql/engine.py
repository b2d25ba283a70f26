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
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import count
from typing import Literal, Protocol, TypedDict
from zoneinfo import ZoneInfo

from dpsql.backends import Backend, open_backend
from dpsql.backends import Cancel as Interruptible
from dpsql.backends.inspect import inspect
from dpsql.backends.slots import slotted
from dpsql.catalog.catalog import Catalog, Catalogs
from dpsql.compiler import Compiled, Terms, advice, compile_statement, explain, reads_clock
from dpsql.compiler.cautions import rank_errors
from dpsql.compiler.clock import hour_of
from dpsql.compiler.emit import DIALECTS, emit, emit_histogram
from dpsql.compiler.plan import PlannedRelease, with_released_keys
from dpsql.compiler.problems import detailed
from dpsql.compiler.public import Remainder
from dpsql.dp.accounting import Limits
from dpsql.errors import BAD_PARAMETER, NOT_PERMITTED, TOO_COMPLEX, Rejected
from dpsql.ledger import BudgetExhausted, Calendar, InFlight, Ledger, LimitsOf, account_of, open_ledger, trail
from dpsql.ledger.balance import Balance, calendar_of, dataset_balance, in_epsilon, limits_of, user_balance
from dpsql.ledger.views import system_relations
from dpsql.ledger.words import plain
from dpsql.pgwire.parameters import FIXED
from dpsql.policy.model import Budget, Policy, Role
from dpsql.policy.schema import Schema
from dpsql.release import derived_error95, derived_relation, key_list, release, released_relation
from dpsql.remainder import Pool
from dpsql.replay.key import fingerprint
from dpsql.replay.ready import Ready, Reuse, Surroundings
from dpsql.replay.recent import Recent
from dpsql.replay.recipe import Derived
from dpsql.replay.shape import REUSE_ERROR
from dpsql.types import (
    NUMERIC,
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
    Value,
)

log = logging.getLogger(__name__)

BUDGET_COLUMNS = (
    Column("whose", TEXT),
    Column("epsilon", NUMERIC),
    Column("epsilon_spent", NUMERIC),
    Column("epsilon_left", NUMERIC),
    Column("delta_for_keys", NUMERIC),
    Column("delta_spent", NUMERIC),
    Column("window", TEXT),
)


class Cancel(Interruptible, Protocol):
    """A client's wish to stop."""

    def check(self) -> None:
        """Raises Rejected 57014 once cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Asker:
    """A user with what their role allows."""

    name: str
    role: Role
    role_name: str
    budget: Budget

    @property
    def account(self) -> str:
        return account_of(self.name, self.role_name, self.role.shared)


def open_engine(policy: Policy) -> Engine:
    """Opens backend and ledger, compares the policy with the backend, and closes all again if anything is wrong."""
    ledger = open_ledger(policy.ledger, policy.dataset, policy.ledger_anchor)
    try:
        backend = open_backend(policy.backend, policy.timezone)
    except BaseException:
        ledger.close()
        raise
    try:
        return Engine(inspect(backend, policy), backend, ledger)
    except BaseException:
        backend.close()
        ledger.close()
        raise


Grant = Reservation | Release | Derived
_LOOK = 0.25
"""Seconds after which a statement that waits looks whether its client has given up."""


class Account(TypedDict):
    """Whose budget a statement counts against."""

    shared: bool
    calendar: Calendar | None
    account: str


_REPLAY = "Replay of a stored release: no new noise."
_serials = count(1)


class Engine:
    """Answers statements over one dataset. Safe to use from several threads."""

    def __init__(self, schema: Schema, backend: Backend, ledger: Ledger) -> None:
        self.schema = schema
        self.policy = schema.policy
        self.backend = backend
        self.ledger = ledger
        self._serial = next(_serials)
        self._zone = ZoneInfo(self.policy.timezone)
        public = {name: t.rows for name, t in {**schema.tables, **schema.responses}.items() if t.rows is not None}
        self.pool = Pool(public)
        self._surroundings = Surroundings(schema, ledger.refreshes())
        self._replays = Recent()
        self._catalogs = Catalogs(schema)
        self._compiled = lru_cache(maxsize=512)(self._compile)

    def close(self) -> None:
        self.retire()
        self.backend.close()
        self.ledger.close()

    def retire(self) -> None:
        """Closes what is this engine's alone; another one goes on with the backend and the ledger."""
        self.pool.close()
        self._catalogs.close()

    @property
    def parameters(self) -> Mapping[str, str]:
        return FIXED

    def catalog(self, user: str) -> Catalog:
        return self._catalogs.of(user)

    # Questions about questions ----------------------------------------------------------------------------------

    def describe(
        self, user: str, text: str, offset: int, settings: Settings, parameter_types: tuple[SqlType | None, ...]
    ) -> Description:
        """Columns and parameter types, from the text and the policy alone."""
        parameters = tuple((t or UNKNOWN, None) for t in parameter_types)
        with trail.refusals(user, text, self.policy.server.log_text):
            compiled = self._prepared(user, text, offset, settings, parameters)
        return Description(compiled.parameter_types, compiled.columns)

    def explain(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameters: Parameters,
        format: Literal["text", "json"],
    ) -> Relation:
        ready = self._ready(user, text, offset, settings, parameters)
        compiled, epsilon = ready.compiled, plain(ready.compiled.epsilon)
        column = (Column("QUERY PLAN", TEXT),)
        if format == "json":
            made = explain.as_json(compiled, epsilon, self.backend.dialect)
            made["keys"] = {p.id: ask.key for p, ask in zip(ready.paid, ready.asks, strict=True)}
            made["replay"] = self._foreseen(user, ready)
            made["advice"] = advice.as_json(advice.advise(compiled, self.policy.privacy))
            return Relation(column, ((json.dumps(made, indent=2),),))
        lines = explain.as_text(compiled, epsilon, self.policy.privacy.accounting)
        lines[1:1] = [_foreseen_words(each) for each in self._foreseen(user, ready)]
        lines += advice.as_lines(advice.advise(compiled, self.policy.privacy))
        return Relation(column, tuple((line,) for line in lines))

    def system_relations(self, user: str) -> Mapping[str, Callable[[], Relation]]:
        """The ledger's public relations as this user sees them, by name; read when they are called."""
        return system_relations(self.policy, self.ledger, user)

    def check_settings(self, user: str, settings: Settings) -> None:
        """Raises Rejected 22023 for settings that no statement of this user may have."""
        self._terms(self._asker(user, public_only=True), settings)

    def budget(self, user: str) -> Relation:
        """The user's budget and the dataset's: granted, spent, left."""
        rows = []
        role = self.policy.roles[self.policy.users[user].role]
        if role.budget is not None:
            asker = self._asker(user)
            rows.append(_budget_row("you", self._user_balance(asker)))
        rows.append(_budget_row("dataset", self._dataset_balance()))
        return Relation(BUDGET_COLUMNS, tuple(rows))

    def _foreseen(self, user: str, ready: Ready) -> list[dict[str, object]]:
        """For each release that is paid for: where it would come from now, and what the user would pay for it."""
        if not ready.asks or self.policy.roles[self.policy.users[user].role].budget is None:
            return []
        asker = self._asker(user)
        found = self.ledger.preview(asker.name, ready.asks, *self._limits(asker), **self._account(asker))
        made: list[dict[str, object]] = []
        for planned, source, recipe in zip(ready.paid, found.sources, found.recipes, strict=True):
            entry: dict[str, object] = {"release": planned.id, "source": source.value}
            if recipe is not None:
                entry |= {"derived_from": len(recipe.sources), "error95": derived_error95(planned, recipe)}
            made.append(entry)
        return made

    # Answers ----------------------------------------------------------------------------------------------------

    def answer(
        self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters, cancel: Cancel
    ) -> Answer:
        """The statement's rows. Raises `Rejected` before anything is debited, or `Failed` with the debit kept."""
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
        ready = self._ready(user, text, offset, settings, parameters)
        compiled = ready.compiled
        most = self.policy.server.statement_timeout
        deadline = time.monotonic() + min(settings.statement_timeout or most, most)
        if all(planned.free for planned in compiled.releases):
            relations = {f"_{p.id}": released_relation(p, key_list(p, p.id)) for p in compiled.releases}
            relation = self._run(compiled.remainder, relations, deadline, cancel)
            return Answer(relation, _free_notice(compiled), self._again(compiled, _free_notice(compiled), 0))
        asker = self._asker(user)
        granted = self._reserve(asker, ready, text, deadline, cancel)
        line.granted((p.cost for p in compiled.releases), granted.values())
        known = self._replays.get(compiled, granted)
        if known is None:
            known, made = self._released(ready, granted, deadline, cancel)
            self._replays.keep(compiled, made, known)
        relation = known
        cautions = (*compiled.cautions, *rank_errors(compiled.releases))
        notices = (*cautions, self._notice(asker, ready, granted)) if settings.notices else ()
        if any(isinstance(grant, Reservation) for grant in granted.values()):
            return Answer(relation, notices)
        told = (*cautions, _replay(ready, granted))
        return Answer(relation, notices, self._again(compiled, told, len(granted)))

    def _again(self, compiled: Compiled, notices: tuple[str, ...], replayed: int) -> Again | None:
        """What lets the answer be given again without asking here; None where it reads the clock."""
        if compiled.now is not None or any("pg_now" in r.sql for r in (compiled.remainder, *compiled.derived)):
            return None
        return Again(self._serial, notices, replayed)

    def recalled(self, user: str, text: str, again: Again) -> bool:
        """Whether an answer may be given again: not under another policy than it was made under. Writes its line."""
        if again.serial != self._serial:
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

    def _prepared(self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters) -> Compiled:
        return self._ready(user, text, offset, settings, parameters).compiled

    def _ready(self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters) -> Ready:
        asker = self._asker(user, public_only=True)
        terms = self._terms(asker, settings)
        try:
            now = hour_of(datetime.now(UTC), self._zone) if reads_clock(text, self.schema) else None
            reuse = Reuse(REUSE_ERROR if settings.reuse_error is None else settings.reuse_error, settings.max_error)
            ready = self._compiled(text, terms, asker.role.tables, parameters, now, reuse)
        except Rejected as error:
            raise _moved(error, text, offset) from None
        except RecursionError:
            hint = "Use fewer operators, casts or set operations in a row."
            raise Rejected("the statement is nested too deeply", sqlstate=TOO_COMPLEX, hint=hint) from None
        if ready.asks:
            self._asker(user)
        return ready

    def _compile(
        self,
        text: str,
        terms: Terms,
        tables: tuple[str, ...] | None,
        parameters: Parameters,
        now: datetime | None,
        reuse: Reuse,
    ) -> Ready:
        visible = None if tables is None else frozenset(tables)
        compiled = compile_statement(text, self.schema, terms, visible, parameters, now)
        queries = {planned.id: self._emitted(planned, {}) for planned in compiled.releases}
        inner = {planned.id for planned in compiled.releases if planned.aggregation.depends_on}
        return self._surroundings.ready(compiled, reuse, {i: q for i, q in queries.items() if i not in inner})

    def _emitted(self, planned: PlannedRelease, derived: Mapping[int, Relation | None]) -> tuple[str, ...]:
        """The backend's queries: cells (if any), then histograms. Made once before anything is reserved, as a check."""
        dialect = DIALECTS[self.backend.dialect]
        cells = (emit(planned, dialect, derived),) if planned.has_cells else ()
        return (*cells, *(emit_histogram(planned, h, dialect, derived) for h in planned.histograms))

    def _asker(self, user: str, *, public_only: bool = False) -> Asker:
        """`public_only`: a user without a budget may ask what is free, planned as if with the dataset's."""
        known = self.policy.users.get(user)
        role = self.policy.roles[known.role] if known is not None else None
        budget = self.policy.privacy.budget if public_only and role is not None else None
        if role is not None and role.budget is not None:
            budget = role.budget
        if known is None or role is None or budget is None:
            raise Rejected(
                "This user has no budget, so no private table can be asked.",
                sqlstate=NOT_PERMITTED,
                hint="Connect as a user whose role has a budget in the policy.",
            )
        return Asker(user, role, known.role, budget)

    def _terms(self, asker: Asker, settings: Settings) -> Terms:
        epsilon = settings.epsilon or asker.role.epsilon
        most = asker.role.max_epsilon
        if most is not None and epsilon > most:
            raise Rejected(
                f"epsilon {plain(epsilon)} is above the {plain(most)} that a statement of yours may cost",
                sqlstate=BAD_PARAMETER,
                hint=f"SET dpsql.epsilon = {plain(most)} or less.",
            )
        largest = max((t.max_groups for t in self.schema.tables.values() if not t.public), default=1)
        if settings.max_groups is not None and settings.max_groups > largest:
            raise Rejected(
                f"dpsql.max_groups may only be tightened: the policy allows {largest}",
                sqlstate=BAD_PARAMETER,
                hint=f"SET dpsql.max_groups = {largest} or less.",
            )
        delta = min(asker.budget.delta, self.policy.privacy.budget.delta)
        largest_epsilon = most or min(asker.budget.epsilon, self.policy.privacy.budget.epsilon)
        error, bars = settings.max_error, settings.error_bars
        return Terms(epsilon, delta, settings.mechanism, settings.max_groups, error, largest_epsilon, bars)

    # Reserve ----------------------------------------------------------------------------------------------------

    def keys(self, compiled: Compiled) -> dict[str, str]:
        """The key of each release."""
        return self._surroundings.keys(compiled)

    def _reserve(
        self, asker: Asker, ready: Ready, text: str, deadline: float, cancel: Cancel
    ) -> dict[str, Reservation | Release | Derived]:
        """What the ledger gives for each release; one that is just being made for another statement is waited for."""
        limits, account, statement = self._limits(asker), self._account(asker), fingerprint(text)
        while True:
            try:
                granted = self.ledger.reserve(asker.name, ready.asks, *limits, statement, **account, patient=True)
                return dict(zip((p.id for p in ready.paid), granted, strict=True))
            except BudgetExhausted as error:
                raise in_epsilon(error, self._balance_of(error, asker)) from None
            except InFlight as error:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise
                self.ledger.wait(error.key, min(left, _LOOK))
                cancel.check()

    def _limits(self, asker: Asker) -> tuple[LimitsOf, Limits]:
        dataset = limits_of(self.policy, self.policy.privacy.budget)(0)
        return limits_of(self.policy, asker.budget), dataset

    def _account(self, asker: Asker) -> Account:
        shared = self.policy.privacy.replay == "shared"
        return Account(shared=shared, calendar=calendar_of(self.policy, asker.role), account=asker.account)

    def _balance_of(self, error: BudgetExhausted, asker: Asker) -> Balance:
        return self._dataset_balance() if error.whose == "dataset" else self._user_balance(asker)

    def _user_balance(self, asker: Asker) -> Balance:
        spending = self.ledger.spending(asker.account, calendar_of(self.policy, asker.role))
        return user_balance(self.policy, asker.budget, spending)

    def _dataset_balance(self) -> Balance:
        return dataset_balance(self.policy, self.ledger.dataset_spent())

    # Release ----------------------------------------------------------------------------------------------------

    def _released(
        self, ready: Ready, granted: Mapping[str, Grant], deadline: float, cancel: Cancel
    ) -> tuple[Relation, dict[str, Grant]]:
        """The rows, and the releases that were paid for. Inner ones first: each is a relation that later ones read.

        However it ends, nobody waits any more for what has been reserved.
        """
        try:
            cancel.check()
            return self._all_released(ready, granted, deadline, cancel)
        finally:
            for grant in granted.values():
                if isinstance(grant, Reservation):
                    self.ledger.give_up(grant)

    def _all_released(
        self, ready: Ready, granted: Mapping[str, Grant], deadline: float, cancel: Cancel
    ) -> tuple[Relation, dict[str, Grant]]:
        compiled = ready.compiled
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
            relations[f"_{planned.id}"] = (
                derived_relation(planned, made) if isinstance(made, Derived) else released_relation(planned, made)
            )
        return self._run(compiled.remainder, relations, deadline, cancel), paid

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
        queries = ready.queries.get(planned.id) or self._emitted(planned, derived)
        with slotted(self.policy.server.time_slot, deadline, cancel) as end:
            cells = fetch(queries[0], width) if planned.has_cells else ExactCells((), ())
            weights = tuple(fetch(sql, width + 1) for sql in queries[int(planned.has_cells) :])
            made = release(planned, cells, reservation, weights)
        self.ledger.record(reservation, made, ready.shapes.get(planned.id))
        return made

    def _notice(self, asker: Asker, ready: Ready, granted: Mapping[str, Grant]) -> str:
        balance = self._user_balance(asker)
        left = f"epsilon {plain(balance.epsilon_left)} of {plain(balance.budget.epsilon)} left"
        fresh = sum(isinstance(grant, Reservation) for grant in granted.values())
        if not fresh:
            return f"{_replay(ready, granted)[:-1]}; {left}."
        epsilon = plain(ready.compiled.epsilon)
        part = "" if fresh == len(granted) else f" for {fresh} of {len(granted)} releases, the others are replays"
        return f"Price: epsilon {epsilon}{part}; {left}."


def _replay(ready: Ready, granted: Mapping[str, Grant]) -> str:
    """What an answer without new noise is made of."""
    recipes = {id_: grant.recipe for id_, grant in granted.items() if isinstance(grant, Derived)}
    if not recipes:
        return _REPLAY
    count = len({number for recipe in recipes.values() for number in recipe.sources})
    words = f"Derived from {count} stored release{'s' if count > 1 else ''}: no new noise"
    error = max((derived_error95(p, recipes[p.id]) or 0.0 for p in ready.paid if p.id in recipes), default=0.0)
    bars = f", 95 % error {error:.4g}" if error else ""
    return f"{words}{bars}; SET dpsql.reuse_error = 0 asks anew."


def _free_notice(compiled: Compiled) -> tuple[str, ...]:
    if compiled.columns_only:
        return ("Columns only: rows of a private table are never returned. Ask for aggregates.",)
    return ("Free: public data only.",) if compiled.releases else ()


def _foreseen_words(entry: Mapping[str, object]) -> str:
    free = entry["source"] == "free"
    words = {"free": "free", "view": "a first view, which debits you alone", "fresh": "made anew"}[str(entry["source"])]
    if "derived_from" in entry:
        error = f", 95 % error {entry['error95']:.4g}" if entry["error95"] else ""
        words = f"derived from {entry['derived_from']} stored{error}, {words}"
    elif free:
        words = "stored and seen, free"
    return f"Replay of {entry['release']}: {words}"


def _moved(error: Rejected, text: str, offset: int) -> Rejected:
    """The error with its positions counted from the start of what the client sent."""
    error = detailed(error, text, offset)
    if error.position is not None and offset:
        error.position = max(error.position + offset, 1)
    return error


def _budget_row(whose: str, balance: Balance) -> tuple[Value, ...]:
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
