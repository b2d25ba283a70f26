"""Describing and running one classified statement.

Decides which layer answers it: the session itself, the catalog, or the engine. It must never parse SQL, and never
reach rows but through those two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dpsql.compiler import kinds
from dpsql.compiler.kinds import Statement
from dpsql.errors import NOT_PERMITTED, Rejected
from dpsql.pgwire import values as wire
from dpsql.session import commands, settings
from dpsql.session.options import with_options
from dpsql.session.ports import Description, WireParameters
from dpsql.session.prepared import Portal, Prepared, Result
from dpsql.session.state import State
from dpsql.types import TEXT, UNKNOWN, Column, Kind, Relation, SqlType

BUDGET = "dpsql.budget"

Types = tuple[SqlType | None, ...]


def prepare(state: State, statement: Statement, oids: tuple[int, ...]) -> Prepared:
    """A statement with its types. Runs nothing, costs nothing; raises what describing the query raises."""
    if isinstance(statement, kinds.Unsupported):
        raise statement.error()
    if not isinstance(statement, kinds.Commit | kinds.Rollback | kinds.RollbackTo | kinds.Empty):
        state.transaction.check_usable()
    described = describe(state, statement, tuple(_declared(oid) for oid in oids))
    if described is None:
        return Prepared(statement)
    announced = tuple(
        oids[at] if at < len(oids) and _declared(oids[at]) is not None else wire.oid(type)
        for at, type in enumerate(described.parameter_types)
    )
    return Prepared(statement, described.parameter_types, announced, described.columns)


def _declared(oid: int) -> SqlType | None:
    if oid == 0:
        return None
    type = wire.type_of(oid)
    return None if type == UNKNOWN else type


def describe(state: State, statement: Statement, types: Types) -> Description | None:
    """Parameters and columns; None for a statement that has neither."""
    match statement:
        case kinds.Select():
            return _describe_query(state, statement, types)
        case kinds.Explain(query, format):
            return Description(_describe_query(state, query, types).parameter_types, _plan_columns(format))
        case kinds.Show(name):
            columns = state.engine.budget(state.user).columns if name == BUDGET else settings.show_columns(name)
            return Description((), columns)
        case kinds.Fetch(name, _, _, move) if not move:
            return Description((), state.portals.get(name).prepared.columns or ())
        case kinds.ExecutePrepared(name):
            return Description((), _executable(state, name).columns or ())
        case _:
            return None


def _describe_query(state: State, query: kinds.Select, types: Types) -> Description:
    if state.catalog.is_catalog(query.text):
        return state.catalog.describe(query.text, types, state.context())
    values = with_options(state.transaction.values, query.options)
    asked = settings.for_engine(values)
    return state.engine.describe(state.user, query.text, query.offset, asked, types, state.cancel)


def run(state: State, statement: Statement, parameters: WireParameters = ()) -> Result:
    """Runs a statement. Raises DpsqlError; the caller moves the transaction to its failed state."""
    if not isinstance(statement, kinds.Commit | kinds.Rollback | kinds.RollbackTo):
        state.transaction.check_usable()
    match statement:
        case kinds.Select():
            return _run_query(state, statement, parameters)
        case kinds.CopyOut(query):
            return _copied(state, query, parameters)
        case kinds.Explain():
            return _explain(state, statement, parameters)
        case kinds.Show(name) if name == BUDGET:
            return Result("SHOW", state.engine.budget(state.user))
        case kinds.Prepare(name, types, query):
            oids = tuple(commands.type_oid(type) for type in types)
            state.statements.add(name, prepare(state, query, oids))
            return Result("PREPARE")
        case kinds.ExecutePrepared(name, arguments):
            prepared = _executable(state, name)
            return run(state, prepared.statement, commands.arguments(name, prepared, arguments))
        case kinds.Declare():
            return _declare(state, statement)
        case kinds.Set(name, value) if name.lower().startswith("dpsql."):
            wanted = settings.assign(state.transaction.values, name, value, state.defaults)
            state.engine.check_settings(state.user, settings.for_engine(wanted))
            return commands.run(state, statement)
        case _:
            return commands.run(state, statement)


_COPY_HINT = "COPY (SELECT ... GROUP BY ...) TO STDOUT copies the answer to a question."


def _copied(state: State, query: kinds.Select, parameters: WireParameters) -> Result:
    try:
        result = _run_query(state, query, parameters)
    except Rejected as error:
        if error.sqlstate == NOT_PERMITTED:
            error.hint = f"{error.hint or ''} {_COPY_HINT}".strip()
        raise
    return Result("COPY", result.relation, True, result.notices)


def _executable(state: State, name: str) -> Prepared:
    """What EXECUTE may run: a query, not another command or EXECUTE."""
    prepared = state.statements.get(name)
    if not isinstance(prepared.statement, kinds.Select):
        raise Rejected(f'prepared statement "{name}" is not a query', hint="Send the command itself.")
    return prepared


def _run_query(state: State, query: kinds.Select, parameters: WireParameters) -> Result:
    if state.catalog.is_catalog(query.text):
        return Result("SELECT", state.catalog.answer(query.text, parameters, state.context(), state.cancel), True)
    values = with_options(state.transaction.values, query.options)
    answer = state.engine.answer(
        state.user,
        query.text,
        query.offset,
        settings.for_engine(values),
        parameters,
        state.cancel,
    )
    if settings.wants_notices(values):
        return Result("SELECT", answer.relation, True, answer.notices, answer.again)
    again = answer.again and replace(answer.again, notices=())
    return Result("SELECT", answer.relation, True, (), again)


def _explain(state: State, statement: kinds.Explain, parameters: WireParameters) -> Result:
    query = statement.query
    values = with_options(state.transaction.values, query.options)
    relation = state.engine.explain(
        state.user,
        query.text,
        query.offset,
        settings.for_engine(values),
        parameters,
        statement.format,
        state.cancel,
    )
    return Result("EXPLAIN", Relation(_plan_columns(statement.format), relation.rows))


def _plan_columns(format: Literal["text", "json"]) -> tuple[Column, ...]:
    return (Column("QUERY PLAN", SqlType(Kind.JSON) if format == "json" else TEXT),)


def _declare(state: State, statement: kinds.Declare) -> Result:
    """Runs the query at once: the cursor's rows are those of one answer, however they are fetched."""
    if not (statement.hold or state.block or state.transaction.status == "T"):
        raise Rejected("DECLARE CURSOR can only be used in transaction blocks", sqlstate="25P01", hint="BEGIN first.")
    prepared = prepare(state, statement.query, ())
    portal = Portal(prepared, cursor=True, hold=statement.hold, scroll=statement.scroll, binary=statement.binary)
    state.portals.add(statement.name, portal)
    try:
        result = run(state, statement.query)
        state.portals.hold(portal, result)
    except BaseException:
        del state.portals.by_name[statement.name]
        raise
    return Result("DECLARE CURSOR", notices=result.notices)
