"""A statement's text made ready to be asked: compiled, with its backend's queries and what the ledger is asked for.

Decides what is compiled once however often it is asked, and where errors are counted from. Nothing here looks at data
or the ledger: what a statement costs and whether it is accepted hang on its text, the policy and the session alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from dpsql.asking import asker_of, reuse_error_of, terms_of
from dpsql.compiler import Terms, compile_statement, reads_clock
from dpsql.compiler.clock import hour_of
from dpsql.compiler.emit import Dialect, emit, emit_histogram
from dpsql.compiler.plan import PlannedRelease
from dpsql.compiler.problems import detailed
from dpsql.errors import TOO_COMPLEX, Rejected
from dpsql.policy.schema import Schema
from dpsql.replay.ready import Ready, Reuse, Surroundings
from dpsql.types import Parameters, Relation, Settings


class Preparer:
    """Of one policy. Safe to use from several threads. `refreshes`: how often the data are said to have changed."""

    def __init__(self, schema: Schema, dialect: Dialect, refreshes: int) -> None:
        self._schema = schema
        self._policy = schema.policy
        self._dialect = dialect
        self._zone = ZoneInfo(self._policy.timezone)
        self._surroundings = Surroundings(schema, refreshes)
        self._compiled = lru_cache(maxsize=512)(self._compile)

    def ready(self, user: str, text: str, offset: int, settings: Settings, parameters: Parameters) -> Ready:
        """Raises Rejected, with positions counted from the start of what the client sent, `offset` before the text."""
        asker = asker_of(self._policy, user, public_only=True)
        terms = terms_of(self._schema, asker, settings)
        try:
            now = hour_of(datetime.now(UTC), self._zone) if reads_clock(text, self._schema) else None
            reuse = Reuse(reuse_error_of(asker, settings), settings.max_error)
            written = repr(parameters) if parameters else ""
            ready = self._compiled(text, terms, asker.role.tables, parameters, written, now, reuse)
        except Rejected as error:
            raise _moved(error, text, offset) from None
        except RecursionError:
            hint = "Use fewer operators, casts or set operations in a row."
            raise Rejected("the statement is nested too deeply", sqlstate=TOO_COMPLEX, hint=hint) from None
        if ready.asks:
            asker_of(self._policy, user)
        return ready

    def _compile(
        self,
        text: str,
        terms: Terms,
        tables: tuple[str, ...] | None,
        parameters: Parameters,
        written: str,
        now: datetime | None,
        reuse: Reuse,
    ) -> Ready:
        """`written`: the parameters, so that those which are equal but look different, as 1.5 and 1.50, stay apart."""
        visible = None if tables is None else frozenset(tables)
        compiled = compile_statement(text, self._schema, terms, visible, parameters, now)
        queries = {planned.id: self.queries(planned, {}) for planned in compiled.releases}
        inner = {planned.id for planned in compiled.releases if planned.aggregation.depends_on}
        return self._surroundings.ready(compiled, reuse, {i: q for i, q in queries.items() if i not in inner})

    def queries(self, planned: PlannedRelease, derived: Mapping[int, Relation | None]) -> tuple[str, ...]:
        """The backend's queries: cells (if any), then histograms. Made once before anything is reserved, as a check."""
        dialect = self._dialect
        cells = (emit(planned, dialect, derived),) if planned.has_cells else ()
        return (*cells, *(emit_histogram(planned, h, dialect, derived) for h in planned.histograms))


def _moved(error: Rejected, text: str, offset: int) -> Rejected:
    """The error with its positions counted from the start of what the client sent."""
    error = detailed(error, text, offset)
    if error.position is not None and offset:
        error.position = max(error.position + offset, 1)
    return error
