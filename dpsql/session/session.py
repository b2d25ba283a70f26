"""One client's session: messages in, messages out.

Decides the order of replies, so that a client never loses its place: one ReadyForQuery for each Query and each Sync,
nothing but errors' silence between a failed message and the next Sync. It runs one message at a time, in whatever
thread calls it; only `cancel` may be called from another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dpsql.compiler import kinds, statements
from dpsql.compiler.kinds import Statement
from dpsql.errors import PROTOCOL, SYNTAX, Rejected
from dpsql.pgwire import messages as wire
from dpsql.pgwire.messages import BINARY_FORMAT, BackendMessage, SessionMessage
from dpsql.pgwire.values import decode_value, formats
from dpsql.session import copy, replies, settings, startup
from dpsql.session.memory import Memory
from dpsql.session.ports import CancelToken, Engine, NoSessions, OwnSessions, WireParameters
from dpsql.session.prepared import Portal, Prepared, Result
from dpsql.session.run import prepare, run
from dpsql.session.state import State
from dpsql.session.transaction import Transaction

Replies = Iterator[BackendMessage]
Extended = wire.Parse | wire.Bind | wire.Describe | wire.Execute | wire.Close | wire.Unreadable


class Session:
    """Raises Rejected on creation for a startup parameter that is not allowed."""

    def __init__(
        self,
        engine: Engine,
        user: str,
        database: str,
        parameters: Iterable[tuple[str, str]] = (),
        pid: int = 0,
        sessions: OwnSessions | None = None,
    ) -> None:
        values = startup.settings(engine.parameters, user, parameters)
        engine.check_settings(user, settings.for_engine(values))
        others = NoSessions() if sessions is None else sessions
        self._state = State(engine, engine.catalog(user), user, database, pid, values, Transaction(values), others)
        self._reported = settings.reported(values)
        self._skipping = False
        self._memory = Memory()
        self._mark = self._state.transaction.mark()

    def greeting(self) -> tuple[BackendMessage, ...]:
        """The ParameterStatus messages of a new session."""
        return tuple(wire.ParameterStatus(name, value) for name, value in self._reported.items())

    def cancel(self) -> None:
        """Stops the statement that runs now, if one does; what it has debited stays debited."""
        self._state.cancel.cancel()

    def recall(self, asked: bytes) -> bytes | None:
        """The reply to a whole turn that has been asked before and may be given again; quick, and never blocks."""
        state = self._state
        reply = self._memory.get(asked)
        if reply is None or state.transaction.status != "I" or self._skipping:
            return None
        if not state.engine.recalled(state.user, reply.text, reply.again):
            return None
        if reply.replaces:
            state.statements.by_name.pop("", None)
            if reply.unnamed is not None:
                state.statements.by_name[""] = reply.unnamed
        return reply.data

    def remember(self, asked: bytes) -> None:
        """The bytes that have just been answered, empty if they are not known whole. Called after each turn."""
        self._memory.keep(asked, self._state.statements.by_name.get(""))

    def handle(self, event: SessionMessage) -> Replies:
        """The replies to one message, made while they are taken."""
        return self._memory.follow(event, self._answer(event))

    def _answer(self, event: SessionMessage) -> Replies:
        match event:
            case wire.Query(text):
                yield from self._query(text)
            case wire.Sync():
                yield from self._sync()
            case wire.FunctionCall():
                error = Rejected("function calls of the old protocol are not supported", hint="Use SELECT.")
                yield from self._fail(error)
                yield from self._ready()
            case wire.Unreadable(simple=True):
                yield from self._fail(_unreadable(event))
                yield from self._ready()
            case _ if self._skipping:
                return
            case wire.Parse() | wire.Bind() | wire.Describe() | wire.Execute() | wire.Close() | wire.Unreadable():
                yield from self._guarded(event)
            case _:
                return

    # --- simple query ----------------------------------------------------------------------------------------------

    def _query(self, text: str) -> Replies:
        state = self._state
        self._skipping = False
        state.statements.by_name.pop("", None)
        state.portals.by_name.pop("", None)
        self._mark = state.transaction.mark()
        try:
            parts = statements.split(text)
            state.block = len(parts) > 1
            for statement in parts:
                yield from self._simple(statement)
        except Exception as error:
            yield from self._fail(error)
        state.block = False
        yield from self._ready()

    def _simple(self, statement: Statement) -> Replies:
        if isinstance(statement, kinds.Empty):
            yield wire.EmptyQueryResponse()
            return
        result = self._run(statement)
        copied = _copied(statement)
        codes = (BINARY_FORMAT,) if result.binary else ()
        if copied is None and result.relation is not None:
            yield replies.row_description(result.relation.columns, codes)
        yield from self._send(copied, result, 0, None, codes)

    def _run(self, statement: Statement, parameters: WireParameters = ()) -> Result:
        self._state.cancel = CancelToken()
        result = run(self._state, statement, parameters)
        text = statement.text if isinstance(statement, kinds.Select) else ""
        self._memory.ran(text, result.again, isinstance(statement, kinds.Select))
        if isinstance(statement, kinds.Begin | kinds.Commit | kinds.Rollback):
            self._mark = self._state.transaction.mark()
        return result

    def _send(
        self, copied: kinds.CopyOut | None, result: Result, start: int, count: int | None, codes: tuple[int, ...]
    ) -> Replies:
        """Rows from `start`, at most `count`; then notices and the command tag."""
        sent = 0
        if result.relation is not None:
            relation = result.relation
            rows = relation.rows[start:] if count is None else relation.rows[start : start + count]
            sent = len(rows)
            if copied is not None:
                yield from copy.messages(copied, relation)
            else:
                yield from replies.data_rows(relation.columns, rows, codes)
        yield from self._notices(result.notices)
        yield wire.CommandComplete(f"{result.verb} {sent}" if result.counted else result.verb)

    def _notices(self, texts: tuple[str, ...]) -> Replies:
        pending, self._state.pending = self._state.pending, []
        yield from pending
        for text in texts:
            yield replies.notice(text)

    # --- extended query --------------------------------------------------------------------------------------------

    def _guarded(self, event: Extended) -> Replies:
        try:
            match event:
                case wire.Parse():
                    yield self._parse(event)
                case wire.Bind():
                    yield self._bind(event)
                case wire.Describe():
                    yield from self._describe(event)
                case wire.Execute():
                    yield from self._execute(event)
                case wire.Close(kind, name):
                    self._close(kind, name)
                    yield wire.CloseComplete()
                case wire.Unreadable():
                    raise _unreadable(event)
        except Exception as error:
            self._skipping = True
            yield from self._fail(error)

    def _parse(self, event: wire.Parse) -> BackendMessage:
        self._state.cancel = CancelToken()
        parts = statements.split(event.text)
        if len(parts) > 1:
            raise Rejected("cannot insert multiple commands into a prepared statement", sqlstate=SYNTAX)
        if not event.name:
            self._state.statements.by_name.pop("", None)
        self._state.statements.add(event.name, prepare(self._state, parts[0], event.types))
        return wire.ParseComplete()

    def _bind(self, event: wire.Bind) -> BackendMessage:
        prepared = self._state.statements.get(event.statement)
        self._check_usable(prepared)
        parameters = _parameters(event, prepared)
        codes = formats(event.result_formats, len(prepared.columns)) if prepared.columns is not None else ()
        if not event.portal:
            self._state.portals.by_name.pop("", None)
        self._state.portals.add(event.portal, Portal(prepared, parameters, codes))
        return wire.BindComplete()

    def _check_usable(self, prepared: Prepared) -> None:
        if not isinstance(prepared.statement, kinds.Commit | kinds.Rollback | kinds.RollbackTo | kinds.Empty):
            self._state.transaction.check_usable()

    def _describe(self, event: wire.Describe) -> Replies:
        codes: tuple[int, ...] = ()
        if event.kind == "S":
            prepared = self._state.statements.get(event.name)
            yield wire.ParameterDescription(prepared.oids)
        else:
            portal = self._state.portals.get(event.name)
            prepared, codes = portal.prepared, portal.formats
        if prepared.columns is None:
            yield wire.NoData()
        else:
            yield replies.row_description(prepared.columns, codes)

    def _execute(self, event: wire.Execute) -> Replies:
        portal = self._state.portals.get(event.portal)
        statement = portal.prepared.statement
        if isinstance(statement, kinds.Empty):
            yield wire.EmptyQueryResponse()
            return
        self._check_usable(portal.prepared)
        if portal.result is None:
            result = self._run(statement, portal.parameters)
            if event.max_rows:
                self._state.portals.hold(portal, result)
            portal.result = result
            _check_shape(portal)
        yield from self._from_portal(portal, event.max_rows)

    def _from_portal(self, portal: Portal, max_rows: int) -> Replies:
        """The next rows. One row behind the limit decides whether the portal is suspended or done."""
        result = portal.result
        if result is None or result.relation is None:
            yield from self._finish(portal, Result("") if result is None else result)
            return
        copied = _copied(portal.prepared.statement)
        total = len(result.relation.rows)
        start = min(portal.position, total)
        portal.position = total + 1 if copied is not None or not max_rows else start + max_rows
        notices = () if portal.noticed else result.notices
        portal.noticed = True
        if portal.position < total or (portal.position == total and max_rows):
            rows = result.relation.rows[start : portal.position]
            yield from replies.data_rows(result.relation.columns, rows, portal.formats)
            yield from self._notices(notices)
            yield wire.PortalSuspended()
            return
        rest = Result(result.verb, result.relation, result.counted, notices)
        if copied is None:
            portal.finish()
        yield from self._send(copied if start == 0 else None, rest, start, None, portal.formats)

    def _finish(self, portal: Portal, result: Result) -> Replies:
        """A command without rows: a second Execute runs nothing again."""
        notices = () if portal.noticed else result.notices
        portal.noticed = True
        yield from self._notices(notices)
        yield wire.CommandComplete(result.verb)

    def _close(self, kind: wire.StatementOrPortal, name: str) -> None:
        """Closing what does not exist is no error."""
        if kind == "S":
            self._state.statements.by_name.pop(name, None)
        else:
            self._state.portals.by_name.pop(name, None)

    # --- ends ------------------------------------------------------------------------------------------------------

    def _sync(self) -> Replies:
        self._skipping = False
        yield from self._ready()

    def _fail(self, error: Exception) -> Replies:
        transaction = self._state.transaction
        self._state.pending.clear()
        transaction.restore(self._mark)
        transaction.fail()
        yield replies.error(error)

    def _ready(self) -> Replies:
        """Ends an implicit transaction, tells of changed parameters, and hands the turn to the client."""
        state = self._state
        if state.transaction.status == "I":
            state.portals.end_of_transaction(keep_held=True)
        self._mark = state.transaction.mark()
        now = settings.reported(state.transaction.values)
        for name, value in now.items():
            if self._reported.get(name) != value:
                yield wire.ParameterStatus(name, value)
        self._reported = now
        yield wire.ReadyForQuery(state.transaction.status)


def _unreadable(event: wire.Unreadable) -> Rejected:
    return Rejected(event.message, sqlstate=event.sqlstate)


def _copied(statement: Statement) -> kinds.CopyOut | None:
    return statement if isinstance(statement, kinds.CopyOut) else None


def _parameters(event: wire.Bind, prepared: Prepared) -> WireParameters:
    """The values of a Bind, each read by its declared or inferred type."""
    expected = len(prepared.types)
    if len(event.parameters) != expected:
        raise Rejected(
            f'bind message supplies {len(event.parameters)} parameters, but prepared statement "{event.statement}" '
            f"requires {expected}",
            sqlstate=PROTOCOL,
        )
    codes = formats(event.parameter_formats, expected)
    cells = zip(prepared.types, prepared.oids, event.parameters, codes, strict=True)
    return tuple((type, decode_value(data, oid, code)) for type, oid, data, code in cells)


def _check_shape(portal: Portal) -> None:
    """What was announced is what is sent: a client decodes by the announced types."""
    relation = portal.result.relation if portal.result is not None else None
    columns = portal.prepared.columns
    if (
        relation is not None
        and columns is not None
        and tuple(c.type for c in relation.columns) != tuple(c.type for c in columns)
    ):
        raise Rejected("cached plan must not change result type", hint="Prepare the statement again.")
