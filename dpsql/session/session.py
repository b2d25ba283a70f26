"""One client's session: messages in, messages out, between the client, the public server and the engine.

Decides what goes to the public server as it is (nearly everything: settings, transactions, cursors, formats, catalogs
and queries of public tables are its own) and what the engine answers: then the answer goes there as a query over
constants, so that it comes back in the client's formats, portals and cursors. A refusal goes there as a statement that
fails, and the error's text is exchanged, so that the state of the transaction is always true.

A debit is made when a portal is first executed, after all that was sent before it has succeeded. Until then a stand-in
holds its place: a query of the same columns, which the server parses, describes and binds, and which fails if run.

It runs one message at a time, in whatever thread calls it; only `cancel` may be called from another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial

from dpsql.compiler import kinds
from dpsql.errors import NOT_PERMITTED, SYNTAX, DpsqlError, Rejected
from dpsql.pgwire import frontend
from dpsql.pgwire import messages as wire
from dpsql.pgwire.encode import encode
from dpsql.pgwire.messages import BackendMessage, SessionMessage
from dpsql.session import replies, settings, startup
from dpsql.session.asked import Asking, Bound, Prepared, Ran
from dpsql.session.memory import Memory
from dpsql.session.ours import (
    CLOSED,
    OURS,
    check_shape,
    closed,
    decoded,
    foreign,
    instead,
    may_be_judged_later,
    ours,
    require_transaction,
    told,
)
from dpsql.session.ports import CancelToken, Engine, NoSessions, OwnSessions
from dpsql.session.relation import as_literals
from dpsql.session.route import Asked, Filled, Part, Passed, filled, routed, unreadable
from dpsql.session.settings import Values
from dpsql.session.upstream import SHUTDOWN, Exchange, Expected, Upstream, fields

Replies = Iterator[BackendMessage]

_STOPS = re.compile(r"\bpg_(cancel|terminate)_backend\s*\(\s*([0-9]{1,9})\b", re.IGNORECASE)
_NAMED = re.compile(r'permission denied for (?:table|view|relation|materialized view) "?([^"]+)"?$')
_SHARED = re.compile(r"\bIN\s+ACCESS\s+SHARE\s+MODE\s*;?\s*$", re.IGNORECASE)
_ROWS = "Rows of a private table are never returned."
_ROWS_HINT = (
    "Ask for aggregates, such as SELECT COUNT(*), AVG(x) FROM ... GROUP BY ...; "
    "SELECT * FROM dpsql.columns shows what can be asked."
)
_REFUSED = "SELECT dpsql_refused"
"""A statement that fails when it is read, unless the transaction has failed already."""
_NOTHING = "UNLISTEN *"
"""A statement that succeeds and does nothing."""
MOST_STATEMENTS = 500
"""Statements over private tables that one session may hold prepared."""
TOO_MUCH = "54000"
_PIPELINE = 64 << 10
"""Bytes queued before answers are taken, so that a long pipeline fills nobody's memory."""


