"""The commands that a session answers by itself: transactions, settings, cursors, and the no-ops that clients expect.

Decides their effects on the state and their tags. It must never touch the engine.
"""

from __future__ import annotations

from dpsql.compiler import kinds
from dpsql.compiler.kinds import Statement
from dpsql.errors import UNDEFINED_OBJECT, Rejected
from dpsql.pgwire import values as wire
from dpsql.session import cursors, replies, settings
from dpsql.session.ports import WireParameters
from dpsql.session.prepared import Prepared, Result
from dpsql.session.state import State
from dpsql.session.transaction import ACTIVE_TRANSACTION, NO_TRANSACTION
from dpsql.types import Kind, Relation, SqlType


def run(state: State, statement: Statement) -> Result:
    """Raises Rejected for an `Unsupported`, and for what a command itself refuses."""
    match statement:
        case kinds.Unsupported():
            raise statement.error()
        case kinds.Begin() | kinds.Commit() | kinds.Rollback():
            return _transaction(state, statement)
        case kinds.Savepoint(name):
            state.transaction.savepoint(name, state.portals.all())
            return Result("SAVEPOINT")
        case kinds.ReleaseSavepoint(name):
            state.transaction.release(name)
            return Result("RELEASE")
        case kinds.RollbackTo(name):
            state.portals.keep(state.transaction.rollback_to(name))
            return Result("ROLLBACK")
        case kinds.Set():
            return _set(state, statement)
        case kinds.SetCharacteristics():
            return Result("SET")
        case kinds.Show(name):
            values = state.transaction.values
            return Result("SHOW", settings.show_all(values) if name == "all" else settings.show(values, name))
        case kinds.Reset(name):
            return _reset(state, name)
        case kinds.Discard(what):
            return _discard(state, what)
        case kinds.Deallocate(name):
            return _deallocate(state, name)
        case kinds.Listening(tag):
            return Result(tag)
        case kinds.Fetch():
            return _fetch(state, statement)
        case kinds.CloseCursor(name):
            return _close(state, name)
        case _:
            raise Rejected(f"{type(statement).__name__} cannot be run here")


# --- transactions --------------------------------------------------------------------------------------------------


def _transaction(state: State, statement: kinds.Begin | kinds.Commit | kinds.Rollback) -> Result:
    transaction = state.transaction
    if isinstance(statement, kinds.Begin):
        if not transaction.begin():
            _warn(state, "there is already a transaction in progress", ACTIVE_TRANSACTION)
        return Result(statement.tag)
    if transaction.status == "I":
        _warn(state, "there is no transaction in progress", NO_TRANSACTION)
        return Result("COMMIT" if isinstance(statement, kinds.Commit) else "ROLLBACK")
    committed = isinstance(statement, kinds.Commit) and transaction.commit()
    transaction.rollback()
    state.portals.end_of_transaction(keep_held=committed)
    return Result("COMMIT" if committed else "ROLLBACK")


def _warn(state: State, text: str, sqlstate: str) -> None:
    state.pending.append(replies.warning(text, sqlstate))


# --- settings ------------------------------------------------------------------------------------------------------


def _set(state: State, statement: kinds.Set) -> Result:
    transaction = state.transaction
    changed = settings.assign(transaction.values, statement.name, statement.value, state.defaults)
    if statement.local and transaction.status == "I":
        _warn(state, "SET LOCAL can only be used in transaction blocks", NO_TRANSACTION)
        return Result("SET")
    transaction.change(changed, statement.local)
    own = state.defaults["timezone"]
    if statement.name.lower() == "timezone" and changed["timezone"] != own and settings.wants_notices(changed):
        state.pending.append(replies.notice(f"Timestamps are read and written in {own}, as the policy says."))
    return Result("SET")


def _reset(state: State, name: str) -> Result:
    if name == "all":
        state.transaction.change(state.defaults)
    else:
        values = state.transaction.values
        state.transaction.change(settings.assign(values, name, None, state.defaults))
    return Result("RESET")


def _discard(state: State, what: str) -> Result:
    if what == "ALL":
        if state.transaction.status != "I":
            raise Rejected("DISCARD ALL cannot run inside a transaction block", sqlstate=ACTIVE_TRANSACTION)
        state.transaction.change(state.defaults)
        state.statements.by_name.clear()
        state.portals.by_name.clear()
    return Result(f"DISCARD {what}")


# --- prepared statements -------------------------------------------------------------------------------------------


def _deallocate(state: State, name: str | None) -> Result:
    if name is None:
        state.statements.by_name.clear()
        return Result("DEALLOCATE ALL")
    state.statements.get(name)
    del state.statements.by_name[name]
    return Result("DEALLOCATE")


_TYPE_WORDS = {
    "int": Kind.INT4,
    "int2": Kind.INT2,
    "int4": Kind.INT4,
    "int8": Kind.INT8,
    "bool": Kind.BOOL,
    "decimal": Kind.NUMERIC,
    "float": Kind.FLOAT8,
    "float4": Kind.FLOAT4,
    "float8": Kind.FLOAT8,
    "varchar": Kind.TEXT,
    "character varying": Kind.TEXT,
    "char": Kind.TEXT,
    "bpchar": Kind.TEXT,
    "timestamp without time zone": Kind.TIMESTAMP,
    "timestamp with time zone": Kind.TIMESTAMPTZ,
    "time without time zone": Kind.TIME,
    "jsonb": Kind.JSON,
} | {kind.value: kind for kind in Kind}


def type_oid(name: str) -> int:
    """The OID of a type by its name in PREPARE; 0 for `unknown`."""
    if name == "unknown":
        return 0
    if name not in _TYPE_WORDS:
        raise Rejected(f'type "{name[:63]}" does not exist', sqlstate=UNDEFINED_OBJECT)
    return wire.oid(SqlType(_TYPE_WORDS[name]))


def arguments(name: str, prepared: Prepared, texts: tuple[str | None, ...]) -> WireParameters:
    """The arguments of EXECUTE, read like text parameters."""
    if len(texts) != len(prepared.types):
        raise Rejected(
            f'wrong number of parameters for prepared statement "{name}"',
            sqlstate="42601",
            detail=f"Expected {len(prepared.types)} parameters but got {len(texts)}.",
        )
    return tuple(
        (type, wire.decode_value(None if text is None else text.encode(), type))
        for type, text in zip(prepared.types, texts, strict=True)
    )


# --- cursors -------------------------------------------------------------------------------------------------------


def _fetch(state: State, statement: kinds.Fetch) -> Result:
    portal = state.portals.get(statement.name)
    relation = portal.result.relation if portal.result is not None else None
    if relation is None:
        raise Rejected(f'cursor "{statement.name}" has no rows to fetch', sqlstate="55000")
    move = cursors.move(statement, portal.position, len(relation.rows), portal.scroll)
    portal.position = move.position
    if statement.move:
        return Result(f"MOVE {len(move.rows)}")
    rows = tuple(relation.rows[at] for at in move.rows)
    return Result("FETCH", Relation(relation.columns, rows), True, binary=portal.binary)


def _close(state: State, name: str | None) -> Result:
    if name is None:
        state.portals.by_name = {key: portal for key, portal in state.portals.by_name.items() if not portal.cursor}
        return Result("CLOSE CURSOR ALL")
    state.portals.get(name)
    del state.portals.by_name[name]
    return Result("CLOSE CURSOR")
