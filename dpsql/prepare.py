"""A statement's text made ready to be asked: compiled, with its backend's queries and what the ledger is asked for.

Decides what is compiled once however often it is asked, that nothing is asked without a certificate, and where errors
are counted from. Nothing here looks at data or the ledger: what a statement costs and whether it is accepted hang on
its text, the policy and the session alone.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from dpsql.asking import asker_of, reuse_error_of, terms_of
from dpsql.certify import Certificate, Unproven
from dpsql.certify.check import certify
from dpsql.compiler import Compiled, Terms, compile_statement, reads_clock
from dpsql.compiler.clock import hour_of
from dpsql.compiler.emit import Dialect, emit, emit_histogram
from dpsql.compiler.fuel import metered
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.problems import detailed
from dpsql.compiler.tokens import TokenKind, scan
from dpsql.errors import TOO_COMPLEX, Failed, Rejected
from dpsql.policy.schema import Schema
from dpsql.remainder import Pool
from dpsql.replay.ready import Ready, Reuse, Surroundings
from dpsql.trial import tried
from dpsql.turns import ENDLESS, Cancel, Patience, Turns
from dpsql.types import Cost, Parameters, Relation, Settings

_KEPT = 512
_TURNS = Turns(2)
"""Compiling, by all preparers of the process."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """All that a statement compiles from, beside the policy.

    `written`: the parameters, so that those which are equal but look different, as 1.5 and 1.50, stay apart.
    """

    text: str
    terms: Terms
    tables: tuple[str, ...] | None
    parameters: Parameters
    written: str
    now: datetime | None
    reuse: Reuse


class Preparer:
    """Of one policy. Safe to use from several threads.

    `refreshes`: how often the data are said to have changed. `pool`: where remainders are tried.
    """

    def __init__(self, schema: Schema, dialect: Dialect, refreshes: int, pool: Pool) -> None:
        self._schema = schema
        self._policy = schema.policy
        self._dialect = dialect
        self._pool = pool
        self._zone = ZoneInfo(self._policy.timezone)
        self._surroundings = Surroundings(schema, refreshes)
        self._lock = threading.Lock()
        self._known: OrderedDict[_Asked, Ready] = OrderedDict()

    def patience(self, settings: Settings, cancel: Cancel) -> Patience:
        """How long a statement that begins now is waited for."""
        most = self._policy.server.statement_timeout
        return Patience(time.monotonic() + min(settings.statement_timeout or most, most), cancel)

    def ready(
        self,
        user: str,
        text: str,
        offset: int,
        settings: Settings,
        parameters: Parameters,
        patience: Patience = ENDLESS,
    ) -> Ready:
        """Raises Rejected, with positions counted from the start of what the client sent, `offset` before the text.

        What has been compiled before is there at once; else the user waits for a turn, to the end of their patience.
        """
        asker = asker_of(self._policy, user, public_only=True)
        terms = terms_of(self._schema, asker, settings)
        try:
            now = hour_of(datetime.now(UTC), self._zone) if reads_clock(text, self._schema) else None
            reuse = Reuse(reuse_error_of(asker, settings), settings.max_error)
            written = repr(parameters) if parameters else ""
            asked = _Asked(text, terms, asker.role.tables, parameters, written, now, reuse)
            ready = self._recalled(asked) or self._compiled(user, asked, patience)
        except Rejected as error:
            raise _moved(error, text, offset) from None
        except RecursionError:
            hint = "Use fewer operators, casts or set operations in a row."
            raise Rejected("the statement is nested too deeply", sqlstate=TOO_COMPLEX, hint=hint) from None
        if ready.asks:
            asker_of(self._policy, user)
        return ready

    def _recalled(self, asked: _Asked) -> Ready | None:
        with self._lock:
            known = self._known.get(asked)
            if known is not None:
                self._known.move_to_end(asked)
        return known

    def _compiled(self, user: str, asked: _Asked, patience: Patience) -> Ready:
        """In the user's turn, and kept: two who ask for the same at once compile it once."""
        with _TURNS.turn(user, patience.check), metered(patience.check):
            ready = self._recalled(asked) or self._compile(asked)
        with self._lock:
            self._known[asked] = ready
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return ready

    def _compile(self, asked: _Asked) -> Ready:
        visible = None if asked.tables is None else frozenset(asked.tables)
        compiled = compile_statement(asked.text, self._schema, asked.terms, visible, asked.parameters, asked.now)
        certificates = certified(compiled, self._schema)
        queries = {planned.id: self.queries(planned, {}) for planned in compiled.releases}
        tried(compiled, self._pool)
        inner = {planned.id for planned in compiled.releases if planned.aggregation.depends_on}
        complete = {i: q for i, q in queries.items() if i not in inner}
        return self._surroundings.ready(compiled, certificates, asked.reuse, complete)

    def queries(self, planned: PlannedRelease, derived: Mapping[int, Relation | None]) -> tuple[str, ...]:
        """The backend's queries: cells (if any), then histograms. Made once before anything is reserved, as a check."""
        dialect = self._dialect
        cells = (emit(planned, dialect, derived),) if planned.has_cells else ()
        return (*cells, *(emit_histogram(planned, h, dialect, derived) for h in planned.histograms))


def certified(compiled: Compiled, schema: Schema) -> Mapping[str, Certificate]:
    """The certificate of each release. Raises Failed, before anything is debited, where one cannot be derived."""
    found = {planned.id: certify(planned, schema) for planned in compiled.releases}
    proven = {name: each for name, each in found.items() if isinstance(each, Certificate)}
    gaps = [f"{each.release}: {each.reason}" for each in found.values() if isinstance(each, Unproven)]
    if gaps:
        raise Failed(f"no certificate, nothing is debited: {'; '.join(gaps)}")
    if sum((each.price for each in proven.values()), Cost()) != compiled.cost:
        raise Failed("the statement's price is not that of its certificates")
    return proven


def require_given(ready: Ready, text: str, offset: int, parameters: Parameters) -> None:
    """Raises Rejected 42P02 where the text names a parameter that nobody gives: Describe alone may guess at it."""
    if len(ready.compiled.parameter_types) > len(parameters):
        named = [t for t in scan(text).tokens if t.kind is TokenKind.PARAMETER and int(t.text[1:]) > len(parameters)]
        hint = "Prepare the statement and give the parameter a value, or write the value in its place."
        at = offset + named[0].start + 1 if named else None
        missing = named[0].text if named else f"${len(parameters) + 1}"
        raise Rejected(f"there is no parameter {missing}", sqlstate="42P02", hint=hint, position=at)


def _moved(error: Rejected, text: str, offset: int) -> Rejected:
    """The error with its positions counted from the start of what the client sent."""
    error = detailed(error, text, offset)
    if error.position is not None and offset:
        error.position = max(error.position + offset, 1)
    return error