class Session:
    """Raises Rejected on creation for a startup parameter that is not allowed, and where there is no public server."""

    def __init__(
        self,
        engine: Engine,
        user: str,
        parameters: Iterable[tuple[str, str]] = (),
        sessions: OwnSessions | None = None,
    ) -> None:
        self._engine = engine
        self._user = user
        self._sessions = NoSessions() if sessions is None else sessions
        given = startup.parameters(parameters)
        engine.check_settings(user, settings.for_engine(dict(given)))
        self._upstream = Upstream(engine.place(user), given)
        self._cancel = CancelToken()
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Bound] = {}
        self._read_afresh: dict[str, wire.Parse] = {}
        self._memory = Memory()
        self._unread: Prepared | None = None
        """The unnamed statement that a recalled turn left: the public server has not read it."""
        self._asking = Asking(engine, user, self._statements.get)

    @property
    def pid(self) -> int:
        """The process that serves the session in the public server."""
        return self._upstream.pid

    def greeting(self) -> tuple[BackendMessage, ...]:
        """The ParameterStatus messages of a new session."""
        return tuple(wire.Raw(frame[:1], frame) for frame in self._upstream.greeting)

    def cancel(self) -> None:
        """Stops the statement that runs now, if one does; what it has debited stays debited."""
        self._cancel.cancel()
        self._upstream.cancel()

    def recall(self, asked: bytes) -> bytes | None:
        """The reply to a whole turn that has been asked before and may be given again; quick, and never blocks."""
        reply = self._memory.get(asked)
        if reply is None or self._upstream.status != b"I" or not self._upstream.at_rest:
            return None
        if not self._engine.recalled(self._user, reply.text, reply.again):
            return None
        if reply.replaces:
            self._statements.pop("", None)
            self._unread = reply.unnamed
        return reply.data

    def remember(self, asked: bytes) -> None:
        """The bytes that have just been answered, empty if they are not known whole. Called after each turn."""
        self._memory.keep(asked, self._statements.get(""))

    def close(self) -> None:
        """Ends the session at the public server."""
        self._upstream.close()

    def handle(self, event: SessionMessage) -> Replies:
        """The replies to one message, made while they are taken."""
        self._upstream.begin(self._engine.statement_timeout)
        return self._memory.follow(event, self._guarded(event))

    def _guarded(self, event: SessionMessage) -> Replies:
        try:
            yield from self._answer(event)
        except Exception as error:
            yield from self._failed(event, error)

    def _answer(self, event: SessionMessage) -> Replies:
        if self._upstream.failed and not isinstance(event, wire.Sync):
            return
        match event:
            case wire.Query(text):
                yield from self._query(text)
                self._stop_others(text)
            case wire.Parse():
                yield from self._parse(event)
            case wire.Bind():
                yield from self._bind(event)
            case wire.Describe(kind, name):
                if kind == "S" and not name:
                    self._read_unnamed()
                ends = b"Tn"
                parameters = (Expected(b"t"),) if kind == "S" else ()
                yield from self._forward(frontend.describe(event), *parameters, Expected(ends))
            case wire.Execute(portal, most):
                yield from self._execute(portal, most)
            case wire.Close(kind, name):
                (self._statements if kind == "S" else self._portals).pop(name, None)
                yield from self._forward(frontend.close(event), Expected(b"3"))
            case wire.Flush():
                yield from self._upstream.flushed()
            case wire.Sync():
                yield from self._sync()
            case wire.FunctionCall():
                error = Rejected("function calls of the old protocol are not supported", hint="Use SELECT.")
                yield from self._refuse(error)
                yield from self._sync()
            case wire.Unreadable(simple):
                yield from self._refuse(Rejected(event.message, sqlstate=event.sqlstate))
                if simple:
                    yield from self._sync()
            case _:
                return

    def _failed(self, event: SessionMessage, error: Exception) -> Replies:
        """An error of ours amid a message: told, and the turn ended as the protocol wants it."""
        if isinstance(error, Rejected) and error.sqlstate == SHUTDOWN:
            yield wire.error_response(error, "FATAL")
            return
        yield from self._refuse(error)
        if isinstance(event, wire.Query | wire.FunctionCall):
            yield from self._sync()

    # --- to the public server --------------------------------------------------------------------------------------

    def _forward(self, data: bytes, *expected: Expected) -> Replies:
        """Queues a message of the extended protocol; answers come at Flush or Sync, or where too much is queued."""
        self._upstream.send(data, *expected)
        if self._upstream.queued > _PIPELINE:
            yield from self._upstream.flushed()

    def _read_unnamed(self) -> None:
        """Lets the public server read the unnamed statement that a recalled turn left."""
        prepared, self._unread = self._unread, None
        if prepared is not None:
            self._statements[""] = prepared
            message = frontend.parse(wire.Parse("", prepared.text, prepared.oids))
            self._upstream.send(message, Expected(b"1", shown=False))

    def _sync(self) -> Replies:
        self._upstream.send(frontend.SYNC, Expected(b"Z"))
        yield from self._upstream.replies()
        if self._upstream.status == b"I":
            self._portals.clear()

    def _refuse(self, error: Exception) -> Replies:
        """Sends a statement that fails, and tells `error` instead; but not in a transaction that had failed before."""

        if not self._upstream.failed:
            message = frontend.parse(wire.Parse(OURS, _REFUSED))
            self._upstream.send(message, Expected(b"1", shown=False, error=instead(error)))
            yield from self._upstream.flushed()

    # --- simple query ----------------------------------------------------------------------------------------------

    def _query(self, text: str) -> Replies:
        yield from self._upstream.flushed()
        if self._upstream.failed:  # what was sent before it failed, and no Sync came: Postgres would wait for it
            yield from self._sync()
            return
        self._unread = None
        self._statements.pop("", None)
        self._portals.pop("", None)
        parts = routed(text, self._engine.names(self._user))
        for part in parts or ():
            self._forget(part)
        if parts is None or all(isinstance(part.route, Passed) for part in parts):
            self._upstream.send(frontend.query(text), Expected(b"Z", error=self._own_words(text)))
            yield from self._upstream.replies()
            if self._upstream.status == b"I":
                self._portals.clear()
            return
        if len(parts) == 1:
            require_transaction(parts[0], self._upstream.status)
        for part in parts:
            yield from self._simple(part, " " * part.start + text[part.start : part.end])
            if self._upstream.has_failed():
                break
        yield from self._sync()

    def _stop_others(self, text: str) -> None:
        """What other sessions of the user have the engine do ends as well as what they run in the public server."""
        for found in _STOPS.finditer(text):
            self._sessions.stop(int(found[2]), end=found[1].lower() == "terminate")

    def _simple(self, part: Part, text: str) -> Replies:
        """One statement among several, or one that is not passed on as it is. Positions count from the text's start."""
        match part.route:
            case Passed():
                yield from self._run(Ran(text), error=text)
            case Filled():
                yield from self._run(Ran(self._filled(text, part.route)))
            case Asked():
                yield from self._ask(part, text)

    def _ask(self, part: Part, text: str) -> Replies:
        settled = self._settled(part, text)
        if settled is not None:
            yield from self._run(settled if settled.sql else replace(settled, sql=text))
            return
        values = yield from self._settings()
        if values is None:
            return
        self._cancel = CancelToken()
        statement = part.statement
        try:
            if isinstance(statement, kinds.Prepare):
                prepared = self._asking.describe(statement, text, (), values, self._cancel)
                named = partial(self._statements.__setitem__, statement.name, prepared)
                yield from self._run(Ran(prepared.text), then=named)
                return
            bound = Bound(Prepared(statement, text))
            if isinstance(statement, kinds.CopyOut | kinds.Declare):
                bound = Bound(self._asking.describe(statement, text, (), values, self._cancel))
                yield from self._try(bound.prepared)
                if self._upstream.failed:
                    return
            ran = self._asking.run(bound, text, values, self._cancel)
        except Exception as error:
            yield from self._refuse(error)
            return
        self._recallable(statement, ran)
        yield from self._run(ran)

    def _settled(self, part: Part, text: str) -> Ran | None:
        """A statement that the session decides by itself. Raises Rejected for one that is refused."""
        match part.statement:
            case kinds.Unsupported("LOCK") if _SHARED.search(text):
                return Ran(_NOTHING, verb="LOCK TABLE")  # pg_dump holds tables; nothing here can be changed under it
            case kinds.Unsupported() as unsupported:
                raise unsupported.error()
            case kinds.Listening(tag):
                return Ran(_NOTHING, verb=tag)
            case kinds.Set(name, value):
                self._check_set(name, value)
                return Ran("")
            case kinds.ExecutePrepared(name) if name not in self._statements:
                return Ran("")
            case _:
                return None

    def _check_set(self, name: str, value: str | None) -> None:
        changed = settings.checked(name, value)
        if changed:
            self._engine.check_settings(self._user, settings.for_engine(changed))

    def _run(self, ran: Ran, error: str = "", then: Callable[[], object] | None = None) -> Replies:
        """Runs SQL as a simple query does, whose answer goes to the client."""
        data, hidden = ours(ran, error=self._own_words(error) if error else None)
        described = frontend.describe(wire.Describe("P", OURS)), Expected(b"Tn", dropped=b"n")
        executed = frontend.execute(wire.Execute(OURS))
        last = Expected(b"CI", before=told(ran.notices), verb=ran.verb, then=then)
        self._upstream.send(data + described[0] + executed + CLOSED, *hidden, described[1], last, *closed())
        yield from self._upstream.flushed()

    def _forget(self, part: Part) -> None:
        """What names statements of ours no more."""
        match part.statement:
            case kinds.Deallocate(None) | kinds.Discard("ALL"):
                self._statements.clear()
                self._read_afresh.clear()
            case kinds.Deallocate(str(name)):
                self._statements.pop(name, None)
                self._read_afresh.pop(name, None)
            case _:
                pass

    # --- extended query --------------------------------------------------------------------------------------------

    def _parse(self, event: wire.Parse) -> Replies:
        if not event.name:
            self._unread = None
        parts = routed(event.text, self._engine.names(self._user))
        part = parts[0] if parts is not None and len(parts) == 1 else None
        if part is not None:
            self._forget(part)
        route = part.route if part is not None else Passed()
        if isinstance(route, Filled):
            self._read_afresh[event.name] = event
            event = replace(event, text=self._filled(event.text, route))
        else:
            self._read_afresh.pop(event.name, None)
        if part is not None and isinstance(route, Asked):
            settled = self._settled(part, event.text)
            if settled is None:
                yield from self._parse_asked(event, part)
                return
            event = replace(event, text=settled.sql or event.text)
        self._statements.pop(event.name, None)
        expected = Expected(b"1", error=self._own_words(event.text))
        yield from self._forward(frontend.parse(event), expected)

    def _parse_asked(self, event: wire.Parse, part: Part) -> Replies:
        values = yield from self._settings()
        if values is None:
            return
        self._cancel = CancelToken()
        try:
            if len(self._statements) >= MOST_STATEMENTS:
                hint = "DEALLOCATE those that are no longer needed."
                raise Rejected(f"more than {MOST_STATEMENTS} prepared statements", sqlstate=TOO_MUCH, hint=hint)
            prepared = self._asking.describe(part.statement, event.text, event.types, values, self._cancel)
        except Exception as error:
            if not isinstance(error, Rejected) or not may_be_judged_later(part):
                yield from self._refuse(error)
                return
            found = yield from self._described(event, part, error)
            if found is None:
                return
            prepared = found

        def named() -> None:
            self._statements[event.name] = prepared
            self._read_afresh.pop(event.name, None)

        message = frontend.parse(wire.Parse(event.name, prepared.text, prepared.oids))
        self._upstream.send(message, Expected(b"1", then=named))
        yield from self._upstream.flushed()

    def _described(
        self, event: wire.Parse, part: Part, why: Rejected
    ) -> Generator[BackendMessage, None, Prepared | None]:
        """What cannot be judged without its parameters' values: Postgres finds the types, the engine judges at Bind.

        `why` is told where Postgres does not read it either.
        """
        fields = Expected(b"t", shown=False, error=instead(why)), Expected(b"Tn", shown=False)
        data = CLOSED + frontend.parse(replace(event, name=OURS)) + frontend.describe(wire.Describe("S", OURS)) + CLOSED
        parsed = Expected(b"1", shown=False, error=instead(why))
        self._upstream.send(data, *closed(), parsed, *fields, *closed())
        yield from self._upstream.flushed()
        if self._upstream.failed:
            return None
        try:
            return foreign(part.statement, event.text, fields[0].kept[0], fields[1].kept[0])
        except Rejected:
            yield from self._refuse(why)
            return None

    def _bind(self, event: wire.Bind) -> Replies:
        if not event.statement:
            self._read_unnamed()
        afresh = self._read_afresh.get(event.statement)
        if afresh is not None:
            yield from self._bind_afresh(event, afresh)
            return
        prepared = self._statements.get(event.statement)
        if prepared is None:
            self._portals.pop(event.portal, None)
            yield from self._forward(frontend.bind(event), Expected(b"2", error=self._own_words("")))
            return
        values = yield from self._settings()
        if values is None:
            return
        self._cancel = CancelToken()
        try:
            bound = Bound(prepared, decoded(event, prepared), event.result_formats)
            self._asking.check(bound, values, self._cancel)
        except Exception as error:
            yield from self._refuse(error)
            return
        expected = Expected(b"2", then=partial(self._portals.__setitem__, event.portal, bound))
        self._upstream.send(frontend.bind(event), expected)
        yield from self._upstream.flushed()

    def _bind_afresh(self, event: wire.Bind, afresh: wire.Parse) -> Replies:
        """A query of what the ledger fills: read when it is bound, not when it was parsed."""
        part = (routed(afresh.text, self._engine.names(self._user)) or ())[0]
        assert isinstance(part.route, Filled)
        text = self._filled(afresh.text, part.route)
        data = (
            CLOSED
            + frontend.parse(wire.Parse(OURS, text, afresh.types))
            + frontend.bind(replace(event, statement=OURS))
            + CLOSED
        )
        yield from self._forward(data, *closed(), Expected(b"1", shown=False), Expected(b"2"), *closed())

    def _execute(self, portal: str, most: int) -> Replies:
        bound = self._portals.get(portal)
        if bound is None:
            yield from self._forward(frontend.execute(wire.Execute(portal, most)), Expected(b"CIs"))
            return
        values = yield from self._settings()
        if values is None:
            return
        yield from self._try(bound.prepared)
        if self._upstream.failed:
            return
        self._cancel = CancelToken()
        try:
            ran = self._asking.run(bound, bound.prepared.source, values, self._cancel, bound.prepared.foreign)
            check_shape(bound.prepared, ran)
        except Exception as error:
            yield from self._refuse(error)
            return
        self._recallable(bound.prepared.statement, ran)
        self._portals.pop(portal, None)
        data, hidden = ours(ran, portal, bound.formats)
        last = Expected(b"CIs", before=told(ran.notices), verb=ran.verb if ran.verb != "SELECT" else "")
        self._upstream.send(data + frontend.execute(wire.Execute(portal, most)) + CLOSED, *hidden, last, *closed())
        yield from self._upstream.flushed()

    def _try(self, prepared: Prepared) -> Replies:
        """What could fail around an answer fails before the debit: an option of COPY, a cursor of the same name."""
        for sql in self._asking.trial(prepared):
            data, hidden = ours(Ran(sql))
            executed = data + frontend.execute(wire.Execute(OURS)) + CLOSED
            self._upstream.send(executed, *hidden, Expected(b"C", shown=False), *closed())
        yield from self._upstream.flushed()

    def _recallable(self, statement: kinds.Statement, ran: Ran) -> None:
        if isinstance(statement, kinds.Select):
            self._memory.ran(statement.text, ran.again)

    # --- what statements read --------------------------------------------------------------------------------------

    def _settings(self) -> Generator[BackendMessage, None, Values | None]:
        """The session's own settings, as they are now; None where something that was sent before has failed.

        A look also waits for all that is under way, so nothing is debited behind a statement that failed.
        """
        row = Expected(b"C", shown=False)
        data, hidden = ours(Ran(settings.READ))
        self._upstream.send(data + frontend.execute(wire.Execute(OURS)) + CLOSED, *hidden, row, *closed())
        yield from self._upstream.flushed()
        return None if self._upstream.failed else settings.read(row.kept[0])

    def _filled(self, text: str, route: Filled) -> str:
        relations = self._engine.system_relations(self._user)
        needed = {name for _, _, name, _ in route.places}
        return filled(text, route, {name: as_literals(relations[f"dpsql.{name}"]()) for name in needed})

    def _own_words(self, text: str) -> Exchange:
        """What is told in the place of the public server's words where it refuses what is private."""

        def exchanged(frame: bytes) -> bytes:
            found = fields(frame)
            error = self._why(text, found) if found.get("C") in (NOT_PERMITTED, SYNTAX) else None
            return frame if error is None else encode(replies.error(error))

        return exchanged

    def _why(self, text: str, found: dict[str, str]) -> DpsqlError | None:
        """The engine's reason for refusing what could not be read here; else that of rows which nobody may read."""
        parts = routed(text, self._engine.names(self._user))
        if parts is None and text:
            return unreadable(text)
        for part in parts or ():
            if isinstance(part.route, Passed) and part.route.private:
                try:
                    self._asking.describe(part.statement, text, (), {}, self._cancel)
                except DpsqlError as error:
                    return error
        named = _NAMED.search(found.get("M", ""))
        private = named is not None and named[1].lower() in self._engine.names(self._user).private
        return Rejected(_ROWS, sqlstate=NOT_PERMITTED, hint=_ROWS_HINT) if private else None
