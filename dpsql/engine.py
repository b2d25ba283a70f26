"""One statement's way from text to rows: the only orchestration.

Order is everything: compile (pure), reserve (durable), fetch, release, record (durable), and only then rows. A fault
after the reservation never gives budget back. What a backend or the noise does can change neither which statements are
accepted nor what they cost.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Literal, Protocol

from dpsql.backends import Backend, open_backend
from dpsql.backends import Cancel as Interruptible
from dpsql.backends.inspect import inspect
from dpsql.catalog.catalog import Catalog, Catalogs
from dpsql.compiler import Compiled, Terms, compile_statement, explain
from dpsql.compiler.emit import DIALECTS, emit, emit_histogram
from dpsql.compiler.plan import PlannedRelease, with_released_keys
from dpsql.compiler.public import Remainder
from dpsql.errors import BAD_PARAMETER, NOT_PERMITTED, TOO_COMPLEX, Rejected
from dpsql.ledger import Ask, BudgetExhausted, Ledger, account_of, open_ledger, trail
from dpsql.ledger.balance import Balance, calendar_of, dataset_balance, in_epsilon, limits_of, user_balance
from dpsql.ledger.events import events_of
from dpsql.ledger.views import system_relations
from dpsql.ledger.words import plain
from dpsql.pgwire.parameters import FIXED
from dpsql.policy.model import Budget, Policy, Role
from dpsql.policy.schema import Schema
from dpsql.release import key_list, release, released_relation
from dpsql.remainder import Pool
from dpsql.replay.key import fingerprint
from dpsql.replay.recent import Recent
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
        public = {name: t.rows for name, t in schema.tables.items() if t.rows is not None}
        self.pool = Pool(public)
        self._public = public
        self._public_print = lru_cache(maxsize=None)(self._print_of)
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
        compiled = self._prepared(user, text, offset, settings, parameters)
        epsilon = plain(compiled.epsilon)
        column = (Column("QUERY PLAN", TEXT),)
        if format == "json":
            made = explain.as_json(compiled, epsilon, self.backend.dialect)
            keys = self.keys(compiled)
            made["keys"] = {p.id: keys[p.id] for p in compiled.releases if not p.free}
            return Relation(column, ((json.dumps(made, indent=2),),))
        lines = explain.as_text(compiled, epsilon, self.policy.privacy.accounting)
        return Relation(column, tuple((line,) for line in lines))

    def system_relations(self, user: str) -> Mapping[str, Callable[[], Relation]]:
        """The ledger's public relations as this user sees them, by name; read when they are called."""
        return system_relations(self.policy, self.ledger, user)

    def budget(self, user: str) -> Relation:
        """The user's budget and the dataset's: granted, spent, left."""
        rows = []
        role = self.policy.roles[self.policy.users[user].role]
        if role.budget is not None:
            asker = self._asker(user)
            rows.append(_budget_row("you", self._user_balance(asker)))
        rows.append(_budget_row("dataset", self._dataset_balance()))
        return Relation(BUDGET_COLUMNS, tuple(rows))

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
        compiled = self._prepared(user, text, offset, settings, parameters)
        most = self.policy.server.statement_timeout
        deadline = time.monotonic() + min(settings.statement_timeout or most, most)
        if all(planned.free for planned in compiled.releases):
            relations = {f"_{p.id}": released_relation(p, key_list(p, p.id)) for p in compiled.releases}
            relation = self._run(compiled.remainder, relations, deadline, cancel)
            return Answer(relation, _free_notice(compiled), self._again(compiled, _free_notice(compiled), 0))
        asker = self._asker(user)
        granted = self._reserve(asker, compiled, text)
        line.granted((p.cost for p in compiled.releases), granted.values())
        cancel.check()
        known = self._replays.get(compiled, granted)
        if known is None:
            known, made = self._released(compiled, granted, deadline, cancel)
            self._replays.keep(compiled, made, known)
        relation = known
        notices = (self._notice(asker, compiled, granted),) if settings.notices else ()
        fresh = any(isinstance(grant, Reservation) for grant in granted.values())
        return Answer(relation, notices, None if fresh else self._again(compiled, (_REPLAY,), len(granted)))

    def _again(self, compiled: Compiled, notices: tuple[str, ...], replayed: int) -> Again | None:
        """What lets the answer be given again without asking here; None where it reads the clock."""
        if any("pg_now" in r.sql for r in (compiled.remainder, *compiled.derived)):
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
        asker = self._asker(user, public_only=True)
        terms = self._terms(asker, settings)
        try:
            compiled = self._compiled(text, terms, asker.role.tables, parameters)
        except Rejected as error:
            raise _moved(error, offset) from None
        except RecursionError:
            hint = "Use fewer operators, casts or set operations in a row."
            raise Rejected("the statement is nested too deeply", sqlstate=TOO_COMPLEX, hint=hint) from None
        if not all(planned.free for planned in compiled.releases):
            self._asker(user)
        return compiled

    def _compile(self, text: str, terms: Terms, tables: tuple[str, ...] | None, parameters: Parameters) -> Compiled:
        visible = None if tables is None else frozenset(tables)
        compiled = compile_statement(text, self.schema, terms, visible, parameters)
        for planned in compiled.releases:
            self._emitted(planned, {})
        return compiled

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
        """The key of each release: what it measures, on which state of the data, after which inner releases."""
        found: dict[str, str] = {}
        for planned in compiled.releases:
            inner = [(i, compiled.derived[i].sql) for i in planned.aggregation.depends_on]
            parts = (
                planned.canonical,
                self.policy.dataset,
                self.policy.epoch,
                self.policy.timezone,
                [self._public_print(name) for name in sorted(_joined_public(planned, self._public))],
                inner,
                [found[name] for name in explain.depends_on(planned, compiled)],
            )
            found[planned.id] = fingerprint(parts)
        return found

    def _print_of(self, table: str) -> str:
        """A hash of a public table's snapshot."""
        return sha256(repr(self._public[table]).encode()).hexdigest()

    def _reserve(self, asker: Asker, compiled: Compiled, text: str) -> dict[str, Reservation | Release]:
        keys = self.keys(compiled)
        paid = [p for p in compiled.releases if not p.free]
        try:
            granted = self.ledger.reserve(
                asker.name,
                [Ask(keys[p.id], p.cost, events_of(p)) for p in paid],
                limits_of(self.policy, asker.budget),
                limits_of(self.policy, self.policy.privacy.budget)(0),
                fingerprint(text),
                shared=self.policy.privacy.replay == "shared",
                calendar=calendar_of(self.policy, asker.role),
                account=asker.account,
            )
        except BudgetExhausted as error:
            raise in_epsilon(error, self._balance_of(error, asker)) from None
        return dict(zip((p.id for p in paid), granted, strict=True))

    def _balance_of(self, error: BudgetExhausted, asker: Asker) -> Balance:
        return self._dataset_balance() if error.whose == "dataset" else self._user_balance(asker)

    def _user_balance(self, asker: Asker) -> Balance:
        spending = self.ledger.spending(asker.account, calendar_of(self.policy, asker.role))
        return user_balance(self.policy, asker.budget, spending)

    def _dataset_balance(self) -> Balance:
        return dataset_balance(self.policy, self.ledger.dataset_spent())

    # Release ----------------------------------------------------------------------------------------------------

    def _released(
        self, compiled: Compiled, granted: Mapping[str, Reservation | Release], deadline: float, cancel: Cancel
    ) -> tuple[Relation, dict[str, Release]]:
        """The rows, and the releases that were paid for. Inner ones first: each is a relation that later ones read."""
        relations: dict[str, Relation] = {}
        paid: dict[str, Release] = {}
        derived: dict[int, Relation | None] = {}
        for each in compiled.releases:
            for index in each.aggregation.depends_on:
                if index not in derived:
                    derived[index] = self._run(compiled.derived[index], relations, deadline, cancel)
            planned = with_released_keys(each, derived)
            grant = granted.get(planned.id)
            made = key_list(planned, planned.id) if grant is None else grant
            if isinstance(made, Reservation):
                made = self._fresh(planned, made, derived, deadline, cancel)
            if grant is not None:
                paid[planned.id] = made
            relations[f"_{planned.id}"] = released_relation(planned, made)
        return self._run(compiled.remainder, relations, deadline, cancel), paid

    def _fresh(
        self,
        planned: PlannedRelease,
        reservation: Reservation,
        derived: Mapping[int, Relation | None],
        deadline: float,
        cancel: Cancel,
    ) -> Release:
        def fetch(sql: str, keys: int) -> ExactCells:
            return self.backend.fetch(sql, keys, max(deadline - time.monotonic(), 0.001), cancel)

        width, queries = len(planned.keys), self._emitted(planned, derived)
        cells = fetch(queries[0], width) if planned.has_cells else ExactCells((), ())
        weights = tuple(fetch(sql, width + 1) for sql in queries[int(planned.has_cells) :])
        made = release(planned, cells, reservation, weights)
        self.ledger.record(reservation, made)
        return made

    def _notice(self, asker: Asker, compiled: Compiled, granted: Mapping[str, Reservation | Release]) -> str:
        balance = self._user_balance(asker)
        left = f"epsilon {plain(balance.epsilon_left)} of {plain(balance.budget.epsilon)} left"
        fresh = sum(isinstance(grant, Reservation) for grant in granted.values())
        if not fresh:
            return f"{_REPLAY[:-1]}; {left}."
        epsilon = plain(compiled.epsilon)
        part = "" if fresh == len(granted) else f" for {fresh} of {len(granted)} releases, the others are replays"
        return f"Price: epsilon {epsilon}{part}; {left}."


def _free_notice(compiled: Compiled) -> tuple[str, ...]:
    if compiled.columns_only:
        return ("Columns only: rows of a private table are never returned. Ask for aggregates.",)
    return ("Free: public data only.",) if compiled.releases else ()


def _joined_public(planned: PlannedRelease, public: Iterable[str]) -> set[str]:
    return {name for name in public if f"scan({name} " in planned.canonical}


def _moved(error: Rejected, offset: int) -> Rejected:
    """The error with its position counted from the start of what the client sent."""
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
